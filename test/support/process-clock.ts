/** The clock of one process: it goes as the world's does, but the process may stand still or have a wrong wall clock. */
import type { Clock, Timer } from 'signalbox';

export class ProcessClock implements Clock {
  readonly #world: Clock;
  #wallOffset = 0;
  /** What should have happened while the process stood still. */
  #held: (() => void)[] | undefined;
  #dead = false;

  constructor(world: Clock) {
    this.#world = world;
  }

  now(): number {
    return this.#world.now() + this.#wallOffset;
  }

  monotonic(): number {
    return this.#world.monotonic();
  }

  afterOthers(call: () => void): void {
    this.#world.afterOthers?.(this.#inTurn(call, () => false));
  }

  timer(delayMs: number, call: () => void): Timer {
    let cancelled = false;
    const timer = this.#world.timer(
      delayMs,
      this.#inTurn(call, () => cancelled),
    );
    return {
      cancel() {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  /** Answers what calls it, or has it wait until the process goes on. */
  #inTurn(call: () => void, isCancelled: () => boolean): () => void {
    const ring = (): void => {
      if (this.#dead || isCancelled()) return;
      if (this.#held === undefined) call();
      else this.#held.push(ring);
    };
    return ring;
  }

  jumpWall(ms: number): void {
    this.#wallOffset += ms;
  }

  /** The event loop is blocked: time goes on, no timer rings. */
  stall(): void {
    this.#held ??= [];
  }

  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const ring of held) ring();
  }

  die(): void {
    this.#dead = true;
  }
}
