/** Hands out the seeds that are left to run, a few at a time, and collects the results of the others. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Workload } from './workloads.ts';

/** How many seeds are handed out at once. */
const SHARE = 10;
/** About how many lines of progress a run prints if it cannot redraw a single line; none for fewer than 100 seeds. */
const LINES = 20;

export interface Share {
  readonly from: number;
  readonly count: number;
  /** The workloads that every seed runs; without them each seed runs one. */
  readonly workloads?: readonly Workload[];
}

export interface Tally {
  seeds: number;
  grants: number;
  virtualMs: number;
  faults: Record<string, number>;
}

/** The content of the `--state` file: the next seed, and the results of those before it. */
export interface State {
  readonly next: number;
  /** The sum over all seeds that ran with this file. */
  readonly sum?: Tally;
}

/** Reads the state; undefined if there is no such file yet. Throws if `Seeds` did not write the file. */
export function stateIn(file: string): State | undefined {
  if (!existsSync(file)) return undefined;
  const state = JSON.parse(readFileSync(file, 'utf8')) as State;
  if (!Number.isSafeInteger(state.next)) throw new SyntaxError('it has no next seed');
  return state;
}

/** The seeds left to run, and the results of the others. */
export class Seeds {
  readonly #file: string | undefined;
  readonly #from: number;
  readonly #end: number;
  readonly #workloads: readonly Workload[] | undefined;
  readonly #sum: Tally;
  /** Results of shares that wait for an earlier share to finish, by their first seed. */
  readonly #early = new Map<number, Tally>();
  #next: number;
  #through: number;

  /** `file` keeps the next seed and the sum, if given. `sum` is that of earlier seeds, to report as well. */
  constructor(
    from: number,
    count: number,
    workloads: readonly Workload[] | undefined,
    file?: string,
    sum: Tally = { seeds: 0, grants: 0, virtualMs: 0, faults: {} },
  ) {
    this.#file = file;
    this.#from = from;
    this.#end = from + count;
    this.#workloads = workloads;
    this.#sum = sum;
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

  /** Counts only shares without a gap before them, so that an interrupted run goes on from there and counts no seed twice. */
  add({ from }: Share, tally: Tally): void {
    this.#early.set(from, tally);
    const before = this.#through;
    for (let next = this.#early.get(before); next !== undefined; next = this.#early.get(this.#through)) {
      this.#early.delete(this.#through);
      this.#through += next.seeds;
      this.#count(next);
    }
    if (this.#through === before) return;
    if (this.#file !== undefined) save(this.#file, { next: this.#through, sum: this.#sum });
    this.#showProgress(before);
  }

  #count({ seeds, grants, virtualMs, faults }: Tally): void {
    const sum = this.#sum;
    sum.seeds += seeds;
    sum.grants += grants;
    sum.virtualMs += virtualMs;
    for (const [fault, times] of Object.entries(faults)) sum.faults[fault] = (sum.faults[fault] ?? 0) + times;
  }

  #showProgress(before: number): void {
    const [ran, all] = [this.#through - this.#from, this.#end - this.#from];
    const faults = Object.values(this.#sum.faults).reduce((sum, times) => sum + times, 0);
    const line = `${ran} of ${all} seeds, ${this.#sum.grants} grants, ${faults} faults`;
    if (process.stdout.isTTY) return void process.stdout.write(`\r${line}${ran === all ? '\n' : ''}`);
    const step = Math.max(100, Math.ceil(all / LINES));
    if (Math.floor(ran / step) > Math.floor((before - this.#from) / step)) console.log(line);
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

/** Writes the whole file or nothing, even if the process is killed meanwhile. */
function save(file: string, state: State): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(state)}\n`);
  renameSync(`${file}.new`, file);
}
