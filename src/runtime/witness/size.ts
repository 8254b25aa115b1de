/** Measures the record of the witness. No process counts the bytes as it grows, because that would slow down every write. */
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
  /** About how many bytes the entries and checkpoints take, with their keys. */
  readonly bytes: number;
  /** The part of the limit that is used: 1 is full. */
  readonly filled: number;
  /** Why maintenance could not archive, anchor or trim the record when it last tried; absent if it succeeded. */
  readonly failing?: string;
}

/** The part at which maintenance warns. */
export const WARNED_AT = 0.8;

/** Up to this many entries, it looks at all of them. */
const FEW = 100;
/** How many entries of each part of the record it looks at. */
const SAMPLE = 4;
const PARTS_AT_ONCE = 60;
/** Divides the record into parts: entries whose names begin alike are of one kind and often about equally long. */
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
  // The checkpoint knows the size of everything that it covers, while a sample may miss large entries. Trimming too early does
  // less harm than trimming too late.
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
