/**
 * The view: which members are alive, in id order, and what changed since the view before.
 *
 *     member/a joins ──▶ view 7: a          joined: a
 *     member/b joins ──▶ view 9: a b        joined: b
 *     a's lease ends ──▶ view 12: b         left: a
 *
 * A view is made of the members' keys alone, a whole revision of the store at a time. So every process that follows the store
 * makes the same views in the same order, without a message between them.
 */
import type { Json } from '../machine.ts';

/** Something that a member owns. */
export interface Asset {
  /** Its id, which the member chose. */
  readonly id: string;
  /** No other member may register it. */
  readonly isExclusive: boolean;
  /** The revision at which the member registered it: of two members that share an asset, the smaller came first. */
  readonly since: number;
}

/** A member as any view names it. */
export interface ViewMember {
  /** Its id. */
  readonly id: string;
  /** What it said about itself. */
  readonly metadata?: Json | undefined;
  /** Tells two members with one id apart: one left, and the other joined later. Of the two, the later has the larger. */
  readonly incarnation: number;
  /** Its share of the keys that `ownerOf` places: twice the weight, twice the keys. One, if not given. */
  readonly weight?: number | undefined;
}

/** A member as the store knows it. */
export interface Member extends ViewMember {
  /** What it said about itself. */
  readonly metadata: Json | undefined;
  /** Its share of the keys that `ownerOf` places. */
  readonly weight: number;
  /** The time, by the clock of the process that joined. */
  readonly joinedAt: number;
  /** In the order in which it registered them. */
  readonly assets: readonly Asset[];
}

/** The live members at one moment. */
export interface View<M extends ViewMember = ViewMember> {
  /** Grows with every change. Processes that follow one store give the same change the same version. */
  readonly version: number;
  /** By id, in the order of code units. */
  readonly members: readonly M[];
}

/** The change from one view to the next. */
export interface ViewChange<M extends ViewMember = ViewMember> {
  /** The view after it. */
  readonly view: View<M>;
  /** Members that were not there before. */
  readonly joined: readonly M[];
  /** Members that are no longer there. */
  readonly left: readonly M[];
  /** Members that stayed, and have other assets or metadata now. */
  readonly changed: readonly M[];
  /** Views between the last one and this were skipped: members may have come and gone unseen. */
  readonly isResync: boolean;
}

export const NO_VIEW: View<never> = { version: 0, members: [] };

/** Code units, because the order of a locale differs from machine to machine. */
export function byId(one: { readonly id: string }, other: { readonly id: string }): number {
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}

/** Puts members into the order of a view. Of two with one id, the later incarnation counts. */
export function viewOf<M extends ViewMember>(version: number, members: Iterable<M>): View<M> {
  const byName = new Map<string, M>();
  for (const member of members) {
    const other = byName.get(member.id);
    if (other === undefined || other.incarnation < member.incarnation) byName.set(member.id, member);
  }
  return { version, members: [...byName.values()].sort(byId) };
}

/** Who joined, left and changed between two views. A member that rejoined did both: its incarnation is another one. */
export function changeBetween<M extends ViewMember>(before: View<M>, after: View<M>, isResync = false): ViewChange<M> {
  const [joined, left, changed]: [M[], M[], M[]] = [[], [], []];
  let [one, other] = [0, 0];
  while (one < before.members.length || other < after.members.length) {
    const [was, is] = [before.members[one], after.members[other]];
    const order = was === undefined ? 1 : is === undefined ? -1 : byId(was, is);
    if (order <= 0) one += 1;
    if (order >= 0) other += 1;
    if (order === 0 && was?.incarnation === is?.incarnation) {
      if (was !== is && JSON.stringify(was) !== JSON.stringify(is)) changed.push(is as M);
      continue;
    }
    if (order <= 0) left.push(was as M);
    if (order >= 0) joined.push(is as M);
  }
  return { view: after, joined, left, changed, isResync };
}

export function isNothing({ joined, left, changed }: ViewChange): boolean {
  return joined.length + left.length + changed.length === 0;
}

/**
 * The first member in id order; null without members. The same view gives the same coordinator, so no message is needed. Two
 * processes may see different views for a moment, and then both take themselves for the coordinator: what must happen only
 * once needs `lead`.
 */
export function coordinatorOf({ members }: View): string | null {
  return members[0]?.id ?? null;
}

/** What one revision of the store does to one member: undefined if its key went. */
export type MemberUpdate<M extends ViewMember> = readonly [id: string, member: M | undefined];

/** The view after one revision; the same object if no member changed. */
export function updated<M extends ViewMember>(
  view: View<M>,
  revision: number,
  updates: readonly MemberUpdate<M>[],
): View<M> {
  if (updates.length === 0) return view;
  const members = new Map(view.members.map((member) => [member.id, member]));
  for (const [id, member] of updates) {
    if (member === undefined) members.delete(id);
    else members.set(id, member);
  }
  return viewOf(revision, members.values());
}
