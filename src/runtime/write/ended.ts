/** How a hold ended, from the history of its record: for a release that got no answer and finds the hold gone. */
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
 * Whether the hold, which the record had at the revision `since`, was released. False if another process took it away, or if
 * the store has forgotten how it ended. Letters would not do: those about a detached hold go to the process that acquired it.
 */
export async function wasReleased(
  { store, clock, stopped }: Host,
  record: string,
  since: Revision,
  { id, token }: Pick<Hold, 'id' | 'token'>,
): Promise<boolean> {
  const over = new AbortController();
  let last = token;
  const alive = clock.keepAlive?.();
  try {
    for await (const { changes } of await store.watch({ key: record }, since, AbortSignal.any([stopped, over.signal]))) {
      for (const change of changes) {
        if (change.kind !== 'put') return false;
        const { events, record: after } = decode<RecordDocument<{ readonly holds: readonly Hold[] }>>(change.pair);
        const held = after.holds.find((hold) => hold.id === id);
        if (held === undefined) return events.some(({ type, token: of }) => type.endsWith(':released') && of === last);
        last = held.token;
      }
    }
    return false;
  } catch (error) {
    if (Failure.is(error, 'compacted')) return false;
    throw error;
  } finally {
    alive?.cancel();
    over.abort();
  }
}
