/** The times of detached holds, which no process keeps: how long they last without a renewal, and how long they wait for their owner. */
import type { Hold } from './hold.ts';

/** A detached hold lasts this long without a renewal, if neither its holder nor its resource says otherwise. */
export const DETACHED_TTL_MS = 60_000;

/** How long a ticket keeps its place while nobody asks for it, and a grant waits to be collected. */
export const TICKET_MS = 60_000;

/**
 * Whether a detached grant was handed out. Handing it out sets its time limit, if it has one. Without a limit only the time of
 * its lease shows it: until it is handed out, the lease has the time of the ticket, which shows nothing if both times are the
 * same.
 */
export function wasCollected({ limit, maxHoldMs, ttlMs = DETACHED_TTL_MS }: Hold, leaseMs: number): boolean {
  return limit !== undefined || (maxHoldMs === undefined && isAbout(leaseMs, ttlMs));
}

/** Stores round up to whole seconds. */
export function isAbout(grantedMs: number, wantedMs: number): boolean {
  return grantedMs >= wantedMs && grantedMs < wantedMs + 1000;
}

/** A holder should try four times before its hold is stale: one lost renewal, or two, must not cost it the hold. */
const RENEWALS_PER_TTL = 4;

/** By when a holder should renew again. */
export function renewWithinMs(ttlMs: number): number {
  return Math.max(1, Math.floor(ttlMs / RENEWALS_PER_TTL));
}
