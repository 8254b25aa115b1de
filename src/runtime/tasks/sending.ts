/** Sends what must not be given up at the first trouble, and never repeats what may have been done already. */
import { Failure } from '../../failure.ts';
import type { Transaction, TransactionResult } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/** One write that is sent until there is an answer; remembers whether one of its attempts may have been applied. */
export class Sending {
  readonly #runtime: Runtime;
  /** What was thrown by an attempt that nobody answered. */
  doubt: Failure | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async send(transaction: Transaction): Promise<TransactionResult> {
    try {
      return await send(this.#runtime, transaction);
    } catch (error) {
      if (Failure.is(error, 'outcome-unknown')) this.doubt = error;
      throw error;
    }
  }

  persistently<T>(work: () => Promise<T>): Promise<T> {
    return persistently(this.#runtime, this.#runtime.giveUpAt(), work, () => this.doubt);
  }
}

export function send(runtime: Runtime, transaction: Transaction): Promise<TransactionResult> {
  return new Promise((resolve, reject) => runtime.commit(transaction, resolve, reject));
}

/**
 * Until `until` on the monotonic clock, a store that cannot be reached is asked again. `work` must be harmless to repeat:
 * it compares what it rests on, or looks first what has become of the last attempt. `doubt` is what is thrown in the end
 * if an earlier attempt may have been applied: that the last one certainly was not says nothing then.
 */
export async function persistently<T>(
  runtime: Runtime,
  until: number,
  work: () => Promise<T>,
  doubt: () => unknown = () => undefined,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isTrouble(error) || runtime.clock.monotonic() >= until || runtime.stopped.aborted) throw doubt() ?? error;
      await pause(runtime, Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS));
    }
  }
}

/** The store was not reached, or did not answer; the next attempt may do better. */
export function isTrouble(error: unknown): boolean {
  return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
}

export function pause(runtime: Runtime, ms: number): Promise<void> {
  return new Promise((resolve) => void runtime.later(ms, resolve));
}
