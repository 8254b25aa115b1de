/**
 * The one watch on the members of a process. It makes the views: from the members' keys, or from the view that the user
 * supplied, with the assets that the store has for its members. It ends with its last listener.
 */
import {
  changeBetween,
  coordinatorOf,
  isNothing,
  type Member,
  NO_VIEW,
  updated,
  type View,
  type ViewChange,
  viewOf,
} from '../../core/index.ts';
import { type Change, type Changes, prefixed, readRange, type Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import { readEach } from '../stored.ts';
import { type Subscription, subscription } from '../subscription.ts';
import type { MembershipView } from './membership-view.ts';
import { idOf, memberIn, MEMBERS } from './records.ts';

/** Runs on the path of the watch, so it must neither throw nor wait. */
export type FeedListener = (change: ViewChange<Member>) => void;

export class MemberFeed {
  readonly #runtime: Runtime;
  readonly #supplied: MembershipView | undefined;
  #following: Following | undefined;

  constructor(runtime: Runtime, supplied: MembershipView | undefined) {
    this.#runtime = runtime;
    this.#supplied = supplied;
  }

  /** The last view; empty while nobody listens. */
  get view(): View<Member> {
    return this.#following?.view ?? NO_VIEW;
  }

  /** Whether all processes give a view the same version; they do not if users supply their own views. */
  get hasSharedVersions(): boolean {
    return this.#supplied === undefined;
  }

  /** A view that the user supplies counts incarnations in its own way. */
  isSame(joined: Revision, incarnation: number): boolean {
    return this.#supplied !== undefined || joined === incarnation;
  }

  /** Resolves once the view is there and no change can be missed. */
  async listen(listener: FeedListener): Promise<Subscription> {
    const following = (this.#following ??= new Following(this.#runtime, this.#supplied));
    const own: FeedListener = (change) => listener(change);
    following.listeners.add(own);
    const unsubscribe = (): void => {
      following.listeners.delete(own);
      if (following.listeners.size > 0) return;
      following.stop();
      if (this.#following === following) this.#following = undefined;
    };
    try {
      await following.begun;
    } catch (error) {
      if (this.#following === following) this.#following = undefined;
      unsubscribe();
      throw error;
    }
    return subscription(unsubscribe);
  }
}

class Following {
  readonly #runtime: Runtime;
  readonly #supplied: MembershipView | undefined;
  readonly #over = new AbortController();
  readonly #suppliedChanges: Subscription | undefined;
  readonly listeners = new Set<FeedListener>();
  readonly begun: Promise<void>;
  /** The members in the store. */
  #stored: View<Member> = NO_VIEW;
  /** All changes up to this revision are in it. */
  #asOf: Revision = 0;
  /** Changes that arrived before the members were read. */
  #early: Changes[] | undefined = [];
  view: View<Member> = NO_VIEW;

  constructor(runtime: Runtime, supplied: MembershipView | undefined) {
    this.#runtime = runtime;
    this.#supplied = supplied;
    this.#suppliedChanges = supplied?.onChange(({ isResync }) => this.#changed(isResync));
    this.begun = this.#begin();
  }

  stop(): void {
    this.#over.abort();
    this.#suppliedChanges?.unsubscribe();
  }

  async #begin(): Promise<void> {
    const { store, clock, stopped } = this.#runtime;
    const signal = AbortSignal.any([stopped, this.#over.signal]);
    const follower = { changes: (changes: Changes) => this.#changes(changes), resync: () => this.#resync() };
    await follow(store, clock, prefixed(MEMBERS), follower, signal);
    await this.#list(signal);
    this.view = this.#combined();
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const changes of early) this.#changes(changes);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { pairs, revision } = await readRange(this.#runtime.store, prefixed(MEMBERS), signal);
    // This answer is older than what a later read, or the watch, has brought meanwhile.
    if (revision < this.#asOf) return;
    this.#stored = viewOf(revision, readEach(pairs, memberIn));
    this.#asOf = revision;
  }

  #changes(changes: Changes): void {
    if (this.#early !== undefined) return void this.#early.push(changes);
    if (changes.revision <= this.#asOf) return;
    this.#asOf = changes.revision;
    this.#stored = updated(this.#stored, changes.revision, changes.changes.flatMap(updateOf));
    this.#changed(false);
  }

  async #resync(): Promise<Revision> {
    await this.#list(AbortSignal.any([this.#runtime.stopped, this.#over.signal]));
    // Reported even if nothing is different now: members may have come and gone meanwhile.
    this.#changed(true);
    return this.#asOf;
  }

  #changed(isResync: boolean): void {
    if (this.#early !== undefined) return;
    const before = this.view;
    const change = changeBetween(before, this.#combined(), isResync);
    if (isNothing(change) && !isResync) return;
    this.view = change.view;
    for (const listener of this.listeners) listener(change);
    const [from, to] = [coordinatorOf(before), coordinatorOf(change.view)];
    if (from === to) return;
    const at = this.#runtime.clock.now();
    const { version } = change.view;
    this.#runtime.emit('members', [{ type: 'coordinator:changed', at, holder: to ?? '', from, to, version }]);
  }

  #combined(): View<Member> {
    if (this.#supplied === undefined) return this.#stored;
    const stored = new Map(this.#stored.members.map((member) => [member.id, member]));
    const { version, members } = this.#supplied.view();
    return viewOf(
      version,
      members.map(({ id, incarnation, metadata, weight }): Member => {
        const own = stored.get(id);
        const { joinedAt = 0, assets = [] } = own ?? {};
        return {
          id,
          incarnation,
          metadata: metadata ?? own?.metadata,
          weight: weight ?? own?.weight ?? 1,
          joinedAt,
          assets,
        };
      }),
    );
  }
}

/** A key that cannot be read is no member. */
function updateOf(change: Change): readonly (readonly [string, Member | undefined])[] {
  try {
    if (change.kind === 'delete') return [[idOf(change.key), undefined]];
    const [member] = readEach([change.pair], memberIn);
    return [[idOf(change.pair.key), member]];
  } catch {
    return [];
  }
}
