/**
 * Settings of a resource: rules in its record that bind every holder. `configure` changes them. A hold keeps the terms under
 * which it was granted, because a holder that does not know of a new limit could not stop in time.
 */
import type { Hold, OnStale } from './hold.ts';
import type { Request } from './machine.ts';
import { requestProblem } from './request.ts';
import { shown } from './shown.ts';

/** The times that a resource allows its holders; one that is absent is not limited. */
export interface Limits {
  /** How long a hold may last, however well it is renewed. */
  readonly maxHoldMs?: number;
  /** How long a detached hold lasts without a renewal. */
  readonly ttlMs?: number;
}

/** What `configure` changes: what is left out stays as it is, and null removes a limit. */
export interface Settings {
  /** Whether the next in line gets a stale hold (`reclaim`, the default), or a person decides (`alert`). */
  readonly onStale?: OnStale;
  /** The longest time that any holder may hold it; the shorter of this and the holder's own counts. */
  readonly maxHoldMs?: number | null;
  /** How long a detached hold lasts without a renewal; the shorter of this and the holder's own counts. */
  readonly ttlMs?: number | null;
}

const SETTINGS = ['onStale', 'maxHoldMs', 'ttlMs'] as const satisfies readonly (keyof Settings)[];

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

/** What is wrong with settings, and what is accepted; undefined if nothing is. */
export function settingsProblem(settings: unknown): string | undefined {
  if (typeof settings !== 'object' || settings === null) return `the settings are ${shown(settings)}, not an object`;
  const unknown = Object.keys(settings).find((key) => !SETTINGS.includes(key as keyof Settings));
  if (unknown !== undefined) return `${shown(unknown)} is not a setting; there are ${SETTINGS.join(', ')}`;
  const { onStale, maxHoldMs, ttlMs } = settings as Settings;
  if (onStale === undefined && maxHoldMs === undefined && ttlMs === undefined) {
    return `no setting is given; there are ${SETTINGS.join(', ')}`;
  }
  return requestProblem({ onStale, maxHoldMs: maxHoldMs ?? undefined, ttlMs: ttlMs ?? undefined });
}

/** The limits after `configure`; undefined if none is left. The very same object if nothing changes. */
export function limitsAfter(limits: Limits | undefined, { maxHoldMs, ttlMs }: Settings): Limits | undefined {
  const [hold, ttl] = [changed(limits?.maxHoldMs, maxHoldMs), changed(limits?.ttlMs, ttlMs)];
  if (hold === limits?.maxHoldMs && ttl === limits?.ttlMs) return limits;
  if (hold === undefined && ttl === undefined) return undefined;
  return { ...(hold !== undefined && { maxHoldMs: hold }), ...(ttl !== undefined && { ttlMs: ttl }) };
}

function changed(before: number | undefined, setting: number | null | undefined): number | undefined {
  return setting === undefined ? before : (setting ?? undefined);
}

export function shorter(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : other === undefined ? one : Math.min(one, other);
}

/** The hold with the terms that its request asked for, as far as the resource allows them. */
export function describedBy<H extends Hold>(request: Request, hold: H, limits: Limits | undefined): H {
  const { reason, metadata, detached, from } = request;
  const maxHoldMs = shorter(request.maxHoldMs, limits?.maxHoldMs);
  if (maxHoldMs === undefined && reason === undefined && metadata === undefined && detached === undefined) return hold;
  return {
    ...hold,
    ...(detached === true && { ttlMs: shorter(request.ttlMs, limits?.ttlMs) ?? DETACHED_TTL_MS }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata }),
    ...(detached === true && from !== undefined && { from }),
  };
}
