/** Reads the chains of the witness: where they end, and their entries. */
import { isRecord } from '../../core/index.ts';
import type { ChainHead, WitnessEntry } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { ifPossible } from '../../host/index.ts';
import {
  always,
  type KeyRange,
  type KeyValue,
  Operations,
  prefixed,
  type Read,
  readPages,
  readRange,
  type ReadResult,
} from '../../store/index.ts';
import { fullPages } from '../../store/operations.ts';
import {
  chainPath,
  decode,
  ENTRIES,
  entryKey,
  type Head,
  HEADS,
  RECORDS,
  resourceOfChain,
  resourceOfRecord,
  TRIMMED,
} from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { headIn } from '../write/witness.ts';

const PAGE = 200;
export const PAGES = fullPages(PAGE, 10 * PAGE);
/** How many chains one transaction reads, and how many entries of each: most chains have grown by a few. */
const CHAINS_AT_ONCE = 50;
const ENTRIES_AT_ONCE = 20;

/** The end of every chain, by resource, and how far it was trimmed. */
export async function readHeads(runtime: Runtime): Promise<ReadonlyMap<string, ChainHead>> {
  const heads = new Map<string, ChainHead>();
  const saw = (resource: string, { seq, hash }: Head): void => {
    if (seq > (heads.get(resource)?.seq ?? 0)) heads.set(resource, { resource, seq, hash });
  };
  // Reads the records first: if one is deleted meanwhile, the key that is read afterwards has its end.
  for await (const pair of pairsIn(runtime, prefixed(RECORDS))) {
    const [resource, head] = named(() => [resourceOfRecord(pair.key), headIn(pair)]);
    if (head !== undefined) saw(resource, head);
  }
  for await (const pair of pairsIn(runtime, prefixed(HEADS))) {
    const [resource, head] = named(() => [resourceOfChain(pair.key, HEADS), headIn(pair, true)]);
    if (head !== undefined) saw(resource, head);
  }
  for await (const pair of pairsIn(runtime, prefixed(TRIMMED))) {
    const [resource, trimmed] = named(() => [resourceOfChain(pair.key, TRIMMED), headIn(pair, true)]);
    const head = heads.get(resource);
    if (trimmed !== undefined && head !== undefined) heads.set(resource, { ...head, trimmed });
  }
  return heads;
}

/** Ignores a key that another program wrote. If it overwrote the end of a chain, the entries of that chain show it. */
function named(read: () => readonly [string, Head | undefined]): readonly [string, Head | undefined] {
  try {
    return read();
  } catch (error) {
    if (Failure.is(error, 'corrupt')) return ['', undefined];
    throw error;
  }
}

/** The entries of one chain or of all, chain by chain, each chain in order; with `after`, only those that follow it. */
export async function* entriesIn(
  runtime: Runtime,
  resource?: string,
  after?: Place,
): AsyncGenerator<WitnessEntry, void> {
  const range = entryRange(resource);
  if (after === undefined) for await (const pair of pairsIn(runtime, range)) yield entryIn(pair);
  else for await (const pair of pairsAfter(runtime, after, range)) yield entryIn(pair);
}

/** An entry, by its chain and its number. */
export type Place = Pick<WitnessEntry, 'resource' | 'seq'>;

/** Throws `compacted` if an entry after `place` was trimmed. */
async function* pairsAfter(
  runtime: Runtime,
  { resource, seq }: Place,
  range: KeyRange,
): AsyncGenerator<KeyValue, void> {
  const path = chainPath(resource);
  const own = entryKey(path, seq);
  const looks = new Operations();
  const mark = looks.read({ key: TRIMMED + path });
  const page = looks.read({ key: own, end: range.end, limit: PAGE });
  const { results } = await runtime.store.transaction(looks.always(), runtime.stopped);
  const { pairs, more } = page.in(results);
  const [marked] = mark.in(results).pairs;
  const trimmed = marked === undefined ? 0 : (headIn(marked, true)?.seq ?? 0);
  // Nothing is missing after the last trimmed entry, or after an entry that still exists.
  if (pairs[0]?.key !== own && trimmed !== seq)
    throw new Failure(
      'compacted',
      trimmed > seq
        ? `the entries of ${resource} were trimmed up to ${trimmed}, so some after ${seq} are missing: read from the beginning`
        : `entry ${seq} of ${resource} does not exist; its chain was dropped, or has started again: read from the beginning`,
    );
  for (const pair of pairs) if (pair.key !== own) yield pair;
  if (more) yield* pairsIn(runtime, { key: `${pairs.at(-1)?.key}\0`, end: range.end });
}

export function entryRange(resource?: string): KeyRange {
  return prefixed(resource === undefined ? ENTRIES : `${ENTRIES}${chainPath(resource)}/`);
}

/** A part of one chain: the entries after `after`, up to `last`. */
export interface Stretch {
  readonly resource: string;
  readonly after: number;
  readonly last: number;
}

/** The entries of these stretches, in their order. Reads many chains at once, because one round trip per chain would be slow. */
export async function* entriesOf(runtime: Runtime, stretches: readonly Stretch[]): AsyncGenerator<KeyValue, void> {
  for (let place = 0; place < stretches.length; place += CHAINS_AT_ONCE) {
    const reads = stretches.slice(place, place + CHAINS_AT_ONCE).map(({ resource, after, last }): Read => {
      const path = chainPath(resource);
      return { do: 'read', key: entryKey(path, after + 1), end: entryKey(path, last + 1), limit: ENTRIES_AT_ONCE };
    });
    const { results } = await runtime.store.transaction(always(reads), runtime.stopped);
    for (const [at, read] of reads.entries()) {
      const { pairs, more } = results[at] as ReadResult;
      yield* pairs;
      if (more) yield* pairsIn(runtime, { key: `${pairs.at(-1)?.key}\0`, end: read.end });
    }
  }
}

/** The chain and the number in the key of an entry; undefined if it is not such a key. */
export function placeOf(key: string): Place | undefined {
  const slash = key.lastIndexOf('/');
  return ifPossible(() => ({
    resource: resourceOfChain(key.slice(0, slash), ENTRIES),
    seq: Number(key.slice(slash + 1)),
  }));
}

/** The entry as it is stored; only `verify` checks it. */
export function entryIn(pair: KeyValue): WitnessEntry {
  const entry = decode<unknown>(pair);
  if (isRecord(entry)) return entry as unknown as WitnessEntry;
  throw new Failure('corrupt', `${pair.key} holds no entry of the witness`);
}

export async function readEntry(runtime: Runtime, resource: string, seq: number): Promise<WitnessEntry | undefined> {
  const { pairs } = await readRange(runtime.store, { key: entryKey(chainPath(resource), seq) }, runtime.stopped);
  return pairs[0] === undefined ? undefined : entryIn(pairs[0]);
}

export async function* pairsIn(runtime: Runtime, range: KeyRange): AsyncGenerator<KeyValue, void> {
  for await (const { pairs } of readPages(runtime.store, range, PAGES, runtime.stopped)) yield* pairs;
}
