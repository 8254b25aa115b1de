/**
 * Locks on GitHub Issues, for teams that have only a repository.
 *
 *     acquireLock ─▶ budget ─▶ acquire (core) ─▶ hold ─▶ heartbeats ─▶ release (core)
 */
import { systemClock } from '../clock.ts';
import {
  acquire,
  type AcquireRequest,
  type BranchMove,
  branchProblem,
  type Held,
  inQueue,
  priorityOf,
  problemIn,
  type QueueEntry,
  queueOf,
  type Refusal,
  release,
  type Settings,
} from '../core/github/index.ts';
import { Failure, refuseInvalid } from '../failure.ts';
import { randomHex } from '../host/index.ts';
import { Budget, type BudgetView } from './budget.ts';
import type { CachedLock, LockCache } from './cache.ts';
import { Aborted, Driver } from './drive.ts';
import { Heartbeats } from './heartbeats.ts';
import { GitHubHold, type PublishOutcome, type ReleaseOutcome } from './hold.ts';
import { LockReader, statusOf } from './lock-reader.ts';
import { Counters, type LockMetrics } from './metrics.ts';
import { OctokitClient } from './octokit-client.ts';
import { type LockReason, reasonOf, textOf } from './reason.ts';
import {
  type AcquireOptions,
  ConflictStrategy,
  type LockedIssue,
  type LockManagerOptions,
  type LockResult,
  type LockStatus,
  type ManyResult,
  problemWith,
  type Refused,
  type ReleaseResult,
  settingsOf,
} from './terms.ts';

