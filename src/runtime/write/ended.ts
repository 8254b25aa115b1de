/** How a hold ended, from the history of its record: for a release in doubt of which no letter can tell. */
import type { Clock } from '../../clock.ts';
import type { Hold } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Revision, Store } from '../../store/index.ts';
import { decode, type RecordDocument } from '../layout.ts';

interface Host {
  readonly store: Store;
  readonly clock: Clock;
  readonly stopped: AbortSignal;
}

/**
 * Whether the hold, which the record had at the revision `since` and has no longer, was released, and not taken away. Throws if the
 * store has forgotten how it ended.
 */
export async function wasReleased(
  { store, clock, stopped }: Host,
  record: string,
  since: Revision,
  { id, token }: Pick<Hold, 'id' | 'token'>,
  until: number,
): Promise<boolean> {
  const over = new AbortController();
  const timer = clock.timer(Math.max(0, until - clock.monotonic()), () => over.abort());
  let last = token;
  const alive = clock.keepAlive?.();
  try {
    for await (const { changes } of await store.watch(
      { key: record },
      since,
      AbortSignal.any([stopped, over.signal]),
    )) {
      for (const change of changes) {
        if (change.kind !== 'put') throw unknown();
        const { events, record: after } = decode<RecordDocument<{ readonly holds: readonly Hold[] }>>(change.pair);
        const held = after.holds.find((hold) => hold.id === id);
        if (held === undefined) return events.some(({ type, token: of }) => type.endsWith(':released') && of === last);
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

function unknown(): Failure {
  return new Failure('compacted', 'the store has forgotten how the hold ended');
}
