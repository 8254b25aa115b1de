/** Connects to a store as a bus, for programs that need nothing else of signalbox. */
import { type Clock, systemClock } from '../../clock.ts';
import type { Store } from '../../store/index.ts';
import { withDeadlines } from '../../store/bounded-store.ts';
import { isStore, storeAt } from '../open.ts';
import { anObject, milliseconds, refuseWrongValues } from '../options.ts';
import { Bus } from './bus.ts';

/** How to connect. */
export interface ConnectOptions {
  /** A request throws `unavailable` if the store has not answered after this time. */
  readonly requestTimeoutMs?: number;
  /** Where time comes from; the system, if not given. */
  readonly clock?: Clock;
}

/** Finds the store as `open` does. Makes no session. */
export async function connect(urlOrStore?: string | Store, options: ConnectOptions = {}): Promise<Bus> {
  refuseWrongValues(options, { requestTimeoutMs: milliseconds, clock: anObject });
  const { requestTimeoutMs = 5_000, clock = systemClock } = options;
  const store = isStore(urlOrStore) ? urlOrStore : await storeAt(urlOrStore, clock, requestTimeoutMs);
  const bounded = withDeadlines(store, clock, requestTimeoutMs);
  try {
    await bounded.health();
  } catch (error) {
    await bounded.close().catch(() => undefined);
    throw error;
  }
  return new Bus(bounded, clock, undefined, () => bounded.close());
}
