/**
 * Reads the whole record while processes write it. No engine reads at an old revision, so the order of the reads keeps the result
 * consistent:
 *
 *     trims ──▶ checkpoints ──▶ ends of chains ──▶ entries ──▶ trims again
 *
 * Every chain reaches as far as its checkpoints say, because its end is read after them. Every entry up to the end exists,
 * because entries are read after the end. An entry past the end that was written after the reading began belongs to the next
 * reading. Only a trim takes entries away. Each trim puts one key; a reader that finds this key changed has read parts of two
 * records, and begins again.
 */
import type { ChainHead, Checkpoint, ExportEnd } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { type KeyValue, prefixed, readRange, type Revision } from '../../store/index.ts';
import { ENTRIES, TRIMS } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { pairsIn, placeOf, readHeads } from './chains.ts';
import { readSealed, storedCheckpoints } from './checkpoints.ts';

/** How many readings to try if each is interrupted by a trim. */
const ATTEMPTS = 10;

/** A part of the record, in the order of an export. */
export type Part = { readonly checkpoint: Checkpoint } | { readonly entry: KeyValue };

class TrimmedMeanwhile extends Failure {
  constructor() {
    super('unavailable', 'the record of the witness was trimmed while it was read; try again');
  }
}

/** Reads the record again until no trim interrupts it. */
export async function wholeRecord<T>(
  runtime: Runtime,
  read: (parts: AsyncGenerator<Part, ExportEnd>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read(partsOfRecord(runtime));
    } catch (error) {
      if (!(error instanceof TrimmedMeanwhile) || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Calls `see` for each part, and returns the end. */
export async function eachPart(parts: AsyncGenerator<Part, ExportEnd>, see: (part: Part) => void): Promise<ExportEnd> {
  for (;;) {
    const { done, value } = await parts.next();
    if (done === true) return value;
    see(value);
  }
}

/** Throws after the last part if the record was trimmed meanwhile. */
export async function* partsOfRecord(runtime: Runtime): AsyncGenerator<Part, ExportEnd> {
  const began = await trimsOf(runtime);
  const newest = await readSealed(runtime);
  let checkpoints = 0;
  for (const { checkpoint, mod } of await storedCheckpoints(runtime)) {
    // A checkpoint made since belongs to the next reading. An older one after the newest was not made by signalbox.
    if (checkpoint.number > newest.number && mod > began.revision) continue;
    yield { checkpoint };
    checkpoints += 1;
  }
  const heads = await readHeads(runtime);
  let entries = 0;
  for await (const entry of pairsIn(runtime, prefixed(ENTRIES))) {
    if (entry.modRevision > began.revision && isPastEnd(entry.key, heads)) continue;
    yield { entry };
    entries += 1;
  }
  if ((await trimsOf(runtime)).mod !== began.mod) throw new TrimmedMeanwhile();
  const { number, hash } = newest;
  return {
    heads: [...heads.values()].sort((one, other) => (one.resource < other.resource ? -1 : 1)),
    entries,
    checkpoints,
    ...(number > 0 && { checkpoint: { number, hash } }),
  };
}

function isPastEnd(key: string, heads: ReadonlyMap<string, ChainHead>): boolean {
  const place = placeOf(key);
  // Signalbox writes no other keys here, so the verifier has to see a foreign one.
  return place !== undefined && place.seq > (heads.get(place.resource)?.seq ?? 0);
}

export async function trimsOf(runtime: Runtime): Promise<{ readonly mod: Revision; readonly revision: Revision }> {
  const { pairs, revision } = await readRange(runtime.store, { key: TRIMS }, runtime.stopped);
  return { mod: pairs[0]?.modRevision ?? 0, revision };
}
