/** The budget of a token: how many locks use it, how often they are renewed, and when to refuse another. */
import {
  capacityOf,
  commentEveryMs,
  fits,
  heartbeatEveryMs,
  type LiveLock,
  liveLocks,
  LOCKS,
  mayStay,
  timeoutsOf,
  type Settings,
} from '../core/github/index.ts';
import type { Driver } from './drive.ts';
import { recordsIn } from './lock-reader.ts';

/** How many requests GitHub still allows, and how the processes share them. */
export interface BudgetView {
  /** How many processes hold locks with this token, as last seen. */
  readonly used: number;
  /** How many processes can hold locks with it. */
  readonly capacity: number;
  /** The time between two renewals. */
  readonly heartbeatMs: number;
  /** How many requests are left, as GitHub last said. */
  readonly remaining: number | null;
  /** When GitHub allows more; ISO 8601. */
  readonly resetAt: string | null;
}

const FRESH_MS = 60_000;
/** How often to look through GraphQL, which has its own limit. */
const LOOK_EVERY_MS = 60_000;
/** How often to look without GraphQL, where it counts against the same limit as everything else. */
const LOOK_EVERY_WITHOUT_MS = 600_000;

export class Budget {
  /** Whether this process renews several locks together. */
  isTogether = true;
  readonly #driver: Driver;
  readonly #settings: Settings;
  readonly #warn: (message: string) => void;
  #live: readonly LiveLock[] = [];
  /** For a GitHub without GraphQL: refs that moved since the previous look. */
  #tips = new Map<string, string>();
  /** The processes that hold locks with this token. */
  #timeouts: readonly number[] = [];
  #lookedMs = Number.NEGATIVE_INFINITY;
  #hasWarned = false;

  constructor(driver: Driver, settings: Settings, warn: (message: string) => void) {
    this.#driver = driver;
    this.#settings = settings;
    this.#warn = warn;
  }

  get capacity(): number {
    return capacityOf(this.#settings.lockTimeoutMs);
  }

  get heartbeatMs(): number {
    return heartbeatEveryMs(this.#settings, this.#timeouts);
  }

  get commentMs(): number | undefined {
    return commentEveryMs(Math.max(this.#timeouts.length, this.#live.length));
  }

  view(): BudgetView {
    const { remaining = null, resetMs } = this.#driver.client;
    const resetAt = resetMs === undefined ? null : new Date(resetMs).toISOString();
    return { used: this.#timeouts.length, capacity: this.capacity, heartbeatMs: this.heartbeatMs, remaining, resetAt };
  }

  /** How long to wait before another process may hold locks; undefined if it may now. */
  async fullForMs(hasHolds: boolean): Promise<number | undefined> {
    if (this.#driver.clock.monotonic() - this.#lookedMs > FRESH_MS) await this.look();
    // A process that has locks already renews one more with the same two requests.
    if (hasHolds && this.isTogether) return undefined;
    return fits([...this.#timeouts, this.#settings.lockTimeoutMs]) ? undefined : FRESH_MS;
  }

  /** Checks again after an acquisition: if too many processes came at once, the last ones have to release. */
  async mayStay(issue: number): Promise<boolean> {
    await this.look();
    return mayStay(this.#live, issue);
  }

  async lookAgain(): Promise<void> {
    const everyMs = this.#tips.size > 0 ? LOOK_EVERY_WITHOUT_MS : LOOK_EVERY_MS;
    if (this.#driver.clock.monotonic() - this.#lookedMs > everyMs) await this.look();
  }

  async look(): Promise<void> {
    this.#lookedMs = this.#driver.clock.monotonic();
    const tips = await this.#driver.client.listTips(LOCKS);
    if (tips.kind === 'ok') {
      this.#live = liveLocks(recordsIn(tips.value), tips.date?.ms ?? 0);
      this.#seen(timeoutsOf(this.#live));
    } else if (tips.kind === 'missing') await this.#lookWithout();
  }

  /** Without GraphQL, a ref that moved since the last look is alive. The first look considers all of them alive. */
  async #lookWithout(): Promise<void> {
    const refs = await this.#driver.client.listRefs(LOCKS);
    if (refs.kind !== 'ok') return;
    const alive = refs.value.filter(({ ref, sha }) => this.#tips.get(ref) !== sha);
    const isFirst = this.#tips.size === 0;
    this.#tips = new Map(refs.value.map(({ ref, sha }) => [ref, sha]));
    this.isTogether = false;
    const count = isFirst ? Math.min(alive.length, this.capacity - 1) : new Set(alive.map(({ sha }) => sha)).size;
    this.#seen(Array.from({ length: count }, () => this.#settings.lockTimeoutMs));
  }

  #seen(timeouts: readonly number[]): void {
    this.#timeouts = timeouts;
    const count = timeouts.length;
    const isClose = !fits([...timeouts, ...timeouts.slice(0, Math.ceil(count / 4))]);
    if (isClose && !this.#hasWarned)
      this.#warn(
        `${count} processes hold locks with this token, which supports about ${this.capacity}; beyond that, locks are refused`,
      );
    this.#hasWarned = isClose;
  }
}
