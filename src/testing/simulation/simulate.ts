/**
 * The deterministic simulator: several processes run the production runtime and machines over the memory engine, on
 * one seeded scheduler and clock, while processes crash and stand still, clocks jump, answers get lost and watches
 * are cut. The same seed gives the same run, step by step.
 */
import { Failure } from '../../failure.ts';
import { open } from '../../runtime/open.ts';
import { MEMBERS } from '../../runtime/members/records.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { ALL_TASKS } from '../../runtime/tasks/keys.ts';
import { type Changes, type KeyRange, openMemory, type Store } from '../../store/index.ts';
import { afterPrefix, prefixed } from '../../store/index.ts';
import { ANCHORS, RECORDS } from '../../runtime/layout.ts';
import { fakeAdapters } from '../adapters/fake-adapters.ts';
import { Checker, type Violation } from './checker.ts';
import { EVERYTHING, switchWitnessOn, WitnessChecker } from './witness-checker.ts';
import { Faults } from './faults.ts';
import { Network, Post, withHealthOf } from './network.ts';
import { Random } from './random.ts';
import { SimulatedProcess, World } from './world.ts';
import { noteSignals } from './signals.ts';
import { noticeUnhandled } from './unhandled.ts';
import type { User } from './user.ts';
import { kindOf, runsWitnessed, type Workload } from './workloads.ts';

export type { Workload } from './workloads.ts';

/** The result of a simulated run. */
export interface SimulationReport {
  /** Its seed. */
  readonly seed: number;
  /** The promise that was broken, if one was. */
  readonly violation: Violation | undefined;
  /** The trace, line by line, with the virtual time. */
  readonly trace: readonly string[];
  /** How many holds were granted. */
  readonly grants: number;
  /** How much virtual time passed. */
  readonly virtualMs: number;
  /** How often each fault happened. */
  readonly faults: ReadonlyMap<string, number>;
}

const TTL_MS = 3000;
const TROUBLE_MS = 20_000;
/** The calm time within which every user must make progress; slow networks take several such spells. */
const CALM_MS = 60_000;
const MOST_SPELLS = 50;
/** By then every request that was ever sent has arrived, and every lease whose owner is gone has ended. */
const LATE_MS = 6_000;
const ADAPTERS = fakeAdapters();
const NEVER_MS = 10 * MOST_SPELLS * CALM_MS;

/** Runs one seed and reports the first violation. */
export async function simulate(seed: number, workload: Workload = 'holds', isTraced = true): Promise<SimulationReport> {
  const random = new Random(seed);
  const world = new World(random, isTraced);
  const checker = new Checker(world);
  const store = openMemory({ clock: world.clock(), historyLimit: random.pick([64, 16_384]) });
  const isWitnessed = runsWitnessed(seed, workload);
  // Verifying the record takes turns of the event loop.
  world.takesTurns = isWitnessed || kindOf(workload).takesTurns === true;
  const simulation = new Simulation(world, checker, store, random, workload, isWitnessed);
  const unhandled = noticeUnhandled(checker);
  const signals = noteSignals();
  try {
    await simulation.run();
  } catch (error) {
    if (checker.violation === undefined) throw error;
  } finally {
    simulation.stop();
    unhandled.stop();
    signals.free();
  }
  const { violation, grants } = checker;
  const { faults } = simulation;
  return { seed, violation, trace: world.trace, grants, virtualMs: world.now, faults };
}

interface Running {
  readonly process: SimulatedProcess;
  readonly network: Network;
  readonly box: Signalbox;
}

class Simulation {
  readonly #world: World;
  readonly #checker: Checker;
  readonly #store: Store;
  readonly #random: Random;
  readonly #faults: Faults;
  readonly #post: Post;
  readonly #running: Running[] = [];
  readonly #workers: User[] = [];
  readonly #workload: Workload;
  readonly #isWitnessed: boolean;
  readonly #observing = new AbortController();
  readonly #locks: readonly string[];
  readonly #maintenanceMs: number;
  #count = 0;
  /** The administrator is done and gone, so none of its work goes on when the processes are closed. */
  #isAdministered = false;

  constructor(world: World, checker: Checker, store: Store, random: Random, workload: Workload, isWitnessed: boolean) {
    this.#workload = workload;
    this.#isWitnessed = isWitnessed;
    this.#world = world;
    this.#checker = checker;
    this.#store = store;
    this.#random = random;
    this.#faults = new Faults(random);
    world.slowestMs = this.#faults.slowestMs;
    this.#post = new Post(random.chance(0.1));
    this.#locks = random.pick([['a'], ['a', 'b'], ['a', 'b', 'c']]);
    // In half of the runs the back-stop comes too late to hide a lost wake-up.
    this.#maintenanceMs = random.pick([5_000, NEVER_MS]);
  }

