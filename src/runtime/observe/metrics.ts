/** What `getMetrics` answers: plain numbers of one process since it opened the store, without the names of resources. */
import type { LossReason } from '../../core/index.ts';

/** The five figures that every lock manager of signalbox counts, on a store and on GitHub. */
export interface LockMetrics {
  /** Calls that got their lock or slots. */
  readonly totalAcquisitions: number;
  /** Calls that met another holder, each counted once. */
  readonly totalConflicts: number;
  /** The average time from call to return, of calls that got what they asked for. */
  readonly averageAcquisitionTimeMs: number;
  /** Calls that did not get it, whatever the reason. */
  readonly failedAcquisitions: number;
  /** Stale holds that were taken over. */
  readonly staleLocksClaimed: number;
}

/** How long something took, each time: counts in fixed buckets. */
export interface Durations {
  /** How many were measured. */
  readonly count: number;
  /** All of them together, in milliseconds. */
  readonly sumMs: number;
  /** How many took at most `atMostMs`, in rising order; each bucket includes those before it. `count` has the rest too. */
  readonly buckets: readonly { readonly atMostMs: number; readonly count: number }[];
}

/** What is counted for locks, and again for semaphores. */
export interface ResourceMetrics {
  /** Calls that got it, re-entries included. */
  readonly acquisitions: number;
  /** Calls that waited for another holder, or were refused because of one. */
  readonly conflicts: number;
  /** Calls that did not get it. */
  readonly failed: number;
  /** Stale holds that were taken over. */
  readonly staleClaimed: number;
  /** From the call to the hold, of calls that got it. */
  readonly wait: Durations;
  /** From the grant to its release or loss; neither re-entries nor detached holds, which other processes may end. */
  readonly hold: Durations;
}

/** All that this process has counted and measured since it opened the store. Read it again for newer figures. */
export interface Metrics extends LockMetrics {
  /** The figures of locks alone. */
  readonly locks: ResourceMetrics;
  /** The figures of semaphores alone. */
  readonly semaphores: ResourceMetrics;
  /** Holds and task claims of this process that ended without a release, by the reason. */
  readonly lostHolds: Readonly<Record<LossReason, number>>;
  /** Renewals of the session's lease. */
  readonly leaseRenewals: {
    /** Answered in time. */
    readonly succeeded: number;
    /** Not answered, or the lease was gone. */
    readonly failed: number;
  };
  /** How often history was missed and a watch had to read the state again. */
  readonly resyncs: number;
  /** From the decision to write an event to its delivery here; see docs/metrics.md for whose events are measured. */
  readonly watchLag: Durations;
  /** From the first attempt at a task to the claim. */
  readonly claim: Durations;
  /** From the publication of a task to the callback of `tasks.subscribe`, or to its first claim, where the clocks agree. */
  readonly publishToCallback: Durations;
  /** From sending a transaction to the store's answer; a store inside this process is not measured. */
  readonly transactions: Durations;
  /** Transactions that the store did not answer, or refused. */
  readonly failedTransactions: number;
}
