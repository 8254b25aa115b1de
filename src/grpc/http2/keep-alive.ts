/**
 * Notices a peer that vanished without closing the connection: a machine that lost its power, a network that was cut.
 * After one period of silence it pings the peer; after another one without an answer, the peer is gone.
 *
 * It pings only while a call or stream waits for the peer. gRPC's own servers hang up on a client that pings while nothing
 * is open, or more often than every 5 s.
 */
import type { Clock, Timer } from '../../clock.ts';

export interface KeepAliveListener {
  /** Whether a call or stream waits for the peer. */
  isAwaited(): boolean;
  ask(): void;
  isGone(): void;
}

export class KeepAlive {
  readonly #clock: Clock;
  readonly #periodMs: number;
  readonly #listener: KeepAliveListener;
  #heardAt: number;
  #askedAt: number | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, periodMs: number, listener: KeepAliveListener) {
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    this.#periodMs = periodMs;
    this.#listener = listener;
  }

  start(): void {
    this.heard();
    this.#look(this.#periodMs);
  }

  /** The peer sent something, so it is there. */
  heard(): void {
    this.#heardAt = this.#clock.monotonic();
    this.#askedAt = undefined;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #look(delayMs: number): void {
    // If this process was busy or stopped, the answer may be here, unread. The socket is read before the decision.
    this.#timer = this.#clock.timer(delayMs, () => setImmediate(() => this.#decide()));
  }

  #decide(): void {
    if (this.#timer === undefined) return;
    const now = this.#clock.monotonic();
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
