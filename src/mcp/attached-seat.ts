/**
 * Holds over stdio: the session of this process keeps them, so no call has to renew them, and they end with the process.
 *
 *     ask ──▶ pending ──granted──▶ uncollected ──collect──▶ held ──release──▶ gone
 *                └─────── nobody asks for the window ───────┴──▶ gone
 *
 * A timer of this process limits each hold, because the holder may extend it; a limit in the store could not be changed.
 */
import { given } from '../core/given.ts';
import { type Clock, pause, type Timer } from '../clock.ts';
import { randomHex } from '../host/random.ts';
import type { LockHold } from '../runtime/holds/lock.ts';
import type { SemaphoreHold } from '../runtime/holds/semaphore.ts';
import type { ClaimReleaseOutcome, HoldClaim } from '../runtime/holds/terms.ts';
import type { WaitStatus } from '../runtime/holds/wait-limits.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { McpLimits } from './limits.ts';
import type { QueuePlace } from './place.ts';
import {
  type Asked,
  type ClaimedTask,
  type ClaimWanted,
  type Granted,
  type Held,
  heldBy,
  lookedAt,
  type Named,
  type Queued,
  renewDetached,
  type Renewed,
  resourceOf,
  type Seat,
  told,
  type Want,
} from './seat.ts';

type AnyHold = LockHold | SemaphoreHold;

/** A request that waits, or whose grant was not collected yet. */
interface Pending {
  readonly ticket: string;
  readonly want: Want;
  readonly abort: AbortController;
  hold?: AnyHold;
  failure?: Error;
  /** Resolves when there is a hold or a failure. */
  readonly settled: Promise<void>;
  window: Timer | undefined;
}

interface Kept {
  readonly hold: AnyHold;
  limit: Limit;
  /** Why the hold ended without a release. */
  ended?: string;
}

interface Limit {
  readonly timer: Timer;
  /** A time on the monotonic clock. */
  readonly at: number;
}

/** How many answers this seat remembers, and how many ended holds, to tell their holders why they ended. */
const MOST_REMEMBERED = 1_000;

export class AttachedSeat implements Seat {
  readonly #box: Signalbox;
  readonly #limits: McpLimits;
  readonly #clock: Clock;
  readonly #pending = new Map<string, Pending>();
  /** By the token of the grant, which an upgrade replaces. */
  readonly #kept = new Map<string, Kept>();
  /** By ticket. */
  readonly #collected = new Map<string, Granted>();
  /** Holders that got a hold which they had taken in a shell or over HTTP: it has a lease that this process does not renew. */
  readonly #withLease = new Set<string>();

  constructor(box: Signalbox, limits: McpLimits, clock: Clock) {
    this.#box = box;
    this.#limits = limits;
    this.#clock = clock;
  }

  needsTouch(holder: string): boolean {
    return this.#withLease.has(holder);
  }

