/** Decides what goes wrong and how often: drawn from the seed, and switched off when the run has to end. */
import type { Random } from './random.ts';
import type { SimulatedProcess } from './world.ts';

export type Fate =
  | { readonly kind: 'well'; readonly thereMs: number; readonly backMs: number }
  | { readonly kind: 'refused'; readonly thereMs: number }
  | { readonly kind: 'request-lost' }
  | { readonly kind: 'answer-lost'; readonly thereMs: number }
  /** Applied after its sender gave up. */
  | { readonly kind: 'late'; readonly lateMs: number };

/** The calls to the store for which a user can plan a fault. */
export type Call = 'read' | 'write' | 'grantLease' | 'keepLeaseAlive' | 'revokeLease';

interface Planned {
  readonly process: SimulatedProcess;
  readonly call: Call;
  readonly fate: Fate;
  /** In virtual time; after it, the plan is void. */
  readonly until: number;
  readonly isOnce: boolean;
}

/** A plan for one call is void after this time: the call was not made. */
const PLANNED_MS = 2000;

export class Faults {
  readonly #random: Random;
  /** The probability of a fault per call; it differs from run to run. */
  readonly #rate: number;
  /** The longest way to the store, or back, of a call that goes well. */
  readonly slowestMs: number;
  readonly #cutOff = new Map<SimulatedProcess, number>();
  readonly #mailLate = new Map<SimulatedProcess, number>();
  #planned: Planned[] = [];
  readonly #counts = new Map<string, number>();
  isStill = false;

  constructor(random: Random) {
    this.#random = random;
    this.#rate = random.pick([0, 0, 0.01, 0.05, 0.15]);
    this.slowestMs = random.pick([2, 10, 60, 350, 700]);
  }

  /** How often each fault happened. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  fateOf(kind: 'read' | 'write', process: SimulatedProcess, call: Call = kind): Fate {
    const fate = this.#plannedFate(process, call) ?? this.#drawFate(kind, process);
    if (fate.kind !== 'well') {
      this.count(fate.kind);
      process.lostAt = process.world.now;
    }
    return fate;
  }

  #drawFate(kind: 'read' | 'write', process: SimulatedProcess): Fate {
    const random = this.#random;
    const thereMs = this.#delay();
    // Sometimes an answer takes longer than the margin of a lease, so it is out of date when it arrives.
    const backMs = !this.isStill && random.chance(this.#rate) ? random.whole(300, 780) : this.#delay();
    if (this.isStill) return { kind: 'well', thereMs, backMs };
    if ((this.#cutOff.get(process) ?? 0) > process.world.now) return { kind: 'request-lost' };
    if (!random.chance(this.#rate)) return { kind: 'well', thereMs, backMs };
    if (kind === 'read') return random.chance(0.5) ? { kind: 'refused', thereMs } : { kind: 'request-lost' };
    switch (random.whole(0, 3)) {
      case 0:
        return { kind: 'refused', thereMs };
      case 1:
        return { kind: 'request-lost' };
      case 2:
        return { kind: 'late', lateMs: random.whole(0, 3000) };
      default:
        return { kind: 'answer-lost', thereMs };
    }
  }

  /** Cuts this process off for a while. */
  cutOff(process: SimulatedProcess, forMs: number): void {
    this.#cutOff.set(process, process.world.now + forMs);
    process.world.note(process.name, `is cut off for ${forMs} ms`);
  }

  // What users plan, for stories that need a fault at one moment

  /** Decides the fate of the next such call of this process. Several plans for one call are met in order. */
  next(process: SimulatedProcess, call: Call, fate: Fate): void {
    this.#planned.push({ process, call, fate, until: process.world.now + PLANNED_MS, isOnce: true });
  }

  /** Decides the fate of all such calls of this process for a while, after those that are planned already. */
  always(process: SimulatedProcess, call: Call, fate: Fate, forMs: number): void {
    this.#planned.push({ process, call, fate, until: process.world.now + forMs, isOnce: false });
  }

  /** What the watches of this process see reaches it only after this time. */
  delayMail(process: SimulatedProcess, forMs: number): void {
    this.#mailLate.set(process, process.world.now + forMs);
    process.world.note(process.name, `gets its mail ${forMs} ms late`);
  }

  #plannedFate(process: SimulatedProcess, call: Call): Fate | undefined {
    if (this.#planned.length === 0) return undefined;
    this.#planned = this.isStill ? [] : this.#planned.filter(({ until }) => until > process.world.now);
    const place = this.#planned.findIndex((plan) => plan.process === process && plan.call === call);
    const plan = this.#planned[place];
    if (plan?.isOnce === true) this.#planned.splice(place, 1);
    return plan?.fate;
  }

  watchDelayMs(process: SimulatedProcess): number {
    const delayMs = this.#delay() * (this.#random.chance(0.05) ? 5 : 1);
    const lateUntil = this.isStill ? 0 : (this.#mailLate.get(process) ?? 0);
    return Math.max(delayMs, lateUntil - process.world.now);
  }

  #delay(): number {
    return 0.2 + this.#random.next() * this.slowestMs;
  }
}
