/**
 * Who in this process gets which task, and who is told of it. Nothing here keeps a watch or a list of all tasks until
 * somebody needs one: claiming a task by its id takes one transaction.
 */
import {
  claimEntryOf,
  type ClaimRefusal,
  type ClaimRequest,
  isOrphaned,
  isOwned,
  type Json,
  statusOf,
  type Task,
} from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import type { Subscription } from '../events.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { MARGIN } from '../session.ts';
import { Board, type BoardListener, type Turn } from './board.ts';
import { TaskClaim } from './claim.ts';
import { type Attempt, attemptClaim, type Claimed, type Footing, type Known, readKnown } from './claiming.ts';
import { endClaim } from './ending.ts';
import { TaskFeed } from './feed.ts';
import { LeaseFooting, SessionFooting } from './footing.ts';
import { taskResource } from './keys.ts';
import { Patience, type TaskWaitOptions } from './patience.ts';
import { Repairs } from './repairs.ts';
import { type TaskHandler, type TaskNotice, TaskSubscriber } from './subscription.ts';
import type { ClaimAttempt, ClaimOptions, DetachedClaim, NextAttempt } from './tasks.ts';
import { type TaskView, viewOf } from './view.ts';
import { type Worker, Workers } from './workers.ts';

/** What is claimed where a task is not named. */
const NEXT = 'task';
/** A claim that lost its session before anything was claimed is tried under the next one. */
const MOST_SESSIONS = 3;

export class Dispatch implements BoardListener {
  readonly feed: TaskFeed;
  readonly board: Board;
  readonly repairs: Repairs;
  readonly #runtime: Runtime;
  readonly #workers: Workers;
  readonly #subscribers = new Set<TaskSubscriber>();
  /** Whoever waits for something to happen to a task, by its id. */
  readonly #watchers = new Map<string, Set<() => void>>();
  readonly #waiting = new Set<Patience>();
  #wrote: Revision = 0;
  readonly #catchingUp = new Set<() => void>();

  constructor(runtime: Runtime, repairs: boolean) {
    this.#runtime = runtime;
    this.feed = new TaskFeed(runtime);
    this.board = new Board(runtime, this.feed, this);
    this.#workers = new Workers(runtime, this.board);
    this.repairs = new Repairs(runtime, this.board, repairs);
  }

  /** This process has written this: it will not be told of a world in which it has not. */
  wrote(revision: Revision): void {
    this.#wrote = Math.max(this.#wrote, revision);
  }

  close(): void {
    for (const patience of this.#waiting) patience.end({ kind: 'closed' });
    for (const subscriber of this.#subscribers) subscriber.stop();
    this.repairs.stop();
  }

  // Claiming one by its id

  async tryClaim(id: string, options: ClaimOptions): Promise<ClaimAttempt> {
    const attempt = await this.#attached(options, (footing, request) => this.#attempt(footing, id, request));
    return attempt instanceof TaskClaim ? { kind: 'claimed', claim: attempt } : withoutRevision(attempt);
  }

  async claim(id: string, options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    return this.#patiently(taskResource(id), options, (patience) =>
      this.#until(id, options, patience, () =>
        this.#attached(options, (footing, request) => this.#attempt(footing, id, request)),
      ),
    );
  }