  stop(): void {
    this.#observing.abort();
    for (const { process } of this.#running) process.isDead = true;
  }

  async run(): Promise<void> {
    await this.#observe();
    if (this.#isWitnessed) {
      const witness = new WitnessChecker((what) => this.#checker.fail(what));
      await this.#watch(EVERYTHING, (changes) => witness.stored(changes));
      await switchWitnessOn(this.#store);
    }
    for (let started = this.#random.whole(2, 4); started > 0; started--) void this.#start();
    this.#trouble();
    this.#lookAround();
    await this.#until(TROUBLE_MS);
    this.#faults.isStill = true;
    this.#world.isCalm = true;
    this.#world.note('', 'all is calm from here on');
    void this.#administer();
    let forgotten = this.#unfinished();
    for (let spell = 0; spell < MOST_SPELLS && !(this.#isAdministered && forgotten.length === 0); spell++) {
      const before = this.#progress(forgotten);
      await this.#for(CALM_MS, () => this.#isAdministered && !this.#workers.some((user) => user.isUnfinished));
      forgotten = this.#unfinished();
      if (this.#progress(forgotten) === before) break;
    }
    if (forgotten.length > 0) {
      for (const line of this.#checker.store.describe()) this.#world.note('', line);
      const told = forgotten.map(({ name, doing }) => `${name} ${doing}`).join('; ');
      this.#checker.fail(`forgotten: ${told}`);
    }
    if (!this.#isAdministered) this.#checker.fail('forgotten: the administrator');
    for (const { box, process } of this.#running) if (!process.isDead) void box.close();
    const last = await this.#openAt(new SimulatedProcess(this.#world, 'last', 1));
    // A user whose process closed may have left a lock to a person since the administrator was there.
    await this.#patiently(() => this.#leaveNothingToAPerson(last.box));
    await this.#clearedUp();
    void last.box.maintain();
    // On a slow network, many resources take several spells, one after the other.
    await this.#clearedUp(MOST_SPELLS);
    if (this.#workload === 'tasks') await this.#doTheRest(last.box);
    if (this.#isWitnessed) await this.#verify(last.box);
    this.#checker.atTheEnd();
  }

  /** Verifies what is left of the chains after all the sealing, trimming and dropping. */
  #verify(box: Signalbox): Promise<void> {
    return this.#patiently(async () => {
      const { finding } = await box.witness.verify();
      if (finding !== undefined) this.#checker.fail(`the record does not verify: ${JSON.stringify(finding)}`);
      return true;
    });
  }

  /** Does every task that can be done; a task that is left after that was lost. */
  #doTheRest(box: Signalbox): Promise<void> {
    return this.#patiently(async () => {
      try {
        // A task whose claim came too late to be used is free again when the lease ends.
        await (await box.tasks.claimNext({ capabilities: ['gpu', 'rust'], waitMs: 5 * TTL_MS })).complete();
        return false;
      } catch (error) {
        if (error instanceof NotAcquired && error.refusal.kind === 'timed-out') return true;
        throw error;
      }
    });
  }

  /** Repeats it until it succeeds. On a slow network that takes long, and some attempts fail. */
  async #patiently(attempt: () => Promise<boolean>): Promise<void> {
    let isThrough = false;
    const failed = (error: unknown): boolean => {
      if (error instanceof Failure) return false;
      throw error;
    };
    void (async () => {
      while (!isThrough) isThrough = await attempt().catch(failed);
    })();
    for (let spell = 0; spell < MOST_SPELLS && !isThrough; spell++) await this.#for(CALM_MS, () => isThrough);
  }

  /** Reports no progress if two spells end alike. A pipeline may go on for a whole spell without a grant. */
  #progress(unfinished: readonly User[]): string {
    return [
      this.#isAdministered,
      this.#checker.grants,
      ...unfinished.map(({ name, doing }) => `${name} ${doing}`),
    ].join();
  }

  #unfinished(): readonly User[] {
    return this.#workers.filter((user) => user.isUnfinished);
  }

  /** Waits until the leases of crashed processes end and late requests arrive. */
  async #clearedUp(spells = 1): Promise<void> {
    const { store } = this.#checker;
    await this.#for(LATE_MS);
    for (let spell = 0; spell < spells; spell++) {
      const before = store.writes;
      await this.#for(CALM_MS, () => store.isQuiet);
      if (store.isQuiet || store.writes === before) return;
    }
  }

  /** Ends early once `isOver`: after that, sessions would only renew their leases. */
  #for(spellMs: number, isOver?: () => boolean): Promise<void> {
    return this.#until(this.#world.now + spellMs, isOver);
  }

