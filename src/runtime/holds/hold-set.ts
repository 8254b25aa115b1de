import type { HoldLost } from '../refusal.ts';
import type { ReleaseOutcome } from './hold.ts';
import type { Hold } from './public-hold.ts';

/** Several holds that were acquired together. */
export class HoldSet implements AsyncDisposable {
  /** Each of them, in the order of their names. */
  readonly holds: readonly Hold[];

  /** @internal */
  constructor(holds: readonly Hold[]) {
    this.holds = holds;
  }

  /** The names of all of them, in one line. */
  get resource(): string {
    return this.holds.map(({ resource }) => resource).join(', ');
  }

  /** Aborts as soon as one hold is lost. */
  get signal(): AbortSignal {
    return AbortSignal.any(this.holds.map((hold) => hold.signal));
  }

  /** Whether all of them are valid at this moment, by the clock. */
  get isValid(): boolean {
    return this.holds.every((hold) => hold.isValid);
  }

  /** The first loss, if a hold was lost. */
  get lost(): HoldLost | undefined {
    return this.holds.find((hold) => hold.lost !== undefined)?.lost;
  }

  /** Throws `HoldLost` if one of the holds has ended. */
  check(): void {
    for (const hold of this.holds) hold.check();
  }

  /** Releases all of them. Never throws because one was lost. */
  async release(): Promise<readonly ReleaseOutcome[]> {
    return Promise.all(this.holds.map((hold) => hold.release()));
  }

  /** Releases them at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
