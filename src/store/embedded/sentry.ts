/**
 * Notices what no write announces: a lease whose time is over, a process that is gone, a bell that was not rung or not
 * heard. One process makes these rounds for all processes of its pid namespace (`Duty`, `Relay`). The others only check
 * now and then that it does: the more they are, the less often, and preferably when they are awake anyway to renew a
 * lease. So waiting costs next to nothing.
 */
import type { Clock, Timer } from '../../clock.ts';
import type { Duty } from './duty.ts';
import type { Engine } from './engine.ts';
import type { Suspect } from './leases.ts';
import type { Listening } from './listening.ts';
import type { Mark } from './mark.ts';
import type { Turns } from './turns.ts';
import { ifPossible } from '../../host/index.ts';

/** So that a killed holder is found within 250 ms. */
const ROUND_MS = 50;
/** With more waiting processes than this, each round takes longer, and is made half as often. */
const MANY = 32;
const MANY_ROUND_MS = 125;
/** The interval where the file system does not report that a bell was rung. */
const DEAF_ROUND_MS = 10;
/** How often to look for bells that were not heard. */
const LOOK_MS = 250;
/** How often to ring the bells of others once more, in case their writer was killed before it could. */
const RING_AGAIN_MS = 500;
/** How often to look up all processes, also those whose connection says that they live. */
const LOOK_UP_MS = 2000;
/** How often to look for bells whose owners are gone; less often if there are many. */
const TIDYING_MS = 2000;
/** Waits this long for a process to end whose connection has closed; after each further look, twice as long. */
const HURRY_MS = 5;
/** How many processes are looked up before their holds are freed: no waiter should wait for a search of hundreds. */
const LOOK_UP_AT_ONCE = 16;
/** Without a round for this long, the process on duty counts as stopped. On a busy machine, a running one may be late. */
const STALE_MS = 1000;
/**
 * The time between the rounds of processes that are alone for a moment, because the process on duty has ended: a round
 * looks up every process, and hundreds of them in the same moment would keep each other from renewing their leases. The
 * first round comes soon, however many they are.
 */
const BETWEEN_ROUNDS_MS = 20;
/** How many processes notice at once that the process on duty has ended: those that have listened longest. */
const DEPUTIES = 8;
/** The latest time for such a round: most of the processes that were counted may have ended with the process on duty. */
const LATEST_ROUND_MS = 1000;
/** The time between the looks of processes that no bell wakes; a look costs much less than a round. */
const BETWEEN_DEAF_LOOKS_MS = 2;
/** The average time between the looks of relieved processes, and the limits for each of them. */
const BETWEEN_LOOKS_MS = 150;
const SHORTEST_REST_MS = 100;
const LONGEST_REST_MS = 30_000;
/** After this part of the time between two looks, a process looks if it is awake anyway. */
const SOON = 0.75;

export interface Surroundings {
  /** A file whose time says when the last round was made. */
  readonly mark: Mark;
  /** Undefined if every process makes its own rounds. */
  readonly duty: Duty | undefined;
  /** Whether the store's file is not there any more. */
  isRemoved(): boolean;
  onRemoved(): void;
}

export class Sentry {
  readonly #engine: Engine;
  readonly #listening: Listening;
  readonly #turns: Turns;
  readonly #clock: Clock;
  readonly #around: Surroundings;
  #timer: Timer | undefined;
  #looked = 0;
  #lookedUp = Number.NEGATIVE_INFINITY;
  /** When the bells were last rung again. Undefined while this process is not on duty. */
  #rang: number | undefined;
  /** How long to wait before looking up a process that has hung up. Undefined while none has. */
  #hurryMs: number | undefined;
  /** The process that hung up was on duty. Deputies look up only that process; the next process on duty looks up all, once. */
  #isAfterPredecessor = false;
  /** Counts the searches for dead processes. If a process hangs up during a long one, its hurry is left to the next. */
  #search = 0;
  #tidied = 0;
  #waiting = 1;
  #isDeputy = true;
  /** The version of the list on which the processes were counted. */
  #counted = -1;
  /** When the process on duty ended, on the clock of the mark: an older mark does not count as a round for us. */
  #aloneSince = Number.NEGATIVE_INFINITY;
  /** How many processes have hung up since the last hurried round. */
  #left = 0;

