/** Everybody in this process who waits for a task: for one by its id, or for whichever is next. */
import { type ClaimRefusal, statusOf } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Board } from './board.ts';
import type { Attempt } from './claiming.ts';
import { taskResource } from './keys.ts';
import { Patience, type TaskWaitOptions } from './patience.ts';
import { type Worker, Workers } from './workers.ts';

/** What is waited for where no task is named. */
export const NEXT = 'task';

/** What became of one attempt, and what was made of it if it went well. */
export interface Made<T> {
  readonly attempt: Attempt;
  readonly made: T | undefined;
}

export class Waiting {
  readonly #runtime: Runtime;
  readonly #board: Board;
  readonly #workers: Workers;
  readonly #patient = new Set<Patience>();
  /** Whoever waits for something to happen to a task, by its id. */
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #catchingUp = new Set<() => void>();
  #wrote: Revision = 0;
  #isClosed = false;

  constructor(runtime: Runtime, board: Board) {
    this.#runtime = runtime;
    this.#board = board;
    this.#workers = new Workers(runtime, board);
  }

  // What the board tells

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
    if (this.#board.lines.size > 0) this.#workers.wake();
  }

  close(): void {
    this.#isClosed = true;
    for (const patience of this.#patient) patience.end({ kind: 'closed' });
    this.settled();
  }

  // Waiting

  /** What comes after patience was over goes back. */
  async patiently<T>(
    resource: string,
    options: TaskWaitOptions,
    work: (patience: Patience) => Promise<T>,
    giveBack: (made: T) => Promise<unknown>,
  ): Promise<T> {
    const patience = new Patience(this.#runtime, resource, options);
    this.#patient.add(patience);
    try {
      const working = patience.isOver ? patience.over : work(patience);
      return await Promise.race([working, patience.over]).catch((error: unknown) => {
        void working.then(giveBack).catch(() => undefined);
        throw error;
      });
    } finally {
      patience.finish();
      this.#patient.delete(patience);
    }
  }

  /** Tries this one, and again whenever it might go better, for as long as there is patience. */
  async named<T>(
    id: string,
    { waitMs }: TaskWaitOptions,
    patience: Patience,
    claim: (id: string) => Promise<Made<T>>,
  ): Promise<T> {
    for (;;) {
      const { attempt, made } = await claim(id);
      if (made !== undefined) return made;
      const refusal = refusalIn(attempt);
      const mayPass = refusal.kind === 'taken' || refusal.kind === 'blocked';
      if (!mayPass || waitMs === 0) throw new NotAcquired(taskResource(id), refusal);
      await this.ready();
      while (!this.#isDecided(id) && !patience.isOver) await this.#turnOf(id, patience);
      if (patience.isOver) await patience.over;
    }
  }

  /** It can be claimed, as far as the board knows, or never will be. */
  #isDecided(id: string): boolean {
    const task = this.#board.get(id);
    if (task?.data === undefined || this.#board.lines.has(id)) return true;
    const status = statusOf(task);
    return status === 'complete' || status === 'failed';
  }

  /** Until something happens to it. Throws when patience is over, and is forgotten then: the task may never turn. */
  async #turnOf(id: string, patience: Patience): Promise<void> {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers);
    let watcher = (): void => undefined;
    const turned = new Promise<void>((resolve) => watchers.add((watcher = resolve)));
    try {
      await Promise.race([turned, patience.over]);
    } finally {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id);
    }
  }

  /** Without patience: undefined if there is none right now. */
  async next<T>(
    capabilities: readonly string[] | undefined,
    patience: Patience | undefined,
    claim: (id: string) => Promise<Made<T>>,
  ): Promise<T | undefined> {
    await this.ready();
    return new Promise<T | undefined>((resolve, reject) => {
      let last: T | undefined;
      const worker: Worker = {
        capabilities: capabilities ?? [],
        waits: patience !== undefined,
        get isOver() {
          return patience?.isOver ?? false;
        },
        attempt: async (id) => {
          const { attempt, made } = await claim(id);
          last = made;
          return attempt;
        },
        give: () => resolve(last),
        fail: reject,
      };
      patience?.over.catch(() => this.#workers.leave(worker));
      this.#workers.enter(worker);
    });
  }

  /** What this process wrote itself is known before anybody is told that there is none. */
  async ready(): Promise<void> {
    await this.#board.start();
    const wanted = this.#wrote;
    while (this.#board.asOf < wanted && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#catchingUp.add(resolve));
    }
  }
}

export function refusalIn(attempt: Attempt): ClaimRefusal {
  if (attempt.kind === 'claimed') throw new TypeError('it was not refused');
  const { revision: _, ...refusal } = attempt;
  return refusal;
}
