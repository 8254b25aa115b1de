/**
 * What a process knows of leases without asking the store: its own, which is its session, and those of others (`Anchors`).
 *
 * The session is one lease in the store, renewed after a third of its time.
 *
 *     sent ──────────── renewal answered ─────────────── deadline ── margin ── the store may end the lease
 *      └── counted from here, because the store may have counted from here
 *
 * At the deadline the process ends its session itself, without asking the store: every hold learns of its loss before the
 * store lets anyone else in. The monotonic clock measures the time; a second clock checks it, because the monotonic clock
 * stands still while a laptop sleeps (see `hasPassed`).
 */
import type { Clock, Timer } from '../../clock.ts';
import type { Steps } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Changes, KeyValue, LeaseId, Revision, Store } from '../../store/index.ts';
import type { Follower } from '../../store/follow.ts';
import type { WriterIdentity } from '../write/commit.ts';
import { ANCHORS, anchorKey } from '../layout.ts';

export type SessionEnd = 'expired' | 'disconnected' | 'closed';

/** The part of the lease that is given up, because the clocks of two machines drift apart. */
export const MARGIN = 0.1;
/** The part of the lease's time after which it is renewed: there must be time for several attempts over a network. */
const RENEWED_AFTER = 1 / 3;
const SHORTEST_RETRY_MS = 50;
/** The part of the lease's time by which a renewal may come early: Node's timers do, and waking up once more costs more. */
const EARLY = 1 / 500;

/** What a session uses of its process. */
export interface SessionHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly anchors: Pick<Anchors, 'isGone'>;
  readonly leases: { idOf(name: string): LeaseId | undefined };
  readonly measures: { renewed(ok: boolean): void };
}

export class Session implements WriterIdentity {
  readonly id: string;
  readonly anchor: string;
  readonly leaseId: LeaseId;
  readonly ttlMs: number;
  /** The version of the session's anchor: writes that were sent under an earlier version cannot take effect. */
  epoch = 1;
  readonly #host: SessionHost;
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
  /** When `isValid` last looked, on the monotonic clock: reading a clock costs a good part of an acquire in memory. */
  lookedAt = 0;

  /** `sent`: when the lease was asked for, on both clocks. */
  constructor(
    host: SessionHost,
    id: string,
    lease: { readonly id: LeaseId; readonly ttlMs: number },
    sent: Sent,
    onEnd: (session: Session, why: SessionEnd) => void,
  ) {
    this.#host = host;
    this.#clock = host.clock;
    this.#onEnd = onEnd;
    this.id = id;
    this.anchor = anchorKey(id);
    this.leaseId = lease.id;
    this.ttlMs = lease.ttlMs;
    this.#sent = sent;
    this.#renewFrom(this.#renewalAfter(sent));
    this.#schedule();
  }

