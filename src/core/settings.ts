/**
 * Settings of a resource: rules in its record that bind every holder. `configure` changes them. A hold keeps the terms under
 * which it was granted, because a holder that does not know of a new limit could not stop in time.
 */
import { DETACHED_TTL_MS } from './detached.ts';
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
