/** Finds what needs a person, worst first; and whether a resource is free, held, shared, waited for too long, or lost. */
import { usualWait } from './rates.ts';
import { usedOf } from './slots.ts';
import { kindAndName } from './text.ts';
import { HOUR_MS, plural, span } from './time.ts';
import type { Deadlock, Hold, Phase, Pipeline, Resource, State, Trouble, Waiter } from './types.ts';

/** A wait is long when it exceeds both a floor and a multiple of the usual. */
export const LONG_WAIT_MS = 60_000;
export const TIMES_THE_USUAL = 3;
/** A block that clears within this time needs no person. */
export const STUCK_MS = 30_000;
/** A broken deadlock stays listed for this time, or until a person dismisses it. */
export const DEADLOCK_MS = HOUR_MS;

export type Aspect = 'free' | 'held' | 'shared' | 'caution' | 'danger';

export type MatterKind = 'lost' | Trouble['kind'] | 'stuck' | 'driver' | 'wait' | 'deadlock';

export interface Matter {
  /** Stays the same as long as the matter lasts, so that rows keep their place and focus. */
  readonly key: string;
  readonly kind: MatterKind;
  readonly title: string;
  readonly aspect: 'danger' | 'caution';
  /** Plain and strong words in turn, beginning with a strong one. */
  readonly sentence: readonly string[];
  readonly cost: string;
  /** Undefined if nobody knows. */
  readonly since: number | undefined;
  readonly action: string;
  /** Where the action leads: a route of the page. */
  readonly leads: string;
  /** A command that the action copies, because the page cannot help. */
  readonly copies?: string;
  /** The resource that may be broken, if its hold is lost. */
  readonly breaks?: string;
  /** The matter never becomes untrue by itself, so a person who has dealt with it may dismiss it. */
  readonly isDismissable?: boolean;
}

const ORDER: readonly MatterKind[] = [
  ...(['lost', 'damaged', 'unreadable', 'stuck', 'driver', 'wait', 'filling', 'deadlock'] as const),
];

export function isLongWait(state: Pick<State, 'waits'>, resource: string, waiter: Waiter, now: number): boolean {
  const waited = now - waiter.since;
  if (waited < LONG_WAIT_MS) return false;
  const usual = usualWait(state, resource);
  return usual === undefined || waited > TIMES_THE_USUAL * usual;
}

export function lostHolds({ holds, onStale }: Resource): readonly Hold[] {
  return onStale === 'alert' ? holds.filter(({ isStale }) => isStale) : [];
}

/** The waiter that has waited longest. */
export function longest(resource: Resource): Waiter | undefined {
  return resource.waiting.reduce<Waiter | undefined>(
    (oldest, waiter) => (oldest === undefined || waiter.since < oldest.since ? waiter : oldest),
    undefined,
  );
}

export function aspectOf(state: Pick<State, 'waits'>, one: Resource, now: number): Aspect {
  if (lostHolds(one).length > 0) return 'danger';
  const oldest = longest(one);
  if (oldest !== undefined && isLongWait(state, one.resource, oldest, now)) return 'caution';
  const [hold] = one.holds;
  if (hold === undefined) return 'free';
  return one.kind === 'lock' && hold.mode === 'shared' ? 'shared' : 'held';
}

export function routeOf(resource: string): string {
  const [kind, name] = kindAndName(resource);
  return `/${kind}s/${encodeURIComponent(name)}`;
}

function isTooLong({ health }: Hold): boolean {
  return health === 'slow';
}

function lossTold(lost: Hold): string {
  return isTooLong(lost) ? `${lost.holder} has held it longer than it may` : `the lease of ${lost.holder} ended`;
}

function roomTold({ drained }: Resource, free: number): string {
  return drained === null ? `${free} free` : `drained by ${drained.by}`;
}

/** Says whether a person should look at a semaphore or lock, and why. */
function matterOf(state: State, one: Resource, now: number): Matter | undefined {
  const [lost] = lostHolds(one);
  const behind = one.waiting.length;
  if (lost !== undefined) {
    return {
      ...{ key: `lost ${one.resource} ${lost.token}`, kind: 'lost', title: 'Lost hold', aspect: 'danger' },
      sentence: [one.resource, `: ${lossTold(lost)}. Set to `, 'alert', ', so nobody gets it without you'],
      cost: behind === 0 ? 'nobody waits' : `${behind} waiting`,
      // Nobody knows when a lease ended.
      since: isTooLong(lost) ? lost.acquiredAt + (lost.maxHoldMs ?? 0) : undefined,
      ...{ action: one.kind === 'lock' ? 'Break lock…' : 'See slots', leads: routeOf(one.resource) },
      ...(one.kind === 'lock' && { breaks: one.resource }),
    };
  }
  const oldest = longest(one);
  if (oldest === undefined || !isLongWait(state, one.resource, oldest, now)) return undefined;
  const usual = usualWait(state, one.resource);
  const tail = usual === undefined ? '' : ` Usual wait: ${span(usual)}`;
  const free = Math.max(0, one.capacity - usedOf(one));
  const sentence =
    one.kind === 'semaphore'
      ? [oldest.holder, ` wants ${oldest.weight} of `, one.resource, `; ${roomTold(one, free)}.${tail}`]
      : [oldest.holder, ' waits for ', one.resource, `, held by ${one.holds[0]?.holder ?? 'nobody'}.${tail}`];
  return {
    ...{ key: `wait ${one.resource}`, kind: 'wait', title: 'Long wait', aspect: 'caution', sentence },
    cost: behind > 1 ? `${behind - 1} behind it` : 'nobody behind it',
    since: oldest.since,
    ...{ action: one.kind === 'semaphore' ? 'See slots' : 'See queue', leads: routeOf(one.resource) },
  };
}

