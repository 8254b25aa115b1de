/** Everybody in this process who waits for a task: for one by its id, or for whichever is next. */
import { type ClaimRefusal, statusOf } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { TaskCache } from './task-cache.ts';
import type { Attempt } from './claiming.ts';
import { taskResource } from './keys.ts';
import { WaitDeadline, type TaskWaitOptions } from './wait-deadline.ts';
import { type Worker, Workers } from './workers.ts';

/** What is waited for where no task is named. */
export const NEXT = 'task';

/** What became of one attempt, and what was made of it if it went well. */
export interface Made<T> {
  readonly attempt: Attempt;
  readonly made: T | undefined;
}

export class TaskWaiters {
  readonly #runtime: Runtime;
  readonly #cache: TaskCache;
  readonly #workers: Workers;
  readonly #patient = new Set<WaitDeadline>();
  /** Whoever waits for something to happen to a task, by its id. */
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #catchingUp = new Set<() => void>();
  #wrote: Revision = 0;
  #isClosed = false;

  constructor(runtime: Runtime, cache: TaskCache) {
    this.#runtime = runtime;
    this.#cache = cache;
    this.#workers = new Workers(runtime, cache);
  }

  // What the cache tells

  /** This process has written this: it will not be told of a world in which it has not. */
  wrote(revision: Revision): void {
    this.#wrote = Math.max(this.#wrote, revision);
  }

  turned(id: string, revision: Revision): void {
    this.#workers.heard(id, revision);
    for (const resolve of this.#watchers.get(id) ?? []) resolve();
    this.#watchers.delete(id);
  }

  settled(): void {
    for (const resolve of this.#catchingUp) resolve();
    this.#catchingUp.clear();
    if (this.#cache.lines.size > 0) this.#workers.wake();
  }

  close(): void {
    this.#isClosed = true;
    for (const deadline of this.#patient) deadline.end({ kind: 'closed' });
    this.settled();
  }

  // Waiting

  /** What comes after deadline was over goes back. */
  async patiently<T>(
    resource: string,
    options: TaskWaitOptions,
    work: (deadline: WaitDeadline) => Promise<T>,
    giveBack: (made: T) => Promise<unknown>,
  ): Promise<T> {
    const deadline = new WaitDeadline(this.#runtime, resource, options);
    this.#patient.add(deadline);
    try {
      const working = deadline.isOver ? deadline.over : work(deadline);
      return await Promise.race([working, deadline.over]).catch((error: unknown) => {
        void working.then(giveBack).catch(() => undefined);
        throw error;
      });
    } finally {
      deadline.finish();
      this.#patient.delete(deadline);
    }
  }

  /** Tries this one, and again whenever it might go better, for as long as there is deadline. */
  async named<T>(
    id: string,
    { waitMs }: TaskWaitOptions,
    deadline: WaitDeadline,
    claim: (id: string) => Promise<Made<T>>,
  ): Promise<T> {
    for (;;) {
      const { attempt, made } = await claim(id);
      if (made !== undefined) return made;
      const refusal = refusalIn(attempt);
      const mayPass = refusal.kind === 'taken' || refusal.kind === 'blocked';
      if (!mayPass || waitMs === 0) throw new NotAcquired(taskResource(id), refusal);
      await this.ready();
      while (!this.#isDecided(id) && !deadline.isOver) await this.#turnOf(id, deadline);
      if (deadline.isOver) await deadline.over;
    }
  }

  /** It can be claimed, as far as the cache knows, or never will be. */
  #isDecided(id: string): boolean {
    const task = this.#cache.get(id);
    if (task?.data === undefined || this.#cache.lines.has(id)) return true;
    const status = statusOf(task);
    return status === 'complete' || status === 'failed';
  }

  /** Until something happens to it. Throws when deadline is over, and is forgotten then: the task may never turn. */
  async #turnOf(id: string, deadline: WaitDeadline): Promise<void> {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers);
    let watcher = (): void => undefined;
    const turned = new Promise<void>((resolve) => watchers.add((watcher = resolve)));
    try {
      await Promise.race([turned, deadline.over]);
    } finally {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id);
    }
  }

  /** Without deadline: undefined if there is none right now. */
  async next<T>(
    capabilities: readonly string[] | undefined,
    deadline: WaitDeadline | undefined,
    claim: (id: string) => Promise<Made<T>>,
  ): Promise<T | undefined> {
    await this.ready();
    return new Promise<T | undefined>((resolve, reject) => {
      let last: T | undefined;
      const worker: Worker = {
        capabilities: capabilities ?? [],
        waits: deadline !== undefined,
        get isOver() {
          return deadline?.isOver ?? false;
        },
        attempt: async (id) => {
          const { attempt, made } = await claim(id);
          last = made;
          return attempt;
        },
        give: () => resolve(last),
        fail: reject,
      };
      deadline?.over.catch(() => this.#workers.leave(worker));
      this.#workers.enter(worker);
    });
  }

  /** What this process wrote itself is known before anybody is told that there is none. */
  async ready(): Promise<void> {
    await this.#cache.start();
    const wanted = this.#wrote;
    while (this.#cache.asOf < wanted && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#catchingUp.add(resolve));
    }
  }
}

export function refusalIn(attempt: Attempt): ClaimRefusal {
  if (attempt.kind === 'claimed') throw new TypeError('it was not refused');
  const { revision: _, ...refusal } = attempt;
  return refusal;
}
