/** What a lock manager counts. */
export interface LockMetrics {
  /** Calls that got their lock. */
  readonly totalAcquisitions: number;
  /** Calls that met another holder, each counted once. */
  readonly totalConflicts: number;
  /** Of calls that got their lock, from call to return. */
  readonly averageAcquisitionTimeMs: number;
  /** Calls that did not get it, whatever the reason. */
  readonly failedAcquisitions: number;
  /** Stale locks that were taken over. */
  readonly staleLocksClaimed: number;
}

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
