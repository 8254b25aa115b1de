/**
 * Leases and the keys that die with them. Renewing a lease only moves its deadline: when its timer fires, it sees the
 * new deadline and sleeps for the rest. So a heartbeat costs no timer, and a timer that fires late revives nothing,
 * since every question about a lease looks at the deadline first.
 */
import type { Clock, Timer } from '../../clock.ts';
import type { LeaseId } from '../contract.ts';
import type { Entry } from './entry.ts';

export interface HeldLease {
  readonly id: LeaseId;
  readonly ttlMs: number;
  /** The keys in no order: a list that is filled from its end costs a fraction of a set. */
  readonly entries: Entry[];
  /** On the monotonic clock. */
  deadline: number;
  timer: Timer;
}

export class Leases {
  readonly #clock: Clock;
  readonly #onExpired: (lease: HeldLease) => void;
  readonly #held = new Map<LeaseId, HeldLease>();
  /** The lease asked for last: most often that of this process's session. */
  #last: HeldLease | undefined;
  #granted = 0;

  constructor(clock: Clock, onExpired: (lease: HeldLease) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  grant(ttlMs: number): HeldLease {
    const id = String(++this.#granted);
    const deadline = this.#clock.monotonic() + ttlMs;
    const lease: HeldLease = {
      id,
      ttlMs,
      entries: [],
      deadline,
      timer: this.#clock.timer(ttlMs, () => this.#ring(lease)),
    };
    this.#held.set(id, lease);
    return lease;
  }

  /** The lease, even if its time is over and nobody has noticed yet: a transaction does not read the clock. */
  get(id: LeaseId): HeldLease | undefined {
    if (this.#last?.id !== id) this.#last = this.#held.get(id);
    return this.#last;
  }

  /** The lease, unless its time is over; then it ends here and now, whether or not its timer has fired. */
  getUnexpired(id: LeaseId): HeldLease | undefined {
    const lease = this.#held.get(id);
    if (lease === undefined || this.remainingMs(lease) > 0) return lease;
    this.#onExpired(lease);
    return undefined;
  }

  renew(lease: HeldLease): void {
    lease.deadline = this.#clock.monotonic() + lease.ttlMs;
  }

  remainingMs(lease: HeldLease): number {
    return lease.deadline - this.#clock.monotonic();
  }

  /** Removes the lease; the engine deletes its keys. */
  remove(lease: HeldLease): void {
    lease.timer.cancel();
    this.#held.delete(lease.id);
    this.#last = undefined;
  }

  stop(): void {
    for (const lease of this.#held.values()) lease.timer.cancel();
  }

  #ring(lease: HeldLease): void {
    const remainingMs = this.remainingMs(lease);
    if (remainingMs > 0) lease.timer = this.#clock.timer(remainingMs, () => this.#ring(lease));
    else this.#onExpired(lease);
  }
}

export function attach(entry: Entry, lease: HeldLease): void {
  entry.lease = lease;
  entry.leaseIndex = lease.entries.push(entry) - 1;
}

export function detach(entry: Entry): void {
  const { lease, leaseIndex } = entry;
  if (lease === undefined) return;
  const last = lease.entries.pop() as Entry;
  if (last !== entry) {
    lease.entries[leaseIndex] = last;
    last.leaseIndex = leaseIndex;
  }
  entry.lease = undefined;
}
