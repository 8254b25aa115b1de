/** Gets what a run wants: what a run around it holds is re-entered, the rest is acquired, all or nothing. */
import type { WaitOptions } from '../../runtime/acquisition.ts';
import type { Hold } from '../../runtime/hold.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { RequestOptions } from '../../runtime/resource.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { Want } from '../../runtime/together.ts';
import type { OuterHolds } from './environment.ts';
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
  const inTime = (): AcquireOptions =>
    waitMs === undefined ? options : { ...options, waitMs: Math.max(0, waitMs - (performance.now() - since)) };
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
  try {
    for (const want of wants) {
      const holder = await outerHolderOf(box, want, outer);
      const inner = holder === undefined ? undefined : await reenter(box, want, { ...inTime(), holder });
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

/** A process may keep the environment of a run that has long ended; what that held is not held any more. */
async function outerHolderOf(box: Signalbox, want: Want, outer: OuterHolds): Promise<string | undefined> {
  const told = outer[resourceOf(want)];
  if (told === undefined) return undefined;
  const { holders } = await ('lock' in want ? box.lock(want.lock) : box.semaphore(want.semaphore)).inspect();
  return holders.some(({ holder, isStale }) => holder === told.holder && !isStale) ? told.holder : undefined;
}

async function reenter(box: Signalbox, want: Want, options: AcquireOptions): Promise<Hold | undefined> {
  const { holds } = await box.acquireAll([want], options);
  const [hold] = holds;
  // It rests on the lease of another process; if not, the outer one ended at this very moment.
  if (hold !== undefined && hold.lease !== hold.process) return hold;
  await hold?.release();
  return undefined;
}