export function isDone({ state }: Phase): boolean {
  return state === 'done' || state === 'skipped';
}

function pipelineMatter(one: Pipeline, now: number): Matter | undefined {
  const { state, blocked, isDriven } = one;
  const left = one.phases.filter((phase) => !isDone(phase)).length;
  const leads = routeOf(`pipeline/${one.id}`);
  const common = { aspect: 'danger', cost: `${plural(left, 'phase')} left`, leads } as const;
  const since = blocked?.since ?? one.startedAt ?? now;
  const [before, name] = [' waits before ', one.phase ?? 'its next phase'];
  if (blocked?.on === 'person') {
    return {
      ...{ key: `stuck ${one.id}`, kind: 'stuck', title: 'Asks you', ...common, since, action: 'See reasons' },
      sentence: [`pipeline/${one.id}`, before, name, ': a person has to decide'],
    };
  }
  // Its driver may have left it blocked on purpose.
  if (state === 'blocked' && now - since < STUCK_MS) return undefined;
  if (!isDriven && (state === 'running' || state === 'blocked')) {
    const began = one.phases.findLast(({ startedAt }) => startedAt !== null)?.startedAt;
    const [title, is] = state === 'running' ? ['Dead driver', 'was at'] : ['No driver', 'is blocked at'];
    return {
      ...{ key: `driver ${one.id}`, kind: 'driver', title, ...common, action: 'See phases' },
      sentence: [`pipeline/${one.id}`, ` ${is} ${one.phase ?? 'its first phase'}; nobody drives it`],
      since: state === 'blocked' ? since : (began ?? since),
    };
  }
  // A pipeline that waits for a lock or for its next attempt goes on by itself; if it waits long, that concerns the lock.
  if (state !== 'blocked' || blocked?.on !== 'guard') return undefined;
  const fails =
    blocked.reasons.length === 0 ? '' : `: ${plural(blocked.reasons.length, 'condition fails', 'conditions fail')}`;
  return {
    ...{ key: `stuck ${one.id}`, kind: 'stuck', title: 'Stuck guard', ...common, since, action: 'See reasons' },
    sentence: [`pipeline/${one.id}`, before, name, fails],
  };
}

export function deadlockRoute({ id }: Deadlock): string {
  return `/deadlocks/${encodeURIComponent(id)}`;
}

function deadlockMatter(one: Deadlock): Matter {
  const way = one.cycle.map(({ holder, resource }) => `${holder} → ${resource}`).join(' → ');
  return {
    ...{ key: `deadlock ${one.id}`, kind: 'deadlock', title: 'Deadlock', aspect: 'caution' },
    sentence: ['Broken', ' by refusing ', one.victim, way === '' ? '' : `: ${way}`],
    ...{ cost: '1 refused', since: one.at, action: 'See cycle', leads: deadlockRoute(one) },
  };
}

const TROUBLES = { damaged: 'Damaged record', unreadable: 'Unreadable', filling: 'Record fills' } as const;

function troubleMatter({ kind, key, subject, says, command, at }: Trouble): Matter {
  return {
    ...{ key, kind, title: TROUBLES[kind], aspect: kind === 'filling' ? 'caution' : 'danger' },
    ...{ sentence: [subject, says], cost: '', since: at, action: 'Copy command', leads: '/timeline', copies: command },
    ...(kind === 'damaged' && { isDismissable: true }),
  };
}

/** `dismissed`: the keys of matters that the reader has settled. */
export function mattersOf(state: State, now: number, dismissed: ReadonlySet<string> = new Set()): readonly Matter[] {
  const found: Matter[] = [];
  const add = (matter: Matter | undefined): void => void (matter !== undefined && found.push(matter));
  for (const one of state.resources.values()) {
    if (one.waiting.length > 0 || one.onStale === 'alert') add(matterOf(state, one, now));
  }
  for (const one of state.troubles) add(troubleMatter(one));
  for (const one of state.pipelines.values()) add(pipelineMatter(one, now));
  for (const one of state.deadlocks) if (now - one.at < DEADLOCK_MS) add(deadlockMatter(one));
  return found
    .filter(({ key }) => !dismissed.has(key))
    .sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind) || (one.since ?? 0) - (other.since ?? 0));
}
