/**
 * Notices a peer that is gone without having said so: a machine that lost its power, a network that was cut. When nothing
 * was heard for a while, it is asked; when it does not answer for as long again, it is gone.
 *
 * It is asked only while somebody waits for it. etcd, as every server of gRPC's makers, hangs up on those who ask without
 * having anything to wait for, or more often than each 5 s.
 */
import { systemClock, type Timer } from '../../../clock.ts';

export interface KeepAliveListener {
  /** Whether anybody waits for the peer. */
  isAwaited(): boolean;
  ask(): void;
  isGone(): void;
}

export class KeepAlive {
  readonly #periodMs: number;
  readonly #listener: KeepAliveListener;
  #heardAt = systemClock.monotonic();
  #askedAt: number | undefined;
  #timer: Timer | undefined;

  constructor(periodMs: number, listener: KeepAliveListener) {
    this.#periodMs = periodMs;
    this.#listener = listener;
  }

  start(): void {
    this.heard();
    this.#look(this.#periodMs);
  }

  /** Whatever it was, the peer is there. */
  heard(): void {
    this.#heardAt = systemClock.monotonic();
    this.#askedAt = undefined;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #look(delayMs: number): void {
    // An answer may be here already, unread, if this process was busy or stopped: it is read before anything is decided.
    this.#timer = systemClock.timer(delayMs, () => setImmediate(() => this.#decide()));
  }

  #decide(): void {
    if (this.#timer === undefined) return;
    const now = systemClock.monotonic();
    const leftMs = (this.#askedAt ?? this.#heardAt) + this.#periodMs - now;
    if (leftMs > 0) return this.#look(leftMs);
    if (this.#askedAt !== undefined) return this.#listener.isGone();
    if (this.#listener.isAwaited()) {
      this.#askedAt = now;
      this.#listener.ask();
    }
    this.#look(this.#periodMs);
  }
}
