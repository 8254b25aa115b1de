/** Leases: they keep holds and waiting requests alive for as long as they are renewed. */
import { DETACHED_TTL_MS } from '../detached.ts';
import { leasesOf } from '../hold.ts';
import type { Lock } from '../lock.ts';
import type { Semaphore } from '../semaphore.ts';

export interface Lease {
  readonly ttlMs: number;
  readonly renewedAt: number;
  /** Measures how long a hold may last at most; nobody can renew it. */
  readonly fixed?: true;
}

/** A hold is stale after this long without a heartbeat. */
export const STALE_AFTER_MS = DETACHED_TTL_MS;

/** The time between two heartbeats. */
export const HEARTBEAT_EVERY_MS = 15_000;

/** An unknown lease counts as alive. */
export function isGone(lease: Lease | undefined, now: number): boolean {
  return lease !== undefined && now - lease.renewedAt > lease.ttlMs;
}

/** The leases that holds and waiting requests of a resource hang on. */
export function leasesIn({ record, waiting }: Lock | Semaphore): ReadonlySet<string> {
  return new Set([...leasesOf(record.holds), ...waiting.map(({ lease }) => lease)]);
}
