/** Locks over HTTP. */
import type { LockMode } from '../core/index.ts';
import { lockFrom, type LockJson } from '../json/survey.ts';
import type { LockAttempt } from '../runtime/holds/lock.ts';
import type { WaitOptions } from '../runtime/holds/wait-limits.ts';
import type { DetachedHold, HoldClaim, ModeOutcome, SettingsView } from '../runtime/holds/terms.ts';
import { runUnder } from '../runtime/holds/hold-set.ts';
import type { SurveyedLock } from '../runtime/observe/survey/index.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import { instant, sinceMs } from './clock.ts';
import { type Grant, RemoteLockHold } from './hold.ts';
import { refusedWith } from './problem.ts';
import { type Connected, holderIn, type RemoteOptions, RemoteResource } from './resource.ts';

/** How to ask for a lock over HTTP. */
export interface RemoteLockOptions extends RemoteOptions {
  /** `exclusive` if not given: alone. `shared`: together with other readers. */
  readonly mode?: LockMode;
}

/** The answer of `tryAcquire`: `ok` says whether there is a hold, `kind` how it came about or why there is none. */
export type RemoteLockAttempt =
  | { readonly ok: true; readonly kind: DetachedHold['outcome']; readonly hold: RemoteLockHold }
  | Extract<LockAttempt, { readonly ok: false }>;

/** A hold of a lock that only `renew` keeps alive. */
export interface DetachedLockHold extends DetachedHold {
  /** Whether it is held alone, or together with other readers. */
  readonly mode: LockMode;
}

/** How long one request for an upgrade waits. */
const UPGRADE_MS = 30_000;

/** A lock by its name, at a server. */
export class RemoteLock extends RemoteResource<DetachedLockHold, RemoteLockOptions> {
  /** @internal */
  constructor(connected: Connected, name: string) {
    super(connected, 'lock', name);
  }

  /** Waits for the lock. Throws `NotAcquired` if it does not get it. */
  async acquire(options: RemoteLockOptions = {}): Promise<RemoteLockHold> {
    return this.keep(new RemoteLockHold(this.connected.requests, this, await this.waited(options, true)));
  }

  /** Answers at once, and does not throw if the lock is held. */
  async tryAcquire(options: RemoteLockOptions = {}): Promise<RemoteLockAttempt> {
    try {
      const given = await this.waited(options, false);
      const hold = this.keep(new RemoteLockHold(this.connected.requests, this, given));
      return { ok: true, kind: given.grant.outcome, hold };
    } catch (error) {
      if (error instanceof NotAcquired) return { ...error.refusal, ok: false } as RemoteLockAttempt;
      throw error;
    }
  }

  /** Waits for the lock, runs `work`, and always releases it; throws `HoldLost` if the hold was lost meanwhile. */
  async run<T>(work: (hold: RemoteLockHold) => T | Promise<T>, options: RemoteLockOptions = {}): Promise<T> {
    return runUnder(await this.acquire(options), work);
  }

  /**
   * Acquires a hold that only `renew` keeps alive, for programs that do not stay connected. Its token is all that `renew` and
   * `release` need.
   */
  async acquireDetached(options: RemoteLockOptions & { readonly holder: string }): Promise<DetachedLockHold> {
    const holder = holderIn(this.connected, options.holder);
    const { grant } = await this.waited({ ...options, holder }, true, { ttlMs: options.ttlMs });
    return this.detached(grant);
  }

  /** Makes the hold of a reader exclusive, ahead of waiting writers. The token changes. Throws `NotAcquired` if it cannot. */
  async upgrade(claim: HoldClaim, options: WaitOptions = {}): Promise<ModeOutcome> {
    const { waitMs = Number.POSITIVE_INFINITY, signal } = options;
    const { clock } = this.connected.requests;
    const begun = instant(clock);
    for (;;) {
      const forMs = Math.max(0, Math.min(UPGRADE_MS, waitMs - sinceMs(clock, begun)));
      try {
        return await this.#changed('upgrade', { ...claim, waitMs: forMs }, { waitMs: forMs, signal });
      } catch (error) {
        const isOver = !(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out';
        if (isOver || sinceMs(clock, begun) >= waitMs) throw error;
      }
    }
  }

  /** Makes the hold of a writer shared, without a release in between: waiting readers join. */
  downgrade(claim: HoldClaim): Promise<ModeOutcome> {
    return this.#changed('downgrade', claim, {});
  }

  /** @internal */
  protected get terms(): object {
    return {};
  }

  /** @internal */
  protected detached(grant: Grant): DetachedLockHold {
    return { ...grant, mode: grant.mode ?? 'exclusive' };
  }

  async #changed(
    what: 'upgrade' | 'downgrade',
    body: object,
    more: { readonly waitMs?: number; readonly signal?: AbortSignal | undefined },
  ): Promise<ModeOutcome> {
    try {
      const { outcome, token } = await this.post<{ outcome: 'upgraded'; token: number }>(what, body, {
        ...more,
        isKeyed: true,
      });
      return { kind: outcome, token };
    } catch (error) {
      const { code } = refusedWith(error, 'gone', 'not-owner', 'attached');
      return { kind: code === 'gone' ? 'lost' : (code as 'not-owner' | 'attached') };
    }
  }

  /** Shows who holds it, since when and why, who waits for it, and which rules bind them. */
  async inspect(): Promise<SurveyedLock & SettingsView & { readonly isFree: boolean }> {
    const shown = await this.ask<LockJson>({ method: 'GET' });
    const lock = lockFrom(shown);
    const { maxHoldMs, ttlMs } = lock.limits;
    return { ...lock, isFree: shown.isFree, maxHoldMs, ttlMs };
  }

  /** Whether nobody holds it. */
  async isFree(): Promise<boolean> {
    return (await this.inspect()).isFree;
  }

  /** Whether this holder has it, stale or not. */
  async isHeldBy(holder: string): Promise<boolean> {
    return (await this.inspect()).holds.some((hold) => hold.holder === holder);
  }
}
