/** Reads entries for a watch of the record: the last ones, if it begins with them, and those that its reader or its store missed. */
import { Failure } from '../../failure.ts';
import { ifPossible } from '../../host/index.ts';
import { type KeyRange, type KeyValue, readPages, readRange, type Revision } from '../../store/index.ts';
import { TRIMS } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { isTrouble } from '../write/recovery.ts';
import { unlessStopped } from '../write/write-once.ts';
import { entryIn, PAGES } from './chains.ts';
import { fits, type WitnessFilter } from './filter.ts';

/** Skips an entry that cannot be read; `verify` names it. */
export function isWanted(pair: KeyValue, filter: WitnessFilter): boolean {
  return ifPossible(() => fits(entryIn(pair), filter)) ?? false;
}

/** Which entries to read, by the revisions of their writes. */
interface Wanted {
  readonly since: Revision;
  /** How many of the last entries before that to read as well. */
  readonly before: number;
  /** The reader knows of the trims up to this revision. */
  readonly knownTrim: Revision;
}

/** Entries that a reader has not had may have been trimmed, up to this revision. */
export interface Trimmed {
  readonly trimmedAt: Revision;
}

/**
 * Reads those entries that still exist, in the order of their writes; first says if others were trimmed. Never throws, because no
 * caller could catch it.
 */
export async function* missedSince(
  runtime: Runtime,
  range: KeyRange,
  wanted: Wanted,
  filter: WitnessFilter,
  signal: AbortSignal,
): AsyncGenerator<KeyValue | Trimmed, void> {
  const found = await unlessStopped(runtime, signal, async () => {
    try {
      const entries = await readSince(runtime, range, wanted, filter, signal);
      // Read last: a trim may have removed entries before their page was read.
      const { pairs } = await readRange(runtime.store, { key: TRIMS }, signal);
      const trimmedAt = pairs[0]?.modRevision ?? 0;
      const isTrimmed = trimmedAt > Math.max(wanted.since, wanted.knownTrim);
      return isTrimmed ? [{ trimmedAt }, ...entries] : entries;
    } catch (error) {
      if (signal.aborted || Failure.is(error, 'closed')) return [];
      if (isTrouble(error)) throw error;
      // The watch itself retries a store that refuses it, so this reader waits as well and loses nothing.
      throw new Failure('unavailable', 'the record of the witness could not be read', { cause: error });
    }
  });
  yield* found ?? [];
}

async function readSince(
  { store }: Runtime,
  range: KeyRange,
  { since, before }: Pick<Wanted, 'since' | 'before'>,
  filter: WitnessFilter,
  signal: AbortSignal,
): Promise<readonly KeyValue[]> {
  const newer: KeyValue[] = [];
  const older: KeyValue[] = [];
  let last: Revision | undefined;
  for await (const { pairs, revision } of readPages(store, range, PAGES, signal)) {
    // A later page shows writes of which earlier pages have only a part. The watch delivers these writes whole.
    const until = (last ??= revision);
    for (const pair of pairs) {
      if (pair.modRevision > until || (before === 0 && pair.modRevision < since) || !isWanted(pair, filter)) continue;
      (pair.modRevision < since ? older : newer).push(pair);
    }
    if (older.length > 4 * before + 100) keepLast(older, before);
  }
  return [...keepLast(older, before), ...keepLast(newer)];
}

/** Sorts entries in the order of their writes. */
function keepLast(pairs: KeyValue[], count = pairs.length): readonly KeyValue[] {
  pairs.sort((one, other) => one.modRevision - other.modRevision);
  pairs.splice(0, pairs.length - count);
  return pairs;
}
