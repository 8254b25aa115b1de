/** Finds in the history of a record how a hold ended: for a release without an answer, if no letter tells. */
import type { Clock } from '../../clock.ts';
import type { Claim, Hold, Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { type KeyValue, readRange, type Revision, type Store } from '../../store/index.ts';
import { decode, type RecordDocument } from '../layout.ts';

interface Host {
  readonly store: Store;
  readonly clock: Clock;
  readonly stopped: AbortSignal;
}

type Document = RecordDocument<{ readonly holds: readonly Hold[] }>;

/**
 * Whether the hold, which the record had at the revision `since` and has no longer, was released, and not taken away. Throws if the
 * store has forgotten how it ended. Where the end of the hold was the last write, the record tells, whatever was compacted.
 *
 * A release by token did not land once the hold has another token: the same holder got more elsewhere, and that is not released.
 */
export async function wasReleased(
  { store, clock, stopped }: Host,
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
