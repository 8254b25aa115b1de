/**
 * What follows when the store could not be asked, or did not answer. Every write of the runtime goes through here: those of
 * the writers, which come in batches and by callbacks, and those of `write`, one at a time and by promises.
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
import { backoffMs } from './backoff.ts';

export interface Attempt {
  /** Told that an attempt may have been applied, and may still be. */
  doubted(error: Failure): void;
  /** From when this calls back, nothing that was sent before can land. */
  fence(done: () => void, failed: (error: unknown) => void): void;
  /** Somebody still waits for it. Whoever does not any more is told so, with this error. */
  isWanted(error: unknown): boolean;
  /** Reads what the decision rests on, and decides again. After a doubt, what was asked is looked for by its id. */
  look(afterDoubt: boolean): void;
  /** No later attempt would do better. */
  failed(error: unknown): void;
  /** The process must not end before the next attempt. */
  readonly keepsAlive: boolean;
  /** Ends a pause. */
  readonly cut?: AbortSignal | undefined;
}

interface Host {
  later(delayMs: number, call: () => void, keepsAlive: boolean): Timer;
}

/** The store was not reached, or did not answer; the next attempt may do better. */
export function isTrouble(error: unknown): boolean {
  return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
}

export class Recovery {
  readonly #host: Host;
  /** Since the store last answered. */
  #failures = 0;
  /** Since it last answered a write: reads may be answered although no write is. */
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

  /** A read failed: nothing can have been applied. */
  unread(error: unknown, attempt: Attempt): void {
    // What it was to hang on may be gone since: that is decided again too.
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
