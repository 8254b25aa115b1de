/**
 * Counts and measures what this process does. The figures have no names of resources: a process may use a hundred thousand
 * locks, and each would be a time series of its own. Recording allocates nothing.
 */
import type { LossReason } from '../../core/index.ts';
import type { Durations, Metrics, ResourceMetrics } from './metrics.ts';
import { type Measured, type Tracer, tracerOf } from '../tracer.ts';

/** From a quarter of a millisecond (a fast store) to an hour (a long build). */
export const BOUNDS_MS: readonly number[] = [
  ...[0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000],
  ...[30_000, 60_000, 300_000, 900_000, 3_600_000],
];

/** How many writes are remembered until the watch delivers them. */
const REMEMBERED = 64;

/** The first letter of `lock/…`; that of a semaphore is another. */
const LOCK = 'l'.charCodeAt(0);

/** Measured once for the process, not by kind. */
type Timed = Exclude<Measured, 'wait' | 'hold'>;

/** What a write is followed to: its delivery by the watch, and the callback for its task. */
type Arrival = 'watchLag' | 'publishToCallback';
const ARRIVALS: readonly Arrival[] = ['watchLag', 'publishToCallback'];

/** A time for each of the last revisions. */
class LastRevisions {
  readonly #revisions: number[] = Array.from({ length: REMEMBERED }, () => 0);
  readonly #times: number[] = Array.from({ length: REMEMBERED }, () => 0);

  set(revision: number, time: number): void {
    this.#revisions[revision % REMEMBERED] = revision;
    this.#times[revision % REMEMBERED] = time;
  }

  get(revision: number): number | undefined {
    return this.#revisions[revision % REMEMBERED] === revision ? this.#times[revision % REMEMBERED] : undefined;
  }
}

export class Histogram {
  readonly #counts = BOUNDS_MS.map(() => 0);
  count = 0;
  sumMs = 0;

  record(ms: number): void {
    this.count += 1;
    this.sumMs += ms;
    for (let at = 0; at < BOUNDS_MS.length; at++) {
      if (ms <= (BOUNDS_MS[at] as number)) {
        this.#counts[at] = (this.#counts[at] as number) + 1;
        return;
      }
    }
  }

