/** A lock that this process holds. */
import { type BranchMove, type Held, isPast, type LockMetadata, type Published } from '../core/github/index.ts';
import { Failure } from '../failure.ts';
import type { Timer } from '../clock.ts';
import type { Driver } from './drive.ts';

/** `expired`: it was not renewed in time. `taken`: another worker moved the ref. */
export type LossReason = 'expired' | 'taken';

/** The reason of a hold's `signal`. */
export class LockLost extends Failure {
  /** The number of the issue. */
  readonly issue: number;
  /** How it was lost. */
  readonly why: LossReason;

  /** The message says how it was lost. */
  constructor(issue: number, why: LossReason) {
    super(
      'hold-lost',
      `the lock of issue #${issue} was lost: ${why === 'expired' ? 'it could not be renewed in time' : 'another worker took it'}`,
    );
    this.issue = issue;
    this.why = why;
  }
}

/** What the release of a hold answers. */
export interface ReleaseOutcome {
  /** Whether it was released; `unknown` if GitHub could not be asked. */
  readonly kind: 'released' | 'already-lost' | 'unknown';
  /** What went wrong, if something did. */
  readonly message?: string;
}

/**
 * What `publish` answers. `moved`: the branch is at another commit, `at`. `unknown`: no answer came; ask again, which is
 * harmless.
 */
export type PublishOutcome = Published;

/** What a hold asks of its manager. */
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
  /** The fencing token: larger for each new holder. */
  readonly token: number;
  /** Whether GitHub assigned the issue. It drops accounts that may not be assigned. */
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

  /** Aborts, with a `LockLost`, before anybody else can get the lock. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether it is held at this moment, by the clock. */
  get isValid(): boolean {
    if (this.#isOver && !this.#lost.signal.aborted && this.#released === undefined) this.lose('expired');
    return !this.#lost.signal.aborted && this.#released === undefined;
  }

  /** What the comment on the issue says. */
  get metadata(): LockMetadata {
    return this.#held.record.lock;
  }

  /** Milliseconds until the hold ends, if it is not renewed. */
  get leftMs(): number {
    return Math.max(0, this.#held.deadline.monotonicMs - this.#driver.clock.monotonic());
  }

  /** Gives the lock another timeout, now and at each heartbeat. False if it was lost meanwhile. */
  extend(timeoutMs: number): Promise<boolean> {
    return this.#keeper.extend(this, timeoutMs);
  }

  /**
   * Moves a branch to a commit that GitHub knows, only if the lock is still held and the branch is where it is expected:
   * both in one step, so a worker that wakes up late publishes nothing. Needs GraphQL.
   */
  publish(branch: BranchMove): Promise<PublishOutcome> {
    return this.#keeper.publish(this, branch);
  }

  /** Releasing twice, or what is lost already, changes nothing. */
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

  /** The hold ends at its deadline whether or not anything is heard of GitHub. */
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
