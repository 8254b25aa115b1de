/**
 * Keeps the record of the witness from filling the store. The oldest entries go, chain by chain, up to what a checkpoint
 * covers: the checkpoint stays, so the rest still verifies, and what was exported before still shows what was there.
 */
import type { Checkpoint } from '../../core/witness/index.ts';
import { prefixed, readRange, type Revision } from '../../store/index.ts';
import { chainPath, ENTRIES, encode, entryKey, stateKey, TRIMMED, WITNESS_SETTING } from '../layout.ts';
import { type Accepted, millisecondsFromZero, wholeNumber } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { isCount, isObject } from '../stored.ts';
import { persistently, send, sendWitnessed } from '../write/write-once.ts';
import { headIn } from '../write/witness.ts';
import { readHeads } from './chains.ts';
import { forgetCheckpoints, readCheckpoints } from './checkpoints.ts';

/** How much of the record is kept, and when it is sealed; for all processes that use the store. */
export interface WitnessRetention {
  /** The most bytes of entries; above it, the oldest go. */
  readonly mostBytes: number;
  /** The most entries; above it, the oldest go. */
  readonly mostEntries: number;
  /** The time between two checkpoints that maintenance makes; 0 if it makes none but to trim. */
  readonly checkpointMs: number;
}

/** How large the record is. */
export interface WitnessSize {
  /** How many entries the store has. */
  readonly entries: number;
  /** About how many bytes they take, with their keys. */
  readonly bytes: number;
  /** The part of what may be kept: 1 is full. */
  readonly filled: number;
}

/** A tenth of the 2 GiB that an etcd may have unless it is told otherwise. */
const DEFAULTS: WitnessRetention = { mostBytes: 200 * 1024 * 1024, mostEntries: 500_000, checkpointMs: 3_600_000 };
/** From here on it warns. */
export const WARNED_AT = 0.8;
/** How many checkpoints stay. */
const KEPT_CHECKPOINTS = 16;
/** How many entries are looked at to estimate the size of all. */
const SAMPLE = 100;

export const RETENTION: Readonly<Record<keyof WitnessRetention, Accepted>> = {
  mostBytes: wholeNumber,
  mostEntries: wholeNumber,
  checkpointMs: millisecondsFromZero,
};

interface Stored extends WitnessRetention {
  readonly mod: Revision;
  readonly document: object;
}

async function look(runtime: Runtime): Promise<Stored> {
  const { pairs } = await readRange(runtime.store, { key: WITNESS_SETTING }, runtime.stopped);
  const [pair] = pairs;
  const document = pair !== undefined && isObject(pair.value.json) ? pair.value.json : {};
  const number = (name: keyof WitnessRetention): number =>
    isCount(document[name]) ? (document[name] as number) : DEFAULTS[name];
  return {
    mod: pair?.modRevision ?? 0,
    document,
    mostBytes: number('mostBytes'),
    mostEntries: number('mostEntries'),
    checkpointMs: number('checkpointMs'),
  };
}

export async function retentionOf(runtime: Runtime): Promise<WitnessRetention> {
  const { mostBytes, mostEntries, checkpointMs } = await look(runtime);
  return { mostBytes, mostEntries, checkpointMs };
}

export async function configureRetention(
  runtime: Runtime,
  change: Partial<WitnessRetention>,
): Promise<WitnessRetention> {
  await runtime.witness.known();
  return persistently(runtime, runtime.giveUpAt(), async () => {
    for (;;) {
      const { mod, document, ...kept } = await look(runtime);
      const next: WitnessRetention = { ...kept, ...change };
      const isSame = (Object.keys(next) as (keyof WitnessRetention)[]).every((name) => next[name] === kept[name]);
      if (isSame) return next;
      const { succeeded } = await sendWitnessed(
        runtime,
        {
          compare: [{ key: WITNESS_SETTING, target: 'mod', is: '=', than: mod }],
          success: [{ do: 'put', key: WITNESS_SETTING, value: encode({ on: false, ...document, ...next }) }],
          failure: [],
        },
        [
          {
            resource: 'settings/witness',
            actor: runtime.sender.id,
            command: 'configure',
            outcome: 'configured',
            detail: { ...next },
          },
        ],
      );
      if (succeeded) return next;
    }
  });
}

