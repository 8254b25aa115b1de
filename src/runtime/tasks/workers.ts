/**
 * Everybody in this process who wants the next task. They stand in one line and never fight among each other; against those
 * in other processes they spread out (see `candidate-picker.ts`).
 */
import type { Timer } from '../../clock.ts';
import type { Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import type { TaskCache } from './task-cache.ts';
import type { Attempt, Claimed } from './claiming.ts';
import { CandidatePicker } from './candidate-picker.ts';

export interface Worker {
  readonly capabilities: readonly string[];
  /** Whether it waits until there is one, or is told that there is none. */
  readonly waits: boolean;
  readonly isOver: boolean;
  /** Tries to claim this one. */
  attempt(id: string): Promise<Attempt>;
  /** Undefined: there is none for it. False if it does not want it any more. */
  give(claimed: Claimed | undefined): void;
  fail(error: unknown): void;
}

export class Workers {
  readonly #runtime: Runtime;
  readonly #cache: TaskCache;
  #made: CandidatePicker | undefined;
  readonly #line: Worker[] = [];
  /** Being claimed by us, or found to be somebody else's at a revision that the cache has not come to yet. */
  readonly #skipped = new Map<string, { until: Revision; heard: Revision }>();
  #pausing: Timer | undefined;

  constructor(runtime: Runtime, cache: TaskCache) {
    this.#runtime = runtime;
    this.#cache = cache;
  }

  /** Not before somebody wants a task: most processes never do. */
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

  /** The cache has heard of this task. */
  heard(id: string, revision: Revision): void {
    const skipped = this.#skipped.get(id);
    if (skipped === undefined) return;
    skipped.heard = revision;
    if (revision >= skipped.until) this.#skipped.delete(id);
  }

  /** There may be something new. All who wait elsewhere hear of it too. */
  wake(): void {
    if (this.#line.length === 0 || this.#pausing !== undefined) return;
    const pauseMs = this.#cache.lines.size >= this.#picker.width ? 0 : this.#picker.pauseMs();
    if (pauseMs === 0) return this.#serve();
    this.#pausing = this.#runtime.clock.timer(pauseMs, () => {
      this.#pausing = undefined;
      this.#serve();
    });
  }

  #serve(): void {
    for (const worker of [...this.#line]) {
      const best = this.#cache.lines.best(worker.capabilities, this.#picker.width, (id) => this.#skipped.has(id));
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
      // The task is there still, and somebody else may have been waiting for it.
      return this.#serve();
    }
    const revision = attempt.kind === 'claimed' ? attempt.token : attempt.revision;
    skipped.until = revision;
    // The cache may have come past it already.
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