  async ask(want: Want): Promise<Asked> {
    if (!want.waits) return this.#granted(await this.#acquire(want, { strategy: 'fail-fast' }), want.maxHoldMs);
    // A client that asks again continues at its place in line instead of taking a second one.
    const before = [...this.#pending.values()].find((one) => isSame(one.want, want));
    if (before !== undefined) return this.#answer(before);
    const { pending, waits } = this.#begin(want);
    await Promise.race([pending.settled, waits]);
    return this.#answer(pending);
  }

  #begin(want: Want): { readonly pending: Pending; readonly waits: Promise<void> } {
    const abort = new AbortController();
    let nowWaits = (): void => undefined;
    const waits = new Promise<void>((resolve) => (nowWaits = resolve));
    const onWaiting = (_: WaitStatus): void => nowWaits();
    const ticket = randomHex(8);
    const pending: Pending = {
      ...{ ticket, want, abort, window: undefined },
      settled: this.#acquire(want, { signal: abort.signal, onWaiting }).then(
        (hold) => void (pending.hold = hold),
        (error: Error) => void (pending.failure = error),
      ),
    };
    this.#pending.set(ticket, pending);
    return { pending, waits };
  }

  #acquire(want: Want, how: object): Promise<AnyHold> {
    const { kind, holder, mode, slots, capacity, reason, priority } = want;
    const own = kind === 'lock' ? { mode } : { weight: slots };
    const of = resourceOf(this.#box, want, capacity);
    return of.acquire({ ...(given({ holder, reason, priority, ...own }) as object), ...how }) as Promise<AnyHold>;
  }

  async collect({ ticket, holder, ...of }: QueuePlace, waitMs: number, signal: AbortSignal): Promise<Asked> {
    const pending = this.#pendingOf(ticket, holder, of);
    if (pending === undefined) return this.#answeredBefore(ticket, holder);
    pending.window?.cancel();
    await this.#within(pending.settled, waitMs, signal);
    if (!signal.aborted) return this.#answer(pending);
    // No client hears the answer: the grant waits to be collected, or is released later.
    this.#openWindow(pending);
    return { kind: 'waiting', ticket, position: undefined, holders: [] };
  }

  /** Repeats the answer to a poll as long as the hold lasts, because the first one may have been lost. */
  #answeredBefore(ticket: string, holder: string): Asked {
    const granted = this.#collected.get(ticket);
    if (granted === undefined || granted.holder !== holder) return { kind: 'gone' };
    const kept = this.#keptAs(granted.resource, granted)?.[1];
    if (kept === undefined || kept.ended !== undefined || !kept.hold.isValid) return { kind: 'gone' };
    return { ...granted, maxHoldMs: this.#leftOf(kept.limit) };
  }

  #openWindow(pending: Pending): void {
    pending.window?.cancel();
    pending.window = this.#clock.timer(this.#limits.windowMs, () => void this.#abandon(pending));
  }

  /** Hands out the hold, or reports how the request waits, and starts the window. */
  async #answer(pending: Pending): Promise<Asked> {
    const { ticket, want, hold, failure } = pending;
    pending.window?.cancel();
    if (failure !== undefined) {
      this.#pending.delete(ticket);
      throw failure;
    }
    if (hold !== undefined) {
      this.#pending.delete(ticket);
      if (!hold.isValid) throw new NotAcquired(hold.resource, { kind: 'lost' });
      const granted = await this.#granted(hold, want.maxHoldMs);
      this.#collected.set(ticket, granted);
      const [oldest] = this.#collected.keys();
      if (this.#collected.size > MOST_REMEMBERED && oldest !== undefined) this.#collected.delete(oldest);
      return granted;
    }
    this.#openWindow(pending);
    return this.#queued(ticket, want);
  }

  async #queued(ticket: string, want: Want): Promise<Queued> {
    const { holder } = want;
    const { holds, waiting } = await lookedAt(this.#box, want);
    const position = waiting.find((waiter) => waiter.holder === holder)?.position;
    const others = holds.filter((hold) => hold.holder !== holder);
    const holders = others.map(({ reason, holder: who, token, acquiredAt }) => ({
      ...{ holder: who, token, acquiredAt },
      ...given({ reason }),
    }));
    return { kind: 'waiting', ticket, position, holders };
  }

  async #abandon(pending: Pending): Promise<void> {
    this.#pending.delete(pending.ticket);
    pending.abort.abort();
    await pending.settled;
    await pending.hold?.release().catch(() => undefined);
  }

  async withdraw({ ticket, holder, ...of }: QueuePlace): Promise<boolean> {
    const pending = this.#pendingOf(ticket, holder, of);
    if (pending === undefined) return false;
    pending.window?.cancel();
    await this.#abandon(pending);
    return true;
  }

  async giveUp(place: QueuePlace): Promise<void> {
    await this.withdraw(place);
  }

  #pendingOf(ticket: string, holder: string, { kind, name }: Named): Pending | undefined {
    const pending = this.#pending.get(ticket);
    const { want } = pending ?? {};
    return want?.holder === holder && want.kind === kind && want.name === name ? pending : undefined;
  }

  async #granted(hold: AnyHold, maxHoldMs: number): Promise<Granted> {
    const { resource, holder, token, isReentry } = hold;
    // A re-entry returns the hold that its holder already has, which this seat keeps or another process took.
    if (!isReentry) this.#keep(hold, maxHoldMs);
    const times = isReentry ? await this.#timesOf(hold) : { maxHoldMs };
    return {
      ...{ kind: 'granted', resource, holder, token, isHeldBefore: isReentry, ...times },
      ...('mode' in hold ? { mode: hold.mode } : { slots: hold.slots }),
    };
  }

  /** Leaves the time limit of an existing hold alone, because asking again does not extend it. */
  async #timesOf({ resource, holder, token }: AnyHold): Promise<Pick<Granted, 'ttlMs' | 'maxHoldMs'>> {
    const kept = this.#keptAs(resource, { holder, token })?.[1];
    if (kept !== undefined) return { maxHoldMs: this.#leftOf(kept.limit) };
    const [kind, ...name] = resource.split('/');
    const of = resourceOf(this.#box, { kind: kind as Named['kind'], name: name.join('/') });
    const renewed = await of.renew({ holder, token });
    if (renewed.kind !== 'refreshed') return {};
    this.#withLease.add(holder);
    return { ttlMs: renewed.ttlMs };
  }

  #keptAs(resource: string, claim: HoldClaim): readonly [string, Kept] | undefined {
    const key = keyOf(resource, claim);
    const kept = this.#kept.get(key);
    if (kept !== undefined) return [key, kept];
    return [...this.#kept].find(([, { hold, ended }]) => ended === undefined && keyOf(hold.resource, hold) === key);
  }

  #leftOf({ at }: Limit): number {
    return Math.max(0, Math.floor(at - this.#clock.monotonic()));
  }

  #keep(hold: AnyHold, maxHoldMs: number): void {
    const key = keyOf(hold.resource, hold);
    // Two calls may wait at one place; the second gets the same hold.
    if (this.#kept.has(key)) return;
    const kept: Kept = { hold, limit: this.#limit(key, maxHoldMs) };
    this.#kept.set(key, kept);
    hold.signal.addEventListener('abort', () => this.#end(key, hold.lost?.message ?? 'it was lost'), { once: true });
  }

  #limit(key: string, maxHoldMs: number): Limit {
    const minutes = Math.round(maxHoldMs / 60_000);
    const at = this.#clock.monotonic() + maxHoldMs;
    const timer = this.#clock.timer(maxHoldMs, () => {
      const kept = this.#kept.get(key);
      this.#end(key, `it was released after ${minutes} minutes, its limit, because nobody extended it`);
      void kept?.hold.release().catch(() => undefined);
    });
    return { timer, at };
  }

  #end(key: string, why: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined || kept.ended !== undefined) return;
    kept.limit.timer.cancel();
    kept.ended = why;
    const ended = [...this.#kept].filter(([, one]) => one.ended !== undefined);
    const [oldest] = ended;
    if (ended.length > MOST_REMEMBERED && oldest !== undefined) this.#kept.delete(oldest[0]);
  }

  async renew(of: Named, claim: HoldClaim, maxHoldMs: number | undefined): Promise<Renewed> {
    const one = resourceOf(this.#box, of);
    const found = this.#keptAs(one.resource, claim);
    if (found !== undefined) {
      const [key, kept] = found;
      if (kept.ended !== undefined) return { kind: 'lost', why: kept.ended };
      if (!kept.hold.isValid) return { kind: 'lost' };
      if (maxHoldMs === undefined) return { kind: 'renewed' };
      kept.limit.timer.cancel();
      kept.limit = this.#limit(key, maxHoldMs);
      return { kind: 'renewed', maxHoldMs };
    }
    const outcome = await one.renew(claim);
    if (outcome.kind === 'lost' || outcome.kind === 'not-owner') return { kind: outcome.kind };
    return { kind: 'renewed', ttlMs: outcome.ttlMs };
  }

  async release(of: Named, claim: { readonly holder: string; readonly token?: number }): Promise<ClaimReleaseOutcome> {
    const one = resourceOf(this.#box, of);
    const mine = [...this.#kept].filter(
      ([, { hold, ended }]) =>
        ended === undefined &&
        hold.resource === one.resource &&
        hold.holder === claim.holder &&
        (claim.token === undefined || hold.token === claim.token),
    );
    const [found] = mine;
    if (found === undefined || mine.length > 1) return one.release(claim);
    const [key, { hold, limit }] = found;
    limit.timer.cancel();
    this.#kept.delete(key);
    const outcome = await hold.release();
    return { kind: outcome.kind === 'released' ? 'released' : 'not-owner' };
  }

  async claim({ task, capabilities = [], ...wanted }: ClaimWanted): Promise<ClaimedTask> {
    const { tasks } = this.#box;
    const options = { ...wanted, capabilities };
    const { id, holder, token, attempt, data } =
      task === undefined ? await tasks.claimNext(options) : await tasks.claim(task, options);
    return { task: id, holder, token, attempt, data };
  }

  /** Nothing to do: the process renews its own holds. */
  async touch(holder: string): Promise<readonly Held[]> {
    const uncollected = new Set(
      [...this.#pending.values()].flatMap(({ hold }) => (hold === undefined ? [] : [keyOf(hold.resource, hold)])),
    );
    const held = await heldBy(this.#box, holder);
    if (this.needsTouch(holder)) await renewDetached(this.#box, holder, held);
    return held.filter(({ resource, token }) => !uncollected.has(keyOf(resource, { holder, token }))).map(told);
  }

  async polled(holder: string): Promise<void> {
    if (this.needsTouch(holder)) await this.touch(holder);
  }

  async #within(settled: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || ms <= 0) return;
    const over = new AbortController();
    void settled.then(() => over.abort());
    await pause(ms, AbortSignal.any([signal, over.signal]), this.#clock);
  }
}

function keyOf(resource: string, { holder, token }: HoldClaim): string {
  return JSON.stringify([resource, holder, token]);
}

function isSame(one: Want, other: Want): boolean {
  const fields = ['kind', 'name', 'holder', 'mode', 'slots'] as const;
  return fields.every((field) => one[field] === other[field]);
}
