/**
 * A clock that a test advances. Nothing here waits for real time: `advance` takes as long as the code under test needs to run,
 * for a millisecond as for a week.
 */
import type { Clock, Timer } from '../clock.ts';
import { Failure, shown } from '../failure.ts';

interface Scheduled {
  /** A time on the monotonic clock. */
  readonly due: number;
  readonly call: () => void;
}

/** Ends a timer that sets itself again without delay, which would keep `advance` busy for ever. */
const MOST_TIMERS_AT_ONE_INSTANT = 10_000;

/** A clock that a test sets. */
export class TestClock implements Clock {
  #wall: number;
  // Differs from the wall clock's origin, so that code which confuses the two fails at once.
  #monotonic = 0;
  #suspended = 0;
  /** Sorted by due time; timers due together stay in the order in which they were set. */
  readonly #timers: Scheduled[] = [];
  #advancing = false;

  /** Begins at this time. */
  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#wall = checked(startMs);
  }

  /** The wall time. */
  now(): number {
    return this.#wall;
  }

  /** A time that only grows. */
  monotonic(): number {
    return this.#monotonic;
  }

  /** Includes the time that the machine slept, unlike the monotonic clock. Undefined to simulate a system without such a clock. */
  uptime(): number | undefined {
    return this.#monotonic + this.#suspended;
  }

  /** Calls back once the test has advanced this far. */
  timer(delayMs: number, call: () => void): Timer {
    const scheduled = { due: this.#monotonic + Math.max(0, checked(delayMs)), call };
    this.#timers.splice(this.#placeOf(scheduled.due), 0, scheduled);
    return { cancel: () => this.#cancel(scheduled) };
  }

  /** Calls back in a later turn of the event loop, without time passing. */
  afterOthers(call: () => void): void {
    setImmediate(call);
  }

  /** How many timers are set and have not rung. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** How long until the next one rings. */
  get nextTimerMs(): number | undefined {
    const next = this.#timers[0];
    return next === undefined ? undefined : Math.max(0, next.due - this.#monotonic);
  }

  /**
   * Lets time pass. Timers ring in the order in which they are due, each at its own time, including those that are set meanwhile.
   * Before each timer, all code that is ready to run does so.
   */
  async advance(ms: number): Promise<void> {
    if (checked(ms) < 0)
      throw new Failure(
        'invalid',
        `advancing by ${shown(ms)} ms: time only passes forward; jumpWall sets the wall clock back`,
      );
    if (this.#advancing) throw new Failure('invalid', 'this clock is being advanced already: await that first');
    this.#advancing = true;
    try {
      await this.#ringUntil(this.#monotonic + ms);
    } finally {
      this.#advancing = false;
    }
  }

  async #ringUntil(end: number): Promise<void> {
    let atThisInstant = 0;
    await settle();
    for (let next = this.#timers[0]; next !== undefined && next.due <= end; next = this.#timers[0]) {
      atThisInstant = next.due > this.#monotonic ? 0 : atThisInstant + 1;
      if (atThisInstant > MOST_TIMERS_AT_ONE_INSTANT)
        throw new Failure('invalid', 'a timer sets itself again without delay, without end');
      this.#pass(next.due - this.#monotonic);
      this.#timers.shift();
      next.call();
      await settle();
    }
    this.#pass(end - this.#monotonic);
  }

  /**
   * Sets the wall clock. If it moves forward, the same time passes on the monotonic clock, and timers that came due ring at the
   * next `advance`.
   */
  setMillis(ms: number): void {
    const passed = checked(ms) - this.#wall;
    this.#monotonic += Math.max(0, passed);
    this.#wall = ms;
  }

  /** Sets the wall clock forward or back; no time passes. */
  jumpWall(ms: number): void {
    this.#wall += checked(ms);
  }

  /** Simulates a sleep of the machine: the wall clock and `uptime` go on, the monotonic clock stands still. */
  suspend(ms: number): void {
    this.#wall += checked(ms);
    this.#suspended += ms;
  }

  #pass(ms: number): void {
    // Timers that are late after `setMillis` ring now, not in the past.
    this.#monotonic += Math.max(0, ms);
    this.#wall += Math.max(0, ms);
  }

  #placeOf(due: number): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#timers[middle] as Scheduled).due <= due) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #cancel(scheduled: Scheduled): void {
    const at = this.#timers.indexOf(scheduled);
    if (at >= 0) this.#timers.splice(at, 1);
  }
}

// Saved before a test can replace it with a fake.
const realImmediate = setImmediate;

/**
 * Each turn of the event loop runs promise continuations until none is left; a few turns are enough for code that waits for a
 * turn itself.
 */
const TURNS = 4;

/** Lets all code run that is ready to. Time does not pass. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => realImmediate(resolve));
}

function checked(ms: number): number {
  if (!Number.isFinite(ms))
    throw new Failure('invalid', `${shown(ms)} is no time: expected a finite number of milliseconds`);
  return ms;
}
