/**
 * Renews all locks of one manager with one commit and one move, one heartbeat at a time.
 *
 *     wait ──▶ renew ──▶ wait …          the wait follows the budget
 *               └──unsure──▶ try again soon, before the deadline
 */
import type { Timer } from '../clock.ts';
import { type BranchMove, type Held, publish, type Published, renew, type Renewed } from '../core/github/index.ts';
import type { Budget } from './budget.ts';
import type { Driver } from './drive.ts';
import type { GitHubHold } from './hold.ts';

const SOON_MS = 5_000;
const SHORTEST_MS = 1_000;

export interface HeartbeatEvents {
  readonly renewed: (hold: GitHubHold) => void;
  readonly nonce: () => string;
}

export class Heartbeats {
  readonly #driver: Driver;
  readonly #budget: Budget;
  readonly #events: HeartbeatEvents;
  readonly #holds = new Set<GitHubHold>();
  #timer: Timer | undefined;
  /** The heartbeat that is under way. */
  #beating: Promise<void> | undefined;
  #together = true;

  constructor(driver: Driver, budget: Budget, events: HeartbeatEvents) {
    this.#driver = driver;
    this.#budget = budget;
    this.#events = events;
  }

  get holds(): ReadonlySet<GitHubHold> {
    return this.#holds;
  }

  add(hold: GitHubHold): void {
    this.#holds.add(hold);
    hold.signal.addEventListener('abort', () => this.#drop(hold), { once: true });
    if (this.#timer === undefined && this.#beating === undefined) this.#schedule(this.#budget.heartbeatMs);
  }

  /** Removes a hold; when this returns, no heartbeat of it is under way. */
  async remove(hold: GitHubHold): Promise<void> {
    while (this.#beating !== undefined) await this.#beating;
    this.#drop(hold);
  }

  #drop(hold: GitHubHold): void {
    this.#holds.delete(hold);
    if (this.#holds.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Renews at once, with another timeout if one is given. */
  now(timeouts: ReadonlyMap<GitHubHold, number> = new Map()): Promise<void> {
    return this.#alone(() => this.#beat(timeouts));
  }

  /** Moves a branch together with an extra heartbeat. */
  async publish(hold: GitHubHold, branch: BranchMove): Promise<Published> {
    let answer: Published = { kind: 'lost' };
    await this.#alone(async () => {
      if (hold.isValid) {
        const settings = { nonce: this.#events.nonce(), at: this.#driver.instant(), iso: this.#driver.serverIso() };
        const { published, renewed } = await this.#driver.drive(publish(hold.held, branch, settings));
        answer = published;
        if (renewed !== undefined) this.#take(renewed);
      }
      this.#schedule(answer.kind === 'unknown' ? SOON_MS : this.#budget.heartbeatMs);
    });
    return answer;
  }

  /** Runs one heartbeat at a time: of two at once, each would rely on the tip that the other moves. */
  async #alone(work: () => Promise<void>): Promise<void> {
    while (this.#beating !== undefined) await this.#beating;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#beating = work().finally(() => (this.#beating = undefined));
    await this.#beating;
  }

  #schedule(ms: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#holds.size === 0) return;
    const soonest = Math.min(...[...this.#holds].map(({ leftMs }) => leftMs));
    // Whatever pause GitHub asks for, there are tries before the deadline, with a pause between them.
    const inTime = Math.min(ms, Math.max(SHORTEST_MS, soonest - SOON_MS));
    this.#timer = this.#driver.clock.timer(inTime, () => void this.now());
  }

  async #beat(timeouts: ReadonlyMap<GitHubHold, number>): Promise<void> {
    await this.#budget.lookAgain();
    const holds = [...this.#holds].filter((hold) => hold.isValid);
    let nextMs = this.#budget.heartbeatMs;
    const groups =
      timeouts.size === 0 ? [holds] : [...timeouts.keys()].filter((hold) => hold.isValid).map((hold) => [hold]);
    for (const group of groups) {
      const timeoutMs = group[0] === undefined ? undefined : timeouts.get(group[0]);
      const renewed = await this.#renew(group, timeoutMs);
      for (const one of renewed) nextMs = Math.min(nextMs, this.#take(one));
    }
    this.#schedule(nextMs);
  }

  async #renew(group: readonly GitHubHold[], timeoutMs: number | undefined): Promise<readonly Renewed[]> {
    const once = (held: readonly Held[]): Promise<readonly Renewed[]> => {
      const { commentMs } = this.#budget;
      return this.#driver.drive(
        renew(held, {
          nonce: this.#events.nonce(),
          at: this.#driver.instant(),
          together: this.#together && held.length > 1,
          iso: this.#driver.serverIso(),
          ...(commentMs !== undefined && { commentEveryMs: commentMs }),
          ...(timeoutMs !== undefined && { timeoutMs }),
        }),
      );
    };
    if (group.length === 0) return [];
    const renewed = await once(group.map(({ held }) => held));
    const apart = renewed.flatMap((one) => (one.kind === 'apart' ? [one.held] : []));
    if (apart.length === 0) return renewed;
    // This GitHub has no GraphQL: renew each lock separately from now on.
    this.#together = false;
    this.#budget.isTogether = false;
    return [...renewed.filter(({ kind }) => kind !== 'apart'), ...(await once(apart))];
  }

  /** When this hold needs the next heartbeat. */
  #take(one: Renewed): number {
    const hold = [...this.#holds].find(({ issue }) => issue === one.issue);
    if (hold === undefined) return Number.POSITIVE_INFINITY;
    switch (one.kind) {
      case 'lost':
        hold.lose(one.why);
        return Number.POSITIVE_INFINITY;
      case 'renewed':
        hold.held = one.held;
        this.#events.renewed(hold);
        return Number.POSITIVE_INFINITY;
      case 'unsure':
      case 'apart':
        hold.held = one.held;
        return one.kind === 'unsure' && one.waitMs !== undefined ? Math.max(SOON_MS, one.waitMs) : SOON_MS;
    }
  }
}
