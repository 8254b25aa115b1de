/**
 * The checkpoints in the store: each in one key, or, where it has too many heads for one value, in parts that are written
 * first.
 */
import { type Checkpoint, canonical, checkpointProblem } from '../../core/witness/index.ts';
import { type KeyValue, prefixed, Value } from '../../store/index.ts';
import { CHECKPOINTS, corrupt, decode, encode } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { isObject } from '../stored.ts';
import { send } from '../write/write-once.ts';
import { pairsIn } from './chains.ts';

/** etcd refuses a request of more than 1.5 MiB. */
const PART_CHARACTERS = 256 * 1024;

interface Parts {
  readonly parts: number;
  readonly attempt: string;
}

const keyOf = (number: number): string => CHECKPOINTS + String(number).padStart(12, '0');

/** From the oldest to the newest. */
export async function readCheckpoints(runtime: Runtime): Promise<readonly Checkpoint[]> {
  const found = new Map<string, KeyValue>();
  for await (const pair of pairsIn(runtime, prefixed(CHECKPOINTS))) found.set(pair.key, pair);
  const checkpoints: Checkpoint[] = [];
  for (const [key, pair] of found) {
    if (key.indexOf('/', CHECKPOINTS.length) < 0) checkpoints.push(checkpointIn(pair, found));
  }
  return checkpoints;
}

function checkpointIn(pair: KeyValue, found: ReadonlyMap<string, KeyValue>): Checkpoint {
  const stored = decode<unknown>(pair);
  const whole = isObject(stored) && 'parts' in stored ? joined(pair.key, stored as unknown as Parts, found) : stored;
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

/** False if another process has made a checkpoint of this number. */
export async function writeCheckpoint(runtime: Runtime, checkpoint: Checkpoint): Promise<boolean> {
  const key = keyOf(checkpoint.number);
  const text = canonical(checkpoint);
  let value = Value.text(text);
  const attempt = runtime.options.newId();
  const parts = text.length <= PART_CHARACTERS ? 0 : Math.ceil(text.length / PART_CHARACTERS);
  for (let part = 0; part < parts; part++) {
    const slice = Value.text(text.slice(part * PART_CHARACTERS, (part + 1) * PART_CHARACTERS));
    await put(runtime, partKey(key, attempt, part), slice);
  }
  if (parts > 0) value = encode({ parts, attempt });
  const { succeeded } = await send(runtime, {
    compare: [{ key, target: 'version', is: '=', than: 0 }],
    success: [{ do: 'put', key, value }],
    failure: [],
  });
  if (!succeeded && parts > 0) await deleteRange(runtime, `${key}/${attempt}/`);
  return succeeded;
}

/** Deletes the checkpoints before this one. */
export async function forgetCheckpoints(runtime: Runtime, before: number): Promise<void> {
  const range = { key: CHECKPOINTS, end: keyOf(before) };
  await send(runtime, { compare: [], success: [{ do: 'delete', ...range }], failure: [] });
}

async function put(runtime: Runtime, key: string, value: Value): Promise<void> {
  await send(runtime, { compare: [], success: [{ do: 'put', key, value }], failure: [] });
}

async function deleteRange(runtime: Runtime, prefix: string): Promise<void> {
  await send(runtime, { compare: [], success: [{ do: 'delete', ...prefixed(prefix) }], failure: [] });
}
