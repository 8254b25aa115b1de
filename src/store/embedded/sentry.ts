/**
 * Notices what no write announces: a lease whose time is over, a process that is gone, a bell that was not rung or not
 * heard. One process makes these rounds for all of its pid namespace (`Duty`, `Relay`). The others only check now and then
 * that it does, the less often the more they are, and preferably when they are awake anyway to renew a lease. So waiting
 * costs next to nothing.
 */
import type { Clock, Timer } from '../../clock.ts';
import type { Duty } from './duty.ts';
import type { Engine } from './engine.ts';
import type { Suspect } from './leases.ts';
import type { Listening } from './listening.ts';
import type { Mark } from './mark.ts';
import type { Turns } from './turns.ts';

/** A holder that was killed is to be found within 250 ms. */
const ROUND_MS = 50;
/** From this many waiting processes on, each round takes longer, and is made half as often. */
const MANY = 32;
const MANY_ROUND_MS = 125;
/** Where the file system does not tell that a bell was rung. */
const DEAF_ROUND_MS = 10;
/** The intervals of a look for bells that were not heard; */
const LOOK_MS = 250;
/** of ringing the bells of others once more, in case their writer was killed before it could; */
const RING_AGAIN_MS = 500;
/** of looking up all processes, also those whose connection says that they live; */
const LOOK_UP_MS = 2000;
/** and of a look for bells whose owners are gone, or longer if there are many. */
const TIDYING_MS = 2000;
/** A process whose connection has closed may take this long to end, and many may end at once; then twice as long, and so on. */
const HURRY_MS = 5;
/**
 * How many processes are looked up before their holds are freed. To look up hundreds takes a while on a busy machine, and nobody
 * should wait for the last of them.
 */
const LOOK_UP_AT_ONCE = 16;
/** Without a round for this long, the process on duty counts as stopped. On a busy machine a running one may be late. */
const STALE_MS = 1000;
/**
 * The time between the rounds of processes that are alone for a moment, because the process on duty has ended: a round looks
 * up every process, and hundreds of them in the same moment would keep each other from renewing their leases. The first of
 * them comes soon, however many they are.
 */
const BETWEEN_ROUNDS_MS = 20;
/** How many processes notice at once that the process on duty has ended: those that have listened longest. */
const DEPUTIES = 8;
/** But not later: most of those that were counted may have ended with the process on duty. */
const LATEST_ROUND_MS = 1000;
/** The same for looks of processes that nobody wakes, which cost much less. */
const BETWEEN_DEAF_LOOKS_MS = 2;
/** The average time between the looks of relieved processes, and the limits for each of them. */
const BETWEEN_LOOKS_MS = 150;
const SHORTEST_REST_MS = 100;
const LONGEST_REST_MS = 30_000;
/** After this part of the time between two looks, a process looks if it is awake anyway. */
const SOON = 0.75;

export interface Surroundings {
  /** A file whose time says when the last round was. */
  readonly mark: Mark;
  /** Undefined where every process makes its own rounds. */
  readonly duty: Duty | undefined;
  /** The store itself is not there any more. */
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
  /** Undefined while this process is not on duty. */
  #rang: number | undefined;
  /** How long to wait before looking for a process that has hung up. Undefined while nobody has. */
  #hurryMs: number | undefined;
  /** The process that has hung up was on duty. Deputies look up only that one; the next process on duty looks up all, once. */
  #isAfterPredecessor = false;
  /** Counts the searches for the dead. One that takes long while another process hangs up leaves the hurry to the next. */
  #search = 0;
  #tidied = 0;
  #waiting = 1;
  #isDeputy = true;
  /** Of the list that they were counted on. */
  #counted = -1;
  /** When the process on duty ended, on the clock of the mark: what was marked before is no round for us. */
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

