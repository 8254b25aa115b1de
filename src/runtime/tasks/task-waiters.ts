/** The waits of this process for tasks: for one task by its id, or for the next that fits. */
import { claimEntryOf, type ClaimRefusal, statusOf } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import { type HeldBy, NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type Attempt, revisionOf } from './claiming.ts';
import { taskResource } from './keys.ts';
import type { TaskCache } from './task-cache.ts';
import { type Worker, Workers } from './workers.ts';
import { onAbort } from '../holds/wait-limits.ts';

/** How long to wait for a task. */
export interface TaskWaitOptions {
  /** Give up after this time; zero: do not wait at all. Without it, as long as it takes. */
  readonly waitMs?: number;
  /** Ends the wait when it aborts. */
  readonly signal?: AbortSignal;
}

/** The resource that a wait for the next task names. */
export const NEXT = 'task';

/** The result of one attempt, and what was made of it if it succeeded. */
export interface Made<T> {
  readonly attempt: Attempt;
  readonly made: T | undefined;
}

type Try<T> = (id: string) => Promise<Made<T>>;

export class TaskWaiters {
  readonly #runtime: Runtime;
  readonly #cache: TaskCache;
  readonly #workers: Workers;
  readonly #deadlines = new Set<WaitDeadline>();
  /** Callbacks for the next change of a task, by its id. */
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #catchingUp = new Set<() => void>();
  #wrote: Revision = 0;
  #isClosed = false;

  constructor(runtime: Runtime, cache: TaskCache) {
    this.#runtime = runtime;
    this.#cache = cache;
    this.#workers = new Workers(runtime, cache);
    runtime.store.over?.addEventListener('abort', () => this.close(), { once: true });
  }

  // Changes

  /** This process has written at this revision: no answer of ours rests on an older state from now on. */
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
    if (this.#cache.claimable.size > 0) this.#workers.wake();
  }

  close(): void {
    this.#isClosed = true;
    for (const deadline of this.#deadlines) deadline.end({ kind: 'closed' });
    this.settled();
  }

  // Waiting

  /** Waits for this task, or without an id for the next. `giveBack` gets a claim that is made after the wait has ended. */
  async claim<T>(
    id: string | undefined,
    options: TaskWaitOptions & { readonly capabilities?: readonly string[] },
    attempt: Try<T>,
    giveBack: (made: T) => Promise<unknown>,
  ): Promise<T> {
    const resource = id === undefined ? NEXT : taskResource(id);
    const deadline = new WaitDeadline(this.#runtime, resource, options, () => this.#holders(id));
    this.#deadlines.add(deadline);
    try {
      const claiming = deadline.isOver ? deadline.over : this.#claim(id, options, deadline, attempt);
      return await Promise.race([claiming, deadline.over]).catch((error: unknown) => {
        void claiming.then(giveBack).catch(() => undefined);
        throw error;
      });
    } finally {
      deadline.finish();
      this.#deadlines.delete(deadline);
    }
  }

  async #claim<T>(
    id: string | undefined,
    { waitMs, capabilities }: TaskWaitOptions & { readonly capabilities?: readonly string[] },
    deadline: WaitDeadline,
    attempt: Try<T>,
  ): Promise<T> {
    if (id !== undefined) return this.#named(id, waitMs !== 0, deadline, attempt);
    const made = await this.next(capabilities, waitMs === 0 ? undefined : deadline, attempt);
    if (made === undefined) throw new NotAcquired(NEXT, { kind: 'none' });
    return made;
  }

  /** The worker that has the task, if it is known. */
  #holders(id: string | undefined): readonly HeldBy[] {
    const task = id === undefined ? undefined : this.#cache.get(id);
    if (task?.owner === undefined || statusOf(task) !== 'running') return [];
    const { holder, token } = task.owner;
    return [{ holder, token, acquiredAt: claimEntryOf(task)?.at ?? 0 }];
  }

