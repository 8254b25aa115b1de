/**
 * The world of a simulation: one queue of things that will happen, in virtual time. Between two of them everything
 * that was set in motion runs until it waits; so the order of events is decided by the seed alone.
 */
import type { Clock, Timer } from '../../clock.ts';
import type { Random } from './random.ts';

interface Happening {
  at: number;
  order: number;
  readonly call: () => void;
  readonly owner: SimulatedProcess | undefined;
  cancelled: boolean;
}

export class World {
  readonly random: Random;
  readonly #trace: string[] = [];
  #happenings: Happening[] = [];
  #now = 0;
  #order = 0;

  constructor(random: Random) {
    this.random = random;
  }

  get now(): number {
    return this.#now;
  }

  get trace(): readonly string[] {
    return this.#trace;
  }

  note(who: string, what: string): void {
    this.#trace.push(`${this.#now.toFixed(1).padStart(10)}  ${who.padEnd(6)} ${what}`);
  }

  /** What belongs to a process happens to it only while it lives, and waits while it is paused. */
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

  /** Back into the queue, for now. */
  put(happening: Happening): void {
    happening.at = this.#now;
    happening.order = this.#order++;
    this.#insert(happening);
  }

  sleep(delayMs: number, owner?: SimulatedProcess): Promise<void> {
    return new Promise((resolve) => this.schedule(delayMs, resolve, owner));
  }

  /** A clock that the store itself goes by. */
  clock(): Clock {
    return {
      now: () => this.#now,
      monotonic: () => this.#now,
      timer: (delayMs, call) => this.schedule(delayMs, call),
    };
  }

  /** Runs until nothing is left to happen before `until`. */
  async run(until: number, check: () => void): Promise<void> {
    await settled();
    for (;;) {
      const next = this.#happenings[0];
      if (next === undefined || next.at > until) break;
      this.#happenings.shift();
      if (next.cancelled || next.owner?.isDead === true) continue;
      if (next.owner?.isPaused === true) {
        next.owner.hold(next);
        continue;
      }
      this.#now = Math.max(this.#now, next.at);
      next.call();
      await settled();
      check();
    }
    this.#now = until;
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

/** Something that crashes, stands still, and has clocks of its own. */
export class SimulatedProcess {
  readonly name: string;
  readonly world: World;
  isDead = false;
  isPaused = false;
  /** How much faster than the store's its clock runs; within what a real one may drift. */
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

  /** Comes when the process goes on, unless it is cancelled until then. */
  hold(happening: Happening): void {
    this.#held.push(happening);
  }

  #resume(): void {
    if (this.isDead) return;
    this.isPaused = false;
    this.world.note(this.name, 'goes on');
    // All that came meanwhile is there at once, in the order in which it came: as after SIGCONT.
    const held = this.#held;
    this.#held = [];
    for (const happening of held) this.world.put(happening);
  }
}

/** Everything that was set in motion has run until it waits. */
async function settled(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