  #until(time: number, isOver?: () => boolean): Promise<void> {
    return this.#world.run(
      time,
      () => {
        if (this.#checker.violation !== undefined) throw this.#checker.violation;
      },
      isOver,
    );
  }

  async #observe(): Promise<void> {
    await this.#watch({ key: ANCHORS, end: afterPrefix(RECORDS) }, (changes) => this.#checker.store.stored(changes));
    if (this.#workload === 'members')
      await this.#watch(prefixed(MEMBERS), (changes) => this.#checker.members.stored(changes));
    if (this.#workload === 'tasks') await this.#watch(ALL_TASKS, (changes) => this.#checker.tasks.stored(changes));
  }

  async #watch(range: KeyRange, see: (changes: Changes) => void): Promise<void> {
    const watch = await this.#store.watch(range, 'now', this.#observing.signal);
    void (async () => {
      for await (const changes of watch) {
        try {
          see(changes);
        } catch {
          // The checker keeps the violation.
        }
      }
    })();
  }

  async #start(): Promise<void> {
    this.#count += 1;
    const rate = 1 + (this.#random.next() - 0.5) * 0.04;
    const running = await this.#openAt(new SimulatedProcess(this.#world, `p${this.#count}`, rate));
    const { user, rounds } = kindOf(this.#workload);
    for (let worker = this.#random.whole(1, 4); worker > 0; worker--) {
      const name = `${running.process.name}w${worker}`;
      const { process, box } = running;
      const neighbours = (): readonly Running[] =>
        this.#running.filter((other) => other.process !== process && !other.process.isDead);
      const [world, checker, faults, locks] = [this.#world, this.#checker, this.#faults, this.#locks];
      const added = new user({ name, process, box, world, checker, locks, faults, neighbours });
      this.#workers.push(added);
      void added.work(this.#random.whole(...rounds));
    }
  }

  async #openAt(process: SimulatedProcess): Promise<Running> {
    const network = new Network(this.#world, process, this.#store, this.#faults, this.#post, {
      most: kindOf(this.#workload).callsPerSecond,
      exceeded: (calls) => this.#spins(process, calls),
    });
    let serial = 0;
    // The first look goes straight to the store, because a process that cannot reach it does not start.
    const box = await open(withHealthOf(network, this.#store), {
      clock: process.clock,
      sessionTtlMs: TTL_MS,
      requestTimeoutMs: 2000,
      maintenanceMs: this.#maintenanceMs,
      newId: () => `${process.name}s${++serial}`,
      about: { process: process.name },
      // Loading the real ones would take real time, and the seed would no longer decide the order of events alone.
      adapters: ADAPTERS,
    });
    const running = { process, network, box };
    this.#running.push(running);
    this.#world.note(process.name, 'begins');
    return running;
  }

  #spins(process: SimulatedProcess, calls: number): void {
    try {
      this.#checker.fail(`${process.name} spins: it called the store ${calls} times in ten seconds`);
    } catch {
      // The checker keeps the violation.
    }
  }

  /** Lets users take stale holds, so that nobody waits for a person. */
  async #administer(): Promise<void> {
    const { box } = await this.#openAt(new SimulatedProcess(this.#world, 'admin', 1));
    await this.#leaveNothingToAPerson(box);
    await box.close();
    this.#isAdministered = true;
  }

  async #leaveNothingToAPerson(box: Signalbox): Promise<true> {
    const left = new Set([...this.#locks, ...this.#checker.store.leftToAPerson()]);
    for (const name of left) await box.lock(name).configure({ onStale: 'reclaim', maxHoldMs: null });
    return true;
  }

  /** Compares what users believe every second, also while they wait. */
  #lookAround(): void {
    this.#world.schedule(1000, () => {
      try {
        this.#checker.lookAtAll();
      } catch {
        // The checker keeps the violation.
      }
      this.#lookAround();
    });
  }

  get faults(): ReadonlyMap<string, number> {
    return this.#faults.counts;
  }

  /** Lets something happen to some process every now and then. */
  #trouble(): void {
    const random = this.#random;
    this.#world.schedule(random.next() * random.pick([200, 1000, 4000]), () => {
      if (this.#world.now > TROUBLE_MS) return;
      const alive = this.#running.filter(({ process }) => !process.isDead);
      if (alive.length > 0) this.#harm(random.pick(alive));
      this.#trouble();
    });
  }

  #harm({ process, network, box }: Running): void {
    const random = this.#random;
    switch (random.whole(0, 7)) {
      case 0:
        if (this.#count >= 8) return;
        this.#faults.count('crash');
        process.crash();
        void this.#start();
        return;
      case 1:
        this.#faults.count('stall');
        process.pause(random.pick([50, 1000, TTL_MS, 2 * TTL_MS]));
        return;
      case 2:
        this.#faults.count('clock jump');
        process.jumpWall(random.pick([-3_600_000, -500, 500, TTL_MS, 3_600_000]));
        return;
      case 3:
        this.#faults.count('watches cut');
        network.cutWatches();
        this.#world.note(process.name, 'loses its watches');
        return;
      case 4:
        this.#faults.count('cut off');
        this.#faults.cutOff(process, random.pick([200, 1500, TTL_MS, 3 * TTL_MS]));
        return;
      case 5:
        this.#faults.count('compaction');
        void this.#compact();
        return;
      case 6:
        if (this.#count < 8) void this.#start();
        return;
      default:
        // Its users get `closed` from now on.
        if (this.#count >= 8 || !random.chance(0.3)) return;
        this.#faults.count('close');
        this.#world.note(process.name, 'closes');
        void box.close();
        void this.#start();
    }
  }

  async #compact(): Promise<void> {
    const { revision, compacted } = await this.#store.health();
    if (revision <= compacted) return;
    await this.#store.compact(revision).catch(() => undefined);
    this.#world.forgottenAt = this.#world.now;
    this.#world.note('', `history up to ${revision} is forgotten`);
  }
}