/** Locks on the issues of a repository. */
export class LockManager implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #driver: Driver;
  readonly #reader: LockReader;
  readonly #budget: Budget;
  readonly #heartbeats: Heartbeats;
  readonly #counters = new Counters();
  readonly #cache: LockCache | undefined;
  readonly #debug: (message: string) => void;
  /** The latest write to the cache. */
  #cached: Promise<void> = Promise.resolve();
  readonly #id = randomHex(6);
  #number = 0;

  /** Sends no request yet. */
  constructor(options: LockManagerOptions = {}) {
    this.#settings = settingsOf(options);
    const client = options.client ?? new OctokitClient(options);
    this.#driver = new Driver(client, options.clock ?? systemClock);
    this.#reader = new LockReader(this.#driver);
    this.#budget = new Budget(this.#driver, this.#settings, options.onWarning ?? (() => undefined));
    this.#cache = options.cache;
    this.#debug = options.onDebug ?? (() => undefined);
    this.#heartbeats = new Heartbeats(this.#driver, this.#budget, {
      nonce: () => this.#unique(),
      renewed: (hold) => this.#keep(hold),
    });
  }

  /** Locks an issue for a worker, or says why not. */
  async acquireLock(issueNumber: number, options: AcquireOptions): Promise<LockResult> {
    const result = await this.acquireMany([issueNumber], options);
    if (!result.success) return { success: false, lockId: issueNumber, error: result.error, reason: result.reason };
    const [lock] = result.locks as readonly [GitHubHold];
    return { success: true, lockId: issueNumber, token: lock.token, lock };
  }

  /** Locks all of them or none: in one move if GitHub has GraphQL, otherwise one after the other in the order of their numbers. */
  async acquireMany(issueNumbers: readonly number[], options: AcquireOptions): Promise<ManyResult> {
    const issues = [...new Set(issueNumbers)].sort((one, other) => one - other);
    refuseInvalid(
      problemWith(issues, options) ??
        (options.lockTimeoutMs === undefined
          ? undefined
          : problemIn({ ...this.#settings, lockTimeoutMs: options.lockTimeoutMs })),
    );
    const held = issues.map((issue) => this.#holdOf(issue, options.workerId));
    if (held.every((hold) => hold !== undefined)) return { success: true, lockIds: issues, locks: held };
    const since = this.#driver.clock.monotonic();
    const result = await this.#acquire(issues, options);
    this.#counters.ended(result.success, this.#driver.clock.monotonic() - since);
    return result;
  }

  async #acquire(issues: readonly number[], options: AcquireOptions): Promise<ManyResult> {
    const refused = (reason: LockReason): ManyResult => ({ lockIds: issues, ...failed(reason) });
    const isCancelled = (): boolean => options.signal?.aborted === true;
    if (isCancelled()) return refused({ kind: 'aborted' });
    const [login, fullMs] = await Promise.all([
      this.#driver.client.getLogin(),
      this.#budget.fullForMs(this.#heartbeats.holds.size > 0),
    ]);
    if (fullMs !== undefined) {
      const message = `the token supports about ${this.#budget.capacity} processes with locks, and has no room for this one`;
      return refused(this.#reason({ kind: 'rate-limited', waitMs: fullMs, message }));
    }
    const account = login.kind === 'ok' ? login.value : null;
    const request: AcquireRequest = {
      ...{ issues, hold: this.#unique(), workerId: options.workerId, nodeId: options.nodeId },
      taskInfo: options.taskInfo ?? {},
      ...{ strategy: options.conflictStrategy ?? ConflictStrategy.RETRY, login: account },
      ...(options.reason !== undefined && { reason: options.reason }),
    };
    const settings = { ...this.#settings, timeoutMs: options.lockTimeoutMs ?? this.#settings.lockTimeoutMs };
    const ticket = {
      hold: request.hold,
      workerId: options.workerId,
      priority: priorityOf(options.priority),
      timeoutMs: settings.timeoutMs,
      holds: [...this.#heartbeats.holds].filter((hold) => hold.workerId === options.workerId).map(({ issue }) => issue),
    };
    const line = options.queue === true ? inQueue(ticket) : undefined;
    try {
      const outcome = await this.#driver.drive(acquire(request, settings, line), options.signal);
      if (outcome.metConflict) this.#counters.conflict();
      if (outcome.kind === 'refused') {
        if (outcome.refusal.kind === 'not-together') return await this.#oneByOne(issues, options);
        return refused(this.#reason(outcome.refusal));
      }
      if (request.strategy !== ConflictStrategy.FORCE_ACQUIRE) this.#counters.stale(outcome.tookOver.length);
      const begun = await this.#begin(outcome.holds, outcome.assigned, refused);
      // If the caller cancelled while the lock was granted, release it.
      if (!begun.success || !isCancelled()) return begun;
      await Promise.all(begun.locks.map((lock) => lock.release('given back: cancelled')));
      return refused({ kind: 'aborted' });
    } catch (error) {
      if (!(error instanceof Aborted)) throw error;
      if (line !== undefined) await this.#driver.drive(line.leave(false));
      return refused({ kind: 'aborted' });
    }
  }

  /** Checks the budget once more before it hands out the holds. */
  async #begin(
    all: readonly Held[],
    assigned: readonly number[],
    refused: (reason: LockReason) => ManyResult,
  ): Promise<ManyResult> {
    const [first] = all as readonly [Held];
    const wasFirst = this.#heartbeats.holds.size === 0;
    const locks = all.map((held) => new GitHubHold(this.#driver, this, held, assigned.includes(held.issue)));
    for (const lock of locks) this.#heartbeats.add(lock);
    if (wasFirst && !(await this.#budget.mayStay(first.issue))) {
      await Promise.all(locks.map((lock) => lock.release('refused: too many locks for this token')));
      const message = `the token supports about ${this.#budget.capacity} processes with locks, and others came first`;
      return refused(this.#reason({ kind: 'rate-limited', waitMs: this.#settings.lockTimeoutMs, message }));
    }
    if (locks.some((lock) => !lock.isValid)) {
      await Promise.all(locks.map((lock) => lock.release()));
      return refused({ kind: 'unreachable', message: 'the lock ended before it could be used' });
    }
    for (const lock of locks) this.#keep(lock);
    return { success: true, lockIds: locks.map(({ issue }) => issue), locks };
  }

  /** For a GitHub without GraphQL. The order of the numbers keeps two callers from waiting for each other. */
  async #oneByOne(issues: readonly number[], options: AcquireOptions): Promise<ManyResult> {
    const locks: GitHubHold[] = [];
    for (const issue of issues) {
      const result = await this.#acquire([issue], options);
      if (result.success) locks.push(...result.locks);
      else {
        await Promise.all(locks.map((lock) => lock.release('released: another of the issues could not be locked')));
        return { ...result, lockIds: issues };
      }
    }
    return { success: true, lockIds: issues, locks };
  }

  /** Releases a lock of this manager, or one that an earlier process of the same worker left. */
  async releaseLock(issueNumber: number, workerId: string, outcome = 'completed'): Promise<ReleaseResult> {
    const refused = (reason: LockReason): ReleaseResult => ({ lockId: issueNumber, ...failed(reason) });
    const hold = this.#holdOf(issueNumber, workerId);
    if (hold !== undefined) return released(issueNumber, await hold.release(outcome));
    const found = await this.#reader.find(issueNumber);
    if ('reason' in found) return refused(found.reason);
    const { held, record } = found;
    if (held === undefined || record?.lock.worker_id !== workerId) {
      const by = record?.state === 'held' ? record.lock.worker_id : null;
      return refused({ kind: 'not-owner', issue: issueNumber, by });
    }
    const answer = await this.#release(held, outcome);
    if (answer.kind === 'released') this.#forget(issueNumber);
    return released(issueNumber, answer);
  }

  #release(held: Held, outcome: string): Promise<ReleaseOutcome> {
    const at = { nonce: this.#unique(), at: this.#driver.instant(), iso: this.#driver.serverIso() };
    return this.#driver.drive(release(held, { ...at, outcome }));
  }

  /** Reads the ref, which decides; comments may be older. */
  async getLockStatus(issueNumber: number): Promise<LockStatus> {
    const found = await this.#reader.find(issueNumber);
    if ('reason' in found)
      throw new Failure(found.reason.kind === 'unauthorised' ? 'forbidden' : 'unavailable', textOf(found.reason));
    return statusOf(found.record, found.isStale);
  }

  /** Lists every lock of the repository with two requests, which are free of charge while nothing changes. */
  async listLocks(): Promise<readonly LockedIssue[]> {
    return this.#reader.list();
  }

  /** The queue of an issue, first to last. */
  async getQueue(issueNumber: number): Promise<readonly QueueEntry[]> {
    return this.#driver.drive(queueOf(issueNumber));
  }

  /** Reads the cache: a hint for display, which may be old or absent. */
  async getLockFromMemory(issueNumber: number): Promise<CachedLock | null> {
    if (this.#cache === undefined) return null;
    await this.#cached;
    return this.#cache.get(issueNumber).catch((error: unknown) => {
      this.#debug(`the lock cache cannot be read: ${(error as Error).message}`);
      return null;
    });
  }

  /** The counts since this manager was made. */
  getMetrics(): LockMetrics {
    return this.#counters.view();
  }

  /** How many locks the token supports, how often they are renewed, and how many requests GitHub says are left. */
  getBudget(): BudgetView {
    return this.#budget.view();
  }

  /** Releases every lock of this manager. */
  async close(): Promise<void> {
    await Promise.all([...this.#heartbeats.holds].map((hold) => hold.release()));
    await this.#cached;
    await this.#cache?.close?.().catch((error: unknown) => this.#debug((error as Error).message));
  }

  /** Releases everything at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** For holds. */
  async release(hold: GitHubHold, outcome: string): Promise<ReleaseOutcome> {
    await this.#heartbeats.remove(hold);
    const answer = await this.#release(hold.held, outcome);
    this.#forget(hold.issue);
    return answer;
  }

  /** For holds. */
  async extend(hold: GitHubHold, timeoutMs: number): Promise<boolean> {
    refuseInvalid(problemIn({ ...this.#settings, lockTimeoutMs: timeoutMs }));
    const { seq } = hold.held.record;
    await this.#heartbeats.now(new Map([[hold, timeoutMs]]));
    return hold.isValid && hold.held.record.seq > seq;
  }

  /** For holds. */
  async publish(hold: GitHubHold, branch: BranchMove): Promise<PublishOutcome> {
    refuseInvalid(branchProblem(branch));
    return this.#heartbeats.publish(hold, branch);
  }

  #holdOf(issue: number, workerId: string): GitHubHold | undefined {
    return [...this.#heartbeats.holds].find(
      (hold) => hold.issue === issue && hold.workerId === workerId && hold.isValid,
    );
  }

  #reason(refusal: Refusal): LockReason {
    return reasonOf(refusal, this.#driver.clock.now());
  }

  #keep(hold: GitHubHold): void {
    const value = { issue: hold.issue, token: hold.token, lock: hold.metadata };
    this.#write((cache) => cache.set(value, hold.held.record.timeout_ms));
  }

  #forget(issue: number): void {
    this.#write((cache) => cache.delete(issue));
  }

  /** Writes to the cache one after the other: a slow earlier write must not bring back a lock that was deleted since. */
  #write(write: (cache: LockCache) => Promise<void>): void {
    const cache = this.#cache;
    if (cache === undefined) return;
    this.#cached = this.#cached
      .then(() => write(cache))
      .catch((error: unknown) => this.#debug(`the lock cache cannot be written: ${(error as Error).message}`));
  }

  #unique(): string {
    return `${this.#id}${randomHex(4)}-${++this.#number}`;
  }
}

function failed(reason: LockReason): Refused {
  return { success: false, error: textOf(reason), reason };
}

function released(issue: number, { kind, message = 'the outcome is not known' }: ReleaseOutcome): ReleaseResult {
  if (kind === 'released') return { success: true, lockId: issue };
  const lost: LockReason = { kind: 'not-owner', issue, by: null };
  return { lockId: issue, ...failed(kind === 'already-lost' ? lost : { kind: 'unreachable', message }) };
}
