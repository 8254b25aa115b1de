/**
 * Wires the parts of tasks together, and makes claims: attached ones, which rest on the session of this process, and
 * detached ones for scripts, which rest on a lease of their own.
 *
 *     Tasks ──▶ Dispatch ──▶ TaskWaiters ──▶ Workers        waits: for one task, or in line for the next
 *                  └───────▶ attemptClaim                   one transaction
 *     TaskFeed ──▶ TaskCache ──▶ Dispatch ──▶ waiters, subscribers, repairs
 *
 * Nothing here watches or lists tasks before a caller needs it: claiming a task by its id takes one transaction.
 */
import {
  claimEntryOf,
  type ClaimRequest,
  isOrphaned,
  isOwned,
  type Json,
  renewWithinMs,
  type Task,
  type Token,
} from '../../core/index.ts';
import { ownCopy } from '../own-copy.ts';
import { NotAcquired } from '../refusal.ts';
import type { Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { hasPassed, isOfOneMachine, MARGIN } from '../session/session.ts';
import { endClaim, TaskClaim } from './claim.ts';
import {
  type Attempt,
  attemptClaim,
  type Claimed,
  DetachedClaimLease,
  type Known,
  readKnown,
  SessionClaimLease,
} from './claiming.ts';
import { TaskFeed } from './feed.ts';
import { taskResource } from './keys.ts';
import { Notifier } from './notifier.ts';
import { Repairs } from './repairs.ts';
import { TaskCache, type TaskCacheListener, type Turn } from './task-cache.ts';
import { type Made, NEXT, refusalIn, TaskWaiters, type TaskWaitOptions } from './task-waiters.ts';
import type { ClaimAttempt, ClaimOptions, NextAttempt } from './tasks.ts';

/** A claim that outlives the process that made it. Scripts renew and end it by its token or its holder. */
export interface DetachedClaim<Data = Json> {
  /** The id of the task. */
  readonly id: string;
  /** The name of the worker. */
  readonly holder: string;
  /** The token of the claim: larger for every later one of this task. */
  readonly token: Token;
  /** The task is pending again after this time without a renewal. */
  readonly ttlMs: number;
  /** Renew it within this time, and again within this time after each renewal. */
  readonly renewWithinMs: number;
  /** The data of the task. */
  readonly data: Data;
  /** One for the first worker that tries, two for the next. */
  readonly attempt: number;
}

/** A claim that lost its session before it was made is tried again, under this number of sessions at most. */
const MOST_SESSIONS = 3;

export class Dispatch implements TaskCacheListener {
  readonly feed: TaskFeed;
  readonly cache: TaskCache;
  readonly repairs: Repairs;
  readonly notifier: Notifier;
  readonly waiters: TaskWaiters;
  readonly #runtime: Runtime;

  constructor(runtime: Runtime, repairs: boolean) {
    this.#runtime = runtime;
    this.feed = new TaskFeed(runtime);
    this.cache = new TaskCache(runtime, this.feed, this);
    this.repairs = new Repairs(runtime, this.cache, repairs);
    this.notifier = new Notifier(runtime, this.cache);
    this.waiters = new TaskWaiters(runtime, this.cache);
  }

  close(): void {
    this.waiters.close();
    this.notifier.stop();
    this.repairs.stop();
  }

  // Attached claims

  async tryClaim(id: string, options: ClaimOptions): Promise<ClaimAttempt> {
    const { attempt, made } = await this.#attempt(id, options);
    return made === undefined ? { ...refusalIn(attempt), ok: false } : { ok: true, kind: 'claimed', claim: made };
  }

  async tryClaimNext(options: ClaimOptions): Promise<NextAttempt> {
    const claim = await this.waiters.next(options.capabilities, undefined, (id) => this.#attempt(id, options));
    return claim === undefined ? { ok: false, kind: 'none' } : { ok: true, kind: 'claimed', claim };
  }

  /** Without an id: the next task that fits. */
  claim(id: string | undefined, options: ClaimOptions & TaskWaitOptions): Promise<TaskClaim> {
    const askedAt = this.#runtime.clock.now();
    return this.waiters.claim(
      id,
      options,
      (task) => this.#attempt(task, options, askedAt),
      (claim) => claim.release(),
    );
  }

  /** Under the session of this process. A claim under a session that has ended goes back by itself. */
  async #attempt(
    id: string,
    { holder, capabilities = [] }: ClaimOptions,
    askedAt = this.#runtime.clock.now(),
  ): Promise<Made<TaskClaim>> {
    const since = this.#runtime.clock.monotonic();
    const trace = this.#runtime.measures.tracer?.begin('claim', { resource: taskResource(id) });
    for (let sessions = 1; ; sessions++) {
      const session = await this.#runtime.ready();
      const claimLease = new SessionClaimLease(this.#runtime, session);
      const claim = this.#runtime.nextId(session);
      const request = { id: claim, holder: holder ?? claim, capabilities, at: this.#runtime.clock.now() };
      let attempt: Attempt;
      try {
        attempt = await attemptClaim(this.#runtime, { claimLease, id, request, askedAt, known: this.#known(id) });
      } catch (error) {
        if (isSessionLost(error) && sessions < MOST_SESSIONS) continue;
        trace?.end('error', true);
        throw error;
      }
      trace?.end(attempt.kind, attempt.kind !== 'claimed');
      if (attempt.kind !== 'claimed') return { attempt, made: undefined };
      this.#measureClaim(attempt, since);
      // The last step before the caller goes on: after a stall, this check may be the first to notice.
      if (!claimLease.isValid) throw new NotAcquired(taskResource(id), { kind: 'session-lost' });
      if (this.#wasLostEarly(attempt, claim)) throw new NotAcquired(taskResource(id), { kind: 'lost' });
      const { task, token } = attempt;
      const work = trace?.next('task', { resource: taskResource(id), holder: task.owner?.holder ?? '', token });
      const wrote = (revision: Revision): void => this.waiters.wrote(revision);
      return { attempt, made: new TaskClaim(this.#runtime, attempt, session.id, wrote, work) };
    }
  }

  /** Whether this process heard that the claim has ended before it got the answer: another worker may have the task by now. */
  #wasLostEarly({ task: { id, owner }, token }: Claimed, claim: string): boolean {
    if (this.#runtime.wasLostEarly(claim, token)) return true;
    // Another program sends no letter; its change shows in the cache, if this process keeps one.
    return this.cache.asOf >= token && !isSameOwner(this.cache.get(id)?.owner, owner);
  }

  /** A task that was attempted before has waited for its worker, which says nothing about signalbox. */
  #measureClaim({ task }: Claimed, since: number): void {
    const { measures, clock } = this.#runtime;
    measures.took('claim', clock.monotonic() - since);
    const { publishedAt, attempts } = task.bookkeeping?.entry ?? {};
    if (attempts === 1) this.notifier.reached(publishedAt, task);
  }

  // Detached claims

  /** Without an id: the next task that fits. */
  async claimDetached(
    id: string | undefined,
    options: ClaimOptions & TaskWaitOptions & { readonly holder: string },
    ttlMs: number,
  ): Promise<DetachedClaim> {
    const claimLease = new DetachedClaimLease(this.#runtime, ttlMs);
    const askedAt = this.#runtime.clock.now();
    try {
      const claimed = await this.waiters.claim(
        id,
        options,
        (task) => this.#attemptDetached(task, options, claimLease, askedAt),
        ({ task, token }) =>
          endClaim(this.#runtime, task.id, { token }, { how: 'release' }, undefined, () => undefined),
      );
      return this.#handOut(id === undefined ? NEXT : taskResource(id), claimed, claimLease);
    } catch (error) {
      await claimLease.drop().catch(() => undefined);
      throw error;
    }
  }

  async #attemptDetached(
    id: string,
    { holder, capabilities = [] }: ClaimOptions & { readonly holder: string },
    claimLease: DetachedClaimLease,
    askedAt: number,
  ): Promise<Made<Claimed>> {
    const claim = this.#runtime.options.newId();
    const request: ClaimRequest = { id: claim, holder, capabilities, at: this.#runtime.clock.now(), detached: true };
    // Reads the task first: another process ends this claim, and finds in the bookkeeping only what this one puts there.
    const known = this.#known(id) ?? (await readKnown(this.#runtime, id));
    const since = this.#runtime.clock.monotonic();
    const attempt = await attemptClaim(this.#runtime, { claimLease, id, request, askedAt, known });
    if (attempt.kind === 'claimed') this.#measureClaim(attempt, since);
    if (attempt.kind === 'claimed') return { attempt, made: attempt };
    // The time of a claim begins with the claim, so the next attempt gets a new lease.
    await claimLease.drop();
    return { attempt, made: undefined };
  }

  /** Refuses an answer that comes after the lease may have ended: another worker may have the task by now. */
  #handOut(resource: string, { task, token }: Claimed, { lease }: DetachedClaimLease): DetachedClaim {
    const { clock, store } = this.#runtime;
    const { ttlMs, sent } = lease ?? { ttlMs: 0, sent: { monotonic: 0, now: 0 } };
    if (hasPassed(clock, sent, ttlMs * (1 - MARGIN), isOfOneMachine(store))) {
      throw new NotAcquired(resource, { kind: 'lost' });
    }
    const holder = task.owner?.holder as string;
    const attempt = task.bookkeeping?.entry.attempts as number;
    const data = ownCopy(task.data?.json as Json);
    return { id: task.id, holder, token, ttlMs, renewWithinMs: renewWithinMs(ttlMs), data, attempt };
  }

  /** What the cache knows of a task, without asking the store. */
  #known(id: string): Known | undefined {
    const task = this.cache.isStarted ? this.cache.get(id) : undefined;
    return task && { task, status: (other) => this.cache.status(other) };
  }

  // Changes in the cache

  found(task: Task): void {
    if (isOrphaned(task)) this.repairs.look(task.id);
  }

  turned(turn: Turn): void {
    const { before, after, revision } = turn;
    this.#loseIfOurs(before, after);
    if (isOrphaned(after)) this.repairs.look(after.id);
    this.notifier.turned(turn);
    this.waiters.turned(after.id, revision);
  }

  unblocked(task: Task): void {
    this.notifier.tell({ why: 'unblocked', task: this.notifier.view(task) });
    this.waiters.turned(task.id, Number.POSITIVE_INFINITY);
  }

  missed(): void {
    this.notifier.tell({ why: 'resync' });
  }

  settled(): void {
    this.waiters.settled();
  }

  /** Another program that follows no rule may have taken a task from us. */
  #loseIfOurs(before: Task, after: Task): void {
    const { holds } = this.#runtime;
    if (holds.size === 0) return;
    if (isSameOwner(before.owner, after.owner)) return;
    const claim = claimEntryOf(before);
    if (claim !== undefined) holds.get(claim.id)?.lose({ why: isOwned(after) ? 'reclaimed' : 'expired' });
  }
}

function isSameOwner(before: Task['owner'], after: Task['owner']): boolean {
  // A key that was overwritten has the same token as before.
  return before?.token === after?.token && before?.holder === after?.holder;
}

function isSessionLost(error: unknown): boolean {
  return error instanceof NotAcquired && error.refusal.kind === 'session-lost';
}
