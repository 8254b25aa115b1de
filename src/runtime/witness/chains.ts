/**
 * Reads the chains of the witness. Chains only grow at their ends, so a reader that reads the ends first, and then all entries
 * up to them, gets a whole record although processes write meanwhile.
 */
import type { ChainHead, WitnessEntry } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { type KeyRange, type KeyValue, prefixed, readPages, readRange, type ReadResult } from '../../store/index.ts';
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
import { isObject } from '../stored.ts';
import { headIn } from '../write/witness.ts';

const PAGE = 200;
const PAGE_CHARACTERS = 512 * 1024;

/** The ends of all chains, by resource; where some were trimmed, up to where. */
export async function readHeads(runtime: Runtime): Promise<ReadonlyMap<string, ChainHead>> {
  const heads = new Map<string, ChainHead>();
  const saw = (resource: string, { seq, hash }: Head): void => {
    if (seq > (heads.get(resource)?.seq ?? 0)) heads.set(resource, { resource, seq, hash });
  };
  // Records first: if one is deleted meanwhile, its end is in the key that is read afterwards.
  for await (const pair of pairsIn(runtime, prefixed(RECORDS))) {
    const head = headIn(pair);
    if (head !== undefined) saw(resourceOfRecord(pair.key), head);
  }
  for await (const pair of pairsIn(runtime, prefixed(HEADS))) {
    const head = headIn(pair, true);
    if (head !== undefined) saw(resourceOfChain(pair.key, HEADS), head);
  }
  for await (const pair of pairsIn(runtime, prefixed(TRIMMED))) {
    const resource = resourceOfChain(pair.key, TRIMMED);
    const trimmed = headIn(pair, true);
    const head = heads.get(resource);
    if (trimmed !== undefined && head !== undefined) heads.set(resource, { ...head, trimmed });
  }
  return heads;
}

/** The entries of one chain, or of all, chain by chain and each in order. */
export async function* entriesIn(runtime: Runtime, resource?: string): AsyncGenerator<WitnessEntry, void> {
  const range = prefixed(resource === undefined ? ENTRIES : `${ENTRIES}${chainPath(resource)}/`);
  for await (const pair of pairsIn(runtime, range)) yield entryIn(pair);
}

/** The entry as it is stored; `verify` says what is wrong with it, if anything is. */
export function entryIn(pair: KeyValue): WitnessEntry {
  const entry = decode<unknown>(pair);
  if (isObject(entry)) return entry as unknown as WitnessEntry;
  throw new Failure('corrupt', `${pair.key} holds no entry of the witness`);
}

export async function readEntry(runtime: Runtime, resource: string, seq: number): Promise<WitnessEntry | undefined> {
  const { pairs } = await readRange(runtime.store, { key: entryKey(chainPath(resource), seq) }, runtime.stopped);
  return pairs[0] === undefined ? undefined : entryIn(pairs[0]);
}

export async function* pairsIn(runtime: Runtime, range: KeyRange): AsyncGenerator<KeyValue, void> {
  for await (const { pairs } of readPages(runtime.store, range, nextLimit, runtime.stopped)) yield* pairs;
}

/** As many as fit into one answer, if their values are about as long as those of the page before. */
function nextLimit(page: ReadResult | undefined): number {
  if (page === undefined) return PAGE;
  const { pairs } = page;
  const characters = pairs.reduce((sum, { value }) => sum + value.text.length, 0) / Math.max(1, pairs.length);
  return Math.max(1, Math.min(10 * PAGE, Math.floor(PAGE_CHARACTERS / Math.max(1, characters))));
}
