/** Completes commands: fills in ids, leases and everything else that the caller left out. */
import { type Hold, ownHold, placeOf } from '../hold.ts';
import type { LockMode } from '../lock.ts';
import type { Json, Request } from '../machine.ts';
import { shorter } from '../settings.ts';
import { shown } from '../shown.ts';
import type { LockAcquire, SemaphoreAcquire } from '../together.ts';
import {
  type AcquireTogether,
  type Asking,
  type Extend,
  kindOf,
  type LockAsk,
  type ResourceCommand,
} from './command.ts';
import { isGone } from './lease.ts';
import type { ResourceName } from './manager.ts';
import { lookUp } from './table.ts';
import { type Command, isUnmade, nextName, OWN_NAME, stateOf, type Terms, type Turn } from './turn.ts';

/** The complete command, or why it makes no sense as things stand. */
export type InFull<C> = { readonly command: C; readonly terms: Terms } | { readonly problem: string };

export function inFull(turn: Turn, asked: ResourceCommand): InFull<Command> {
  const { resource } = asked;
  if (asked.kind === 'acquire') return acquireInFull(turn, resource, asked);
  if (asked.kind === 'extend') return extendInFull(turn, resource, asked);
  if (asked.kind === 'upgrade') return upgradeInFull(turn, asked);
  if (asked.kind === 'configure' && isUnmade(stateOf(turn, resource))) {
    return { problem: `there is no ${resource} yet; it is made by naming its capacity` };
  }
  return { command: asked, terms: {} };
}

/** One acquire for each part, in their order. */
export function togetherInFull(turn: Turn, asked: AcquireTogether): InFull<readonly Acquire[]> {
  const id = asked.id ?? nextName(turn);
  const lease = asked.lease ?? nextName(turn);
  const commands: Acquire[] = [];
  for (const part of asked.parts) {
    const problem = askingProblem(turn, part.resource, asked);
    if (problem !== undefined) return { problem };
    commands.push(acquireOf(part.resource, { ...part, force: asked.force }, requestOf(asked, id, lease, false)));
  }
  return { command: commands, terms: termsOf(lease, asked) };
}

type Acquire = LockAcquire | SemaphoreAcquire;

/** The ways in which acquires differ. */
interface Manner {
  readonly mode?: LockMode;
  readonly weight?: number;
  readonly capacity?: number;
  readonly wait?: boolean;
  readonly force?: true | undefined;
}

function acquireInFull(turn: Turn, resource: ResourceName, asked: Asking & Manner): InFull<Acquire> {
  const problem = askingProblem(turn, resource, asked);
  if (problem !== undefined) return { problem };
  // A holder that wants more lives as long as the hold it has.
  const own = ownHold(holdsOf(turn, resource), asked.holder, turn.at);
  const lease = asked.lease ?? own?.lease ?? nextName(turn);
  const request = requestOf(asked, asked.id ?? nextName(turn), lease, asked.lease === undefined);
  return { command: acquireOf(resource, asked, request), terms: termsOf(lease, asked) };
}

function acquireOf(resource: ResourceName, manner: Manner, request: Request): Acquire {
  const { mode = 'exclusive', weight = 1, capacity, wait = false } = manner;
  // The manager cannot know that an answer got lost: any request may be a repetition.
  const common = {
    ...request,
    kind: 'acquire' as const,
    wait,
    again: true as const,
    ...(manner.force === true && { force: true as const }),
  };
  if (kindOf(resource) === 'lock') return { ...common, mode };
  return { ...common, weight, ...(capacity !== undefined && { capacity }) };
}