  /** No other process makes rounds any more: starts at once, but not all processes in the same moment. */
  goAtOnce(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#aloneSince = this.#clock.now();
    // To tidy is expensive and not urgent: the next process on duty does it.
    this.#tidied = this.#clock.monotonic();
    const isFirst = this.#isDeputy || !this.#listening.isDeaf;
    this.#isAfterPredecessor = isFirst && this.#around.duty?.hasPredecessor === true;
    if (this.#isAfterPredecessor) return this.#hurryUp();
    const together = isFirst ? Math.min(this.#waiting, DEPUTIES) : this.#waiting;
    const spreadMs = Math.min(together * BETWEEN_ROUNDS_MS, LATEST_ROUND_MS);
    // Processes that have noticed only because they are deaf leave it to the deputies to be first.
    this.#goIn((isFirst ? 0 : DEPUTIES * BETWEEN_ROUNDS_MS) + spreadMs * Math.random());
  }

  /**
   * Others rely on us from now on. While no process was on duty, the next round could be far away; and the one before us may
   * have ended a moment ago, with what it held.
   */
  onDuty(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    if (this.#aloneMs >= LATEST_ROUND_MS) return this.#goIn(this.#hurryMs ?? this.#roundMs);
    this.#isAfterPredecessor = this.#around.duty?.hasPredecessor === true;
    // Others may have ended together with it.
    this.#lookedUp = Number.NEGATIVE_INFINITY;
    this.#hurryUp();
  }

  /** The ranks may have changed. */
  wasRung(): void {
    if (this.#timer !== undefined && !this.#isDeputy) this.#quietly(() => this.#seeWhetherDeputy());
  }

  /** A process that relied on us may have ended: does not wait for the next round. */
  hurry(): void {
    this.#left += 1;
    if (this.#timer === undefined || (this.#hurryMs !== undefined && !this.#isAfterPredecessor)) return;
    this.#isAfterPredecessor = false;
    this.#timer.cancel();
    this.#hurryUp();
  }

  /** This process is awake for another reason: it does now what it would be woken for soon. */
  pass(): void {
    if (this.#timer === undefined || !this.#isRelieved) return;
    if (this.#clock.monotonic() - this.#looked < SOON * this.#restMs) return;
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
      // Not sooner: most commands end before their first round, and a socket takes longer than all they do in the store.
      if (isFirst) {
        this.#countOthers();
        this.#around.duty?.seek();
      }
      this.#goIn(this.#delayMs);
      this.#round();
    });
  }

  get #delayMs(): number {
    const { duty } = this.#around;
    const isOnlyOne = duty === undefined || duty.isOn;
    const isDeaf = this.#listening.isDeaf && duty?.isHeardFor !== true;
    // While no process is on duty all make rounds: one after the other, or none would get to take the duty.
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

  /** Tells whom to look up. */
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

  /** Without keeping others from writing, except to end what is found. */
  #lookUp(suspects: readonly Suspect[], search: number, found = 0): void {
    const { leases } = this.#engine;
    const gone = suspects.slice(0, LOOK_UP_AT_ONCE).filter(leases.areGone);
    if (gone.length > 0) this.#engine.endLeases(() => leases.endingWith(gone));
    const [rest, sum] = [suspects.slice(LOOK_UP_AT_ONCE), found + gone.length];
    if (rest.length > 0) return void setImmediate(() => this.#lookUpRest(rest, search, sum));
    this.#left = Math.max(this.#left, sum);
    if (search !== this.#search) return;
    if (sum === 0) return this.#hurryOn();
    this.#calmDown();
    this.#replaceDeputies();
  }

  #lookUpRest(suspects: readonly Suspect[], search: number, found: number): void {
    if (this.#timer !== undefined) this.#quietly(() => this.#lookUp(suspects, search, found));
  }

  #hurryUp(): void {
    this.#search += 1;
    this.#hurryMs = HURRY_MS;
    this.#goIn(this.#hurryMs);
  }

  /** The process on duty then looks up all: what ended together with its predecessor may have taken longer to end. */
  get #isLastHurry(): boolean {
    const isOn = this.#around.duty?.isOn === true;
    return isOn && this.#isAfterPredecessor && this.#hurryMs !== undefined && this.#hurryMs * 2 >= this.#roundMs;
  }

  #calmDown(): void {
    this.#hurryMs = undefined;
    this.#isAfterPredecessor = false;
  }

  /** The process that has hung up is still ending, or had nothing in the store: tries again until the next round is due anyway. */
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

  /** Whether or not another process has just been on its rounds: these rely on us. */
  #forOthers(now: number): void {
    if (this.#around.duty?.isOn !== true) {
      this.#rang = undefined;
      return;
    }
    // A new process on duty rings all bells, but first those of the processes that its predecessor's end concerns.
    this.#rang ??= now;
    const { relay, bell } = this.#listening;
    this.#quietly(() => relay.look());
    if (now - this.#rang < RING_AGAIN_MS) return;
    this.#rang = now;
    this.#around.duty.check();
    this.#quietly(() => relay.ringAgain(bell));
  }

  /** If one of those that hung up was a deputy, the next in age does not know yet that it is one. */
  #replaceDeputies(): void {
    const left = Math.min(this.#left, DEPUTIES);
    this.#left = 0;
    if (left === 0 || this.#waiting <= DEPUTIES) return;
    // Behind the bells of many that have ended, the next in age would not know that they are among the eldest.
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

  /** A directory that cannot be looked into for now may still have it: renewals will tell if that lasts. */
  #isSeenRemoved(): boolean {
    try {
      return this.#around.isRemoved();
    } catch {
      return false;
    }
  }

  /** What cannot be done now is done on the next round. */
  #quietly(work: () => void): void {
    this.#turns.take(work).catch(() => undefined);
  }

  #isStale(): boolean {
    const { mark } = this.#around;
    const now = this.#clock.now();
    try {
      if (mark.ageMs(now) < STALE_MS) return false;
    } catch {
      // The directory cannot be looked into for now.
      return false;
    }
    // It is set at once: of hundreds of processes that look, one takes over.
    return !mark.isFresh(now, STALE_MS);
  }

  /** False if another process has just made a round, unless this process is in a hurry. */
  #isRoundNeeded(): boolean {
    // To look for one process only is no round for others.
    if (this.#isAfterPredecessor && this.#around.duty?.isOn !== true) return true;
    return !this.#hasJustBeen() || this.#hurryMs !== undefined;
  }

  #hasJustBeen(): boolean {
    return this.#around.mark.isFresh(this.#clock.now(), Math.min(0.8 * this.#roundMs, this.#aloneMs));
  }

  /** The time since we saw a process on duty end. */
  get #aloneMs(): number {
    return Math.abs(this.#clock.now() - this.#aloneSince);
  }
}
