/** Leases: what keeps holds and waiting requests alive, for as long as somebody renews them. */
import type { Lock } from '../lock.ts';
import type { Semaphore } from '../semaphore.ts';

export interface Lease {
  readonly ttlMs: number;
  readonly renewedAt: number;
  /** Measures how long a hold may last at most; nobody can renew it. */
  readonly fixed?: true;
}

/** A hold is stale when nothing was heard of its holder for so long. */
export const STALE_AFTER_MS = 60_000;

/** How often a holder should be heard of. */
export const HEARTBEAT_EVERY_MS = 15_000;

/** One that nothing is known of counts as alive. */
export function isGone(lease: Lease | undefined, now: number): boolean {
  return lease !== undefined && now - lease.renewedAt > lease.ttlMs;
}

/** The leases that holds and waiting requests of a resource hang on. */
export function leasesIn({ record, waiting }: Lock | Semaphore): ReadonlySet<string> {
  const leases = new Set<string>();
  for (const { lease, limit } of record.holds) {
    leases.add(lease);
    if (limit !== undefined) leases.add(limit);
  }
  for (const { lease } of waiting) leases.add(lease);
  return leases;
}
