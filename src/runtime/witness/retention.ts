/**
 * Keeps the record of the witness from filling the store. Deletes the oldest entries, chain by chain, as far as a checkpoint
 * covers them. The checkpoint stays, so the rest still verifies, and so does an earlier export of the deleted entries.
 */
import { isCount, isRecord } from '../../core/index.ts';
import type { Checkpoint, CoveredHead, Signer } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { always, type Compare, type Operation, Operations, readRange, type Revision } from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { chainPath, encode, entryKey, headKey, HORIZON, SEALED, TRIMMED, WITNESS_SETTING } from '../layout.ts';
import { type Accepted, millisecondsFromZero, wholeNumber } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { persistently, send, sendWitnessed } from '../write/write-once.ts';
import { headIn } from '../write/witness.ts';
import { entryIn, readEntry } from './chains.ts';
import { forgetCheckpoints, readCheckpoint, readSealed, SAYS_TRIMMED, type Sealed } from './checkpoints.ts';
import { documentsOf } from './sealing.ts';

/** How much of the record the store keeps, and when maintenance seals it; for all processes that use the store. */
export interface WitnessRetention {
  /**
   * The most bytes of entries and checkpoints. At this limit, maintenance makes a checkpoint and trims everything that it covers.
   */
  readonly mostBytes: number;
  /**
   * The most entries. At this limit, maintenance trims in the same way, so fewer stay: after a trim only the entries made since
   * the checkpoint are left.
   */
  readonly mostEntries: number;
  /** The time between two checkpoints that maintenance makes; with 0 it makes them only to trim. */
  readonly checkpointMs: number;
}

/** What a process does with the record besides sealing and trimming: the steps that need its keys, its disk or its network. */
export interface RecordKeeping {
  /** Signs the checkpoints that this process makes. */
  readonly sign?: Signer;
  /** Keeps each checkpoint in another place, where the writers of the store cannot change it. */
  readonly anchor?: (checkpoint: Checkpoint) => Promise<void>;
  /**
   * Keeps an export of the record, line by line, before maintenance trims what the checkpoint covers. If it throws, maintenance
   * trims nothing.
   */
  readonly archive?: (lines: AsyncIterable<string>, checkpoint: Checkpoint) => Promise<void>;
}

/** A tenth of etcd's default quota of 2 GiB. */
const DEFAULTS: WitnessRetention = { mostBytes: 200 * 1024 * 1024, mostEntries: 500_000, checkpointMs: 3_600_000 };
/** How many checkpoints the store keeps. */
const KEPT_CHECKPOINTS = 16;
/** How many chains one transaction trims, and how many entries of each. */
const AT_ONCE = 20;
const ENTRIES_AT_ONCE = 1000;

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
  const document = pair !== undefined && isRecord(pair.value.json) ? pair.value.json : {};
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
      const deed = {
        resource: 'settings/witness',
        actor: runtime.sender.id,
        command: 'configure',
        outcome: 'configured',
      };
      const value = encode({ on: false, ...document, ...next });
      const write = ifUnchanged(WITNESS_SETTING, mod, [{ do: 'put', key: WITNESS_SETTING, value }]);
      const { succeeded } = await sendWitnessed(runtime, write, [{ ...deed, detail: { ...next } }]);
      if (succeeded) return next;
    }
  });
}

/** Deletes what this checkpoint covers, or the newest if none is given, and returns the number of deleted entries. */
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
  for (let at = 0; at < heads.length; at += AT_ONCE) {
    const some = heads.slice(at, at + AT_ONCE);
    for (const head of some) trimmed += await trimLongChain(runtime, head);
    trimmed += await trimChains(runtime, some);
  }
  const closed = number === sealed.number ? heads.filter((head) => head.closed === true) : [];
  for (let at = 0; at < closed.length; at += AT_ONCE) await dropChains(runtime, closed.slice(at, at + AT_ONCE), sealed);
  await forgetCheckpoints(runtime, Math.max(1, number - KEPT_CHECKPOINTS + 1), number);
  return trimmed;
}

/**
 * Trims a long chain step by step until it is near its head, because one transaction for so many entries would delay all other
 * writers.
 */
async function trimLongChain(runtime: Runtime, head: CoveredHead): Promise<number> {
  const { resource, seq, hash } = head;
  // A short chain needs no such steps.
  if (seq <= ENTRIES_AT_ONCE) return 0;
  const path = chainPath(resource);
  const looks = new Operations();
  const marked = looks.read({ key: TRIMMED + path });
  const covered = looks.read({ key: entryKey(path, seq) });
  const { results } = await runtime.store.transaction(looks.always(), runtime.stopped);
  const [last] = covered.in(results).pairs;
  // Without the entry that the checkpoint names, this need not be the chain that it covers.
  if (last === undefined || entryIn(last).hash !== hash) return 0;
  const [mark] = marked.in(results).pairs;
  const isThere: Compare = { key: last.key, target: 'mod', is: '=', than: last.modRevision };
  let trimmed = 0;
  let at = (mark === undefined ? 0 : (headIn(mark, true)?.seq ?? 0)) + ENTRIES_AT_ONCE;
  for (; at < seq; at += ENTRIES_AT_ONCE) {
    const entry = await readEntry(runtime, resource, at);
    if (entry !== undefined) trimmed += await trimChains(runtime, [{ resource, seq: at, hash: entry.hash }], [isThere]);
  }
  return trimmed;
}

/** Deletes the entries of these chains up to their heads, if `also` holds. */
async function trimChains(
  runtime: Runtime,
  heads: readonly CoveredHead[],
  also: readonly Compare[] = [],
): Promise<number> {
  const looks = new Operations();
  const found = heads.map(({ resource, seq }) => {
    const path = chainPath(resource);
    return { trimmed: looks.read({ key: TRIMMED + path }), last: looks.read({ key: entryKey(path, seq) }) };
  });
  const { results } = await runtime.store.transaction(looks.always(), runtime.stopped);
  const writes = new Operations();
  for (const [at, { resource, seq, hash }] of heads.entries()) {
    const last = found[at]?.last.in(results).pairs[0];
    // Either it was trimmed already, or the chain was dropped since and this entry belongs to another chain of the same name.
    if (last === undefined || entryIn(last).hash !== hash) continue;
    const path = chainPath(resource);
    const key = TRIMMED + path;
    const marked = found[at]?.trimmed.in(results).pairs[0]?.modRevision ?? 0;
    writes.nest({
      compare: [
        { key, target: 'mod', is: '=', than: marked },
        { key: last.key, target: 'mod', is: '=', than: last.modRevision },
        ...also,
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
 * Deletes the ends of chains that the newest checkpoint has closed, if nothing was entered since and the resource is still gone.
 * The horizon keeps a write of several locks from following such an end, which it does not compare.
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
  await send(runtime, ifUnchanged(SEALED, mod, [...writes.list, horizon, SAYS_TRIMMED]));
}
