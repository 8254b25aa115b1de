/** Tells the program when a wait or a stream has lost its server for more than a second, and when it has one again. */
import type { Clock, Timer } from './clock.ts';

/** Nobody notices a shorter interruption. */
const UNTOLD_MS = 1_000;

interface Teller {
  readonly clock: Clock;
  tellAway(trouble?: unknown): void;
}

export class Absence {
  readonly #teller: Teller;
  #untold: Timer | undefined;
  #trouble: unknown;
  #isTold = false;

  constructor(teller: Teller) {
    this.#teller = teller;
  }

  lost(trouble: unknown): void {
    this.#trouble = trouble;
    this.#untold ??= this.#teller.clock.timer(UNTOLD_MS, () => {
      this.#isTold = true;
      this.#teller.tellAway(this.#trouble);
    });
  }

  heardAgain(): void {
    this.end();
    this.#untold = undefined;
    if (this.#isTold) this.#teller.tellAway();
    this.#isTold = false;
  }

  /** The wait or the stream is over. */
  end(): void {
    this.#untold?.cancel();
  }
}
