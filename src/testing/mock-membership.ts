/** A membership view whose members a test sets: for `open(url, { membership })`. */
import { changeBetween, type View, type ViewChange, type ViewMember, viewOf } from '../core/index.ts';
import type { MembershipView } from '../runtime/members/membership-view.ts';
import { type Subscription, subscription } from '../runtime/subscription.ts';

/** A member in a test: an id, or an object with the fields that matter to the test. */
export type MockMember = string | (Partial<ViewMember> & { readonly id: string });

/** A view without a store: the test sets the members, and the view calls its listeners at once. */
export class MockMembershipView implements MembershipView {
  #view: View;
  readonly #listeners = new Set<(change: ViewChange) => void>();

  /** `members` are the first members. */
  constructor(members: readonly MockMember[] = []) {
    this.#view = this.#viewOf(1, members);
  }

  /** The members as the test last set them. */
  view(): View {
    return this.#view;
  }

  /** Calls `listener` at every `setMembers`. */
  onChange(listener: (change: ViewChange) => void): Subscription {
    this.#listeners.add(listener);
    return subscription(() => void this.#listeners.delete(listener));
  }

  /**
   * Replaces the members. Before it returns, it delivers who joined and who left, and it returns the same. An existing member
   * keeps its incarnation, unless the test names another.
   */
  setMembers(members: readonly MockMember[], options: { readonly isResync?: boolean } = {}): ViewChange {
    const before = this.#view;
    this.#view = this.#viewOf(before.version + 1, members);
    const change = changeBetween(before, this.#view, options.isResync === true);
    for (const listener of this.#listeners) listener(change);
    return change;
  }

  /** The number of listeners; 0 once everything was stopped. */
  get listeners(): number {
    return this.#listeners.size;
  }

  #viewOf(version: number, members: readonly MockMember[]): View {
    const known = new Map((version === 1 ? [] : this.#view.members).map((member) => [member.id, member]));
    return viewOf(
      version,
      members.map((given): ViewMember => {
        const member = typeof given === 'string' ? { id: given } : given;
        return { incarnation: known.get(member.id)?.incarnation ?? version, ...member };
      }),
    );
  }
}