  /** Tries, and tries again whenever it might go better, for as long as there is patience. */
  async #until<T extends object>(
    id: string,
    { waitMs }: TaskWaitOptions,
    patience: Patience,
    attempt: () => Promise<T | Refused>,
  ): Promise<T> {
    for (;;) {
      const answer = await attempt();
      if (!isRefused(answer)) return answer;
      const mayPass = answer.kind === 'taken' || answer.kind === 'blocked';
      if (!mayPass || waitMs === 0) throw new NotAcquired(taskResource(id), withoutRevision(answer));
      if (patience.isOver) await patience.over;
      await this.board.start();
      await this.#changed(id, patience);
    }
  }

  /** Resolves when the task can be claimed, as far as the board knows, or never will be. */
  async #changed(id: string, patience: Patience): Promise<void> {
    await this.#caughtUp();
    const isDecided = (): boolean => {
      const task = this.board.get(id);
      return task?.data === undefined || this.board.lines.has(id) || statusOf(task) === 'complete' || isFailed(task);
    };
    while (!isDecided() && !patience.isOver) {
      await Promise.race([this.#turnOf(id), patience.over]);
    }
  }

  #turnOf(id: string): Promise<void> {
    return new Promise((resolve) => {
      const watchers = this.#watchers.get(id) ?? new Set();
      this.#watchers.set(id, watchers.add(resolve));
    });
  }

  // Claiming whichever is next

  async tryClaimNext(options: ClaimOptions): Promise<NextAttempt> {
    await this.#ready();
    const claim = await this.#next(options, undefined, (id) => this.#attachedClaim(id, options));
    return claim === undefined ? { kind: 'none' } : { kind: 'claimed', claim };
  }

  async claimNext(options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    return this.#patiently(NEXT, options, async (patience) => {
      await this.#ready();
      const claim = await this.#next(options, options.waitMs === 0 ? undefined : patience, (id) =>
        this.#attachedClaim(id, options),
      );
      if (claim === undefined) throw new NotAcquired(NEXT, { kind: 'none' });
      return claim;
    });
  }

  /** What this process wrote itself is known before it is told that there is none. */
  async #ready(): Promise<void> {
    await this.board.start();
    await this.#caughtUp();
  }

  async #caughtUp(): Promise<void> {
    const wanted = this.#wrote;
    while (this.board.asOf < wanted) await new Promise<void>((resolve) => this.#catchingUp.add(resolve));
  }

  /** Without patience: undefined if there is none right now. */
  #next<T>(
    options: ClaimOptions,
    patience: Patience | undefined,
    claim: (id: string) => Promise<{ readonly attempt: Attempt; readonly made: T | undefined }>,
  ): Promise<T | undefined> {
    return new Promise<T | undefined>((resolve, reject) => {
      let made: T | undefined;
      const worker: Worker = {
        capabilities: options.capabilities ?? [],
        waits: patience !== undefined,
        get isOver() {
          return patience?.isOver ?? false;
        },
        attempt: async (id) => {
          const result = await claim(id);
          made = result.made;
          return result.attempt;
        },
        give: () => resolve(made),
        fail: reject,
      };
      patience?.over.catch(() => this.#workers.leave(worker));
      this.#workers.enter(worker);
    });
  }

  // Detached claims

  async claimDetached(
    id: string | undefined,
    options: ClaimOptions & TaskWaitOptions & { readonly holder: string },
    ttlMs: number,
  ): Promise<DetachedClaim> {
    const footing = new LeaseFooting(this.#runtime, ttlMs);
    const attempt = async (task: string): Promise<Attempt> => {
      const request = this.#request(this.#runtime.options.newId(), options, true);
      // Read first: whoever ends it is another process, which finds in the book only what this one has put there.
      const known = this.#known(task) ?? (await readKnown(this.#runtime, task));
      return attemptClaim(this.#runtime, footing, task, request, known);
    };
    const resource = id === undefined ? NEXT : taskResource(id);
    try {
      return await this.#patiently(
        resource,
        options,
        async (patience) => {
          const claimed = id === undefined ? await this.#nextDetached(options, patience, attempt) : undefined;
          const { task, token } =
            claimed ?? (await this.#until(id as string, options, patience, () => asRefused(attempt(id as string))));
          const { holder } = options;
          const lease = footing.lease;
          // An answer that comes after the lease may have ended is no claim.
          if (lease === undefined || this.#isPast(lease.sent.monotonic, lease.sent.now, lease.ttlMs)) {
            throw new NotAcquired(resource, { kind: 'lost' });
          }
          const attempts = task.book?.entry.attempts as number;
          return { id: task.id, holder, token, ttlMs: lease.ttlMs, data: task.data?.json as Json, attempt: attempts };
        },
        ({ id: task, token }) =>
          endClaim(this.#runtime, task, { token }, { how: 'release' }, undefined, () => undefined),
      );
    } catch (error) {
      await footing.drop().catch(() => undefined);
      throw error;
    }
  }

  async #nextDetached(
    options: ClaimOptions & TaskWaitOptions,
    patience: Patience,
    attempt: (id: string) => Promise<Attempt>,
  ): Promise<Claimed> {
    await this.#ready();
    const claimed = await this.#next<Claimed>(options, options.waitMs === 0 ? undefined : patience, async (task) => {
      const made = await attempt(task);
      return { attempt: made, made: made.kind === 'claimed' ? made : undefined };
    });
    if (claimed === undefined) throw new NotAcquired(NEXT, { kind: 'none' });
    return claimed;
  }

  #isPast(monotonic: number, now: number, ttlMs: number): boolean {
    const { clock } = this.#runtime;
    const validMs = ttlMs * (1 - MARGIN);
    return clock.monotonic() >= monotonic + validMs || clock.now() >= now + validMs;
  }

  // What claiming has in common

  #attempt(footing: Footing, id: string, request: ClaimRequest): Promise<Attempt> {
    return attemptClaim(this.#runtime, footing, id, request, this.#known(id));
  }

  #known(id: string): Known | undefined {
    const task = this.board.isStarted ? this.board.get(id) : undefined;
    return task && { task, status: (other: string) => this.board.status(other) };
  }

  #request(claim: string, { holder = claim, capabilities = [] }: ClaimOptions, detached: boolean): ClaimRequest {
    const at = this.#runtime.clock.now();
    return { id: claim, holder, capabilities, at, ...(detached && { detached: true as const }) };
  }

  /** Under the session of this process. What was claimed under one that has ended goes back by itself. */
  async #attached(
    options: ClaimOptions,
    attempt: (footing: Footing, request: ClaimRequest) => Promise<Attempt>,
  ): Promise<TaskClaim | Refused> {
    for (let sessions = 1; ; sessions++) {
      const session = await this.#runtime.ready();
      const footing = new SessionFooting(this.#runtime, session);
      const request = this.#request(this.#runtime.nextId(session), options, false);
      const made = await attempt(footing, request).catch((error: unknown) => {
        if (!isSessionLost(error) || sessions >= MOST_SESSIONS) throw error;
        return undefined;
      });
      if (made === undefined) continue;
      if (made.kind !== 'claimed') return made;
      // The last thing before control goes back to who asked: after a stall, this may be the first to notice.
      if (!footing.isValid) throw new NotAcquired(taskResource(made.task.id), { kind: 'session-lost' });
      return new TaskClaim(this.#runtime, made, session.id, (revision) => this.wrote(revision));
    }
  }

  async #attachedClaim(
    id: string,
    options: ClaimOptions,
  ): Promise<{ readonly attempt: Attempt; readonly made: TaskClaim | undefined }> {
    let attempt: Attempt | undefined;
    const made = await this.#attached(options, async (footing, request) => {
      attempt = await this.#attempt(footing, id, request);
      return attempt;
    });
    return { attempt: attempt as Attempt, made: made instanceof TaskClaim ? made : undefined };
  }

  /** What comes after patience was over goes back. */
  async #patiently<T>(
    resource: string,
    options: TaskWaitOptions,
    work: (patience: Patience) => Promise<T>,
    giveBack: (made: T) => Promise<unknown> = (made) => (made as unknown as TaskClaim).release(),
  ): Promise<T> {
    const patience = new Patience(this.#runtime, resource, options);
    this.#waiting.add(patience);
    try {
      const working = patience.isOver ? patience.over : work(patience);
      return await Promise.race([working, patience.over]).catch((error: unknown) => {
        void working.then(giveBack).catch(() => undefined);
        throw error;
      });
    } finally {
      patience.finish();
      this.#waiting.delete(patience);
    }
  }

  // Telling

  async subscribe(handler: TaskHandler, pending: boolean): Promise<Subscription> {
    await this.board.start();
    const subscriber = new TaskSubscriber(handler, () => this.#pending());
    if (pending) for (const task of this.#pending()) subscriber.tell({ why: 'pending', task });
    this.#subscribers.add(subscriber);
    const unsubscribe = (): void => {
      subscriber.stop();
      this.#subscribers.delete(subscriber);
    };
    return { unsubscribe, [Symbol.dispose]: unsubscribe };
  }

  *#pending(): Iterable<TaskView> {
    for (const task of this.board.values()) {
      if (task.data !== undefined && statusOf(task) === 'pending') yield this.#view(task);
    }
  }

  #view(task: Task): TaskView {
    return viewOf(task, (id) => this.board.status(id));
  }

  found(task: Task): void {
    if (isOrphaned(task)) this.repairs.look(task.id);
  }

  turned(turn: Turn): void {
    const { before, after, revision } = turn;
    this.#workers.heard(after.id, revision);
    this.#loseIfOurs(before, after);
    if (isOrphaned(after)) this.repairs.look(after.id);
    const why = reasonOf(turn);
    if (why !== undefined) this.#tell({ why, task: this.#view(after) });
    this.#wakeWatchers(after.id);
  }

  unblocked(task: Task): void {
    this.#workers.heard(task.id, Number.POSITIVE_INFINITY);
    this.#tell({ why: 'unblocked', task: this.#view(task) });
    this.#wakeWatchers(task.id);
  }

  missed(): void {
    this.#tell({ why: 'resync' });
  }

  settled(): void {
    for (const resolve of this.#catchingUp) resolve();
    this.#catchingUp.clear();
    if (this.board.lines.size > 0) this.#workers.wake();
  }

  #wakeWatchers(id: string): void {
    for (const resolve of this.#watchers.get(id) ?? []) resolve();
    this.#watchers.delete(id);
  }

  #tell(notice: TaskNotice): void {
    for (const subscriber of this.#subscribers) subscriber.tell(notice);
  }

  /** Somebody who keeps to no rule may have taken a task from us. */
  #loseIfOurs(before: Task, after: Task): void {
    if (this.#runtime.holds.size === 0) return;
    // Written over, the key is as old as before.
    if (before.owner?.token === after.owner?.token && before.owner?.holder === after.owner?.holder) return;
    const claim = claimEntryOf(before);
    if (claim === undefined) return;
    this.#runtime.holds.get(claim.id)?.lose({ why: isOwned(after) ? 'reclaimed' : 'expired' });
  }
}

type Refused = ClaimRefusal & { readonly revision: Revision };

function isRefused(answer: object): answer is Refused {
  return 'revision' in answer && 'kind' in answer;
}

async function asRefused(attempt: Promise<Attempt>): Promise<Claimed | Refused> {
  return attempt;
}

function withoutRevision({ revision: _, ...refusal }: Refused): ClaimRefusal {
  return refusal;
}

function isSessionLost(error: unknown): boolean {
  return error instanceof NotAcquired && error.refusal.kind === 'session-lost';
}

function isFailed(task: Task): boolean {
  return statusOf(task) === 'failed';
}

/** Why those who wait for tasks are told of this turn; undefined if they are not. */
function reasonOf({ before, after }: Turn): 'published' | 'released' | 'requeued' | undefined {
  if (after.data === undefined) return undefined;
  if (before.data === undefined || before.data.published !== after.data.published) return 'published';
  if (statusOf(after) !== 'pending' || statusOf(before) === 'pending') return undefined;
  const isTold = before.book?.mod !== after.book?.mod;
  const types = isTold ? (after.book?.entry.events ?? []).map(({ type }) => type) : [];
  if (types.includes('task:released')) return 'released';
  // A worker of another kind says so by the status; whoever dies says nothing.
  return !isTold && after.status?.word === 'pending' && before.status?.mod !== after.status.mod
    ? 'released'
    : 'requeued';
}
