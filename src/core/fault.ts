/**
 * What must be true of every lock and semaphore. The runtime checks it when a record is read or arrives in a letter, before
 * a decision is written, and before a hold is handed out. A fault is a bug of signalbox, or the work of another program. It
 * is reported with its values and never repaired, because the next decision would rest on a guess.
 */
import type { Hold } from './hold.ts';
import type { LockHold, LockMode, LockRecord } from './lock.ts';
import type { Token } from './machine.ts';
import type { SemaphoreHold, SemaphoreRecord } from './semaphore.ts';
import { fieldProblem, requestProblem } from './request.ts';
import { isCount, isRecord, isTime } from './shape.ts';
import { shown } from './shown.ts';
import { countSlots, isSlots, slotTwice } from './slots.ts';

/** What is wrong with a record, or with its change from `before`; undefined if nothing is. */
export function faultOf(
  record: LockRecord | SemaphoreRecord,
  before?: LockRecord | SemaphoreRecord,
): string | undefined {
  if (record.kind === 'lock') return lockFault(record, before as LockRecord | undefined);
  return semaphoreFault(record, before as SemaphoreRecord | undefined);
}

/** What is wrong with the record of a lock, or with its change from `before`; undefined if nothing is. */
export function lockFault(record: LockRecord, before?: LockRecord): string | undefined {
  const { holds } = record;
  if (holds.length > 1) {
    for (const { holder, mode } of holds) {
      if (mode === 'exclusive') return `${holder} holds it exclusively, together with ${holds.length - 1} others`;
    }
  }
  return tokenFault(record, before);
}

/**
 * The same for a semaphore. More than the capacity may be in use after it shrank, but then nobody gets more. `thorough` also
 * looks for slots that two holds have, which takes longer than all the rest.
 */
export function semaphoreFault(
  record: SemaphoreRecord,
  before?: SemaphoreRecord,
  thorough = false,
): string | undefined {
  const { holds, capacity } = record;
  let used = 0;
  for (const { holder, weight, slots } of holds) {
    const count = countSlots(slots);
    if (count !== weight || weight < 1) return `${holder} has a weight of ${weight}, and ${count} slots`;
    used += weight;
  }
  if (before !== undefined && used > capacity) {
    let earlier = 0;
    for (const { weight } of before.holds) earlier += weight;
    if (used > earlier) return `${used} slots are in use, of ${capacity}, and ${earlier} were before`;
  }
  const past = before === undefined ? undefined : grantedPast(record, before);
  if (past !== undefined) return past;
  const twice = thorough ? slotTwice(holds.map(({ slots }) => slots)) : undefined;
  return twice === undefined ? tokenFault(record, before) : `slot ${twice} is held twice`;
}

/** Nobody gets anything while one and the same drain lasts. */
function grantedPast({ holds, drained }: SemaphoreRecord, before: SemaphoreRecord): string | undefined {
  if (drained === undefined || drained.revision !== before.drained?.revision) return undefined;
  const had = new Map(before.holds.map(({ id, weight }) => [id, weight]));
  const one = holds.find(({ id, weight }) => weight > (had.get(id) ?? 0));
  return one === undefined ? undefined : `${one.holder} got slots, and ${drained.by} had drained it`;
}

/** What a request asks for, as far as the hold that answers it shows. */
export interface Wish {
  readonly id: string;
  readonly holder: string;
  readonly lease: string;
  /** A renewal by another process of the same holder moves a detached hold to a lease of that process. */
  readonly detached?: true;
  readonly mode?: LockMode;
  readonly weight?: number;
}

/**
 * What is wrong with a hold as the answer to a request; undefined if nothing is. Another hold of the same holder is an answer
 * too: then the request re-entered it, and it may be more than was asked for.
 */
export function grantFault({ id, holder, lease, detached, mode, weight }: Wish, hold: Hold): string | undefined {
  const { token } = hold;
  const given = hold as Partial<LockHold & SemaphoreHold>;
  if (hold.holder !== holder) return `${holder} asked for it, and ${hold.holder} was given it`;
  if (hold.id === id && hold.lease !== lease && detached !== true)
    return `${holder} asked under the lease ${lease}, and got ${hold.lease}`;
  if (!Number.isSafeInteger(token) || token < 1) return `${holder} was given token ${token}`;
  if (mode === 'exclusive' && given.mode !== mode) return `${holder} asked for it ${mode}, and got it ${given.mode}`;
  if (weight === undefined) return undefined;
  const { weight: got = 0, slots = [] } = given;
  if (got < weight) return `${holder} asked for ${weight} slots, and got ${got}`;
  return countSlots(slots) === got ? undefined : `${holder} has a weight of ${got}, and ${countSlots(slots)} slots`;
}

