/** Several holds at once, and work under one hold or several, here and over HTTP. */
import { HoldLost } from '../refusal.ts';
import type { ReleaseOutcome, Hold } from './hold.ts';
import type { Trace } from '../tracer.ts';

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

/** One hold or several, as `run` uses them. */
interface Releasable {
  readonly resource: string;
  readonly isValid: boolean;
  readonly lost: HoldLost | undefined;
  release(): Promise<ReleaseOutcome | readonly ReleaseOutcome[]>;
}

/**
 * Runs `work` under a hold, and always releases it; throws `HoldLost` if it was lost meanwhile. `trace`: the step that lasts as
 * long as the hold, if a tracer listens.
 */
export async function runUnder<H extends Releasable, T>(
  held: H,
  work: (held: H) => T | Promise<T>,
  trace?: Trace,
): Promise<T> {
  let result: T;
  try {
    result = await (trace === undefined ? work(held) : trace.within(() => work(held)));
  } catch (error) {
    // The error of the work matters more than one of the release: the hold ends with its lease at the latest.
    await held.release().catch(() => undefined);
    throw error;
  }
  // Checks the clock: after a stall of the event loop, this is the first to notice that the lease has ended.
  void held.isValid;
  const released = [await held.release()].flat();
  if (held.lost !== undefined) throw held.lost;
  // Or the store knew of the loss first, and answered the release with it.
  const lost = released.find((outcome) => outcome.kind === 'already-lost');
  if (lost !== undefined) throw new HoldLost(held.resource, lost);
  return result;
}
