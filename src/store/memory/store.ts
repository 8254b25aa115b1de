/** One opener's handle on a memory engine. Closing it ends only its own watches and calls. */
import { Failure } from '../../failure.ts';
import { checkTtl, checkWatch } from '../check.ts';
import type { Health, KeyRange, Revision, Store, Transaction, TransactionResult } from '../contract.ts';
import type { Lease, LeaseId, LeaseState } from '../contract.ts';
import { compareKeys } from '../key-order.ts';
import { MemoryEngine, type MemoryOptions } from './engine.ts';
import type { HeldLease } from './leases.ts';
import type { MemoryWatch } from './watches.ts';

/** Opens a new store that lives in this process and ends when it is closed. */
export function openMemory(options: MemoryOptions = {}): MemoryStore {
  const engine = new MemoryEngine(options);
  return new MemoryStore(engine, () => engine.leases.stop());
}

export class MemoryStore implements Store {
  readonly #engine: MemoryEngine;
  readonly #onClose: () => void;
  readonly #watches = new Set<MemoryWatch>();
  #closed = false;

  constructor(engine: MemoryEngine, onClose: () => void) {
    this.#engine = engine;
    this.#onClose = onClose;
  }

  transactionNow(transaction: Transaction): TransactionResult {
    if (this.#closed) throw closed();
    return this.#engine.transact(transaction);
  }

  async transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult> {
    this.#check(signal);
    return this.#engine.transact(transaction);
  }

  async watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal): Promise<MemoryWatch> {
    this.#check();
    checkWatch(range, since);
    const { watches, history } = this.#engine;
    const watch = watches.open(range, since === 'now' ? history.revision : since, signal, () =>
      this.#watches.delete(watch),
    );
    this.#watches.add(watch);
    if (signal.aborted) watch.end();
    return watch;
  }

  async grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    this.#check(signal);
    checkTtl(ttlMs);
    return shownLease(this.#engine.leases.grant(ttlMs));
  }

  async keepLeaseAlive(id: LeaseId, signal?: AbortSignal): Promise<Lease | null> {
    this.#check(signal);
    const lease = this.#engine.leases.getUnexpired(id);
    if (lease === undefined) return null;
    this.#engine.leases.renew(lease);
    return shownLease(lease);
  }

  async revokeLease(id: LeaseId, signal?: AbortSignal): Promise<void> {
    this.#check(signal);
    const lease = this.#engine.leases.get(id);
    if (lease !== undefined) this.#engine.endLease(lease);
  }

  async leaseState(id: LeaseId, signal?: AbortSignal): Promise<LeaseState | null> {
    this.#check(signal);
    const lease = this.#engine.leases.getUnexpired(id);
    if (lease === undefined) return null;
    return {
      ...shownLease(lease),
      remainingMs: this.#engine.leases.remainingMs(lease),
      keys: lease.entries.map((entry) => entry.key).sort(compareKeys),
    };
  }

  async compact(revision: Revision, signal?: AbortSignal): Promise<void> {
    this.#check(signal);
    this.#engine.compact(revision);
  }

  async health(signal?: AbortSignal): Promise<Health> {
    this.#check(signal);
    const { revision, compacted } = this.#engine.history;
    return { revision, compacted };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const watch of this.#watches) watch.end();
    this.#onClose();
  }

  #check(signal?: AbortSignal): void {
    if (this.#closed) throw closed();
    signal?.throwIfAborted();
  }
}

function shownLease({ id, ttlMs }: HeldLease): Lease {
  return { id, ttlMs };
}

function closed(): Failure {
  return new Failure('closed', 'this store was closed');
}