  view(): Durations {
    let below = 0;
    const buckets = BOUNDS_MS.map((atMostMs, at) => ({ atMostMs, count: (below += this.#counts[at] as number) }));
    return { count: this.count, sumMs: this.sumMs, buckets };
  }
}

/** The figures of locks, or of semaphores. */
export class ResourceMeasures {
  readonly #all: Measures;
  readonly kind: 'lock' | 'semaphore';
  readonly #wait = new Histogram();
  readonly #hold = new Histogram();
  #conflicts = 0;
  #failed = 0;
  #stale = 0;

  constructor(all: Measures, kind: 'lock' | 'semaphore') {
    this.#all = all;
    this.kind = kind;
  }

  acquired(ms: number): void {
    this.#wait.record(ms);
    if (this.#all.tracer !== undefined) this.#all.tracer.measured?.('wait', ms, this.kind);
  }

  held(ms: number): void {
    this.#hold.record(ms);
    if (this.#all.tracer !== undefined) this.#all.tracer.measured?.('hold', ms, this.kind);
  }

  failed(): void {
    this.#failed += 1;
  }

  conflict(): void {
    this.#conflicts += 1;
  }

  claimedStale(holds: number): void {
    this.#stale += holds;
  }

  view(): ResourceMetrics {
    return {
      acquisitions: this.#wait.count,
      conflicts: this.#conflicts,
      failed: this.#failed,
      staleClaimed: this.#stale,
      wait: this.#wait.view(),
      hold: this.#hold.view(),
    };
  }
}

export class Measures {
  readonly locks = new ResourceMeasures(this, 'lock');
  readonly semaphores = new ResourceMeasures(this, 'semaphore');
  /** Hears of single steps; undefined while nobody listens. */
  tracer: Tracer | undefined;
  #tracers: readonly Tracer[] = [];
  readonly #timed: Readonly<Record<Timed, Histogram>> = {
    watchLag: new Histogram(),
    claim: new Histogram(),
    publishToCallback: new Histogram(),
    transactions: new Histogram(),
  };
  readonly #lost: Record<LossReason, number> = {
    expired: 0,
    reclaimed: 0,
    forced: 0,
    'released-elsewhere': 0,
    disconnected: 0,
  };
  #renewed = 0;
  #notRenewed = 0;
  #resyncs = 0;
  #failedTransactions = 0;
  /** When the last writes of this process were sent. */
  readonly #sent = new LastRevisions();
  /** Whether any revision arrived before its writer was known: most processes follow no events. */
  #hasArrivals = false;
  /** When the last revisions arrived here whose writer is not known yet: the watch may be faster than the answer. */
  readonly #arrived: Readonly<Record<Arrival, LastRevisions>> = {
    watchLag: new LastRevisions(),
    publishToCallback: new LastRevisions(),
  };

  /** By the full name of a resource, such as `lock/main`. */
  of(resource: string): ResourceMeasures {
    return resource.charCodeAt(0) === LOCK ? this.locks : this.semaphores;
  }

  listen(tracer: Tracer): () => void {
    this.#tracers = [...this.#tracers, tracer];
    this.tracer = tracerOf(this.#tracers);
    return () => {
      this.#tracers = this.#tracers.filter((one) => one !== tracer);
      this.tracer = tracerOf(this.#tracers);
    };
  }

  lost(why: LossReason): void {
    this.#lost[why] += 1;
  }

  renewed(ok: boolean): void {
    if (ok) this.#renewed += 1;
    else {
      this.#notRenewed += 1;
      this.tracer?.happened?.('renewal-failed', {});
    }
  }

  resynced(source: string): void {
    this.#resyncs += 1;
    this.tracer?.happened?.('resync', { source });
  }

  /** A clock that was set back must not make a time negative. */
  took(what: Timed, ms: number): void {
    const atLeastNone = ms > 0 ? ms : 0;
    this.#timed[what].record(atLeastNone);
    if (this.tracer !== undefined) this.tracer.measured?.(what, atLeastNone);
  }

  /** The store answered a transaction that was sent at this time; `isOwn`: it made this revision. */
  answered(revision: number, sentAt: number, now: number, isOwn: boolean): void {
    this.took('transactions', now - sentAt);
    if (!isOwn) return;
    this.#sent.set(revision, sentAt);
    if (!this.#hasArrivals) return;
    for (const what of ARRIVALS) {
      const arrivedAt = this.#arrived[what].get(revision);
      if (arrivedAt !== undefined) this.took(what, arrivedAt - sentAt);
    }
  }

  /** A write has arrived here. If this process sent it, the delay is known, whatever the clocks of other machines say. */
  arrived(what: Arrival, revision: number, now: number): void {
    const sentAt = this.#sent.get(revision);
    if (sentAt !== undefined) this.took(what, now - sentAt);
    else {
      this.#hasArrivals = true;
      this.#arrived[what].set(revision, now);
    }
  }

  transactionFailed(error: unknown): void {
    this.#failedTransactions += 1;
    if (this.tracer === undefined) return;
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    this.tracer.happened?.('transaction-failed', { code: String(code), message: String(message) });
  }

  view(): Metrics {
    const [locks, semaphores] = [this.locks.view(), this.semaphores.view()];
    const sum = (figure: (of: ResourceMetrics) => number): number => figure(locks) + figure(semaphores);
    const totalAcquisitions = sum((of) => of.acquisitions);
    return {
      totalAcquisitions,
      totalConflicts: sum((of) => of.conflicts),
      averageAcquisitionTimeMs: totalAcquisitions === 0 ? 0 : sum((of) => of.wait.sumMs) / totalAcquisitions,
      failedAcquisitions: sum((of) => of.failed),
      staleLocksClaimed: sum((of) => of.staleClaimed),
      locks,
      semaphores,
      lostHolds: { ...this.#lost },
      leaseRenewals: { succeeded: this.#renewed, failed: this.#notRenewed },
      resyncs: this.#resyncs,
      watchLag: this.#timed.watchLag.view(),
      claim: this.#timed.claim.view(),
      publishToCallback: this.#timed.publishToCallback.view(),
      transactions: this.#timed.transactions.view(),
      failedTransactions: this.#failedTransactions,
    };
  }
}