  /** Tries this task, and again whenever it may have become claimable, until the deadline. */
  async #named<T>(id: string, waits: boolean, deadline: WaitDeadline, claim: Try<T>): Promise<T> {
    for (;;) {
      const { attempt, made } = await claim(id);
      if (made !== undefined) return made;
      const refusal = refusalIn(attempt);
      const mayPass = refusal.kind === 'taken' || refusal.kind === 'blocked';
      if (!mayPass || !waits) throw new NotAcquired(taskResource(id), refusal);
      await this.caughtUp();
      await this.#reached(revisionOf(attempt), deadline);
      while (!this.#isDecided(id) && !deadline.isOver) await this.#nextTurn(id, deadline);
      if (deadline.isOver) await deadline.over;
    }
  }

  /**
   * Waits until the cache is no older than a refusal: before that, it may still show the task as claimable. This may need no
   * change of the task; but if the task becomes claimable after the refusal, it or a task that it depends on has changed.
   */
  async #reached(revision: Revision, deadline: WaitDeadline): Promise<void> {
    while (this.#cache.asOf < revision && !deadline.isOver) await nextCall(this.#catchingUp, deadline);
  }

  /** Whether the task can be claimed now, or never will be, as far as the cache knows. */
  #isDecided(id: string): boolean {
    const task = this.#cache.get(id);
    if (task?.data === undefined || this.#cache.claimable.has(id)) return true;
    const status = statusOf(task);
    return status === 'complete' || status === 'failed';
  }

  /** Waits for a change of the task. Throws at the deadline. */
  async #nextTurn(id: string, deadline: WaitDeadline): Promise<void> {
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers);
    try {
      await nextCall(watchers, deadline);
    } finally {
      if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id);
    }
  }

  /** Without a deadline: undefined if there is no task for it now. */
  async next<T>(
    capabilities: readonly string[] | undefined,
    deadline: WaitDeadline | undefined,
    claim: Try<T>,
  ): Promise<T | undefined> {
    await this.caughtUp();
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

  /** Resolves once the cache has what this process wrote itself: only then may the answer be that there is no task. */
  async caughtUp(): Promise<void> {
    await this.#cache.start();
    const wanted = this.#wrote;
    while (this.#cache.asOf < wanted && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#catchingUp.add(resolve));
    }
  }
}

/** The end of one wait: its time is over, its signal aborts, or the signalbox is closed. */
class WaitDeadline {
  /** Rejects with `NotAcquired` when the wait is over. */
  readonly over: Promise<never>;
  isOver = false;
  /** The wait got what it was for. */
  readonly finish: () => void;
  #reject: (refusal: Refusal) => void = () => undefined;

  constructor(
    runtime: Runtime,
    resource: string,
    { waitMs, signal }: TaskWaitOptions,
    holders: () => readonly HeldBy[],
  ) {
    const alive = runtime.clock.keepAlive?.();
    const timer =
      waitMs === undefined || waitMs === 0
        ? undefined
        : runtime.clock.timer(waitMs, () => this.end({ kind: 'timed-out', waitedMs: waitMs, holders: holders() }));
    const aborted = (): void => this.end({ kind: 'aborted', reason: signal?.reason as unknown });
    this.finish = () => {
      this.isOver = true;
      alive?.cancel();
      timer?.cancel();
      signal?.removeEventListener('abort', aborted);
    };
    this.over = new Promise<never>((_, reject) => {
      this.#reject = (refusal) => reject(new NotAcquired(resource, refusal));
    });
    // A rejection that nothing awaits must not end the process.
    this.over.catch(() => undefined);
    if (signal?.aborted === true) aborted();
    else if (signal !== undefined) onAbort(signal, aborted);
  }

  end(refusal: Refusal): void {
    if (this.isOver) return;
    this.finish();
    this.#reject(refusal);
  }
}

/** Waits until these callbacks are called. Throws at the deadline, and forgets its callback: the call may never come. */
async function nextCall(callbacks: Set<() => void>, deadline: WaitDeadline): Promise<void> {
  let callback = (): void => undefined;
  const called = new Promise<void>((resolve) => callbacks.add((callback = resolve)));
  try {
    await Promise.race([called, deadline.over]);
  } finally {
    callbacks.delete(callback);
  }
}

export function refusalIn(attempt: Attempt): ClaimRefusal {
  if (attempt.kind === 'claimed') throw new TypeError('the attempt succeeded: it has no refusal');
  const { revision: _, ...refusal } = attempt;
  return refusal;
}
