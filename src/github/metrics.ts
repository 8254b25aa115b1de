import type { LockMetrics } from '../runtime/observe/metrics.ts';

export type { LockMetrics };

export class Counters {
  #totalMs = 0;
  readonly #counts = { totalAcquisitions: 0, totalConflicts: 0, failedAcquisitions: 0, staleLocksClaimed: 0 };

  ended(success: boolean, tookMs: number): void {
    this.#counts[success ? 'totalAcquisitions' : 'failedAcquisitions'] += 1;
    if (success) this.#totalMs += tookMs;
  }

  conflict(): void {
    this.#counts.totalConflicts += 1;
  }

  stale(count: number): void {
    this.#counts.staleLocksClaimed += count;
  }

  view(): LockMetrics {
    return { ...this.#counts, averageAcquisitionTimeMs: this.#totalMs / Math.max(1, this.#counts.totalAcquisitions) };
  }
}
