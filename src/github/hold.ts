/** A lock that this process holds. */
import { type BranchMove, type Held, isPast, type LockMetadata, type Published } from '../core/github/index.ts';
import { Failure } from '../failure.ts';
import type { Timer } from '../clock.ts';
import type { Driver } from './drive.ts';

/** `expired`: this worker could not renew it in time. `taken`: another worker moved the ref. */
export type LossReason = 'expired' | 'taken';

/** The reason of a hold's `signal`. */
export class LockLost extends Failure {
  /** The number of the issue. */
  readonly issue: number;
  /** Why it was lost. */
  readonly why: LossReason;

  /** The message says why it was lost. */
  constructor(issue: number, why: LossReason) {
    super(
      'hold-lost',
      `the lock of issue #${issue} was lost: ${why === 'expired' ? 'it could not be renewed in time' : 'another worker took it'}`,
    );
    this.issue = issue;
    this.why = why;
  }
}

/** The answer to the release of a hold. */
export interface ReleaseOutcome {
  /** Whether it was released; `unknown` if GitHub did not answer. */
  readonly kind: 'released' | 'already-lost' | 'unknown';
  /** What went wrong, if something did. */
  readonly message?: string;
}

/**
 * The answer of `publish`. `moved`: the branch is at another commit, `at`. `unknown`: GitHub did not answer; calling
 * `publish` again does no harm.
 */
export type PublishOutcome = Published;

/** The methods of the manager that a hold calls. */
export interface Keeper {
  release(hold: GitHubHold, outcome: string): Promise<ReleaseOutcome>;
  extend(hold: GitHubHold, timeoutMs: number): Promise<boolean>;
  publish(hold: GitHubHold, branch: BranchMove): Promise<PublishOutcome>;
}

/** A lock on an issue, held by a worker. */
export class GitHubHold implements AsyncDisposable {
  /** The number of the issue. */
  readonly issue: number;
  /** Who holds it. */
  readonly workerId: string;
  /** The fencing token, which grows with each new holder. */
  readonly token: number;
  /** Whether GitHub assigned the issue; it ignores accounts that may not be assigned. */
  readonly isAssigned: boolean;
  readonly #driver: Driver;
  readonly #keeper: Keeper;
  readonly #lost = new AbortController();
  #held: Held;
  #timer: Timer | undefined;
  #released: Promise<ReleaseOutcome> | undefined;

  /** @internal */
  constructor(driver: Driver, keeper: Keeper, held: Held, isAssigned: boolean) {
    this.#driver = driver;
    this.#keeper = keeper;
    this.#held = held;
    this.issue = held.issue;
    this.workerId = held.record.lock.worker_id;
    this.token = held.record.epoch;
    this.isAssigned = isAssigned;
    this.#watch();
  }

  /** Aborts with a `LockLost`, before another worker can get the lock. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether it is held at this moment, by the clock. */
  get isValid(): boolean {
    if (this.#isOver && !this.#lost.signal.aborted && this.#released === undefined) this.lose('expired');
    return !this.#lost.signal.aborted && this.#released === undefined;
  }

  /** The content of the comment on the issue. */
  get metadata(): LockMetadata {
    return this.#held.record.lock;
  }

  /** Milliseconds until the hold ends, if it is not renewed. */
  get leftMs(): number {
    return Math.max(0, this.#held.deadline.monotonicMs - this.#driver.clock.monotonic());
  }

  /** Changes the timeout of the lock, now and at each heartbeat. Returns false if the lock was lost meanwhile. */
  extend(timeoutMs: number): Promise<boolean> {
    return this.#keeper.extend(this, timeoutMs);
  }

  /**
   * Moves a branch to a commit that GitHub knows, only if this worker still holds the lock and the branch is at the expected
   * commit. Both happen in one step, so a worker that wakes up late publishes nothing. Needs GraphQL.
   */
  publish(branch: BranchMove): Promise<PublishOutcome> {
    return this.#keeper.publish(this, branch);
  }

  /** Releases the lock. Changes nothing if it was already released or lost. */
  release(outcome = 'completed'): Promise<ReleaseOutcome> {
    return (this.#released ??= this.#release(outcome));
  }

  /** Releases it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** For the manager. */
  get held(): Held {
    return this.#held;
  }

  set held(held: Held) {
    this.#held = held;
    this.#watch();
  }

  /** @internal */
  lose(why: LossReason): void {
    this.#timer?.cancel();
    if (!this.#lost.signal.aborted) this.#lost.abort(new LockLost(this.issue, why));
  }

  async #release(outcome: string): Promise<ReleaseOutcome> {
    if (this.#lost.signal.aborted) return { kind: 'already-lost' };
    const released = await this.#keeper.release(this, outcome);
    this.#timer?.cancel();
    if (released.kind === 'already-lost') this.lose('taken');
    return released;
  }

  get #isOver(): boolean {
    return isPast(this.#held.deadline, this.#driver.instant());
  }

  /** Ends the hold at its deadline, whether or not GitHub answers. */
  #watch(): void {
    this.#timer?.cancel();
    const ring = (): void => {
      if (this.#lost.signal.aborted) return;
      if (this.#isOver) this.lose('expired');
      else this.#watch();
    };
    this.#timer = this.#driver.clock.timer(Math.max(1, this.leftMs), ring);
  }
}
