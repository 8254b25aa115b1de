/**
 * A store whose calls all end. If an answer does not come in time, a read throws `unavailable`, and a call that may have
 * changed something throws `outcome-unknown`. So no caller hangs on a store that is stuck.
 */
import type { Clock, Timer } from '../clock.ts';
import { Failure } from '../failure.ts';
import {
  type Health,
  type KeyRange,
  type Revision,
  type Store,
  type Transaction,
  type TransactionResult,
  type Lease,
  type LeaseId,
  type LeaseState,
  type Watch,
  type WatchHint,
  readsOnly,
} from './index.ts';

export function withDeadlines(store: Store, clock: Clock, limitMs: number): Store {
  const bounded = new BoundedStore(store, clock, limitMs);
  if (store.over !== undefined) bounded.over = store.over;
  if (store.historyIsShared !== undefined) bounded.historyIsShared = store.historyIsShared;
  if (store.isOfSeveralUsers !== undefined) bounded.isOfSeveralUsers = store.isOfSeveralUsers;
  if (store.transactionNow !== undefined) bounded.transactionNow = (transaction) => store.transactionNow!(transaction);
  if (store.keepLeaseAliveNow !== undefined) bounded.keepLeaseAliveNow = (id) => store.keepLeaseAliveNow!(id);
  if (store.endLeaseWith !== undefined) {
    bounded.endLeaseWith = (id, processes, signal) =>
      bounded.within(store.endLeaseWith!(id, processes, signal), ALWAYS);
  }
  return bounded;
}

const ALWAYS = (): boolean => true;
const NEVER = (): boolean => false;

/** A call that has no answer yet. */
interface Pending {
  readonly since: number;
  /** Whether it may have changed something; asked only if its time is over. */
  readonly mayHaveChanged: () => boolean;
  readonly reject: (error: Failure) => void;
}

class BoundedStore implements Store {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #limitMs: number;
  /** The oldest first. */
  readonly #pending = new Set<Pending>();
  /** One for all calls: their limit is the same, so the oldest is due first. Making one for each would cost more than the call. */
  #timer: Timer | undefined;
  over?: AbortSignal;
  historyIsShared?: boolean;
  isOfSeveralUsers?: boolean;
  transactionNow?: NonNullable<Store['transactionNow']>;
  keepLeaseAliveNow?: NonNullable<Store['keepLeaseAliveNow']>;
  endLeaseWith?: NonNullable<Store['endLeaseWith']>;

  constructor(store: Store, clock: Clock, limitMs: number) {
    this.#store = store;
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult> {
    return this.within(this.#store.transaction(transaction, signal), () => !readsOnly(transaction));
  }

  watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal, hint?: WatchHint): Promise<Watch> {
    const opening = this.#store.watch(range, since, signal, hint);
    const opened = this.within(opening, NEVER);
    // Ends a watch that opens too late: nobody reads it, so it would buffer all changes.
    opened.catch(() => opening.then(end)).catch(() => undefined);
    return opened;
  }

  grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    return this.within(this.#store.grantLease(ttlMs, signal), ALWAYS);
  }

  keepLeaseAlive(id: LeaseId, signal?: AbortSignal): Promise<Lease | null> {
    return this.within(this.#store.keepLeaseAlive(id, signal), NEVER);
  }

  revokeLease(id: LeaseId, signal?: AbortSignal): Promise<void> {
    return this.within(this.#store.revokeLease(id, signal), ALWAYS);
  }

  leaseState(id: LeaseId, signal?: AbortSignal): Promise<LeaseState | null> {
    return this.within(this.#store.leaseState(id, signal), NEVER);
  }

  compact(revision: Revision, signal?: AbortSignal): Promise<void> {
    return this.within(this.#store.compact(revision, signal), ALWAYS);
  }

  health(signal?: AbortSignal): Promise<Health> {
    return this.within(this.#store.health(signal), NEVER);
  }

  async close(): Promise<void> {
    await this.within(this.#store.close(), NEVER);
    if (this.#pending.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  within<T>(answer: Promise<T>, mayHaveChanged: () => boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const pending = { since: this.#clock.monotonic(), mayHaveChanged, reject };
      this.#pending.add(pending);
      this.#timer ??= this.#clock.timer(this.#limitMs, this.#giveUpOverdue);
      answer.then(
        (value) => {
          this.#pending.delete(pending);
          resolve(value);
        },
        (error: Error) => {
          this.#pending.delete(pending);
          reject(error);
        },
      );
    });
  }

  /** Most often the calls it was started for were answered long ago. */
  readonly #giveUpOverdue = (): void => {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const pending of this.#pending) {
      const leftMs = pending.since + this.#limitMs - now;
      if (leftMs > 0) {
        this.#timer = this.#clock.timer(leftMs, this.#giveUpOverdue);
        return;
      }
      this.#pending.delete(pending);
      const message = `the store has not answered for ${this.#limitMs} ms`;
      pending.reject(new Failure(pending.mayHaveChanged() ? 'outcome-unknown' : 'unavailable', message));
    }
  };
}

function end(watch: Watch): unknown {
  return watch[Symbol.asyncIterator]().return?.();
}
