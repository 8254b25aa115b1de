/**
 * Reads a store's notes about processes. A user who can write the store can write anything, so every field is checked
 * here before a number becomes a path in /proc or the target of a signal. Returns undefined for notes that signalbox
 * never writes.
 */
import type { Offspring } from './offspring.ts';
import type { ProcessIdentity } from './process.ts';

/** The largest pid on Linux. */
const LARGEST_PID = 2 ** 22;
const LONGEST_WORD = 200;

type Fields = Readonly<Record<string, unknown>>;

export function identityFrom(claim: unknown): ProcessIdentity | undefined {
  const { boot, space, timeSpace, pid, start, group } = fieldsOf(claim);
  if (!isWord(boot) || !isWord(space) || !isNumberFrom(1, pid)) return undefined;
  if (timeSpace !== undefined && !isWord(timeSpace)) return undefined;
  if (typeof start !== 'string' || !/^\d{1,20}$/.test(start)) return undefined;
  if (group !== undefined && group !== true) return undefined;
  return claim as ProcessIdentity;
}

/** Refuses pid 1 of a machine or a container, which cannot be our child. */
export function offspringFrom(claim: unknown): Offspring | undefined {
  const { pid, leads, mark, process, session } = fieldsOf(claim);
  if (!isNumberFrom(2, pid) || typeof leads !== 'boolean' || !isWord(mark)) return undefined;
  if (session !== undefined && !isNumberFrom(0, session)) return undefined;
  if (process !== undefined && identityFrom(process)?.pid !== pid) return undefined;
  return claim as Offspring;
}

function fieldsOf(claim: unknown): Fields {
  return typeof claim === 'object' && claim !== null && !Array.isArray(claim) ? (claim as Fields) : {};
}

function isNumberFrom(least: number, value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= LARGEST_PID;
}

/** The form of ids, namespaces and marks. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_WORD && /^[\w:[\]-]+$/.test(value);
}
