/** Acquires what a run wants, all or nothing. It re-enters the holds of an outer run. */
import { systemClock } from '../../clock.ts';
import type { Hold as Grant } from '../../core/index.ts';
import type { WaitOptions } from '../../runtime/holds/wait-limits.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { RequestOptions } from '../../runtime/holds/terms.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { Want } from '../../runtime/holds/wants.ts';
import { asTold, type OuterHolds } from '../../runtime/processes/environment.ts';
import { resourceOf } from '../waiting.ts';

/** `holder` holds what no outer run holds. */
export type AcquireOptions = Pick<RequestOptions, 'priority' | 'reason' | 'metadata' | 'within'> &
  WaitOptions & { readonly holder: string };

/** Acquires what no outer run holds. */
type AcquireRest = (rest: readonly Want[], options: AcquireOptions) => Promise<readonly Hold[]>;

/** In the order of the command line. */
export async function acquire(
  box: Signalbox,
  wants: readonly Want[],
  outer: OuterHolds,
  options: AcquireOptions,
  acquireRest: AcquireRest = async (rest, asked) => (await box.acquireAll(rest, asked)).holds,
): Promise<readonly Hold[]> {
  const since = systemClock.monotonic();
  const { waitMs } = options;
  // Never 0, which means not to wait at all: a run whose time is up should report that it timed out.
  const inTime = (): AcquireOptions =>
    waitMs === undefined || waitMs === 0
      ? options
      : { ...options, waitMs: Math.max(1, waitMs - (systemClock.monotonic() - since)) };
  for (;;) {
    try {
      return await acquireOnce(box, wants, outer, inTime, acquireRest);
    } catch (error) {
      // This process was stopped (Ctrl-Z) or asleep for longer than its lease. It lost its place in the queue and asks again.
      const lostItsPlace = error instanceof NotAcquired && error.refusal.kind === 'session-lost';
      if (!lostItsPlace || options.signal?.aborted === true) throw error;
    }
  }
}

async function acquireOnce(
  box: Signalbox,
  wants: readonly Want[],
  outer: OuterHolds,
  inTime: () => AcquireOptions,
  acquireRest: AcquireRest,
): Promise<readonly Hold[]> {
  const holds: Hold[] = [];
  const rest: Want[] = [];
  // A process may inherit the environment of a run that has ended; that run's holds are gone.
  const held = await box.children.stillHeld(asTold(outer));
  try {
    for (const want of wants) {
      const around = held.find(({ resource }) => resource === resourceOf(want))?.grant;
      const inner = around === undefined ? undefined : await reenter(box, want, around, inTime());
      if (inner === undefined) rest.push(want);
      else holds.push(inner);
    }
    // Under a holder of our own: two runs inside the same outer run must exclude each other.
    if (rest.length > 0) holds.push(...(await acquireRest(rest, inTime())));
    const lost = holds.find((hold) => !hold.isValid);
    // Our own lease, or an outer run's.
    if (lost !== undefined) throw new NotAcquired(lost.resource, { kind: 'session-lost' });
  } catch (error) {
    await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
    throw error;
  }
  const places = new Map(wants.map((want, place) => [resourceOf(want), place]));
  return holds.sort((one, other) => (places.get(one.resource) ?? 0) - (places.get(other.resource) ?? 0));
}

async function reenter(box: Signalbox, want: Want, around: Grant, options: AcquireOptions): Promise<Hold | undefined> {
  const { holds } = await box.acquireAll([want], { ...options, holder: around.holder });
  const [hold] = holds;
  // The outer run still holds it; otherwise it ended at this very moment.
  if (hold !== undefined && hold.id === around.id && hold.isReentry) return hold;
  await hold?.release();
  return undefined;
}
