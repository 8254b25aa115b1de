/** Gets what a run wants: what a run around it holds is re-entered, the rest is acquired, all or nothing. */
import type { Hold as Grant } from '../../core/index.ts';
import type { WaitOptions } from '../../runtime/holds/acquisition.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { RequestOptions } from '../../runtime/holds/resource.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { Want } from '../../runtime/holds/together.ts';
import { asTold, type OuterHolds } from '../../runtime/processes/environment.ts';
import { resourceOf } from './request.ts';

/** `holder`: of what is not held further out. */
export type AcquireOptions = Pick<RequestOptions, 'priority' | 'reason' | 'metadata' | 'within'> &
  WaitOptions & { readonly holder: string };

/** In the order in which they are wanted. */
export async function acquire(
  box: Signalbox,
  wants: readonly Want[],
  outer: OuterHolds,
  options: AcquireOptions,
): Promise<readonly Hold[]> {
  const since = performance.now();
  const { waitMs } = options;
  // Never down to 0, which means not to wait at all: one whose time is up is told that it timed out.
  const inTime = (): AcquireOptions =>
    waitMs === undefined || waitMs === 0
      ? options
      : { ...options, waitMs: Math.max(1, waitMs - (performance.now() - since)) };
  for (;;) {
    try {
      return await acquireOnce(box, wants, outer, inTime);
    } catch (error) {
      // Stopped (Ctrl-Z) or asleep for longer than the lease: it has lost its place, but may stand in line again.
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
): Promise<readonly Hold[]> {
  const holds: Hold[] = [];
  const rest: Want[] = [];
  // A process may keep the environment of a run that has long ended; what that held is not held any more.
  const held = await box.children.stillHeld(asTold(outer));
  try {
    for (const want of wants) {
      const around = held.find(({ resource }) => resource === resourceOf(want))?.grant;
      const inner = around === undefined ? undefined : await reenter(box, want, around, inTime());
      if (inner === undefined) rest.push(want);
      else holds.push(inner);
    }
    // Under a holder of our own: two runs side by side in one outer run have to exclude each other.
    if (rest.length > 0) holds.push(...(await box.acquireAll(rest, inTime())).holds);
    const lost = holds.find((hold) => !hold.isValid);
    // Ours, or that of a run around us; in any case not of this moment.
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
  // It is the one around us; if not, that one ended at this very moment.
  if (hold !== undefined && hold.id === around.id && hold.lease !== hold.process) return hold;
  await hold?.release();
  return undefined;
}