  constructor(engine: Engine, listening: Listening, turns: Turns, clock: Clock, around: Surroundings) {
    this.#engine = engine;
    this.#listening = listening;
    this.#turns = turns;
    this.#clock = clock;
    this.#around = around;
  }

  /** How many processes listen, as far as is known. */
  get waiting(): number {
    return this.#waiting;
  }

  /** We are one of the few that take over when the process on duty ends. */
  get isDeputy(): boolean {
    return this.#isDeputy;
  }

  /** Makes its rounds for as long as this handle has a watch. */
  begin(): void {
    if (this.#timer !== undefined) return;
    if (this.#tidied === 0) this.#tidied = this.#clock.monotonic();
    this.#goIn(this.#delayMs, true);
  }

  /** Starts at once, because no other process makes rounds any more; but not all processes in the same moment. */
  goAtOnce(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#aloneSince = this.#clock.now();
    // Tidying is expensive and not urgent: the next process on duty does it.
    this.#tidied = this.#clock.monotonic();
    const isFirst = this.#isDeputy || !this.#listening.isDeaf;
    this.#isAfterPredecessor = isFirst && this.#around.duty?.hasPredecessor === true;
    if (this.#isAfterPredecessor) return this.#hurryUp();
    const together = isFirst ? Math.min(this.#waiting, DEPUTIES) : this.#waiting;
    const spreadMs = Math.min(together * BETWEEN_ROUNDS_MS, LATEST_ROUND_MS);
    // A process that noticed only because it is deaf lets the deputies go first.
    this.#goIn((isFirst ? 0 : DEPUTIES * BETWEEN_ROUNDS_MS) + spreadMs * Math.random());
  }

  /**
   * Others rely on us from now on. While no process was on duty, our next round could be far away; and the process
   * before us may have just ended and left its holds behind.
   */
  onDuty(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    if (this.#aloneMs >= LATEST_ROUND_MS) return this.#goIn(this.#hurryMs ?? this.#roundMs);
    this.#isAfterPredecessor = this.#around.duty?.hasPredecessor === true;
    // Others may have ended together with the process before us.
    this.#lookedUp = Number.NEGATIVE_INFINITY;
    this.#hurryUp();
  }

  /** A ring may mean that this process is now one of the eldest. */
  wasRung(): void {
    if (this.#timer !== undefined && !this.#isDeputy) this.#quietly(() => this.#seeWhetherDeputy());
  }

  /** A process that relied on us may have ended, so this does not wait for the next round. */
  hurry(): void {
    this.#left += 1;
    if (this.#timer === undefined || (this.#hurryMs !== undefined && !this.#isAfterPredecessor)) return;
    this.#isAfterPredecessor = false;
    this.#timer.cancel();
    this.#hurryUp();
  }

  /** To be called when this process is awake for another reason: it does now what it would soon be woken for. */
  pass(): void {
    if (this.#timer === undefined || !this.#isRelieved) return;
    if (this.#clock.monotonic() - this.#looked < SOON * this.#restMs) {
      // The system drops rings when too many come at once, and no process rings again for those.
      this.#quietly(this.#listening.look);
      return;
    }
    this.#timer.cancel();
    this.#goIn(this.#delayMs);
    this.#round();
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #goIn(delayMs: number, isFirst = false): void {
    this.#timer = this.#clock.timer(delayMs, () => {
      this.#timer = undefined;
      if (this.#listening.isEmpty) return this.#around.duty?.rest();
      // Not sooner: most commands end before their first round, and a socket would take longer than all they do in the store.
      if (isFirst) this.#countOthers();
      const isAlone = isFirst && this.#waiting <= 1 && !this.#listening.isDeaf;
      // And not while there is no other process that could rely on this one: the next round looks again.
      if (isFirst && !isAlone) this.#around.duty?.seek();
      this.#goIn(this.#delayMs, isAlone);
      this.#round();
    });
  }

  get #delayMs(): number {
    const { duty } = this.#around;
    const isOnlyOne = duty === undefined || duty.isOn;
    const isDeaf = this.#listening.isDeaf && duty?.isHeardFor !== true;
    // While no process is on duty, all make rounds: one after the other, or none would get a chance to take the duty.
    const shared = isOnlyOne ? 0 : this.#waiting * (0.75 + Math.random() / 2);
    if (isDeaf || this.#listening.relay.mustLook) return Math.max(DEAF_ROUND_MS, shared * BETWEEN_DEAF_LOOKS_MS);
    if (this.#isRelieved) return this.#restMs * (1 + Math.random() / 2);
    return Math.max(isOnlyOne ? this.#roundMs : ROUND_MS, Math.min(shared * BETWEEN_ROUNDS_MS, LATEST_ROUND_MS));
  }

  /** Between two rounds of the process on duty. */
  get #roundMs(): number {
    return this.#waiting > MANY ? MANY_ROUND_MS : ROUND_MS;
  }

  get #restMs(): number {
    return Math.min(Math.max(this.#waiting * BETWEEN_LOOKS_MS, SHORTEST_REST_MS), LONGEST_REST_MS);
  }

  get #isRelieved(): boolean {
    return this.#around.duty?.isRelieved ?? false;
  }

  #round(): void {
    const now = this.#clock.monotonic();
    if (this.#isSeenRemoved()) return this.#around.onRemoved();
    if (this.#listening.isDeaf || this.#isRelieved || now - this.#looked >= LOOK_MS) {
      this.#looked = now;
      this.#quietly(this.#listening.look);
    }
    this.#quietly(() => this.#listening.stayOnList());
    if (this.#isRelieved) {
      this.#calmDown();
      this.#left = 0;
      this.#countOthers();
      this.#around.duty?.check();
      if (!this.#isStale()) return;
      this.#around.duty?.takeOver();
      this.#forOthers(now);
    } else {
      this.#forOthers(now);
      if (!this.#isRoundNeeded()) return;
    }
    this.#endLeases(now);
    if (now - this.#tidied < Math.max(TIDYING_MS, this.#restMs)) return;
    this.#tidied = now;
    this.#countOthers();
    this.#quietly(() => {
      this.#engine.leases.tidy();
      this.#listening.tidy();
    });
    this.#quietly(() => void this.#engine.giveBack());
  }

  #endLeases(now: number): void {
    const isSuspect = this.#suspicionAt(now);
    const search = ++this.#search;
    this.#quietly(() => {
      if (this.#engine.isCalledFor) this.#engine.endLeases(() => []);
      this.#lookUp(this.#engine.leases.suspects().filter(isSuspect), search);
    });
  }

  /** Returns a test for which processes to look up. */
  #suspicionAt(now: number): (suspect: Suspect) => boolean {
    const { duty } = this.#around;
    const isDue = now - this.#lookedUp >= LOOK_UP_MS;
    if (duty === undefined || (isDue && (duty.isOn || !this.#isAfterPredecessor)) || this.#isLastHurry) {
      this.#lookedUp = now;
      return () => true;
    }
    if (this.#isAfterPredecessor) return ({ processes }) => processes.some(duty.isPredecessor);
    return ({ processes }) => !processes.some(duty.isPresent);
  }

  /** Does not keep others from writing, except to end the leases of processes that are gone. */
  #lookUp(suspects: readonly Suspect[], search: number, found = 0): void {
    const { leases } = this.#engine;
    const gone = suspects.slice(0, LOOK_UP_AT_ONCE).filter(leases.areGone);
    if (gone.length > 0) this.#engine.endLeases(() => leases.endingWith(gone));
    const [rest, sum] = [suspects.slice(LOOK_UP_AT_ONCE), found + gone.length];
    const goOn = (): void => {
      if (this.#timer !== undefined) this.#quietly(() => this.#lookUp(rest, search, sum));
    };
    if (rest.length > 0) return void setImmediate(goOn);
    this.#left = Math.max(this.#left, sum);
    if (search !== this.#search) return;
    if (sum === 0) return this.#hurryOn();
    this.#calmDown();
    this.#replaceDeputies();
  }

  #hurryUp(): void {
    this.#search += 1;
    this.#hurryMs = HURRY_MS;
    this.#goIn(this.#hurryMs);
  }

  /** On the last try, the process on duty looks up all: others that ended with its predecessor may have taken longer. */
  get #isLastHurry(): boolean {
    const isOn = this.#around.duty?.isOn === true;
    return isOn && this.#isAfterPredecessor && this.#hurryMs !== undefined && this.#hurryMs * 2 >= this.#roundMs;
  }

  #calmDown(): void {
    this.#hurryMs = undefined;
    this.#isAfterPredecessor = false;
  }

  /** Tries again until the next round is due: the process that hung up is still ending, or had nothing in the store. */
  #hurryOn(): void {
    if (this.#hurryMs === undefined || this.#timer === undefined) return;
    if (this.#hurryMs * 2 >= this.#roundMs) {
      this.#calmDown();
      return this.#replaceDeputies();
    }
    this.#hurryMs *= 2;
    this.#timer.cancel();
    this.#goIn(this.#hurryMs);
  }

  /** Does what other processes rely on us for, even if another process has just made a round. */
  #forOthers(now: number): void {
    if (this.#around.duty?.isOn !== true) {
      this.#rang = undefined;
      return;
    }
    // A new process on duty rings all bells later: first it rings for what its predecessor's end changed.
    this.#rang ??= now;
    const { relay, bell } = this.#listening;
    this.#quietly(() => relay.look());
    if (now - this.#rang < RING_AGAIN_MS) return;
    this.#rang = now;
    this.#around.duty.check();
    this.#quietly(() => relay.ringAgain(bell));
  }

  /** Wakes the next in age: if a deputy has hung up, its successor does not know yet that it is now a deputy. */
  #replaceDeputies(): void {
    const left = Math.min(this.#left, DEPUTIES);
    this.#left = 0;
    if (left === 0 || this.#waiting <= DEPUTIES) return;
    // While many dead processes are listed before them, the next in age would not see that they are among the eldest.
    if (left === DEPUTIES) this.#listening.tidy();
    this.#listening.ringEldest(DEPUTIES, left);
  }

  #countOthers(): void {
    this.#quietly(() => {
      if (this.#counted === this.#listening.version) return;
      this.#waiting = this.#listening.count();
      this.#seeWhetherDeputy();
      this.#counted = this.#listening.version;
    });
  }

  #seeWhetherDeputy(): void {
    this.#isDeputy = this.#listening.isAmongEldest(DEPUTIES);
    this.#around.duty?.heed();
  }

  /** If the directory cannot be read for now, the store may still be there: if that lasts, renewals fail. */
  #isSeenRemoved(): boolean {
    return ifPossible(() => this.#around.isRemoved()) ?? false;
  }

  /** Does the work when the file is free; if it fails, the next round tries again. */
  #quietly(work: () => void): void {
    this.#turns.take(work).catch(() => undefined);
  }

  #isStale(): boolean {
    const { mark } = this.#around;
    const now = this.#clock.now();
    try {
      if (mark.ageMs(now) < STALE_MS) return false;
    } catch {
      // The directory cannot be read for now.
      return false;
    }
    // Sets the mark at once, so that only one of hundreds of processes takes over.
    return !mark.isFresh(now, STALE_MS);
  }

  /** False if another process has just made a round, unless this process is in a hurry. */
  #isRoundNeeded(): boolean {
    // Looking up a single process is not a round for others.
    if (this.#isAfterPredecessor && this.#around.duty?.isOn !== true) return true;
    return !this.#hasJustBeen() || this.#hurryMs !== undefined;
  }

  #hasJustBeen(): boolean {
    return this.#around.mark.isFresh(this.#clock.now(), Math.min(0.8 * this.#roundMs, this.#aloneMs));
  }

  /** The time since we saw the process on duty end. */
  get #aloneMs(): number {
    return Math.abs(this.#clock.now() - this.#aloneSince);
  }
}
