/** From a URL to a bus, for programs that want nothing else of a store. */
import { type Clock, systemClock } from '../../clock.ts';
import { Failure, shown } from '../../failure.ts';
import type { Store } from '../../store/index.ts';
import { withDeadlines } from '../deadline.ts';
import { isStore, storeAt } from '../open.ts';
import { shapeProblem } from '../options.ts';
import { Bus } from './bus.ts';

export interface ConnectOptions {
  /** A store that cannot be reached is told as `unavailable` after this time. */
  readonly requestTimeoutMs?: number;
  readonly clock?: Clock;
}

/** Which store is meant is found as `open` finds it. No session is made. */
export async function connect(urlOrStore?: string | Store, options: ConnectOptions = {}): Promise<Bus> {
  const misshapen = shapeProblem(options, ['requestTimeoutMs', 'clock']);
  if (misshapen !== undefined) throw new Failure('invalid', misshapen);
  const { requestTimeoutMs = 5_000, clock = systemClock } = options;
  if (!Number.isFinite(requestTimeoutMs) || requestTimeoutMs <= 0) {
    const accepted = 'accepted is a number of milliseconds above zero';
    throw new Failure('invalid', `requestTimeoutMs is ${shown(requestTimeoutMs)}; ${accepted}`);
  }
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
