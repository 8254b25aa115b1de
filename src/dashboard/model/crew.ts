/** Lists members by id, with what each owns and which of them lead. */
import { HOUR_MS } from './time.ts';
import type { Member, Resource, State } from './types.ts';

const LEADERS = 'lead:';

/**
 * Whether a holder is this member: a leader, or a process that takes a new name for each hold, appends an id to the
 * member's name.
 */
export function isOf(holder: string, id: string): boolean {
  return holder === id || holder.startsWith(`${id}:`);
}

export interface Leadership {
  readonly name: string;
  readonly holder: string;
  readonly epoch: number;
  readonly resource: string;
}

export function leadershipsOf({ resources }: Pick<State, 'resources'>): readonly Leadership[] {
  return [...resources.values()].flatMap(({ kind, name, resource, holds: [hold] }) =>
    kind === 'lock' && name.startsWith(LEADERS) && hold !== undefined
      ? [{ name: name.slice(LEADERS.length), holder: hold.holder, epoch: hold.token, resource }]
      : [],
  );
}

export interface Mate {
  readonly id: string;
  /** Null once the member has left. */
  readonly member: Member | null;
  readonly isCoordinator: boolean;
  readonly leads: readonly Leadership[];
  readonly holds: number;
  readonly at: number | null;
}

/** The live members in the order of their ids, then those that left within the hour. */
export function crewOf(state: State, now: number): readonly Mate[] {
  const leads = leadershipsOf(state);
  const holders = new Map<string, number>();
  for (const { holds } of state.resources.values()) {
    for (const { holder } of holds) holders.set(holder, (holders.get(holder) ?? 0) + 1);
  }
  const held = (id: string): number => {
    let sum = 0;
    for (const [holder, holds] of holders) if (isOf(holder, id)) sum += holds;
    return sum;
  };
  const live = [...state.members.values()]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map((member) => ({
      ...{ id: member.id, member, isCoordinator: member.id === state.coordinator, at: member.joinedAt },
      ...{ leads: leads.filter(({ holder }) => isOf(holder, member.id)), holds: held(member.id) },
    }));
  const gone = new Map<string, number>();
  for (const { type, holder, at } of state.entries) {
    const isNews = type === 'member:left' && now - at < HOUR_MS && !state.members.has(holder) && !gone.has(holder);
    if (isNews) gone.set(holder, at);
  }
  return [
    ...live,
    ...[...gone].map(([id, at]) => ({ id, member: null, isCoordinator: false, leads: [], holds: 0, at })),
  ];
}

export function heldBy({ resources }: Pick<State, 'resources'>, id: string): readonly Resource[] {
  return [...resources.values()].filter(({ holds }) => holds.some(({ holder }) => isOf(holder, id)));
}

export interface Place {
  readonly x: number;
  readonly y: number;
  readonly side: 'start' | 'middle' | 'end';
}

/** The place of member number `index` on a ring, the first at the top. */
export function placeOf(index: number, size: number, radius: number): Place {
  const turn = (index / Math.max(1, size)) * 2 * Math.PI;
  const [x, y] = [Math.sin(turn) * radius, -Math.cos(turn) * radius];
  return { x, y, side: Math.abs(x) < radius * 0.12 ? 'middle' : x > 0 ? 'start' : 'end' };
}
