/**
 * Keeps the record of the witness from filling the store. The oldest entries go, chain by chain, up to what a checkpoint
 * covers: the checkpoint stays, so the rest still verifies, and what was exported before still shows what was there.
 */
import type { Checkpoint, CoveredHead, Signer } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import {
  always,
  type Compare,
  type Operation,
  Operations,
  prefixed,
  readRange,
  type Revision,
} from '../../store/index.ts';
import { chainPath, ENTRIES, encode, entryKey, headKey, HORIZON, SEALED, TRIMMED, WITNESS_SETTING } from '../layout.ts';
import { type Accepted, millisecondsFromZero, wholeNumber } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { isCount, isObject } from '../stored.ts';
import { persistently, send, sendWitnessed } from '../write/write-once.ts';
import { headIn } from '../write/witness.ts';
import { entryIn } from './chains.ts';
import { forgetCheckpoints, readCheckpoint, readSealed, SAYS_TRIMMED, type Sealed } from './checkpoints.ts';
import { documentsOf } from './sealing.ts';

/** How much of the record is kept, and when it is sealed; for all processes that use the store. */
export interface WitnessRetention {
  /** The most bytes of entries and checkpoints; above it, maintenance trims what a checkpoint covers. */
  readonly mostBytes: number;
  /** The most entries; above it, the same. */
  readonly mostEntries: number;
  /** The time between two checkpoints that maintenance makes; 0 if it makes none but to trim. */
  readonly checkpointMs: number;
}

/** What a process does with the record besides sealing and trimming it: what needs its keys, its disk or its network. */
export interface RecordKeeping {
  /** Signs the checkpoints that it makes. */
  readonly sign?: Signer;
  /** Keeps each checkpoint in another place, where those who write to the store cannot change it. */
  readonly anchor?: (checkpoint: Checkpoint) => Promise<void>;
  /** Keeps an export of the record, line by line, before what the checkpoint covers is trimmed. If it throws, nothing is. */
  readonly archive?: (lines: AsyncIterable<string>, checkpoint: Checkpoint) => Promise<void>;
}

/** How large the record is. */
export interface WitnessSize {
  /** How many entries the store has. */
  readonly entries: number;
  /** About how many bytes they and the checkpoints take, with their keys. */
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
/** Chains that one transaction trims. */
const AT_ONCE = 20;
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
  const ofEntries = pairs.length === 0 ? 0 : Math.round((sampled / pairs.length) * entries);
  const bytes = ofEntries + (await readSealed(runtime)).bytes;
  return { entries, bytes, filled: Math.max(bytes / limits.mostBytes, entries / limits.mostEntries) };
}

/** Deletes what this checkpoint covers, and gives the number of entries that went. Without a number: the newest. */
export async function trim(runtime: Runtime, upTo?: number): Promise<number> {
  const sealed = await readSealed(runtime);
  const number = upTo ?? sealed.number;
  const covering = number === 0 ? undefined : await readCheckpoint(runtime, number);
  if (covering?.heads === undefined) {
    if (upTo === undefined) return 0;
    throw new Failure('not-found', `there is no checkpoint ${upTo} with its heads; it may be older than the last trim`);
  }
  const { heads } = covering;
  let trimmed = 0;
  for (let at = 0; at < heads.length; at += AT_ONCE)
    trimmed += await trimChains(runtime, heads.slice(at, at + AT_ONCE));
  const closed = number === sealed.number ? heads.filter((head) => head.closed === true) : [];
  for (let at = 0; at < closed.length; at += AT_ONCE) await dropChains(runtime, closed.slice(at, at + AT_ONCE), sealed);
  await forgetCheckpoints(runtime, Math.max(1, number - KEPT_CHECKPOINTS + 1), number);
  return trimmed;
}

/** Deletes the entries of these chains up to their heads. */
async function trimChains(runtime: Runtime, heads: readonly CoveredHead[]): Promise<number> {
  const looks = new Operations();
  const found = heads.map(({ resource, seq }) => {
    const path = chainPath(resource);
    return { trimmed: looks.read({ key: TRIMMED + path }), last: looks.read({ key: entryKey(path, seq) }) };
  });
  const { results } = await runtime.store.transaction(looks.always(), runtime.stopped);
  const writes = new Operations();
  for (const [at, { resource, seq, hash }] of heads.entries()) {
    const last = found[at]?.last.in(results).pairs[0];
    // Trimmed already; or the chain was dropped since, and this is the entry of another one of the same name.
    if (last === undefined || entryIn(last).hash !== hash) continue;
    const path = chainPath(resource);
    const key = TRIMMED + path;
    const marked = found[at]?.trimmed.in(results).pairs[0]?.modRevision ?? 0;
    writes.nest({
      compare: [
        { key, target: 'mod', is: '=', than: marked },
        { key: last.key, target: 'mod', is: '=', than: last.modRevision },
      ],
      success: [
        { do: 'delete', key: entryKey(path, 0), end: entryKey(path, seq + 1) },
        { do: 'put', key, value: encode({ seq, hash }) },
      ],
      failure: [],
    });
  }
  if (writes.list.length === 0) return 0;
  const sent = await send(runtime, always([...writes.list, SAYS_TRIMMED]));
  let deleted = 0;
  for (const result of sent.results) {
    const first = result.do === 'transaction' ? result.results[0] : undefined;
    if (first?.do === 'delete') deleted += first.deleted;
  }
  return deleted;
}

/**
 * Deletes the ends of chains that the newest checkpoint has closed. Only if nothing was entered since, and the resource is
 * still gone. The horizon keeps a write of several locks from following the end, which such a write does not compare.
 */
async function dropChains(runtime: Runtime, heads: readonly CoveredHead[], { mod }: Sealed): Promise<void> {
  const looks = new Operations();
  const found = heads.map(({ resource }) => looks.read({ key: headKey(chainPath(resource)) }));
  const { results } = await runtime.store.transaction(looks.always(), runtime.stopped);
  const writes = new Operations();
  for (const [at, { resource, seq }] of heads.entries()) {
    const pair = found[at]?.in(results).pairs[0];
    if (pair === undefined || headIn(pair, true)?.seq !== seq) continue;
    const { key } = pair;
    const isGone = documentsOf(resource).map((document): Compare => ({
      ...{ key: document, target: 'version', is: '=', than: 0 },
    }));
    writes.nest({
      compare: [{ key, target: 'mod', is: '=', than: pair.modRevision }, ...isGone],
      success: [
        { do: 'delete', key },
        { do: 'delete', key: TRIMMED + chainPath(resource) },
      ],
      failure: [],
    });
  }
  if (writes.list.length === 0) return;
  const horizon: Operation = { do: 'put', key: HORIZON, value: encode({}) };
  await send(runtime, {
    compare: [{ key: SEALED, target: 'mod', is: '=', than: mod }],
    success: [...writes.list, horizon, SAYS_TRIMMED],
    failure: [],
  });
}
