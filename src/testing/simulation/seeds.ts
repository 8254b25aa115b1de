/** Which seeds are still to run, handed out a few at a time, and what came of the others. */
import { writeFileSync } from 'node:fs';
import type { Workload } from './workloads.ts';

/** How many seeds are handed out at once. */
const SHARE = 10;

export interface Share {
  readonly from: number;
  readonly count: number;
  /** Those that every seed runs; without them each seed runs one. */
  readonly workloads?: readonly Workload[];
}

export interface Tally {
  seeds: number;
  grants: number;
  virtualMs: number;
  faults: Record<string, number>;
}

/** What is still to run, and what came of the rest. */
export class Seeds {
  readonly #file: string | undefined;
  readonly #from: number;
  readonly #end: number;
  readonly #workloads: readonly Workload[] | undefined;
  readonly #sum: Tally = { seeds: 0, grants: 0, virtualMs: 0, faults: {} };
  readonly #done = new Set<number>();
  #next: number;
  #through: number;

  /** `file`: where the next seed is kept, if anywhere. */
  constructor(from: number, count: number, workloads: readonly Workload[] | undefined, file: string | undefined) {
    this.#file = file;
    this.#from = from;
    this.#end = from + count;
    this.#workloads = workloads;
    this.#next = from;
    this.#through = from;
  }

  take(): Share | undefined {
    if (this.#next >= this.#end) return undefined;
    const from = this.#next;
    this.#next = Math.min(this.#end, from + SHARE);
    const share = { from, count: this.#next - from };
    return this.#workloads === undefined ? share : { ...share, workloads: this.#workloads };
  }

  add({ from, count }: Share, tally: Tally): void {
    this.#sum.seeds += tally.seeds;
    this.#sum.grants += tally.grants;
    this.#sum.virtualMs += tally.virtualMs;
    for (const [fault, times] of Object.entries(tally.faults)) {
      this.#sum.faults[fault] = (this.#sum.faults[fault] ?? 0) + times;
    }
    for (let seed = from; seed < from + count; seed++) this.#done.add(seed);
    const before = this.#through;
    while (this.#done.delete(this.#through)) this.#through += 1;
    if (this.#file !== undefined) writeFileSync(this.#file, `${JSON.stringify({ next: this.#through })}\n`);
    const hundred = Math.floor((this.#through - this.#from) / 100);
    if (hundred > Math.floor((before - this.#from) / 100)) console.log(`${this.#through - this.#from} seeds`);
  }

  told(isClean: boolean): string {
    const { seeds, grants, virtualMs, faults } = this.#sum;
    const every = this.#workloads;
    const runs = every === undefined ? 'one workload each' : `${seeds * every.length} runs (${every.join(', ')})`;
    const kinds = Object.entries(faults).sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      `${seeds} seeds, ${runs}, ${grants} grants, ${(virtualMs / 3_600_000).toFixed(1)} virtual hours${isClean ? ': no violation' : ''}`,
      `faults: ${kinds.map(([kind, times]) => `${times} × ${kind}`).join(', ')}`,
      `next: --from ${this.#through}`,
    ].join('\n');
  }
}
