/**
 * The workers of this process that want the next task. They stand in one line and never compete with each other; against
 * workers of other processes they spread out over the best few tasks (`CandidatePicker`).
 */
import type { Timer } from '../../clock.ts';
import type { Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { type Attempt, type Claimed, revisionOf } from './claiming.ts';
import type { TaskCache } from './task-cache.ts';

export interface Worker {
  readonly capabilities: readonly string[];
  /** Whether it waits for a task, or gets `undefined` if there is none now. */
  readonly waits: boolean;
  readonly isOver: boolean;
  /** Tries to claim this task. */
  attempt(id: string): Promise<Attempt>;
  /** Undefined: there is no task for it. */
  give(claimed: Claimed | undefined): void;
  fail(error: unknown): void;
}

export class Workers {
  readonly #runtime: Runtime;
  readonly #cache: TaskCache;
  #made: CandidatePicker | undefined;
  readonly #line: Worker[] = [];
  /** Tasks that we are claiming, or that another process had at a revision which the cache has not reached yet. */
  readonly #skipped = new Map<string, { until: Revision; heard: Revision }>();
  #pausing: Timer | undefined;

  constructor(runtime: Runtime, cache: TaskCache) {
    this.#runtime = runtime;
    this.#cache = cache;
  }

  /** Made when the first worker wants a task: most processes have none. */
  get #picker(): CandidatePicker {
    this.#made ??= new CandidatePicker(this.#runtime.options.newId());
    return this.#made;
  }

  enter(worker: Worker): void {
    this.#line.push(worker);
    this.#serve();
  }

  leave(worker: Worker): void {
    const place = this.#line.indexOf(worker);
    if (place >= 0) this.#line.splice(place, 1);
  }

  /** The cache has a change of this task. */
  heard(id: string, revision: Revision): void {
    const skipped = this.#skipped.get(id);
    if (skipped === undefined) return;
    skipped.heard = revision;
    if (revision >= skipped.until) this.#skipped.delete(id);
  }

  /** There may be a new task. The waiting workers of other processes hear of it at the same time. */
  wake(): void {
    if (this.#line.length === 0 || this.#pausing !== undefined) return;
    const pauseMs = this.#cache.claimable.size >= this.#picker.width ? 0 : this.#picker.pauseMs();
    if (pauseMs === 0) return this.#serve();
    this.#pausing = this.#runtime.clock.timer(pauseMs, () => {
      this.#pausing = undefined;
      this.#serve();
    });
  }

  #serve(): void {
    for (const worker of [...this.#line]) {
      const best = this.#cache.claimable.best(worker.capabilities, this.#picker.width, (id) => this.#skipped.has(id));
      const id = this.#picker.pick(best);
      if (id !== undefined) {
        this.leave(worker);
        void this.#try(worker, id);
      } else if (!worker.waits) {
        this.leave(worker);
        worker.give(undefined);
      }
    }
  }

  async #try(worker: Worker, id: string): Promise<void> {
    const skipped = { until: Number.POSITIVE_INFINITY, heard: 0 };
    this.#skipped.set(id, skipped);
    let attempt: Attempt;
    try {
      attempt = await worker.attempt(id);
    } catch (error) {
      this.#skipped.delete(id);
      worker.fail(error);
      // The task is still there, and another worker may have passed over it.
      return this.#serve();
    }
    const revision = revisionOf(attempt);
    skipped.until = revision;
    // The cache may have passed that revision already.
    if (skipped.heard >= revision) this.#skipped.delete(id);
    if (attempt.kind === 'claimed') {
      this.#picker.won();
      return worker.give(attempt);
    }
    this.#picker.lost();
    if (worker.isOver) return;
    this.#line.unshift(worker);
    this.#serve();
  }
}

const WIDEST = 256;
/** Each success narrows the width by this share of itself. */
const NARROWING = 1 / 64;
/** The distance between two processes that the same new task has woken. */
const STEP_MS = 0.5;
const LONGEST_STEP_MS = 20;

/**
 * Chooses among the best few tasks, so that many workers do not all compete for the same one.
 *
 * A worker without competition takes strictly the oldest task of the highest priority. Each time another process is faster,
 * the picker looks at twice as many of the oldest and takes one at random; each success narrows that a little. So the width
 * settles at a multiple of the number of workers and few attempts conflict, though no process knows of the others.
 * Priorities are never mixed: the picker chooses among the oldest few of the highest one.
 */
export class CandidatePicker {
  #width = 1;
  #seed: number;

  /** `salt`: different for each process, so that they choose differently. */
  constructor(salt: string) {
    this.#seed = hashOf(salt);
  }

  get width(): number {
    return Math.ceil(this.#width);
  }

  won(): void {
    this.#width = Math.max(1, this.#width * (1 - NARROWING));
  }

  lost(): void {
    this.#width = Math.min(WIDEST, Math.max(2, 2 * this.#width));
  }

  /** One of `best`, which has at most `width` entries. */
  pick<T>(best: readonly T[]): T | undefined {
    return best[this.#next() % Math.max(1, best.length)];
  }

  /** How long to let others go first for a new task, since it wakes every waiting worker at once. */
  pauseMs(): number {
    return this.width === 1 ? 0 : Math.min(LONGEST_STEP_MS, (this.#next() % this.width) * STEP_MS);
  }

  /** A generator of its own (xorshift), so that the same seed chooses the same way again. */
  #next(): number {
    let x = this.#seed || 0x9e3779b9;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#seed = x >>> 0;
    return this.#seed;
  }
}

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
