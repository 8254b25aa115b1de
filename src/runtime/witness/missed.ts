/** What a watch of the record reads again, because its reader fell behind or the history that it needed is gone. */
import { Failure } from '../../failure.ts';
import { type KeyRange, type KeyValue, readPages, type Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { isTrouble } from '../write/recovery.ts';
import { unlessStopped } from '../write/write-once.ts';
import { entryIn, nextLimit } from './chains.ts';
import { fits, type WitnessFilter } from './filter.ts';

/** What cannot be read fits nobody: `verify` names it. */
export function isWanted(pair: KeyValue, filter: WitnessFilter): boolean {
  try {
    return fits(entryIn(pair), filter);
  } catch {
    return false;
  }
}

/** The entries from this revision on that are still there, in the order of their writes. Never throws: nobody could catch it. */
export async function* missedSince(
  runtime: Runtime,
  range: KeyRange,
  since: Revision,
  filter: WitnessFilter,
  signal: AbortSignal,
): AsyncGenerator<KeyValue, void> {
  const found = await unlessStopped(runtime, signal, async () => {
    try {
      return await readSince(runtime, range, since, signal);
    } catch (error) {
      if (signal.aborted || Failure.is(error, 'closed')) return [];
      if (isTrouble(error)) throw error;
      // The watch itself asks a store that refuses it again and again, so its reader waits here as well and loses nothing.
      throw new Failure('unavailable', 'the record of the witness could not be read', { cause: error });
    }
  });
  for (const pair of found ?? []) if (isWanted(pair, filter)) yield pair;
}

async function readSince(
  { store }: Runtime,
  range: KeyRange,
  since: Revision,
  signal: AbortSignal,
): Promise<readonly KeyValue[]> {
  const newer: KeyValue[] = [];
  let last: Revision | undefined;
  for await (const { pairs, revision } of readPages(store, range, nextLimit, signal)) {
    // Later pages show later writes, of which the earlier pages lack a part. The watch brings these writes whole.
    const until = (last ??= revision);
    newer.push(...pairs.filter(({ modRevision }) => modRevision >= since && modRevision <= until));
  }
  return newer.sort((one, other) => one.modRevision - other.modRevision);
}