interface Tokens {
  readonly token: Token;
  readonly holds: readonly Hold[];
}

/** Every new grant has a larger token than all that were given out before; a hold that was there before may keep its own. */
function tokenFault({ token, holds }: Tokens, before: Tokens | undefined): string | undefined {
  // Plain loops, for speed: every acquire and every release runs them.
  for (let i = 0; i < holds.length; i++) {
    const hold = holds[i] as Hold;
    if (hold.token > token) return `${hold.holder} holds token ${hold.token}, and the last one given out is ${token}`;
  }
  if (before === undefined) return undefined;
  if (token < before.token) return `token ${token} comes after ${before.token}`;
  for (let i = 0; i < holds.length; i++) {
    const hold = holds[i] as Hold;
    if (hold.token > before.token || before.holds.includes(hold)) continue;
    if (!before.holds.some(({ id, token: had }) => id === hold.id && had === hold.token)) {
      return `${hold.holder} got token ${hold.token}, and ${before.token} was given out already`;
    }
  }
  return undefined;
}

// The shape of what is stored: another program, or a newer signalbox, may have written it.

type Fields = Readonly<Record<string, unknown>>;

/** What is wrong with the document of a ticket; every ticket of a lock says a mode, and of a semaphore a weight. */
export function ticketCheck(wanted: 'mode' | 'weight'): (document: Fields) => string | undefined {
  const required = ['id', 'holder', 'lease', 'priority', wanted] as const;
  return ({ request, at }) => {
    if (!isRecord(request)) return `its request is ${shown(request)}`;
    if (!isTime(at)) return `its time is ${shown(at)}`;
    return requestProblem(request, required);
  };
}

/** What is wrong with the record of a lock or a semaphore. Every reader relies on these fields. */
export function recordProblem(record: Fields, kind: 'lock' | 'semaphore'): string | undefined {
  const { token, onStale, limits, holds, capacity, drained } = record;
  if (record['kind'] !== kind) return `it is of the kind ${shown(record['kind'])}`;
  if (!isCount(token)) return `its token is ${shown(token)}`;
  if (kind === 'semaphore' && !isCount(capacity)) return `its capacity is ${shown(capacity)}`;
  if (!Array.isArray(holds)) return `its holds are ${shown(holds)}`;
  if (drained !== undefined && !isDrain(drained)) return `its drain is ${shown(drained)}`;
  if (limits !== undefined && !isRecord(limits)) return `its limits are ${shown(limits)}`;
  const problem =
    limits === undefined ? fieldProblem('onStale', onStale) : requestProblem({ ...limits, onStale }, ['onStale']);
  if (problem !== undefined) return problem;
  for (let place = 0; place < holds.length; place++) {
    const wrong = holdProblem(holds[place], kind);
    if (wrong !== undefined) return `holds[${place}]: ${wrong}`;
  }
  return undefined;
}

export function isDrain(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { by, at, reason, revision } = value;
  return typeof by === 'string' && isTime(at) && typeof reason === 'string' && isCount(revision);
}

function holdProblem(hold: unknown, kind: 'lock' | 'semaphore'): string | undefined {
  if (!isRecord(hold)) return `it is ${shown(hold)}`;
  const { id, holder, token, lease, limit, acquiredAt, reason, mode, weight, slots } = hold;
  if (typeof id !== 'string') return `id is ${shown(id)}`;
  if (typeof holder !== 'string') return `holder is ${shown(holder)}`;
  if (typeof lease !== 'string') return `lease is ${shown(lease)}`;
  if (limit !== undefined && typeof limit !== 'string') return `limit is ${shown(limit)}`;
  if (reason !== undefined && typeof reason !== 'string') return `reason is ${shown(reason)}`;
  if (!isCount(token)) return `token is ${shown(token)}`;
  if (!isTime(acquiredAt)) return `acquiredAt is ${shown(acquiredAt)}`;
  if (kind === 'lock') return mode === 'shared' || mode === 'exclusive' ? undefined : `mode is ${shown(mode)}`;
  if (!isCount(weight)) return `weight is ${shown(weight)}`;
  return isSlots(slots) ? undefined : `slots are ${shown(slots)}`;
}