/** Counts the entries, and estimates their bytes from some of them. */
export async function sizeOf(runtime: Runtime, limits: WitnessRetention): Promise<WitnessSize> {
  const { store, stopped } = runtime;
  const range = prefixed(ENTRIES);
  const { count: entries } = await readRange(store, { ...range, countOnly: true }, stopped);
  const { pairs } = await readRange(store, { ...range, limit: SAMPLE }, stopped);
  const sampled = pairs.reduce((sum, { key, value }) => sum + key.length + value.text.length, 0);
  const bytes = pairs.length === 0 ? 0 : Math.round((sampled / pairs.length) * entries);
  return { entries, bytes, filled: Math.max(bytes / limits.mostBytes, entries / limits.mostEntries) };
}

/** Deletes what the newest checkpoint covers, and gives the number of entries that went. */
export async function trim(runtime: Runtime): Promise<number> {
  const checkpoints = await readCheckpoints(runtime);
  const newest = checkpoints.at(-1);
  if (newest?.heads === undefined) return 0;
  let trimmed = 0;
  for (const { resource, seq, hash } of newest.heads) trimmed += await trimChain(runtime, resource, { seq, hash });
  await forgetCheckpoints(runtime, Math.max(1, newest.number - KEPT_CHECKPOINTS + 1));
  return trimmed;
}

async function trimChain(runtime: Runtime, resource: string, last: { seq: number; hash: string }): Promise<number> {
  const path = chainPath(resource);
  const key = TRIMMED + path;
  const range = { key: entryKey(path, 0), end: entryKey(path, last.seq + 1) };
  const { pairs } = await readRange(runtime.store, { key }, runtime.stopped);
  const before = pairs[0] === undefined ? undefined : headIn(pairs[0], true);
  if ((before?.seq ?? 0) >= last.seq) return 0;
  const { succeeded, results } = await send(runtime, {
    compare: [{ key, target: 'mod', is: '=', than: pairs[0]?.modRevision ?? 0 }],
    success: [
      { do: 'put', key, value: encode(last) },
      { do: 'delete', ...range },
    ],
    failure: [],
  });
  const [, deleted] = results;
  return succeeded && deleted?.do === 'delete' ? deleted.deleted : 0;
}

/** One round of maintenance: seals when it is time, warns when the record fills, and trims when it is full. */
export async function maintainRecord(
  runtime: Runtime,
  checkpoint: (runtime: Runtime) => Promise<Checkpoint>,
): Promise<void> {
  const limits = await retentionOf(runtime);
  const size = await sizeOf(runtime, limits);
  if (size.entries === 0) return;
  const newest = (await readCheckpoints(runtime)).at(-1);
  const isDue = limits.checkpointMs > 0 && runtime.clock.now() - (newest?.time ?? 0) >= limits.checkpointMs;
  // A record that has not grown is sealed already.
  if (isDue && (newest === undefined || (await hasGrown(runtime, newest)))) await checkpoint(runtime);
  if (size.filled >= 1) {
    await checkpoint(runtime);
    const trimmed = await trim(runtime);
    await announce(runtime, 'witness:trimmed', { trimmed, entries: size.entries - trimmed });
  } else if (size.filled >= WARNED_AT) {
    const { entries, bytes, filled } = size;
    await announce(runtime, 'witness:filling', { entries, bytes, filled: Math.round(filled * 100) });
  }
}

async function hasGrown(runtime: Runtime, { heads = [] }: Checkpoint): Promise<boolean> {
  const covered = new Map(heads.map(({ resource, seq }) => [resource, seq]));
  for (const [resource, { seq }] of await readHeads(runtime)) if (seq > (covered.get(resource) ?? 0)) return true;
  return false;
}

/** Tells every process, once for each level: the document says what was told last. */
async function announce(
  runtime: Runtime,
  type: 'witness:trimmed' | 'witness:filling',
  detail: Readonly<Record<string, number>>,
): Promise<void> {
  const key = stateKey('witness', 'size');
  const { pairs } = await readRange(runtime.store, { key }, runtime.stopped);
  const document = pairs[0]?.value.json;
  const told = isObject(document) && isObject(document['record']) ? document['record']['told'] : undefined;
  if (type === 'witness:filling' && told === type) return;
  const event = { type, at: runtime.clock.now(), holder: runtime.sender.id, ...detail };
  await send(runtime, {
    compare: [{ key, target: 'mod', is: '=', than: pairs[0]?.modRevision ?? 0 }],
    success: [{ do: 'put', key, value: encode({ record: { told: type }, events: [event] }) }],
    failure: [],
  });
}
