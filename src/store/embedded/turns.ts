/**
 * Retries while the file is busy, without blocking the event loop: SQLite's own waiting would sleep for whole
 * milliseconds in which no lease is renewed. Turns are taken in the order in which they were asked for.
 */
import type { Clock, Timer } from '../../clock.ts';
import { isBusy } from '../../sqlite/index.ts';
import { asFailure, busyTooLong } from './sqlite-failure.ts';

interface Turn {
  /** Returns false if the file is busy. */
  take(): boolean;
  giveUp(error: unknown): void;
  readonly since: number;
}

/** A write takes some 50 µs, so the next look most often finds the file free; later looks leave the processor to others. */
const LOOKS_AT_ONCE = 8;
/**
 * SQLite's lock has no queue: processes that write without a pause overtake a process that pauses for long. But
 * hundreds of processes that look again and again take the processor from the writer; after about a second they look
 * more rarely.
 */
const SHORT_PAUSES = 16;
const LONGEST_PAUSE_MS = 64;
/** After so many turns, which take some milliseconds, the next one lets the event loop go on first. */
const MOST_IN_A_ROW = 64;

export class Turns {
  readonly #clock: Clock;
  readonly #file: string;
  readonly #patienceMs: number;
  readonly #waiting: Turn[] = [];
  #alive: Timer | undefined;
  #looks = 0;
  #inARow = 0;

  constructor(clock: Clock, file: string, patienceMs: number) {
    this.#clock = clock;
    this.#file = file;
    this.#patienceMs = patienceMs;
  }

  /** Runs `work` at once if the file is not busy, and retries while it is. Throws whatever else `work` throws. */
  take<T>(work: () => T, signal?: AbortSignal): Promise<T> {
    // A caller that only ever awaits work that is done at once would keep timers and sockets waiting for ever.
    if (this.#waiting.length > 0 || ++this.#inARow > MOST_IN_A_ROW) return this.#wait(work, signal);
    return this.now(work, signal);
  }

  /** Does the same for work that only reads, and so need not wait for writers. */
  async now<T>(work: () => T, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    try {
      return work();
    } catch (error) {
      if (isBusy(error)) return this.#wait(work, signal);
      throw asFailure(error, this.#file);
    }
  }

  #wait<T>(work: () => T, signal: AbortSignal | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const turn: Turn = {
        since: this.#clock.monotonic(),
        take: () => {
          try {
            // Checked here, at every look, instead of by a listener: hundreds may wait under one signal.
            signal?.throwIfAborted();
            resolve(work());
          } catch (error) {
            if (isBusy(error)) return false;
            reject(asFailure(error, this.#file) as Error);
          }
          return true;
        },
        giveUp: reject,
      };
      if (this.#waiting.push(turn) === 1) this.#lookAgain();
    });
  }

  #lookAgain(): void {
    this.#alive ??= this.#clock.keepAlive?.();
    if (this.#looks++ < LOOKS_AT_ONCE) {
      setImmediate(() => this.#look());
      return;
    }
    // The pauses are random, or the same two processes would collide again and again.
    const pauses = this.#looks - LOOKS_AT_ONCE;
    const longestMs = Math.min(2 ** Math.floor(pauses / SHORT_PAUSES), LONGEST_PAUSE_MS);
    this.#clock.timer(longestMs * (0.5 + Math.random() / 2), () => this.#look());
  }

  #look(): void {
    this.#inARow = 0;
    for (let turn = this.#waiting[0]; turn !== undefined; turn = this.#waiting[0]) {
      if (!turn.take()) break;
      this.#waiting.shift();
      this.#looks = 0;
    }
    this.#giveUpTooOld();
    if (this.#waiting.length > 0) return this.#lookAgain();
    this.#looks = 0;
    this.#alive?.cancel();
    this.#alive = undefined;
  }

  #giveUpTooOld(): void {
    const now = this.#clock.monotonic();
    for (let turn = this.#waiting[0]; turn !== undefined; turn = this.#waiting[0]) {
      if (now - turn.since < this.#patienceMs) return;
      this.#waiting.shift();
      turn.giveUp(busyTooLong(this.#file, now - turn.since));
    }
  }
}