/** Copies only the fields of a request: whatever else the caller passed along does not get into the state. */
function requestOf(asked: Asking, id: string, lease: string, isDetached: boolean): Request & { readonly steal?: true } {
  const { holder, priority = 0, ttlMs, maxHoldMs, reason, metadata, steal } = asked;
  return {
    id,
    holder,
    lease,
    priority,
    // A lease that the caller names may keep several holds, so it lasts as long as the caller says.
    ...(isDetached && { detached: true as const, ...(ttlMs !== undefined && { ttlMs }) }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(reason !== undefined && { reason }),
    // A copy, because the caller may go on changing its own.
    ...(metadata !== undefined && { metadata: JSON.parse(JSON.stringify(metadata)) as Json }),
    ...(steal === true && { steal }),
  };
}

function extendInFull(turn: Turn, resource: ResourceName, asked: Extend): InFull<Command> {
  const { kind, holder, id, token } = asked;
  const { limits } = stateOf(turn, resource).record;
  const ttlMs = asked.ttlMs === undefined ? undefined : shorter(asked.ttlMs, limits?.ttlMs);
  const maxHoldMs = asked.maxHoldMs === undefined ? undefined : shorter(asked.maxHoldMs, limits?.maxHoldMs);
  const [lease, limit] = [nextName(turn), nextName(turn)];
  const command: Command = {
    kind,
    holder,
    ...(id !== undefined && { id }),
    ...(token !== undefined && { token }),
    ...(ttlMs !== undefined && { lease, ttlMs }),
    ...(maxHoldMs !== undefined && { limit }),
  };
  const terms = {
    ...(ttlMs !== undefined && { [lease]: { ttlMs } }),
    ...(maxHoldMs !== undefined && { [limit]: { ttlMs: maxHoldMs, fixed: true as const } }),
  };
  return { command, terms };
}

type Upgrade = Extract<LockAsk, { kind: 'upgrade' }> & { readonly resource: ResourceName };

function upgradeInFull(turn: Turn, asked: Upgrade): InFull<Command> {
  const { resource, ...rest } = asked;
  const problem = idProblem(turn, resource, asked.request, asked.holder);
  if (problem !== undefined) return { problem };
  const holds = holdsOf(turn, resource);
  const lease = holds[placeOf(holds, asked)]?.lease ?? '';
  const request = asked.request ?? nextName(turn);
  const command = { ...rest, request, lease, wait: asked.wait === true, again: true as const };
  return { command, terms: {} };
}

function holdsOf(turn: Turn, resource: ResourceName): readonly Hold[] {
  return stateOf(turn, resource).record.holds;
}

function termsOf(lease: string, { ttlMs }: Asking): Terms {
  return ttlMs === undefined ? {} : { [lease]: { ttlMs } };
}

function askingProblem(turn: Turn, resource: ResourceName, asked: Asking): string | undefined {
  return idProblem(turn, resource, asked.id, asked.holder) ?? leaseProblem(turn, asked);
}

/**
 * A request that is repeated because its answer got lost has the same id, and gets the outcome of the first. No other
 * request may have that id: it would get the same outcome, and `cancel` goes by ids.
 */
function idProblem(turn: Turn, resource: ResourceName, id: string | undefined, holder: string): string | undefined {
  if (id === undefined) return undefined;
  if (id.startsWith(OWN_NAME)) return `id is ${shown(id)}; expected those that do not begin with ${OWN_NAME}`;
  const { record, waiting } = stateOf(turn, resource);
  const here = [...record.holds, ...waiting].find((one) => one.id === id);
  if (here?.holder === holder) return undefined;
  const taken = here !== undefined || lookUp(turn.manager.arrivals, id) !== undefined;
  return taken ? `id is ${shown(id)}, which is that of another request; expected one that nobody uses` : undefined;
}

function leaseProblem(turn: Turn, { lease, ttlMs }: Asking): string | undefined {
  if (lease === undefined) return undefined;
  const known = lookUp(turn.manager.leases, lease);
  if (known === undefined) {
    return lease.startsWith(OWN_NAME) ? `lease is ${shown(lease)}, and there is none of that name` : undefined;
  }
  // Holds on an ended lease would be lost from the start, and renewing it would bring lost holds back to life.
  if (isGone(known, turn.at.now)) return `lease is ${shown(lease)}, which has ended; expected a new name`;
  if (known.fixed === true) return `lease is ${shown(lease)}, which only limits a hold`;
  if (ttlMs === undefined || ttlMs === known.ttlMs) return undefined;
  return `ttlMs is ${shown(ttlMs)}, but the lease ${shown(lease)} lives for ${known.ttlMs}`;
}
