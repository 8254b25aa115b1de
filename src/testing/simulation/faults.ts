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

export class Faults {
  readonly #random: Random;
  /** The probability of a fault per call; it differs from run to run. */
  readonly #rate: number;
  readonly #slowest: number;
  readonly #cutOff = new Map<SimulatedProcess, number>();
  readonly #counts = new Map<string, number>();
  isStill = false;

  constructor(random: Random) {
    this.#random = random;
    this.#rate = random.pick([0, 0, 0.01, 0.05, 0.15]);
    this.#slowest = random.pick([2, 10, 60, 350, 700]);
  }

  /** How often each fault happened. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  fateOf(kind: 'read' | 'write', process: SimulatedProcess): Fate {
    const fate = this.#drawFate(kind, process);
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

  watchDelayMs(): number {
    return this.#delay() * (this.#random.chance(0.05) ? 5 : 1);
  }

  #delay(): number {
    return 0.2 + this.#random.next() * this.#slowest;
  }
}
