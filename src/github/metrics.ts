import type { LockMetrics } from '../runtime/observe/metrics.ts';

export type { LockMetrics };

export class Counters {
  #acquired = 0;
  #conflicts = 0;
  #totalMs = 0;
  #failed = 0;
  #stale = 0;

  ended(success: boolean, tookMs: number): void {
    if (!success) {
      this.#failed += 1;
      return;
    }
    this.#acquired += 1;
    this.#totalMs += tookMs;
  }

  conflict(): void {
    this.#conflicts += 1;
  }

  stale(count: number): void {
    this.#stale += count;
  }

  view(): LockMetrics {
    return {
      totalAcquisitions: this.#acquired,
      totalConflicts: this.#conflicts,
      averageAcquisitionTimeMs: this.#acquired === 0 ? 0 : this.#totalMs / this.#acquired,
      failedAcquisitions: this.#failed,
      staleLocksClaimed: this.#stale,
    };
  }
}
