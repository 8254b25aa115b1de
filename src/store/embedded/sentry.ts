/**
 * What has to be noticed although nobody does anything: a lease whose time is over, a process that is gone, a bell
 * that was rung and not heard. Every process that watches goes on such rounds, but whoever finds that another one has
 * just been on its round leaves it at that; so the cost hardly grows with the number of processes.
 */
import { closeSync, openSync, statSync, utimesSync } from 'node:fs';
import type { Clock, Timer } from '../../clock.ts';
import type { Engine } from './engine.ts';
import type { Listening } from './listening.ts';
import type { Turns } from './turns.ts';

/** A holder that was killed is to be found within 250 ms. */
const ROUND_MS = 50;
/** Where the file system does not tell that a bell was rung. */
const DEAF_ROUND_MS = 10;
/** Every so many rounds: more than a glance at who is there; */
const ROUNDS_PER_CLOSE_LOOK = 3;
/** a look for bells that were not heard; */
const ROUNDS_PER_LOOK = 5;
/** word that we still listen; */
const ROUNDS_PER_WORD = 200;
/** and a look for bells whose owners are gone. */
const ROUNDS_PER_TIDYING = 40;

export class Sentry {
  readonly #engine: Engine;
  readonly #listening: Listening;
  readonly #turns: Turns;
  readonly #clock: Clock;
  readonly #mark: string;
  readonly #isRemoved: () => boolean;
  readonly #onRemoved: () => void;
  #timer: Timer | undefined;
  #rounds = 0;

  /** `mark` is a file whose time says when the last round was. `onRemoved`: the store itself is not there any more. */
  constructor(
    engine: Engine,
    listening: Listening,
    turns: Turns,
    clock: Clock,
    mark: string,
    isRemoved: () => boolean,
    onRemoved: () => void,
  ) {
    this.#engine = engine;
    this.#listening = listening;
    this.#turns = turns;
    this.#clock = clock;
    this.#mark = mark;
    this.#isRemoved = isRemoved;
    this.#onRemoved = onRemoved;
  }

  /** Goes on its rounds for as long as somebody watches. */
  begin(): void {
    if (this.#timer !== undefined) return;
    const delayMs = this.#listening.isDeaf ? DEAF_ROUND_MS : ROUND_MS;
    this.#timer = this.#clock.timer(delayMs, () => {
      this.#timer = undefined;
      if (this.#listening.isEmpty) return;
      this.begin();
      this.#round();
    });
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #round(): void {
    this.#rounds += 1;
    if (this.#isRemoved()) return this.#onRemoved();
    const every = (rounds: number): boolean => this.#rounds % rounds === 0;
    if (this.#listening.isDeaf || every(ROUNDS_PER_LOOK)) this.#quietly(this.#listening.look);
    if (every(ROUNDS_PER_WORD)) this.#quietly(() => this.#listening.stayOnList());
    if (this.#hasJustBeen()) return;
    const atAGlance = !every(ROUNDS_PER_CLOSE_LOOK);
    this.#quietly(() => {
      const { leases } = this.#engine;
      // Looked for first without keeping others from writing; what is found may be said anew until we write.
      if (!this.#engine.isCalledFor && leases.ofTheDead(atAGlance).length === 0) return;
      this.#engine.endLeases(() => leases.ofTheDead(atAGlance));
    });
    if (every(ROUNDS_PER_TIDYING)) this.#quietly(() => this.#listening.tidy());
  }

  /** What cannot be done now is done on the next round. */
  #quietly(work: () => void): void {
    this.#turns.take(work).catch(() => undefined);
  }

  #hasJustBeen(): boolean {
    const now = this.#clock.now();
    try {
      // Compared both ways: a time in the future, after a clock was set back, must not keep everyone at home.
      if (Math.abs(now - statSync(this.#mark).mtimeMs) < 0.8 * ROUND_MS) return true;
      utimesSync(this.#mark, now / 1000, now / 1000);
    } catch {
      this.#makeMark();
    }
    return false;
  }

  #makeMark(): void {
    try {
      closeSync(openSync(this.#mark, 'a'));
    } catch {
      // Without a mark everyone goes.
    }
  }
}
