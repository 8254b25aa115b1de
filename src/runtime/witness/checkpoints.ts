/**
 * Stores the checkpoints: each in one key, or in parts that are written first if it has too many heads for one value.
 * `witness.sealed` names the newest, so that two processes cannot both follow the same checkpoint.
 */
import { isCount, isRecord } from '../../core/index.ts';
import { type Checkpoint, canonical, checkpointProblem } from '../../core/witness/index.ts';
import {
  always,
  type KeyRange,
  type KeyValue,
  type Operation,
  prefixed,
  readRange,
  type Revision,
  Value,
} from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { CHECKPOINTS, corrupt, decode, encode, SEALED, TRIMS } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { send } from '../write/write-once.ts';
import { pairsIn } from './chains.ts';

/** etcd refuses a request of more than 1.5 MiB. */
const PART_CHARACTERS = 256 * 1024;

interface Parts {
  readonly parts: number;
  readonly attempt: string;
}

/** The newest checkpoint, as `witness.sealed` names it. */
export interface Sealed {
  /** 0 if there is none. */
  readonly number: number;
  readonly hash: string;
  readonly time: number;
  readonly isSigned: boolean;
  /** The size of all checkpoints together. */
  readonly bytes: number;
  /** The average size of an entry that it covers; 0 if unknown. */
  readonly entryBytes: number;
  readonly mod: Revision;
}

const keyOf = (number: number): string => CHECKPOINTS + String(number).padStart(12, '0');

export interface StoredCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly mod: Revision;
}

/** From the oldest to the newest. */
export async function storedCheckpoints(
  runtime: Runtime,
  range: KeyRange = prefixed(CHECKPOINTS),
): Promise<readonly StoredCheckpoint[]> {
  const found = new Map<string, KeyValue>();
  for await (const pair of pairsIn(runtime, range)) found.set(pair.key, pair);
  const checkpoints: StoredCheckpoint[] = [];
  for (const [key, pair] of found) {
    if (key.indexOf('/', CHECKPOINTS.length) >= 0) continue;
    checkpoints.push({ checkpoint: checkpointIn(pair, found), mod: pair.modRevision });
  }
  return checkpoints;
}

export async function readCheckpoints(runtime: Runtime): Promise<readonly Checkpoint[]> {
  return (await storedCheckpoints(runtime)).map(({ checkpoint }) => checkpoint);
}

export async function readCheckpoint(runtime: Runtime, number: number): Promise<Checkpoint | undefined> {
  return (await storedCheckpoints(runtime, { key: keyOf(number), end: keyOf(number + 1) }))[0]?.checkpoint;
}

export async function readSealed(runtime: Runtime): Promise<Sealed> {
  const { pairs } = await readRange(runtime.store, { key: SEALED }, runtime.stopped);
  const [pair] = pairs;
  if (pair === undefined) return { number: 0, hash: '', time: 0, isSigned: false, bytes: 0, entryBytes: 0, mod: 0 };
  const document = decode<unknown>(pair);
  const { number, hash, time, isSigned, bytes, entryBytes } = isRecord(document) ? document : {};
  if (!isCount(number) || typeof hash !== 'string' || typeof time !== 'number')
    throw corrupt(SEALED, 'it names no checkpoint');
  return {
    number,
    hash,
    time,
    isSigned: isSigned === true,
    bytes: Number(bytes) || 0,
    entryBytes: Number(entryBytes) || 0,
    mod: pair.modRevision,
  };
}

function checkpointIn(pair: KeyValue, found: ReadonlyMap<string, KeyValue>): Checkpoint {
  const stored = decode<unknown>(pair);
  const whole = isRecord(stored) && 'parts' in stored ? joined(pair.key, stored as unknown as Parts, found) : stored;
  const problem = checkpointProblem(whole);
  if (problem !== undefined) throw corrupt(pair.key, problem);
  return whole as Checkpoint;
}

function joined(key: string, { parts, attempt }: Parts, found: ReadonlyMap<string, KeyValue>): unknown {
  let text = '';
  for (let part = 0; part < parts; part++) text += found.get(partKey(key, attempt, part))?.value.text ?? '';
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw corrupt(key, 'a part of it is missing', cause);
  }
}

const partKey = (key: string, attempt: string, part: number): string =>
  `${key}/${attempt}/${String(part).padStart(6, '0')}`;

/** Answers false if another process has made a checkpoint after `before`, or has trimmed the record. */
export async function writeCheckpoint(
  runtime: Runtime,
  checkpoint: Checkpoint,
  before: Sealed,
  entryBytes: number,
  trims: Revision,
): Promise<boolean> {
  const { number, hash, time, signature } = checkpoint;
  const key = keyOf(number);
  const text = canonical(checkpoint);
  let value = Value.text(text);
  const attempt = runtime.options.newId();
  const parts = text.length <= PART_CHARACTERS ? 0 : Math.ceil(text.length / PART_CHARACTERS);
  for (let part = 0; part < parts; part++) {
    const slice = Value.text(text.slice(part * PART_CHARACTERS, (part + 1) * PART_CHARACTERS));
    await send(runtime, always([{ do: 'put', key: partKey(key, attempt, part), value: slice }]));
  }
  if (parts > 0) value = encode({ parts, attempt });
  const bytes = before.bytes + text.length;
  const newest = { number, hash, time, isSigned: signature !== undefined, bytes, entryBytes };
  const { succeeded } = await send(runtime, {
    compare: [
      { key: SEALED, target: 'mod', is: '=', than: before.mod },
      { key: TRIMS, target: 'mod', is: '=', than: trims },
    ],
    success: [
      { do: 'put', key, value },
      { do: 'put', key: SEALED, value: encode(newest) },
    ],
    failure: [],
  });
  if (!succeeded && parts > 0) await send(runtime, always([{ do: 'delete', ...prefixed(`${key}/${attempt}/`) }]));
  return succeeded;
}

/** Deletes the checkpoints before `first`, and the heads of those before `newest`, whose entries have been trimmed. */
export async function forgetCheckpoints(runtime: Runtime, first: number, newest: number): Promise<void> {
  await take(runtime, { do: 'delete', key: CHECKPOINTS, end: keyOf(first) });
  for (const { checkpoint, mod } of await storedCheckpoints(runtime, { key: keyOf(first), end: keyOf(newest) })) {
    const { heads, ...rest } = checkpoint;
    if (heads === undefined) continue;
    const key = keyOf(checkpoint.number);
    // Another trim may have deleted it since; this write must not bring it back.
    const shorter: Operation[] = [
      { do: 'put', key, value: Value.text(canonical(rest)) },
      { do: 'delete', ...prefixed(`${key}/`) },
    ];
    await take(runtime, { do: 'transaction', ...ifUnchanged(key, mod, shorter) });
  }
  const { mod, ...sealed } = await readSealed(runtime);
  if (sealed.number !== newest) return;
  const bytes = canonical(await readCheckpoint(runtime, newest)).length;
  await send(runtime, ifUnchanged(SEALED, mod, [{ do: 'put', key: SEALED, value: encode({ ...sealed, bytes }) }]));
}

/** Marks that entries were trimmed: a reader that sees this key change begins again. */
export const SAYS_TRIMMED: Operation = { do: 'put', key: TRIMS, value: encode({}) };

function take(runtime: Runtime, ...operations: readonly Operation[]): Promise<unknown> {
  return send(runtime, always([...operations, SAYS_TRIMMED]));
}
