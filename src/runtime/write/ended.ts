/** Finds out how a hold ended, for a release without an answer: by the letters, or in the history of the record. */
import type { Claim, Hold, Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { type KeyValue, readRange, type Revision } from '../../store/index.ts';
import { decode, processOf, type RecordDocument } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { persistently } from './write-once.ts';

type Document = RecordDocument<{ readonly holds: readonly Hold[] }>;

/**
 * Whether a hold that is gone was released, and not taken away. `since`: what this process had seen when it released the hold,
 * and the record it released it from. `claim`: what it released. Throws if nobody can know, or if the store cannot be reached until
 * `until`.
 */
export async function wasReleased(
  runtime: Runtime,
  record: string,
  { mod, seen }: { readonly mod: Revision; readonly seen: Revision },
  hold: Hold,
  claim: Pick<Claim, 'token'>,
  until: number,
): Promise<boolean> {
  const { holds, presence, remembered, sender } = runtime;
  const fromHistory = (): Promise<boolean> =>
    persistently(runtime, until, () => isReleasedInHistory(runtime, record, mod, hold, claim, until));
  // A process that takes a hold away writes a letter to the process of its lease.
  const isOurs = processOf(hold.lease) === sender.id;
  if (holds.has(hold.id)) {
    const areAllRead = isOurs && (await presence.hasReadAllSince(seen, until));
    if (areAllRead) return !remembered.wasLost(hold);
    return holds.has(hold.id) ? false : fromHistory();
  }
  try {
    return await fromHistory();
  } catch (error) {
    // Only a letter that came proves something about a detached hold: another process may have renewed it on a lease of its own.
    if (Failure.is(error, 'compacted') && remembered.wasLost(hold)) return false;
    throw error;
  }
}

/**
 * Whether the hold, which the record had at the revision `since` and has no longer, was released, and not taken away. Throws if the
 * store has forgotten how it ended. Where the end of the hold was the last write, the record tells, whatever was compacted.
 *
 * A release by token did not land once the hold has another token: the same holder got more elsewhere, and that is not released.
 */
async function isReleasedInHistory(
  { store, clock, stopped }: Runtime,
  record: string,
  since: Revision,
  { id, token }: Pick<Hold, 'id' | 'token'>,
  claim: Pick<Claim, 'token'>,
  until: number,
): Promise<boolean> {
  const over = new AbortController();
  const timer = clock.timer(Math.max(0, until - clock.monotonic()), () => over.abort());
  const ending = AbortSignal.any([stopped, over.signal]);
  let last = token;
  const alive = clock.keepAlive?.();
  try {
    const { pairs } = await readRange(store, { key: record }, ending);
    if (pairs.some((pair) => tellsRelease(pair, token))) return true;
    for await (const { changes } of await store.watch({ key: record }, since, ending)) {
      for (const change of changes) {
        if (change.kind !== 'put') throw unknown();
        const held = decode<Document>(change.pair).record.holds.find((hold) => hold.id === id);
        if (held === undefined) return tellsRelease(change.pair, last);
        if (claim.token !== undefined && held.token !== claim.token) return false;
        last = held.token;
      }
    }
    throw stopped.aborted || over.signal.aborted
      ? new Failure('unavailable', 'the store did not tell in time how the hold ended')
      : unknown();
  } finally {
    timer.cancel();
    alive?.cancel();
    over.abort();
  }
}

function tellsRelease(pair: KeyValue, token: Token): boolean {
  return decode<Document>(pair).events.some(({ type, token: of }) => type.endsWith(':released') && of === token);
}

function unknown(): Failure {
  return new Failure('compacted', 'the store has forgotten how the hold ended');
}
