/**
 * Keeps a hold or a claim: renews its lease, and aborts its signal when it is lost.
 *
 *     granted ── renewed after a third of its time ── … ── ended by its owner
 *        └── nine tenths of its time without a renewal, or the server says that it is gone ── lost
 *
 * Counts the time from before the request was sent, because the store cannot have begun earlier.
 */
import type { LossReason } from '../core/index.ts';
import { HoldLost } from '../runtime/refusal.ts';
import { type Clock, type Instant, instant, sinceMs, type Timer } from './clock.ts';
import type { Requests } from './requests.ts';

/** The result of a renewal. */
export type Renewal = { readonly ttlMs: number } | { readonly why: LossReason };

export interface KeptTerms {
  readonly resource: string;
  readonly ttlMs: number;
  readonly maxHoldMs?: number | undefined;
  /** The moment before the request that got it was sent. */
  readonly since: Instant;
  /** The moment before it was renewed last, if it was. */
  readonly renewed?: Instant | undefined;
  /** Asks the server to renew; throws if it cannot be reached within `retryMs`. */
  readonly renew: (retryMs: number) => Promise<Renewal>;
}

const USABLE = 0.9;
const RENEW_AT = 1 / 3;
const SHORTEST_PAUSE_MS = 50;

export class Kept {
  readonly #clock: Clock;
  readonly #all: Set<{ end(): void }>;
  readonly #terms: KeptTerms;
  readonly #lossSignal = new AbortController();
  #renewed: Instant;
  #ttlMs: number;
  #isOver = false;
  #lost: HoldLost | undefined;
  #timers: readonly Timer[] = [];

  constructor(requests: Requests, terms: KeptTerms) {
    this.#clock = requests.clock;
    this.#terms = terms;
    this.#renewed = terms.renewed ?? terms.since;
    this.#ttlMs = terms.ttlMs;
    this.#all = requests.kept;
    this.#all.add(this);
    this.#scheduleRenewal();
  }

  get signal(): AbortSignal {
    return this.#lossSignal.signal;
  }

  get lost(): HoldLost | undefined {
    return this.#lost;
  }

  /** Whether it is held now, by the clock at the moment of the call. */
  get isValid(): boolean {
    if (!this.#isOver && this.#leftMs() <= 0) this.lose('disconnected');
    return !this.#isOver;
  }

  check(): void {
    if (!this.isValid) throw this.#lost ?? new HoldLost(this.#terms.resource, { why: 'released-elsewhere' });
  }

  /** Called when its owner ends it: stops renewing, and reports no loss from now on. */
  end(): void {
    this.#isOver = true;
    this.#all.delete(this);
    for (const timer of this.#timers) timer.cancel();
  }

  lose(why: LossReason): void {
    if (this.#isOver) return;
    this.end();
    this.#lost = new HoldLost(this.#terms.resource, { why });
    this.#lossSignal.abort(this.#lost);
  }

  #leftMs(): number {
    const { maxHoldMs = Number.POSITIVE_INFINITY, since } = this.#terms;
    return Math.min(
      this.#ttlMs * USABLE - sinceMs(this.#clock, this.#renewed),
      maxHoldMs * USABLE - sinceMs(this.#clock, since),
    );
  }

  #schedule(inMs: number): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers = [
      this.#clock.timer(Math.max(0, this.#leftMs()), () => void this.isValid),
      this.#clock.timer(inMs, () => void this.#renew()),
    ];
  }

  /** The answer may have come late: half of the time that is left is the latest. */
  #scheduleRenewal(): void {
    this.#schedule(Math.max(SHORTEST_PAUSE_MS, Math.min(this.#ttlMs * RENEW_AT, this.#leftMs() / 2)));
  }

  async #renew(): Promise<void> {
    if (!this.isValid) return;
    const sent = instant(this.#clock);
    const renewal = await this.#terms.renew(this.#leftMs()).catch(() => undefined);
    if (this.#isOver) return;
    if (renewal === undefined) return this.#schedule(Math.max(SHORTEST_PAUSE_MS, this.#leftMs() / 10));
    if ('why' in renewal) return this.lose(renewal.why);
    this.#renewed = sent;
    this.#ttlMs = renewal.ttlMs;
    this.#scheduleRenewal();
  }
}
