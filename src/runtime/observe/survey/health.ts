/** The health of the process behind a hold. Tells a slow process from a dead one, and from a silent one, which may be either. */
import type { Hold } from '../../../core/index.ts';
import { isProvenGone, type ProcessIdentity } from '../../../host/index.ts';
import type { Runtime } from '../../runtime.ts';
import type { Anchored } from './anchored.ts';

/** How likely it is that a process still works under a hold. */
export type HoldHealth =
  /** The lease was renewed in time. */
  | 'renewed'
  /** The process should have renewed its lease by now, but has not; the lease still runs. */
  | 'overdue'
  /** The lease is renewed, but the hold is past its `maxHold`: alive, but stale. */
  | 'slow'
  /** The lease has ended, because it was not renewed. Whether the process lives is unknown. */
  | 'silent'
  /** The process ran on this machine and has certainly ended. */
  | 'process-gone';

/** How fresh a lease is. */
export interface Freshness {
  /** It ends after this time without a renewal. */
  readonly ttlMs: number;
  /** What is left of that time. */
  readonly remainingMs: number;
  /** The time since the last renewal. */
  readonly renewedMs: number;
}

/** A session renews after a third of its time; one that has not renewed after half of it is late. */
const OVERDUE = 0.5;
/** The number of requests at a time. */
const ABREAST = 32;

/** By the name of the lease; leases that have ended are missing. */
export async function freshnessOf(
  { store, stopped }: Runtime,
  anchored: Anchored,
  holds: readonly Hold[],
): Promise<ReadonlyMap<string, Freshness>> {
  const leases = [...new Set(holds.map(({ lease }) => lease))];
  const fresh = new Map<string, Freshness>();
  const ask = async (): Promise<void> => {
    for (let lease = leases.pop(); lease !== undefined; lease = leases.pop()) {
      const id = anchored.leaseId(lease);
      const state = id === undefined ? null : await store.leaseState(id, stopped);
      if (state === null) continue;
      const { ttlMs, remainingMs } = state;
      fresh.set(lease, { ttlMs, remainingMs, renewedMs: Math.max(0, ttlMs - remainingMs) });
    }
  };
  await Promise.all(Array.from({ length: Math.min(ABREAST, leases.length) }, ask));
  return fresh;
}

export function healthOf(
  { lease, limit }: Hold,
  hasEnded: (lease: string) => boolean,
  process: ProcessIdentity | undefined,
  isAttached: boolean,
  fresh: Freshness | undefined,
): HoldHealth {
  if (hasEnded(lease)) return 'silent';
  if (process !== undefined && isProvenGone(process)) return 'process-gone';
  if (limit !== undefined && hasEnded(limit)) return 'slow';
  // The holder of a detached hold decides when to renew it.
  if (isAttached && fresh !== undefined && fresh.renewedMs > fresh.ttlMs * OVERDUE) return 'overdue';
  return 'renewed';
}
