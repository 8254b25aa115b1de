/**
 * Cuts long work into slices, so that nothing blocks the event loop for long: a heartbeat that waits for a sweep over a
 * million records would come too late. A store in memory answers at once, so an `await` alone lets nothing else run.
 *
 *     const slices = new Slices(runtime);
 *     for (const record of records) {
 *       await slices.next();
 *       …
 *     }
 */
import type { Clock, Timer } from '../clock.ts';
import type { Steps } from '../core/index.ts';

/** After this time, or this many steps where no clock runs, everything else on the event loop gets its turn. */
const SLICE_MS = 4;
const SLICE_STEPS = 250;

interface SlicesHost {
  readonly clock: Clock;
  later(delayMs: number, call: () => void): Timer;
}

export class Slices {
  readonly #host: SlicesHost;
  #since: number;
  #steps = 0;

  constructor(host: SlicesHost) {
    this.#host = host;
    this.#since = host.clock.monotonic();
  }

  /** To be awaited before each step. */
  next(): Promise<void> | undefined {
    this.#steps += 1;
    if (this.#steps <= SLICE_STEPS && this.#host.clock.monotonic() - this.#since < SLICE_MS) return undefined;
    return this.turn();
  }

  /** To be awaited before a step that may be a slice by itself. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      const resume = (): void => {
        this.#steps = 1;
        this.#since = this.#host.clock.monotonic();
        resolve();
      };
      const { clock } = this.#host;
      if (clock.afterOthers !== undefined) clock.afterOthers(resume);
      else this.#host.later(0, resume);
    });
  }

  /** Runs steps to their end. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      const pause = this.next();
      if (pause !== undefined) await pause;
    }
  }
}
