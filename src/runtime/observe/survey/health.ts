/** How the one behind a hold fares. A slow worker is not a dead one, and a silent one may be either: told apart. */
import type { Hold } from '../../../core/index.ts';
import { isProvenGone, type ProcessIdentity } from '../../../host/index.ts';
import type { LeaseState } from '../../../store/index.ts';
import type { Runtime } from '../../runtime.ts';
import type { Anchored } from './anchored.ts';

export type HoldHealth =
  /** Its lease was renewed in time. */
  | 'renewed'
  /** A process that should have renewed its lease by now has not; the lease still runs. */
  | 'overdue'
  /** It is renewed, and past its `maxHold`: alive, but stale. */
  | 'slow'
  /** Its lease has ended: nothing was heard of it for that long. Whether its process lives cannot be told. */
  | 'silent'
  /** Its process ran on this machine and has certainly ended. */
  | 'process-gone';

export interface Freshness {
  readonly ttlMs: number;
  readonly remainingMs: number;
  /** How long ago it was renewed. */
  readonly renewedMs: number;
}

/** A session renews at a third of its time; at half of it, something keeps it from it. */
const OVERDUE = 0.5;
/** So many questions are asked at a time. */
const ABREAST = 32;

/** By the name of the lease; those that have ended are not in it. */
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
      if (state !== null) fresh.set(lease, freshness(state));
    }
  };
  await Promise.all(Array.from({ length: Math.min(ABREAST, leases.length) }, ask));
  return fresh;
}

function freshness({ ttlMs, remainingMs }: LeaseState): Freshness {
  return { ttlMs, remainingMs, renewedMs: Math.max(0, ttlMs - remainingMs) };
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
  // When a detached hold is renewed is up to its holder.
  if (isAttached && fresh !== undefined && fresh.renewedMs > fresh.ttlMs * OVERDUE) return 'overdue';
  return 'renewed';
}
