/** Semaphores over HTTP. */
import { semaphoreFrom, type SemaphoreJson } from '../json/survey.ts';
import type {
  SemaphoreAttempt,
  Draining,
  DrainResult,
  ResizeResult,
  Resizing,
  Undraining,
  UndrainResult,
} from '../runtime/holds/semaphore.ts';
import { runUnder } from '../runtime/holds/hold-set.ts';
import type { DetachedHold, SettingsView } from '../runtime/holds/terms.ts';
import type { SurveyedSemaphore } from '../runtime/observe/survey/index.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import type { Drain } from '../core/index.ts';
import { type Grant, RemoteSemaphoreHold } from './hold.ts';
import { refusedWith } from './problem.ts';
import { type Connected, holderIn, type RemoteOptions, RemoteResource } from './resource.ts';

/** How to ask for slots over HTTP. */
export interface RemoteSemaphoreOptions extends RemoteOptions {
  /** How many slots in total, not in addition; 1 if not given. */
  readonly weight?: number;
}

/** The answer of `tryAcquire`: `ok` says whether there is a hold, `kind` how it came about or why there is none. */
export type RemoteSemaphoreAttempt =
  | { readonly ok: true; readonly kind: DetachedHold['outcome']; readonly hold: RemoteSemaphoreHold }
  | Extract<SemaphoreAttempt, { readonly ok: false }>;

/** A hold of slots that only `renew` keeps alive. */
export interface DetachedSemaphoreHold extends DetachedHold {
  /** How many slots it has. */
  readonly weight: number;
  /** The slot numbers, from 0, that no other hold has at the same time. */
  readonly slots: readonly number[];
}

/** A semaphore by its name, at a server: slots that several holders share. */
export class RemoteSemaphore extends RemoteResource<DetachedSemaphoreHold, RemoteSemaphoreOptions> {
  /** The capacity that this program names, if it names one; the first acquire sets it. */
  readonly capacity: number | undefined;

  /** @internal */
  constructor(connected: Connected, name: string, capacity: number | undefined) {
    super(connected, 'semaphore', name);
    this.capacity = capacity;
  }

  /** Waits for slots. Throws `NotAcquired` if it gets none. */
  async acquire(options: RemoteSemaphoreOptions = {}): Promise<RemoteSemaphoreHold> {
    const given = await this.waited(options, true);
    return this.keep(new RemoteSemaphoreHold(this.connected.requests, this, given));
  }

  /** Answers at once, and does not throw if there are not enough slots. */
  async tryAcquire(options: RemoteSemaphoreOptions = {}): Promise<RemoteSemaphoreAttempt> {
    try {
      const given = await this.waited(options, false);
      const hold = this.keep(new RemoteSemaphoreHold(this.connected.requests, this, given));
      return { ok: true, kind: given.grant.outcome, hold };
    } catch (error) {
      if (error instanceof NotAcquired) return { ...error.refusal, ok: false } as RemoteSemaphoreAttempt;
      throw error;
    }
  }

  /** Waits for slots, runs `work`, and always releases them; throws `HoldLost` if the hold was lost meanwhile. */
  async run<T>(work: (hold: RemoteSemaphoreHold) => T | Promise<T>, options: RemoteSemaphoreOptions = {}): Promise<T> {
    return runUnder(await this.acquire(options), work);
  }

  /**
   * Acquires a hold that only `renew` keeps alive, for programs that do not stay connected. Its token is all that `renew` and
   * `release` need.
   */
  async acquireDetached(options: RemoteSemaphoreOptions & { readonly holder: string }): Promise<DetachedSemaphoreHold> {
    const holder = holderIn(this.connected, options.holder);
    const { grant } = await this.waited({ ...options, holder }, true, { ttlMs: options.ttlMs });
    return this.detached(grant);
  }

  /** Changes the number of slots, for administrators; a number below the slots in use takes effect as holders release. */
  async resize(capacity: number, { from }: Pick<Resizing, 'from'> = {}): Promise<ResizeResult> {
    try {
      const body = { capacity, ...(from !== undefined && { fromCapacity: from }) };
      // A repeat would find a capacity that differs from the one its caller saw.
      await this.ask({ method: 'PUT', body, ...(from !== undefined && { isKeyed: true }) }, 'settings');
      return { kind: 'resized', capacity };
    } catch (error) {
      const { capacity: now } = refusedWith<{ readonly capacity: number }>(error, 'wrong-state');
      return { kind: 'capacity-mismatch', capacity: now, asked: from as number };
    }
  }

  /** Grants nothing new until `undrain`, for administrators: requests wait, and holders keep their slots. */
  async drain(by: Draining): Promise<DrainResult> {
    const { outcome, drained } = await this.post<Drained>('drain', by, { isKeyed: true });
    return { kind: outcome as DrainResult['kind'], drain: drainFrom(drained) };
  }

  /** Grants again, waiting requests first. With a `revision`, only if it is still the drain that you saw. */
  async undrain(by: Undraining): Promise<UndrainResult> {
    try {
      const { drained } = await this.post<Drained>('undrain', by, { isKeyed: true });
      return { kind: 'undrained', drain: drainFrom(drained) };
    } catch (error) {
      const { drained } = refusedWith<{ readonly drained: Drained['drained'] | null }>(error, 'wrong-state');
      return drained === null ? { kind: 'not-drained' } : { kind: 'another-drain', drain: drainFrom(drained) };
    }
  }

  /** Who holds slots, who waits for them, and which rules bind them. */
  async inspect(): Promise<SurveyedSemaphore & SettingsView> {
    const semaphore = semaphoreFrom(await this.ask<SemaphoreJson>({ method: 'GET' }));
    const { maxHoldMs, ttlMs } = semaphore.limits;
    return { ...semaphore, maxHoldMs, ttlMs };
  }

  /** @internal */
  protected get terms(): object {
    return this.capacity === undefined ? {} : { capacity: this.capacity };
  }

  /** @internal */
  protected detached(grant: Grant): DetachedSemaphoreHold {
    return { ...grant, weight: grant.weight ?? 1, slots: grant.slots ?? [] };
  }
}

interface Drained {
  readonly outcome: string;
  readonly drained: Omit<Drain, 'at'> & { readonly at: string };
}

function drainFrom({ at, ...drain }: Drained['drained']): Drain {
  return { ...drain, at: Date.parse(at) };
}
