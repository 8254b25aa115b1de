/** What claims stand on: the session of this process, or a lease of their own that their holder renews. */
import { Failure } from '../../failure.ts';
import { anchorKey } from '../layout.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type Sent, sentNow, type Session } from '../session/session.ts';
import type { ClaimLease } from './claiming.ts';
import type { ClaimGround } from './writing.ts';

/** An attached claim ends with the session of this process, and has to be made in it. */
export class SessionClaimLease implements ClaimLease {
  readonly #runtime: Runtime;
  readonly #session: Session;

  constructor(runtime: Runtime, session: Session) {
    this.#runtime = runtime;
    this.#session = session;
  }

  ground(): Promise<ClaimGround> {
    const { id, leaseId, epoch } = this.#session;
    if (!this.isValid) return Promise.reject(new NotAcquired('task', { kind: 'session-lost' }));
    return Promise.resolve({ leaseId, anchor: { key: anchorKey(id), epoch } });
  }

  get isValid(): boolean {
    return this.#runtime.session === this.#session;
  }

  fence(): Promise<void> {
    return new Promise((resolve, reject) => this.#runtime.fence(resolve, reject));
  }

  gone(): void {
    this.#session.end('expired');
  }

  saw(_: ClaimGround, version: number | undefined, revision: number): void {
    if (this.isValid) this.#runtime.sawLease(this.#session.id, version, revision);
  }
}

/** A detached claim has a lease of its own; whoever made it may end, and no session is needed for it. */
export class DetachedClaimLease implements ClaimLease {
  readonly #runtime: Runtime;
  readonly #ttlMs: number;
  #lease: { readonly ground: ClaimGround; readonly ttlMs: number; readonly sent: Sent } | undefined;

  constructor(runtime: Runtime, ttlMs: number) {
    this.#runtime = runtime;
    this.#ttlMs = ttlMs;
  }

  /** What the store granted, and when it was asked for it. */
  get lease(): { readonly ttlMs: number; readonly sent: Sent } | undefined {
    return this.#lease;
  }

  async ground(): Promise<ClaimGround> {
    if (this.#lease === undefined) {
      const { store, stopped, clock } = this.#runtime;
      const sent = sentNow(clock);
      const lease = await store.grantLease(this.#ttlMs, stopped);
      this.#lease = { ground: { leaseId: lease.id }, ttlMs: lease.ttlMs, sent };
    }
    return this.#lease.ground;
  }

  /** Without its lease nothing can land; and what has landed goes with it. */
  async fence(): Promise<void> {
    await this.drop();
  }

  gone(): void {
    this.#lease = undefined;
  }

  saw(): void {}

  /** The lease is not wanted any more. */
  async drop(): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined) return;
    await this.#runtime.store.revokeLease(lease.ground.leaseId).catch((error: unknown) => {
      if (!Failure.is(error, 'not-found')) throw error;
    });
    this.#lease = undefined;
  }
}
