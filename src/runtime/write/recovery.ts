/**
 * Recovers from a store that cannot be reached or does not answer. Every write of the runtime uses it: the batches of
 * `ResourceWriter`, by callbacks, and the single writes of `writeOnce`, by promises.
 *
 *                  ┌─ unavailable: certainly not applied ──────────────────┐
 *     send ────────┤                                                       ▼
 *      ▲           └─ outcome-unknown: doubt ──▶ fence ──▶ look          pause
 *      │                                           ▲        │              │
 *      └────────────── decide again ◀──────────────┼────────┴── look ◀─────┘
 *                                                  └─ pause, where the fence has no answer either
 */
import type { Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';

export interface Attempt {
  /** The attempt may have been applied, or may still be. */
  doubted(error: Failure): void;
  /** Once this calls back, no write that was sent before can land. */
  fence(done: () => void, failed: (error: unknown) => void): void;
  /** Whether a caller still waits. Callers whose time is up fail with this error. */
  isWanted(error: unknown): boolean;
  /** Reads what the decision rests on, and decides again. After a doubt, it looks for the earlier attempt by its id. */
  look(afterDoubt: boolean): void;
  /** The error is final: another attempt would fail as well. */
  failed(error: unknown): void;
  /** Keeps the process alive until the next attempt. */
  readonly keepsAlive: boolean;
  /** Ends a pause early. */
  readonly cut?: AbortSignal | undefined;
}

interface Host {
  later(delayMs: number, call: () => void, keepsAlive: boolean): Timer;
}

/** The store was not reached, or did not answer: another attempt may succeed. */
export function isTrouble(error: unknown): boolean {
  return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
}

export class Recovery {
  readonly #host: Host;
  /** Failures since the store last answered. */
  #failures = 0;
  /** Doubts since the store last answered a write: it may answer reads and no write. */
  #doubts = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The store answered a read. */
  read(): void {
    this.#failures = 0;
  }

  /** The store answered a write. */
  answered(): void {
    this.#failures = 0;
    this.#doubts = 0;
  }

  /** A write was refused or got no answer. */
  failed(error: unknown, attempt: Attempt): void {
    if (!Failure.is(error, 'outcome-unknown')) return this.unread(error, attempt);
    attempt.doubted(error);
    const doubts = this.#doubts++;
    if (doubts === 0) return this.#fence(error, attempt);
    this.#later(error, doubts - 1, attempt, () => this.#fence(error, attempt));
  }

  /** A read failed, so nothing can have been applied. */
  unread(error: unknown, attempt: Attempt): void {
    // `not-found`: a lease that the write needs has ended. That is decided again too.
    if (!isTrouble(error) && !Failure.is(error, 'not-found')) return attempt.failed(error);
    this.#later(error, this.#failures++, attempt, () => attempt.look(false));
  }

  #fence(error: Failure, attempt: Attempt): void {
    attempt.fence(
      () => attempt.look(true),
      (again) => {
        if (!isTrouble(again)) return attempt.failed(again);
        this.#later(error, this.#failures++, attempt, () => this.#fence(error, attempt));
      },
    );
  }

  #later(error: unknown, failures: number, attempt: Attempt, call: () => void): void {
    if (!attempt.isWanted(error)) return;
    const { cut, keepsAlive } = attempt;
    const over = (): void => {
      cut?.removeEventListener('abort', over);
      timer?.cancel();
      if (attempt.isWanted(error)) call();
    };
    const timer = this.#host.later(backoffMs(failures), over, keepsAlive);
    cut?.addEventListener('abort', over, { once: true });
  }
}

const FIRST_MS = 20;
const LONGEST_MS = 1000;

/** `failures`: how many attempts have failed in a row before this one. */
export function backoffMs(failures: number, longestMs = LONGEST_MS): number {
  return Math.min(FIRST_MS * 2 ** failures, longestMs);
}
