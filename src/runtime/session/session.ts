/**
 * The session of a process: one lease in the store, renewed after a third of its time.
 *
 *     sent ──────────── renewal answered ─────────────── deadline ── margin ── the store may end the lease
 *      └── counted from here, because the store may have counted from here
 *
 * At the deadline the process ends its session itself, without asking the store: every hold learns of its loss before the
 * store lets anyone else in. The monotonic clock measures the time; a second clock checks it, because the monotonic clock
 * stands still while a laptop sleeps (see `hasPassed`).
 */
import type { Clock, Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { always, type KeyValue, type LeaseId, pairIn, type Store } from '../../store/index.ts';
import { anchorKey, mailboxKey } from '../layout.ts';

export type SessionEnd = 'expired' | 'disconnected' | 'closed';

/** The part of the lease that is given up, because the clocks of two machines drift apart. */
export const MARGIN = 0.1;
/** The part of the lease's time after which it is renewed: there must be time for several attempts over a network. */
const RENEWED_AFTER = 1 / 3;
const SHORTEST_RETRY_MS = 50;
/** The part of the lease's time by which a renewal may come early: Node's timers do, and waking up once more costs more. */
const EARLY = 1 / 500;

export class Session {
  readonly id: string;
  readonly leaseId: LeaseId;
  readonly ttlMs: number;
  /** The version of the session's anchor: writes that were sent under an earlier version cannot take effect. */
  epoch = 1;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onEnd: (session: Session, why: SessionEnd) => void;
  /** When the last answered renewal was sent. */
  #sent: Sent;
  #renewAt = 0;
  /** Before these times, on the monotonic and the wall clock, the session is valid and need not be renewed: every acquire asks twice. */
  #quietUntil = 0;
  #quietUntilWall = 0;
  #timer: Timer | undefined;
  #ended: SessionEnd | undefined;
  #stop = new AbortController();
  readonly #measures: { renewed(ok: boolean): void } | undefined;
  /** When `isValid` last looked, on the monotonic clock: reading a clock costs a good part of an acquire in memory. */
  lookedAt = 0;

  /** `sent`: when the lease was asked for, on both clocks. */
  constructor(
    store: Store,
    clock: Clock,
    id: string,
    lease: { readonly id: LeaseId; readonly ttlMs: number },
    sent: Sent,
    onEnd: (session: Session, why: SessionEnd) => void,
    measures?: { renewed(ok: boolean): void },
  ) {
    this.#measures = measures;
    this.#store = store;
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.id = id;
    this.leaseId = lease.id;
    this.ttlMs = lease.ttlMs;
    this.#sent = sent;
    this.#renewFrom(this.#renewalAfter(sent));
    this.#schedule();
  }

  #renewalAfter(sent: Sent): number {
    return sent.monotonic + this.ttlMs * RENEWED_AFTER;
  }

  #renewFrom(at: number): void {
    this.#renewAt = at;
    this.#quietUntil = Math.min(at - this.ttlMs * EARLY, this.#sent.monotonic + this.#validMs);
    this.#quietUntilWall = this.#sent.now + this.#validMs;
  }

  get ended(): SessionEnd | undefined {
    return this.#ended;
  }

  get #validMs(): number {
    return this.ttlMs * (1 - MARGIN);
  }

  /**
   * Called before control returns to user code: after a stall of the event loop, this may be the first to notice that the
   * time is up.
   */
  isValid(): boolean {
    if (this.#ended !== undefined) return false;
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    this.lookedAt = monotonic;
    if (monotonic < this.#quietUntil && now < this.#quietUntilWall) return true;
    if (hasPassed(this.#clock, this.#sent, this.#validMs, isOfOneMachine(this.#store), this.lookedAt, now)) {
      this.end('disconnected');
      return false;
    }
    // A program that never lets timers run still calls this, and so still renews. If the wall clock is ahead, it may only
    // have been set; a renewal asks the store at once.
    const isSet = now >= this.#sent.now + this.#validMs;
    if (this.lookedAt >= this.#renewAt - this.ttlMs * EARLY || (isSet && Number.isFinite(this.#renewAt))) this.#renew();
    return this.#ended === undefined;
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
    const next = Math.min(this.#renewAt, this.#sent.monotonic + this.#validMs);
    this.#timer = this.#clock.timer(Math.max(0, next - this.#clock.monotonic()), () => {
      if (this.isValid()) this.#schedule();
    });
  }

  #renew(): void {
    const sent = sentNow(this.#clock);
    // The answer may never come: then only the deadline is left.
    this.#renewFrom(Number.POSITIVE_INFINITY);
    if (this.#store.keepLeaseAliveNow?.(this.leaseId) !== true) void this.#renewInTime(sent);
    else if (this.isValid()) this.#renewed(sent);
  }

  /** Only called while the last renewal still counts: an answer that comes later is ignored. */
  #renewed(sent: Sent): void {
    this.#measures?.renewed(true);
    this.#sent = sent;
    this.#renewFrom(this.#renewalAfter(sent));
  }

  async #renewInTime(sent: Sent): Promise<void> {
    try {
      const lease = await this.#store.keepLeaseAlive(this.leaseId, this.#stop.signal);
      if (!this.isValid()) return;
      if (lease === null) {
        this.#measures?.renewed(false);
        return this.end('expired');
      }
      this.#renewed(sent);
    } catch (error) {
      // A renewal that `close` cut short did not fail.
      if (this.#ended !== 'closed') this.#measures?.renewed(false);
      if (!this.isValid()) return;
      if (Failure.is(error, 'closed')) return this.end('disconnected');
      this.#renewFrom(this.#clock.monotonic() + Math.max(SHORTEST_RETRY_MS, this.ttlMs / 20));
    }
    this.#schedule();
  }
}

export interface Sent {
  readonly monotonic: number;
  readonly now: number;
  /** On the clock that counts suspend, where there is one. */
  readonly uptime?: number | undefined;
}

export function sentNow(clock: Clock): Sent {
  return { monotonic: clock.monotonic(), now: clock.now(), uptime: clock.uptime?.() };
}

/** Whether all processes that use this store are on one machine. */
export function isOfOneMachine(store: Store): boolean {
  return store.endLeaseWith !== undefined;
}

/** Whether all that write to this store read the same wall clock: processes of one machine, or this process alone. */
export function sharesOneClock(store: Store): boolean {
  return isOfOneMachine(store) || store.transactionNow !== undefined;
}

/**
 * Whether `ms` may have passed since then. The monotonic clock stands still in suspend, so the wall clock gets ahead of it.
 * On one machine only suspend matters, and the clock that counts suspend tells it from a wall clock that was set. Across
 * machines any lead of the wall clock counts: a virtual machine that was paused, or a container that was restored, has no
 * other sign of the time that passed for all other machines.
 */
export function hasPassed(
  clock: Clock,
  since: Sent,
  ms: number,
  onOneMachine: boolean,
  monotonic = clock.monotonic(),
  now = clock.now(),
): boolean {
  if (monotonic >= since.monotonic + ms) return true;
  if (now < since.now + ms) return false;
  const uptime = onOneMachine && since.uptime !== undefined ? clock.uptime?.() : undefined;
  return uptime === undefined || uptime >= (since.uptime as number) + ms;
}

/** A resource that this process has used. */
export interface Visited {
  readonly keys: { readonly record: string };
  readonly cached: { hasHoldOf(lease: string, record: KeyValue): boolean };
}

/** A process that used more resources than this does not look at each of them when it leaves: its lease ends instead. */
const MOST_LOOKED_AT = 64;

/** Gives up the lease of a session that has ended. */
export async function leave(store: Store, session: Session, visited: readonly Visited[]): Promise<void> {
  // If this fails, the end of the lease deletes the same keys.
  if (isOfOneMachine(store)) await leaveQuietly(store, session, visited).catch(() => undefined);
  await store.revokeLease(session.leaseId).catch(() => undefined);
}

/**
 * Deletes the anchor and the mailbox, if nothing else in the store rests on this session. The end of the lease would delete
 * them too, but it wakes every process that waits for anything, because a holder may have died. Reads from the store
 * whether something is left: this process may not know, since a release may have got no answer. Nothing can be added after
 * the read: every write of this session compares that its anchor is there, and the records are compared here.
 */
async function leaveQuietly(store: Store, { id, leaseId }: Session, visited: readonly Visited[]): Promise<void> {
  if (visited.length > MOST_LOOKED_AT) return;
  const own = [anchorKey(id), mailboxKey(id)];
  const lease = await store.leaseState(leaseId);
  if (lease === null || lease.keys.some((key) => !own.includes(key))) return;
  const reads = visited.map(({ keys }) => ({ do: 'read', key: keys.record }) as const);
  const { results } = await store.transaction(always(reads));
  const records = visited.map(({ keys }) => pairIn(results, keys.record));
  const isHeld = records.some((record, place) => record !== undefined && visited[place]?.cached.hasHoldOf(id, record));
  if (isHeld) return;
  const compare = visited.map(({ keys }, place) => {
    return { key: keys.record, target: 'mod', is: '=', than: records[place]?.modRevision ?? 0 } as const;
  });
  await store.transaction({ compare, success: own.map((key) => ({ do: 'delete', key })), failure: [] });
}
