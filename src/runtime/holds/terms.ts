/** What callers say when they ask for a lock or slots, and what they are answered. */
import type { Json, Limits, OnStale, Settings, Token } from '../../core/index.ts';
import type { WaitOptions } from './wait-limits.ts';
import type { Strategy } from '../../core/strategy.ts';

/** How to ask for a lock or for slots. `Meta`: the type of the metadata, which is any JSON. */
export interface RequestOptions<Meta = Json> {
  /** The name of the holder; the same holder re-enters. Without it, every acquire is a holder of its own. */
  readonly holder?: string;
  /** From -100 to 100; higher goes first. No waiter is passed more than a few times in a row. */
  readonly priority?: number;
  /** The reason, shown to those who wait. */
  readonly reason?: string;
  /** Any JSON, kept with the hold and shown by `inspect` and `survey`. */
  readonly metadata?: Meta;
  /** The witness enters only salted hashes of the reason and the metadata. Others see both while the hold lasts. */
  readonly sensitive?: boolean;
  /** The hold ends after this time, even if its session is renewed; sooner, if the resource was configured so. */
  readonly maxHoldMs?: number;
  /** What to do if it is not free; `retry` if not given, which waits in the queue. */
  readonly strategy?: Strategy;
  /**
   * Other holders that continue only after this one has released, such as the holder that started this process. Deadlock
   * detection treats them as waiting for this one.
   */
  readonly within?: readonly string[];
}

/** How to ask for a hold with a lease of its own. */
export interface DetachedOptions<Meta = Json> extends RequestOptions<Meta>, WaitOptions {
  /** The name of the holder, by which any process can renew and release the hold. */
  readonly holder: string;
  /** Without a renewal for this long, the hold is stale: 60 s, or what the resource was configured to. */
  readonly ttlMs?: number;
  /**
   * Without a `collect` for this long, a ticket leaves the queue, and its grant goes back; likewise a request whose process was
   * killed while it waited. `ttlMs`, if not given.
   */
  readonly ticketMs?: number;
  /**
   * A process of this user and this machine: the request and the hold end as soon as it does. It is seen on a store in a file;
   * on other stores only `ttlMs` counts.
   */
  readonly pid?: number;
}

/** Identifies a detached hold, to renew or release it. */
export interface HoldClaim {
  /** Who holds it. */
  readonly holder: string;
  /** The token that the holder got with the grant. */
  readonly token: Token;
}

/** Who takes a resource from all its holders, and why. */
export interface Breaking {
  /** Who breaks it. */
  readonly holder: string;
  /** Why; the holders get to see it. */
  readonly reason: string;
  /** The newest token that the caller saw: a hold that was granted since stays. */
  readonly token?: Token;
}

/** A hold with a lease of its own. */
export interface DetachedHold extends HoldClaim {
  /** `lock/main-branch`. */
  readonly resource: string;
  /** The id of the hold, unique for all time. */
  readonly id: string;
  /** Whether it is a new hold, or one that the holder had already: the same, or now exclusive, or with more slots. */
  readonly outcome: 'acquired' | 'reclaimed' | 'extended' | 'upgraded' | 'already-held' | 'increased';
  /** The hold is stale after this time without a renewal. */
  readonly ttlMs: number;
  /** Renew it within this time, and again within this time after each renewal. */
  readonly renewWithinMs: number;
  /** The hold ends after this time even if it is renewed; absent without such a limit. */
  readonly maxHoldMs?: number;
  /** The process with which the hold ends; absent if there is none, or if this store cannot see it end. */
  readonly endsWithPid?: number;
}

/** Whether the holder had the hold before it asked: then the caller that acquired it first releases it. */
export function isReentry({ outcome }: Pick<DetachedHold, 'outcome'>): boolean {
  return outcome !== 'acquired' && outcome !== 'reclaimed';
}

/** What `renew` and `extend` answer. */
export type RenewOutcome =
  /** Renewed for `ttlMs`; the next renewal should come within `renewWithinMs`. `maxHoldMs`: how long it may last, if that was asked. */
  | {
      readonly kind: 'refreshed';
      readonly ttlMs: number;
      readonly renewWithinMs: number;
      readonly maxHoldMs?: number;
    }
  /** The hold rests on a session, which its own process renews: nothing was done. `ttlMs`: of that session. */
  | { readonly kind: 'attached'; readonly ttlMs: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'not-owner' };

/** What the release of a detached hold answers. */
export type ClaimReleaseOutcome =
  | { readonly kind: 'released' }
  | { readonly kind: 'not-owner' }
  | { readonly kind: 'already-free' }
  /** No token was given, and the holder has several holds: nothing was released. One of these tokens names the hold. */
  | { readonly kind: 'ambiguous'; readonly tokens: readonly Token[] };

/** What the upgrade or the downgrade of a detached hold answers. */
export type ModeOutcome =
  /** `token`: the one to use from now on; an upgrade gives a new one. */
  | { readonly kind: 'upgraded' | 'downgraded'; readonly token: Token }
  /** The hold rests on a session, whose own process upgrades it: nothing was done. */
  | { readonly kind: 'attached' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'not-owner' };

/** One holder, as `inspect` shows it. */
export interface HolderView<Meta = Json> {
  /** Its name. */
  readonly holder: string;
  /** The token of its grant. */
  readonly token: Token;
  /** When it was granted, by the clock of the process that acquired it. */
  readonly acquiredAt: number;
  /** When its lease was last renewed, by the store's account. */
  readonly lastHeartbeat: number | undefined;
  /** Its lease ended, or it is older than it may be: the hold will not become valid again. */
  readonly isStale: boolean;
  /** How long it may last in all, if that is limited. */
  readonly maxHoldMs: number | undefined;
  /** The reason that it gave. */
  readonly reason: string | undefined;
  /** The metadata that it gave. */
  readonly metadata: Meta | undefined;
}

/** The rules of a resource that bind every holder; `configure` changes them. */
export interface SettingsView {
  /** Whether the next in line gets a stale hold, or a person decides. */
  readonly onStale: OnStale;
  /** The longest time that any holder may hold it, if that is limited. */
  readonly maxHoldMs: number | undefined;
  /** How long a detached hold lasts without a renewal, if that was configured. */
  readonly ttlMs: number | undefined;
}

/** One request in the queue, as `inspect` shows it. */
export interface WaiterView {
  /** Who waits. */
  readonly holder: string;
  /** Higher goes first. */
  readonly priority: number;
  /** Why it wants the resource, if it says so. */
  readonly reason: string | undefined;
}

/** A lock or a semaphore, as `inspect` shows it. `Held` and `Asked`: what its holders and waiters show beyond that. */
export interface ResourceView<Meta, Held, Asked> extends SettingsView {
  /** Its name. */
  readonly name: string;
  /** In the order of their grants. */
  readonly holders: readonly (HolderView<Meta> & Held)[];
  /** In the order of arrival. */
  readonly waiting: readonly (WaiterView & Asked)[];
}

export function settingsView(record: { readonly onStale: OnStale; readonly limits?: Limits }): SettingsView {
  const { onStale, limits } = record;
  return { onStale, maxHoldMs: limits?.maxHoldMs, ttlMs: limits?.ttlMs };
}

/** The settings among other options; undefined if there are none. */
export function settingsIn({ onStale, maxHoldMs, ttlMs }: Settings): Settings | undefined {
  if (onStale === undefined && maxHoldMs === undefined && ttlMs === undefined) return undefined;
  return {
    ...(onStale !== undefined && { onStale }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(ttlMs !== undefined && { ttlMs }),
  };
}
