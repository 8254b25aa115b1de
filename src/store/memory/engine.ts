/**
 * The memory engine: one store's data, for any number of handles in this process.
 *
 *     transaction   check the arguments → apply (plan.ts) → append to history → announce to watches
 */
import { type Clock, systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { checkCompaction, checkHistoryLimit, checkTransaction } from '../check.ts';
import type { Revision, Transaction, TransactionResult } from '../contract.ts';
import { applyTransaction } from '../plan.ts';
import { History } from './history.ts';
import { Keyspace } from './keyspace.ts';
import { type HeldLease, Leases } from './leases.ts';
import { Watches } from './watches.ts';

/** How to open a store in memory. */
export interface MemoryOptions {
  /** Where time comes from; the system, if not given. */
  readonly clock?: Clock | undefined;
  /** How many revisions watches may look back; 1,024 by default. */
  readonly historyLimit?: number | undefined;
}

/**
 * The garbage collector copies every document of the history each time it clears its young generation: at 1,024
 * revisions that is little, at 4,096 a fifth of the time of an acquire, and at 16,384 they outgrow the young generation
 * and cost four times as much. A reader that falls behind further than this has not read for more than a millisecond,
 * and lists again.
 */
const DEFAULT_HISTORY = 1024;

/** The revision of an empty etcd. */
const FIRST_REVISION = 1;

export class MemoryEngine {
  readonly history: History;
  readonly watches: Watches;
  readonly leases: Leases;
  readonly #keys: Keyspace;

  constructor({ clock = systemClock, historyLimit = DEFAULT_HISTORY }: MemoryOptions) {
    checkHistoryLimit(historyLimit);
    this.history = new History(historyLimit, FIRST_REVISION);
    this.watches = new Watches(this.history);
    this.leases = new Leases(clock, (lease) => this.endLease(lease));
    this.#keys = new Keyspace(this.leases);
  }

  transact(transaction: Transaction): TransactionResult {
    checkTransaction(transaction);
    this.#keys.nextRevision = this.history.revision + 1;
    const { succeeded, results } = applyTransaction(this.#keys, transaction);
    this.#commit();
    return { succeeded, revision: this.history.revision, results };
  }

  endLease(lease: HeldLease): void {
    this.leases.remove(lease);
    this.#keys.nextRevision = this.history.revision + 1;
    this.#keys.deleteAttached(lease);
    this.#commit();
  }

  compact(revision: Revision): void {
    checkCompaction(revision, this.history.revision);
    if (revision <= this.history.compacted) {
      throw new Failure(
        'compacted',
        `revision ${revision} is already compacted, and so is all history up to ${this.history.compacted}`,
      );
    }
    this.history.compact(revision);
  }

  #commit(): void {
    const changed = this.#keys.takeChanged();
    if (changed !== undefined) this.watches.announce(this.history.append(changed), changed);
  }
}
