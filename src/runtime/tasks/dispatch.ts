/**
 * Who in this process gets which task, and who is told of it. Nothing here keeps a watch or a list of all tasks until
 * somebody needs one: claiming a task by its id takes one transaction.
 */
import { claimEntryOf, type ClaimRequest, isOrphaned, isOwned, type Task } from '../../core/index.ts';
import type { Revision } from '../../store/index.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { TaskCache, type TaskCacheListener, type Turn } from './task-cache.ts';
import { TaskClaim } from './claim.ts';
import { type Attempt, attemptClaim, type Known } from './claiming.ts';
import { DetachedClaims } from './detached.ts';
import { TaskFeed } from './feed.ts';
import { SessionClaimLease } from './claim-lease.ts';
import { taskResource } from './keys.ts';
import type { TaskWaitOptions } from './wait-deadline.ts';
import { Repairs } from './repairs.ts';
import type { ClaimAttempt, ClaimOptions, NextAttempt } from './tasks.ts';
import { Notifier } from './notifier.ts';
import { type Made, NEXT, refusalIn, TaskWaiters } from './task-waiters.ts';

/** A claim that lost its session before anything was claimed is tried under the next one. */
const MOST_SESSIONS = 3;

export class Dispatch implements TaskCacheListener {
  readonly feed: TaskFeed;
  readonly cache: TaskCache;
  readonly repairs: Repairs;
  readonly notifier: Notifier;
  readonly detached: DetachedClaims;
  readonly #runtime: Runtime;
  readonly #waiting: TaskWaiters;

  constructor(runtime: Runtime, repairs: boolean) {
    this.#runtime = runtime;
    this.feed = new TaskFeed(runtime);
    this.cache = new TaskCache(runtime, this.feed, this);
    this.repairs = new Repairs(runtime, this.cache, repairs);
    this.notifier = new Notifier(this.cache);
    this.#waiting = new TaskWaiters(runtime, this.cache);
    this.detached = new DetachedClaims(runtime, this.#waiting, (id) => this.#known(id));
  }

  close(): void {
    this.#waiting.close();
    this.notifier.stop();
    this.repairs.stop();
  }

  wrote(revision: Revision): void {
    this.#waiting.wrote(revision);
  }

  // Claiming

  async tryClaim(id: string, options: ClaimOptions): Promise<ClaimAttempt> {
    const { attempt, made } = await this.#attempt(id, options);
    return made === undefined ? refusalIn(attempt) : { kind: 'claimed', claim: made };
  }

  claim(id: string, options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    return this.#waiting.patiently(
      taskResource(id),
      options,
      (deadline) => this.#waiting.named(id, options, deadline, (task) => this.#attempt(task, options)),
      (claim) => claim.release(),
    );
  }

  async tryClaimNext(options: ClaimOptions): Promise<NextAttempt> {
    const claim = await this.#waiting.next(options.capabilities, undefined, (id) => this.#attempt(id, options));
    return claim === undefined ? { kind: 'none' } : { kind: 'claimed', claim };
  }

  claimNext(options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    return this.#waiting.patiently(
      NEXT,
      options,
      async (deadline) => {
        const patient = options.waitMs === 0 ? undefined : deadline;
        const claim = await this.#waiting.next(options.capabilities, patient, (id) => this.#attempt(id, options));
        if (claim === undefined) throw new NotAcquired(NEXT, { kind: 'none' });
        return claim;
      },
      (claim) => claim.release(),
    );
  }

  /** Under the session of this process. What was claimed under one that has ended goes back by itself. */
  async #attempt(id: string, options: ClaimOptions): Promise<Made<TaskClaim>> {
    for (let sessions = 1; ; sessions++) {
      const session = await this.#runtime.ready();
      const claimLease = new SessionClaimLease(this.#runtime, session);
      const request = this.#request(this.#runtime.nextId(session), options);
      let attempt: Attempt;
      try {
        attempt = await attemptClaim(this.#runtime, claimLease, id, request, this.#known(id));
      } catch (error) {
        if (isSessionLost(error) && sessions < MOST_SESSIONS) continue;
        throw error;
      }
      if (attempt.kind !== 'claimed') return { attempt, made: undefined };
      // The last thing before control goes back to who asked: after a stall, this may be the first to notice.
      if (!claimLease.isValid) throw new NotAcquired(taskResource(id), { kind: 'session-lost' });
      const made = new TaskClaim(this.#runtime, attempt, session.id, (revision) => this.wrote(revision));
      return { attempt, made };
    }
  }

  #request(id: string, { holder = id, capabilities = [] }: ClaimOptions): ClaimRequest {
    return { id, holder, capabilities, at: this.#runtime.clock.now() };
  }

  #known(id: string): Known | undefined {
    const task = this.cache.isStarted ? this.cache.get(id) : undefined;
    return task && { task, status: (other) => this.cache.status(other) };
  }

  // What the cache tells

  found(task: Task): void {
    if (isOrphaned(task)) this.repairs.look(task.id);
  }

  turned(turn: Turn): void {
    const { before, after, revision } = turn;
    this.#loseIfOurs(before, after);
    if (isOrphaned(after)) this.repairs.look(after.id);
    this.notifier.turned(turn);
    this.#waiting.turned(after.id, revision);
  }

  unblocked(task: Task): void {
    this.notifier.tell({ why: 'unblocked', task: this.notifier.view(task) });
    this.#waiting.turned(task.id, Number.POSITIVE_INFINITY);
  }

  missed(): void {
    this.notifier.tell({ why: 'resync' });
  }

  settled(): void {
    this.#waiting.settled();
  }

  /** Somebody who keeps to no rule may have taken a task from us. */
  #loseIfOurs(before: Task, after: Task): void {
    if (this.#runtime.holdings.holds.size === 0) return;
    // Written over, the key is as old as before.
    if (before.owner?.token === after.owner?.token && before.owner?.holder === after.owner?.holder) return;
    const claim = claimEntryOf(before);
    if (claim === undefined) return;
    this.#runtime.holdings.holds.get(claim.id)?.lose({ why: isOwned(after) ? 'reclaimed' : 'expired' });
  }
}

function isSessionLost(error: unknown): boolean {
  return error instanceof NotAcquired && error.refusal.kind === 'session-lost';
}
