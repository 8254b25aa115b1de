/** Work under a hold, here and over HTTP. */
import { HoldLost } from '../refusal.ts';
import type { Trace } from '../tracer.ts';
import type { ReleaseOutcome } from './hold.ts';

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
