/**
 * The world of a simulation: one queue of future happenings in virtual time. Between two of them, all code runs until it waits,
 * so the seed alone decides the order of events.
 */
import type { Clock, Timer } from '../../clock.ts';
import type { Random } from './random.ts';

/** How many of Node's ticks run per happening; the production code chains at most two. */
const HOPS = 2;
/** The number of happenings after which the event loop itself gets a turn, for signals and the like. */
const HAPPENINGS_PER_TURN = 128;

interface Happening {
  at: number;
  order: number;
  readonly call: () => void;
  readonly owner: SimulatedProcess | undefined;
  cancelled: boolean;
}

export class World {
  readonly random: Random;
  /** Whether to write a trace for people, which costs up to a tenth of the run. */
  readonly isTraced: boolean;
  /** Set if the users call code that waits for turns of the event loop, as guards do when they read. */
  takesTurns = false;
  /** From here on no fault happens. */
  isCalm = false;
  /** The longest way to the store, or back, of a call that goes well. */
  slowestMs = 0;
  /** When the store last forgot its history. */
  forgottenAt = 0;
  readonly #trace: string[] = [];
  #happenings: Happening[] = [];
  #now = 0;
  #order = 0;
  #sinceTurn = 0;

  constructor(random: Random, isTraced: boolean) {
    this.random = random;
    this.isTraced = isTraced;
  }

  get now(): number {
    return this.#now;
  }

  get trace(): readonly string[] {
    return this.#trace;
  }

  note(who: string, what: string): void {
    if (!this.isTraced) return;
    this.#trace.push(`${this.#now.toFixed(1).padStart(10)}  ${who.padEnd(6)} ${what}`);
  }

  /** Schedules a happening. One that belongs to a process happens only while that process lives, and waits while it is paused. */
  schedule(delayMs: number, call: () => void, owner?: SimulatedProcess): Timer {
    const happening: Happening = {
      at: this.#now + Math.max(0, delayMs),
      order: this.#order++,
      call,
      owner,
      cancelled: false,
    };
    this.#insert(happening);
    return { cancel: () => void (happening.cancelled = true) };
  }

  /** Puts a happening back into the queue. */
  put(happening: Happening): void {
    happening.at = this.#now;
    happening.order = this.#order++;
    this.#insert(happening);
  }

  sleep(delayMs: number, owner?: SimulatedProcess): Promise<void> {
    return new Promise((resolve) => this.schedule(delayMs, resolve, owner));
  }

  /** The clock that the store itself uses. */
  clock(): Clock {
    return {
      now: () => this.#now,
      monotonic: () => this.#now,
      timer: (delayMs, call) => this.schedule(delayMs, call),
    };
  }

  /**
   * Runs until nothing is left to happen before `until`, or until `isOver`. Calls `check` after every happening, and rejects with
   * what it throws.
   */
  run(until: number, check: () => void, isOver: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = this.#settling(() => step());
      const step = (): void => {
        try {
          check();
          if (isOver()) return resolve();
          const next = this.#take(until);
          if (next === undefined) {
            this.#now = until;
            return resolve();
          }
          this.#now = Math.max(this.#now, next.at);
          next.call();
        } catch (error) {
          return reject(error as Error);
        }
        settle();
      };
      settle();
    });
  }

  /** The next happening that takes effect. */
  #take(until: number): Happening | undefined {
    for (;;) {
      const next = this.#happenings[0];
      if (next === undefined || next.at > until) return undefined;
      this.#happenings.shift();
      if (next.cancelled || next.owner?.isDead === true) continue;
      if (next.owner?.isPaused !== true) return next;
      next.owner.hold(next);
    }
  }

  /**
   * Returns a function that calls `then` when all code has run until it waits. Promises run to the end of their queue before the
   * next tick; a turn of the event loop for every happening would cost more than most happenings do.
   */
  #settling(then: () => void): () => void {
    let hops = then;
    for (let hop = 0; hop < HOPS; hop++) hops = afterTick(hops);
    return () => {
      this.#sinceTurn += 1;
      if (!this.takesTurns && this.#sinceTurn < HAPPENINGS_PER_TURN) return hops();
      this.#sinceTurn = 0;
      setImmediate(then);
    };
  }

  #insert(happening: Happening): void {
    let low = 0;
    let high = this.#happenings.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#happenings[middle] as Happening;
      if (other.at < happening.at || (other.at === happening.at && other.order < happening.order)) low = middle + 1;
      else high = middle;
    }
    this.#happenings.splice(low, 0, happening);
  }
}

/** A simulated process, which can crash or stand still and has its own clocks. */
export class SimulatedProcess {
  readonly name: string;
  readonly world: World;
  isDead = false;
  isPaused = false;
  /** When one of its calls last failed to reach the store, or got no answer. */
  lostAt = 0;
  /** How much faster than the store's its clock runs, within the drift of a real one. */
  readonly #rate: number;
  #wallOffset = 0;
  #held: Happening[] = [];

  constructor(world: World, name: string, rate: number) {
    this.world = world;
    this.name = name;
    this.#rate = rate;
  }

  readonly clock: Clock = {
    now: () => this.world.now + this.#wallOffset,
    monotonic: () => this.world.now * this.#rate,
    timer: (delayMs, call) => this.world.schedule(delayMs / this.#rate, call, this),
  };

  crash(): void {
    this.isDead = true;
    this.#held = [];
    this.world.note(this.name, 'crashes');
  }

  pause(forMs: number): void {
    if (this.isPaused || this.isDead) return;
    this.isPaused = true;
    this.world.note(this.name, `stands still for ${forMs} ms`);
    this.world.schedule(forMs, () => this.#resume());
  }

  jumpWall(ms: number): void {
    this.#wallOffset += ms;
    this.world.note(this.name, `wall clock jumps by ${ms} ms`);
  }

  /** Happens when the process goes on, unless it is cancelled before. */
  hold(happening: Happening): void {
    this.#held.push(happening);
  }

  #resume(): void {
    if (this.isDead) return;
    this.isPaused = false;
    this.world.note(this.name, 'goes on');
    // Everything that arrived meanwhile happens at once, in the order of arrival, as after SIGCONT.
    const held = this.#held;
    this.#held = [];
    for (const happening of held) this.world.put(happening);
  }
}

const SETTLED = Promise.resolve();

/**
 * Returns a function that calls `then` in a tick, after the promises that are settled by now. `queueMicrotask` costs several
 * times as much.
 */
function afterTick(then: () => void): () => void {
  const tick = (): void => process.nextTick(then);
  return () => void SETTLED.then(tick);
}