  leaseIdOf(name: string): LeaseId {
    return name === this.id ? this.leaseId : (this.#host.leases.idOf(name) ?? '');
  }

  isGone(lease: string): boolean {
    return this.#host.anchors.isGone(lease);
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
    if (hasPassed(this.#clock, this.#sent, this.#validMs, isOfOneMachine(this.#host.store), monotonic, now)) {
      this.end('disconnected');
      return false;
    }
    // A program that never lets timers run still calls this, and so still renews. If the wall clock is ahead, it may only
    // have been set; a renewal asks the store at once.
    const isSet = now >= this.#sent.now + this.#validMs;
    if (monotonic >= this.#renewAt - this.ttlMs * EARLY || (isSet && Number.isFinite(this.#renewAt))) this.#renew();
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
    if (this.#host.store.keepLeaseAliveNow?.(this.leaseId) !== true) void this.#renewInTime(sent);
    else if (this.isValid()) this.#renewed(sent);
  }

  /** Only called while the last renewal still counts: an answer that comes later is ignored. */
  #renewed(sent: Sent): void {
    this.#host.measures.renewed(true);
    this.#sent = sent;
    this.#renewFrom(this.#renewalAfter(sent));
  }

  async #renewInTime(sent: Sent): Promise<void> {
    try {
      const lease = await this.#host.store.keepLeaseAlive(this.leaseId, this.#stop.signal);
      if (!this.isValid()) return;
      if (lease === null) {
        this.#host.measures.renewed(false);
        return this.end('expired');
      }
      this.#renewed(sent);
    } catch (error) {
      // A renewal that `close` cut short did not fail.
      if (this.#ended !== 'closed') this.#host.measures.renewed(false);
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

/** How many ended leases are remembered; an older one counts as unknown, and is looked up again. */
const MOST_GONE = 10_000;

/**
 * Follows the anchors in the store, to know which leases are alive. This may lag behind the store, so no decision rests on it
 * alone: a write that reclaims a hold compares that the anchor is gone. An unknown lease counts as alive until it is looked up.
 */
export class Anchors {
  /** The living leases, each with the revision at which it was made. */
  readonly #alive = new Map<string, Revision>();
  readonly #gone = new Set<string>();
  /** All changes up to this revision are included. */
  #asOf: Revision = 0;
  readonly #onGone: () => void;

  /** Calls `onGone` after leases have ended, when `isGone` says so. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  isGone(lease: string): boolean {
    return this.#gone.has(lease);
  }

  isKnown(lease: string): boolean {
    return this.#alive.has(lease) || this.#gone.has(lease);
  }

  /** How many leases are known to be alive. */
  get size(): number {
    return this.#alive.size;
  }

  /** Adds a lease that this process made. */
  add(lease: string, revision: Revision): void {
    this.#alive.set(lease, revision);
  }

  /**
   * Takes a list of all anchors, read at `revision`, or from then on page by page: a lease that had ended before its page was
   * read does not come back. Changes that were followed later win. There may be an anchor for each hold, so it yields after
   * each.
   */
  *list(pairs: readonly KeyValue[], revision: Revision): Steps<void> {
    const listed = new Map<string, Revision>();
    for (const pair of pairs) {
      yield;
      listed.set(leaseOf(pair.key), pair.createRevision);
    }
    let gone = false;
    for (const [lease, since] of this.#alive) {
      yield;
      // A lease that was made after the list was read is not in it.
      if (!listed.has(lease) && since <= revision) gone = this.#ended(lease) || gone;
    }
    for (const [lease, since] of listed) {
      yield;
      if (revision >= this.#asOf || !this.#gone.has(lease)) this.#came(lease, since);
    }
    this.#asOf = Math.max(this.#asOf, revision);
    if (gone) this.#onGone();
  }

  /** The handlers of the watch on all anchors; `resync` lists them anew. */
  followed(resync: () => Promise<Revision>): Follower {
    return { changes: (changes) => this.#changed(changes), resync };
  }

  #changed({ revision, changes }: Changes): void {
    if (revision <= this.#asOf) return;
    this.#asOf = revision;
    let gone = false;
    for (const change of changes) {
      if (change.kind === 'put') this.#came(leaseOf(change.pair.key), change.pair.createRevision);
      else gone = this.#ended(leaseOf(change.key)) || gone;
    }
    if (gone) this.#onGone();
  }

  /** Takes one anchor, read at `revision`. For a known lease, changes that were followed later than that win. */
  saw(lease: string, wasAlive: boolean, revision: Revision): void {
    if (this.isKnown(lease) && this.#asOf > revision) return;
    if (wasAlive) this.#came(lease, this.#alive.get(lease) ?? revision);
    else if (this.#ended(lease)) this.#onGone();
  }

  /** Of all anchors, only the maintainer's comes back after it has gone. */
  #came(lease: string, since: Revision): void {
    this.#alive.set(lease, since);
    this.#gone.delete(lease);
  }

  /** Whether the lease was known to be alive until now. */
  #ended(lease: string): boolean {
    const wasAlive = this.#alive.delete(lease);
    this.#gone.add(lease);
    if (this.#gone.size > MOST_GONE) this.#gone.delete(this.#gone.values().next().value as string);
    return wasAlive;
  }
}

function leaseOf(key: string): string {
  return key.slice(ANCHORS.length);
}
