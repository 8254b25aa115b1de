/**
 * Opens a store for as long as the user waits for it: Ctrl-C gives up, and so does the end of the time that the user gave.
 * Without this, a command with `--wait 1s` would try a dead etcd for as long as a request may take.
 */
import { systemClock, timeLimit } from '../clock.ts';
import { spoken } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { withoutPassword } from '../store/index.ts';

/**
 * A store has at least this long to answer. With `--wait 10ms` a person wants to know who holds the lock, and not that the
 * store, which is well, takes 12 ms to open.
 */
const LEAST_MS = 2_000;
/** A file of this machine opens, or says why not. It is late only on a busy machine, where it is no less well. */
const LEAST_OF_A_FILE_MS = 20_000;

/** The time of `--wait`. It begins with the command, so opening the store is part of it. */
export class WaitLimit {
  /** As the user gave it. Undefined: no limit; 0: do not wait for what is taken. */
  readonly ms: number | undefined;
  /** Aborts when the time is up. */
  readonly signal: AbortSignal | undefined;
  readonly #since = systemClock.monotonic();

  constructor(ms: number | undefined) {
    this.ms = ms;
    this.signal = ms === undefined ? undefined : timeLimit(ms).signal;
  }

  /** At least 1, because 0 means not to wait at all. */
  get leftMs(): number | undefined {
    if (this.ms === undefined || this.ms === 0) return this.ms;
    return Math.max(1, this.ms - (systemClock.monotonic() - this.#since));
  }
}

export interface OpeningTerms {
  readonly url: string;
  /** Ctrl-C. */
  readonly leaving?: AbortSignal | undefined;
  readonly limit?: WaitLimit | undefined;
}

/** `open` gets a signal that aborts when nobody waits for the store any more. */
export function openInTime(
  { url, leaving, limit }: OpeningTerms,
  open: (signal: AbortSignal) => Promise<Signalbox>,
): Promise<Signalbox> {
  const givingUp = new AbortController();
  const withinMs = limit?.ms === undefined || limit.ms === 0 ? undefined : Math.max(limit.ms, leastMs(url));
  const late = withinMs === undefined ? undefined : timeLimit(withinMs);
  return new Promise((resolve, reject) => {
    const over = (): void => {
      leaving?.removeEventListener('abort', onLeave);
      late?.signal.removeEventListener('abort', onLate);
      late?.cancel();
    };
    const giveUp = (why: Failure): void => {
      over();
      givingUp.abort(why);
      reject(why);
    };
    const onLeave = (): void => giveUp(new Failure('closed', 'left'));
    const onLate = (): void => giveUp(notReached(url, withinMs ?? 0));
    leaving?.addEventListener('abort', onLeave, { once: true });
    late?.signal.addEventListener('abort', onLate, { once: true });
    if (leaving?.aborted === true) return onLeave();
    open(givingUp.signal).then(
      (box) => {
        over();
        // It opened after all.
        if (givingUp.signal.aborted) void box.close().catch(() => undefined);
        else resolve(box);
      },
      (error: unknown) => {
        over();
        reject(error as Error);
      },
    );
  });
}

function leastMs(url: string): number {
  return url.startsWith('file:') ? LEAST_OF_A_FILE_MS : LEAST_MS;
}

function notReached(url: string, ms: number): Failure {
  const what = `the store ${withoutPassword(url)} could not be reached within ${spoken(ms)}`;
  return new Failure('unavailable', `${what}; signalbox doctor says why`);
}
