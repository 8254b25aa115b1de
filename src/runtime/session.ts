/**
 * A process's presence in the store: one lease, renewed at a third of its time.
 *
 *     sent ──────────── renewal answered ─────────────── deadline ── margin ── the store may end the lease
 *      └── counted from here, because the store may have counted from here
 *
 * At the deadline the session is over for us, whatever the store believes: every hold is told that it is lost before
 * anybody else can be let in. Time is measured on the monotonic clock and on the wall clock, and the earlier one
 * wins: the monotonic clock may stand still while a laptop sleeps.
 */
import type { Clock, Timer } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { LeaseId, Store } from '../store/index.ts';

export type SessionEnd = 'expired' | 'disconnected' | 'closed';

/** Clocks of two machines drift apart; the part of the lease that is given up for it. */
export const MARGIN = 0.1;
const SHORTEST_RETRY_MS = 50;

export class Session {
  readonly id: string;
  readonly leaseId: LeaseId;
  readonly ttlMs: number;
  /** The version of our anchor: what was sent under an earlier one can no longer take effect. */
  epoch = 1;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onEnd: (session: Session, why: SessionEnd) => void;
  #deadline: number;
  #wallDeadline: number;
  #renewAt: number;
  #timer: Timer | undefined;
  #ended: SessionEnd | undefined;
  #stop = new AbortController();

  /** `sent`: when the lease was asked for, on both clocks. */
  constructor(
    store: Store,
    clock: Clock,
    id: string,
    lease: { readonly id: LeaseId; readonly ttlMs: number },
    sent: Sent,
    onEnd: (session: Session, why: SessionEnd) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.id = id;
    this.leaseId = lease.id;
    this.ttlMs = lease.ttlMs;
    this.#deadline = sent.monotonic + this.#validMs;
    this.#wallDeadline = sent.now + this.#validMs;
    this.#renewAt = sent.monotonic + this.ttlMs / 3;
    this.#schedule();
  }

  get ended(): SessionEnd | undefined {
    return this.#ended;
  }

  get #validMs(): number {
    return this.ttlMs * (1 - MARGIN);
  }

  /**
   * Asked before control goes back to user code: after a stall of the event loop, this may be the first to notice
   * that the time is up.
   */
  isValid(monotonic = this.#clock.monotonic(), now = this.#clock.now()): boolean {
    if (this.#ended !== undefined) return false;
    if (monotonic >= this.#deadline || now >= this.#wallDeadline) {
      this.end('disconnected');
      return false;
    }
    // Whoever never lets the timers run still asks, and so still renews.
    if (monotonic >= this.#renewAt) void this.#renew();
    return true;
  }

  end(why: SessionEnd): void {
    if (this.#ended !== undefined) return;
    this.#ended = why;
    this.#timer?.cancel();
    this.#stop.abort();
    this.#onEnd(this, why);
  }

  #schedule(): void {
    this.#timer?.cancel();
    const next = Math.min(this.#renewAt, this.#deadline);
    this.#timer = this.#clock.timer(Math.max(0, next - this.#clock.monotonic()), () => {
      if (this.isValid()) this.#schedule();
    });
  }

  async #renew(): Promise<void> {
    const sent = sentNow(this.#clock);
    // An answer may never come: then nothing but the deadline is left to wait for.
    this.#renewAt = Number.POSITIVE_INFINITY;
    try {
      const lease = await this.#store.keepLeaseAlive(this.leaseId, this.#stop.signal);
      if (!this.isValid()) return;
      if (lease === null) return this.end('expired');
      this.#deadline = sent.monotonic + this.#validMs;
      this.#wallDeadline = sent.now + this.#validMs;
      this.#renewAt = sent.monotonic + this.ttlMs / 3;
    } catch (error) {
      if (!this.isValid()) return;
      if (Failure.is(error, 'closed')) return this.end('disconnected');
      this.#renewAt = this.#clock.monotonic() + Math.max(SHORTEST_RETRY_MS, this.ttlMs / 20);
    }
    this.#schedule();
  }
}

export interface Sent {
  readonly monotonic: number;
  readonly now: number;
}

export function sentNow(clock: Clock): Sent {
  return { monotonic: clock.monotonic(), now: clock.now() };
}
