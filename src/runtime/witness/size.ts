/** How large the record of the witness is. Nobody counts its bytes while it grows, which would cost every write. */
import { afterPrefix, Operations, prefixed, readRange } from '../../store/index.ts';
import { ENTRIES } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readSealed } from './checkpoints.ts';
import type { WitnessRetention } from './retention.ts';
import { readTold } from './warnings.ts';

/** How large the record is. */
export interface WitnessSize {
  /** How many entries the store has. */
  readonly entries: number;
  /** About how many bytes they and the checkpoints take, with their keys. */
  readonly bytes: number;
  /** The part of what may be kept: 1 is full. */
  readonly filled: number;
  /** Why maintenance could not archive, anchor or trim the record when it last tried; absent if it could. */
  readonly failing?: string;
}

/** From here on it warns. */
export const WARNED_AT = 0.8;

/** So few entries are all looked at. */
const FEW = 100;
/** Of each part of the record, so many are looked at. */
const SAMPLE = 4;
const PARTS_AT_ONCE = 60;
/** Where the record is cut into parts: entries of one kind, whose names begin alike, are often about as long. */
const KINDS = ['component', 'lock', 'member', 'pipeline', 'semaphore', 'settings', 'task', 'token'];
const CUTS = [
  ...[ENTRIES, ...KINDS.flatMap((kind) => ['', ...'3ADHMRWadhmqtw'].map((first) => `${ENTRIES}${kind}/${first}`))],
  afterPrefix(ENTRIES),
];

/** Counts the entries, and estimates their bytes. */
export async function sizeOf(runtime: Runtime, limits: WitnessRetention): Promise<WitnessSize> {
  const { store, stopped } = runtime;
  const { pairs, more } = await readRange(store, { ...prefixed(ENTRIES), limit: FEW }, stopped);
  const few = pairs.reduce((sum, { key, value }) => sum + key.length + value.text.length, 0);
  const looked = more ? await lookAround(runtime) : { entries: pairs.length, bytes: few };
  const { bytes: ofCheckpoints, entryBytes } = await readSealed(runtime);
  const { entries } = looked;
  // Sealing has seen all that it covers, and a sample may have missed the large ones: to trim too early does less harm than too late.
  const bytes = (more ? Math.max(looked.bytes, entryBytes * entries) : looked.bytes) + ofCheckpoints;
  const filled = Math.max(bytes / limits.mostBytes, entries / limits.mostEntries);
  const { failed } = (await readTold(runtime)).told;
  return { entries, bytes, filled, ...(failed && { failing: `${failed.step}: ${failed.why}` }) };
}

async function lookAround(runtime: Runtime): Promise<{ readonly entries: number; readonly bytes: number }> {
  let entries = 0;
  let bytes = 0;
  for (let place = 0; place < CUTS.length - 1; place += PARTS_AT_ONCE) {
    const looks = new Operations();
    const parts = CUTS.slice(place, Math.min(place + PARTS_AT_ONCE, CUTS.length - 1)).map((key, at) => {
      const range = { key, end: CUTS[place + at + 1] };
      return { count: looks.read({ ...range, countOnly: true }), some: looks.read({ ...range, limit: SAMPLE }) };
    });
    const { results } = await runtime.store.transaction(looks.always(), runtime.stopped);
    for (const { count, some } of parts) {
      const { pairs } = some.in(results);
      const all = count.in(results).count;
      const seen = pairs.reduce((sum, { key, value }) => sum + key.length + value.text.length, 0);
      entries += all;
      bytes += Math.round((seen / Math.max(1, pairs.length)) * all);
    }
  }
  return { entries, bytes };
}
