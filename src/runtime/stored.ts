/**
 * Checks what is read from the store. Another program, or a newer signalbox, may have written under our keys. A reader of one
 * key throws `corrupt` and names the key; a reader of many keys skips the ones that it cannot read, and names them.
 */
import { isSlots, requestProblem, shown, isRecord as isObject } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { KeyValue } from '../store/index.ts';
import { corrupt, decode, type ResourceKind, type TicketDocument, TICKETS } from './layout.ts';

/** A key that was skipped. */
export interface Malformed {
  /** The key. */
  readonly key: string;
  /** What is wrong with it, in a sentence that names the key. */
  readonly why: string;
}

/** How to list. */
export interface ListOptions {
  /** Called for each key that is skipped because it cannot be read. */
  readonly onMalformed?: ((found: Malformed) => void) | undefined;
}

/** Reads each pair; calls `malformed` for a pair that cannot be read. */
export function readEach<T>(
  pairs: readonly KeyValue[],
  read: (pair: KeyValue) => T,
  malformed?: (found: Malformed) => void,
): readonly T[] {
  return pairs.flatMap((pair) => {
    try {
      return [read(pair)];
    } catch (error) {
      malformed?.(malformedBy(pair.key, error));
      return [];
    }
  });
}

/** The malformed key that the error is about; throws the error if it is about anything else. */
export function malformedBy(key: string, error: unknown): Malformed {
  if (!Failure.is(error, 'corrupt') && !Failure.is(error, 'inconsistent')) throw error;
  return { key, why: error.message };
}

export type Fields = Readonly<Record<string, unknown>>;

export { isObject };

/**
 * Decodes and checks a value; `problem` says what is wrong with it. A value that has passed a check is not checked again, so
 * `problem` must depend on nothing but the document.
 */
export function checked<T>(pair: KeyValue, problem: (document: Fields) => string | undefined): T {
  const { value } = pair;
  if (value.passed === problem) return value.json as T;
  const document = decode<unknown>(pair);
  const found = isObject(document) ? problem(document) : `it holds ${shown(document)}`;
  if (found !== undefined) throw corrupt(pair.key, found);
  value.passed = problem;
  return document as T;
}

/** The document of a ticket under `q/lock/` or `q/semaphore/`. */
export function ticketIn<Q>(pair: KeyValue): TicketDocument<Q> {
  return checked<TicketDocument<Q>>(pair, pair.key.startsWith(LOCK_TICKETS) ? lockTicketProblem : slotsTicketProblem);
}

const LOCK_TICKETS = `${TICKETS}lock/`;
const lockTicketProblem = ticketCheck('mode');
const slotsTicketProblem = ticketCheck('weight');

function ticketCheck(wanted: 'mode' | 'weight'): (document: Fields) => string | undefined {
  const required = ['id', 'holder', 'lease', 'priority', wanted] as const;
  return ({ request, at }) => {
    if (!isObject(request)) return `its request is ${shown(request)}`;
    if (!isTime(at)) return `its time is ${shown(at)}`;
    return requestProblem(request, required);
  };
}

/** What is wrong with the record of a lock or a semaphore. Every reader relies on these fields. */
export function recordProblem(record: Fields, kind: ResourceKind): string | undefined {
  const { token, onStale, limits = {}, holds, capacity, drained } = record;
  if (record['kind'] !== kind) return `it is of the kind ${shown(record['kind'])}`;
  if (!isCount(token)) return `its token is ${shown(token)}`;
  if (kind === 'semaphore' && !isCount(capacity)) return `its capacity is ${shown(capacity)}`;
  if (!Array.isArray(holds)) return `its holds are ${shown(holds)}`;
  if (drained !== undefined && !isDrain(drained)) return `its drain is ${shown(drained)}`;
  if (!isObject(limits)) return `its limits are ${shown(limits)}`;
  const problem = requestProblem({ ...limits, onStale }, ['onStale']);
  if (problem !== undefined) return problem;
  for (const [place, hold] of holds.entries()) {
    const wrong = holdProblem(hold, kind);
    if (wrong !== undefined) return `holds[${place}]: ${wrong}`;
  }
  return undefined;
}

export function isDrain(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { by, at, reason, revision } = value;
  return typeof by === 'string' && isTime(at) && typeof reason === 'string' && isCount(revision);
}

function holdProblem(hold: unknown, kind: ResourceKind): string | undefined {
  if (!isObject(hold)) return `it is ${shown(hold)}`;
  const { id, holder, token, lease, limit, acquiredAt, reason, mode, weight, slots } = hold;
  for (const [name, text] of Object.entries({ id, holder, lease })) {
    if (typeof text !== 'string') return `${name} is ${shown(text)}`;
  }
  for (const [name, text] of Object.entries({ limit, reason })) {
    if (text !== undefined && typeof text !== 'string') return `${name} is ${shown(text)}`;
  }
  if (!isCount(token)) return `token is ${shown(token)}`;
  if (!isTime(acquiredAt)) return `acquiredAt is ${shown(acquiredAt)}`;
  if (kind === 'lock') return mode === 'shared' || mode === 'exclusive' ? undefined : `mode is ${shown(mode)}`;
  if (!isCount(weight)) return `weight is ${shown(weight)}`;
  return isSlots(slots) ? undefined : `slots are ${shown(slots)}`;
}

export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Whether a time can be shown as a date: beyond this range there are no dates. */
export function isTime(value: unknown): boolean {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15;
}
