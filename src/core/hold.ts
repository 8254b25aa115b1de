/** A hold: one grant, and which leases it hangs on. */
import { type Json, type Moment, NONE, type Token } from './machine.ts';

/** One grant. */
export interface Hold {
  readonly id: string;
  readonly holder: string;
  readonly token: Token;
  readonly lease: string;
  /** Of a detached hold: how long it lasts without a renewal. */
  readonly ttlMs?: number;
  readonly maxHoldMs?: number;
  /** A second lease that nobody renews: the store measures `maxHold` by it. Set right after the grant. */
  readonly limit?: string;
  readonly acquiredAt: number;
  readonly reason?: string;
  readonly metadata?: Json;
  /** Of a detached hold: what the process that took it said about itself. */
  readonly from?: Json;
  /** Its staleness was announced: `…:stale` comes once per hold. */
  readonly warned?: true;
}

/** What happens to a hold whose lease ended: the next may have it, or a person must decide. */
export type OnStale = 'reclaim' | 'alert';

/** Which hold is meant; the id and the token, where given, must be its own. */
export interface Claim {
  readonly holder: string;
  readonly id?: string;
  readonly token?: Token;
}

/** The types of the events about holds and requests, such as `lock:acquired`. */
export type HoldEvents = Readonly<Record<(typeof HOLD_EVENTS)[number], string>>;

const HOLD_EVENTS = ['acquired', 'reclaimed', 'denied', 'queued', 'released', 'stale', 'forced', 'deadlock'] as const;

export function holdEvents(kind: 'lock' | 'semaphore'): HoldEvents {
  return Object.fromEntries(HOLD_EVENTS.map((what) => [what, `${kind}:${what}`])) as HoldEvents;
}

/** A stale hold never becomes alive again: its renewal is refused, and the next in line may have it. */
export function isStale(hold: Hold, at: Moment): boolean {
  return at.gone(hold.lease) || (hold.limit !== undefined && at.gone(hold.limit));
}

/**
 * The place of the claimed hold; -1 if there is none. A token of an earlier grant claims nothing. Where only the
 * holder is named, its newest hold is meant: one that went stale may still be listed before it.
 */
export function placeOf(holds: readonly Hold[], claim: Claim): number {
  for (let place = holds.length - 1; place >= 0; place--) if (claims(claim, holds[place] as Hold)) return place;
  return -1;
}

/** Every hold that the claim names. */
export function allClaimed<H extends Hold>(holds: readonly H[], claim: Claim): readonly H[] {
  return holds.filter((hold) => claims(claim, hold));
}

function claims(claim: Claim, hold: Hold): boolean {
  return (
    hold.holder === claim.holder &&
    (claim.id === undefined || hold.id === claim.id) &&
    (claim.token === undefined || hold.token === claim.token)
  );
}

/** From this many holds on, an index is cheaper than a scan: every step looks up the holder of each waiting request. */
const MANY = 16;
const indexes = new WeakMap<readonly Hold[], ReadonlyMap<string, readonly Hold[]>>();

/** The hold that this holder has already. A stale one does not count. */
export function ownHold<H extends Hold>(holds: readonly H[], holder: string, at: Moment): H | undefined {
  const candidates = holds.length < MANY ? holds : (indexOf(holds).get(holder) ?? NONE);
  for (let i = 0; i < candidates.length; i++) {
    const hold = candidates[i] as H;
    if (hold.holder === holder && !isStale(hold, at)) return hold;
  }
  return undefined;
}

/** The holds of each holder, in their order. A list of holds is never changed, so its index is made once. */
function indexOf<H extends Hold>(holds: readonly H[]): ReadonlyMap<string, readonly H[]> {
  const known = indexes.get(holds);
  if (known !== undefined) return known as ReadonlyMap<string, readonly H[]>;
  const index = new Map<string, H[]>();
  for (const hold of holds) {
    const same = index.get(hold.holder);
    if (same === undefined) index.set(hold.holder, [hold]);
    else same.push(hold);
  }
  indexes.set(holds, index);
  return index;
}

/** The leases on which holds rest: they may be alive or not. */
export function leasesOf(holds: readonly Hold[]): readonly string[] {
  return holds.flatMap(({ lease, limit }) => (limit === undefined ? [lease] : [lease, limit]));
}

export function staleOf<H extends Hold>(holds: readonly H[], at: Moment): readonly H[] {
  return holds.some((hold) => isStale(hold, at)) ? holds.filter((hold) => isStale(hold, at)) : NONE;
}

export function except<H extends Hold>(holds: readonly H[], gone: readonly H[]): readonly H[] {
  if (gone.length === 0) return holds;
  return gone.length === holds.length ? NONE : holds.filter((hold) => !gone.includes(hold));
}

/** The hold on other leases; the very same one if these are its leases already. */
export function onLeases<H extends Hold>(hold: H, leases: Leases): H {
  const { lease = hold.lease, limit = hold.limit, ttlMs = hold.ttlMs } = leases;
  if (lease === hold.lease && limit === hold.limit && ttlMs === hold.ttlMs) return hold;
  return { ...hold, lease, ...(limit !== undefined && { limit }), ...(ttlMs !== undefined && { ttlMs }) };
}

/** The leases that a hold moves to. `ttlMs`: the time of `lease`. */
export interface Leases {
  readonly lease?: string;
  readonly limit?: string;
  readonly ttlMs?: number;
}

/** Marks the stale holds that nobody was warned of; the very same list if there are none. */
export function warn<H extends Hold>(holds: readonly H[], at: Moment): { holds: readonly H[]; stale: readonly H[] } {
  const stale = holds.filter((hold) => hold.warned === undefined && isStale(hold, at));
  if (stale.length === 0) return { holds, stale };
  return { holds: holds.map((hold) => (stale.includes(hold) ? { ...hold, warned: true } : hold)), stale };
}
