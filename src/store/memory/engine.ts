/**
 * The memory engine: one store's data, for any number of handles in this process.
 *
 *     transaction   does it make sense? → plan: all comparisons → can all of it be done? → apply → append, announce
 *
 * Everything that can fail comes before the first change, so that no failure leaves half a transaction behind.
 */
import { type Clock, systemClock } from '../../clock.ts';
import { Failure, shown } from '../../failure.ts';
import { checkCompaction, checkHistoryLimit, checkTransaction } from '../check.ts';
import type {
  Compare,
  Operation,
  OperationResult,
  Put,
  Revision,
  Transaction,
  TransactionResult,
} from '../contract.ts';
import { History } from './history.ts';
import { Keyspace } from './keyspace.ts';
import { type HeldLease, Leases } from './leases.ts';
import { Watches } from './watches.ts';

export interface MemoryOptions {
  readonly clock?: Clock | undefined;
  /** For how many revisions watches may look back; 4,096 unless said otherwise. */
  readonly historyLimit?: number | undefined;
}

/** Which branch of a transaction, and of those in it, is to be applied: decided as a whole before any of it is. */
interface Plan {
  readonly succeeded: boolean;
  readonly operations: readonly Operation[];
  /** One for each operation that is a transaction, in order. */
  readonly nested: readonly Plan[];
}

const NOTHING_NESTED: readonly Plan[] = [];
const PUT_DONE: OperationResult = Object.freeze({ do: 'put' });

/**
 * Whatever history holds survives the garbage collector's quick rounds. At 4,096 revisions that is hardly felt; at
 * 16,384 it no longer fits there, and every put of a fresh document costs four times as much.
 */
const DEFAULT_HISTORY = 4096;

/** As an empty etcd has it. */
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
    const plan = this.#plan(transaction);
    this.#checkPlan(plan);
    const results = this.#apply(plan, this.history.revision + 1);
    this.#commit();
    return { succeeded: plan.succeeded, revision: this.history.revision, results };
  }

  endLease(lease: HeldLease): void {
    this.leases.remove(lease);
    this.#keys.deleteAttached(lease, this.history.revision + 1);
    this.#commit();
  }

  compact(revision: Revision): void {
    checkCompaction(revision, this.history.revision);
    if (revision <= this.history.compacted) {
      throw new Failure(
        'compacted',
        `revision ${revision} is forgotten already, as is all history up to ${this.history.compacted}`,
      );
    }
    this.history.compact(revision);
  }

  #plan({ compare, success, failure }: Transaction): Plan {
    const succeeded = this.#allHold(compare);
    const operations = succeeded ? success : failure;
    let nested = NOTHING_NESTED;
    for (let i = 0; i < operations.length; i++) {
      const operation = operations[i] as Operation;
      if (operation.do === 'transaction') nested = [...nested, this.#plan(operation)];
    }
    return { succeeded, operations, nested };
  }

  #allHold(compares: readonly Compare[]): boolean {
    for (let i = 0; i < compares.length; i++) if (!this.#keys.holds(compares[i] as Compare)) return false;
    return true;
  }

  #checkPlan({ operations, nested }: Plan): void {
    for (let i = 0; i < operations.length; i++) {
      const operation = operations[i] as Operation;
      if (operation.do === 'put') this.#checkPut(operation);
    }
    for (let i = 0; i < nested.length; i++) this.#checkPlan(nested[i] as Plan);
  }

  #checkPut({ key, lease }: Put): void {
    const { pair } = this.#keys.place(key);
    if (lease === undefined) return;
    if (lease === 'keep') {
      if (pair === undefined) throw new Failure('not-found', `no key ${shown(key)} whose lease could be kept`);
    } else if (this.leases.get(lease) === undefined) {
      throw new Failure('not-found', `no lease ${shown(lease)}: it has ended or never was`);
    }
  }

  #apply({ operations, nested }: Plan, revision: Revision): OperationResult[] {
    const results = new Array<OperationResult>(operations.length);
    let inner = 0;
    for (let i = 0; i < operations.length; i++) {
      const operation = operations[i] as Operation;
      switch (operation.do) {
        case 'put':
          this.#keys.put(operation, revision);
          results[i] = PUT_DONE;
          break;
        case 'delete':
          results[i] = { do: 'delete', deleted: this.#keys.delete(operation, revision) };
          break;
        case 'read':
          results[i] = this.#keys.read(operation);
          break;
        case 'transaction': {
          const plan = nested[inner++] as Plan;
          results[i] = { do: 'transaction', succeeded: plan.succeeded, results: this.#apply(plan, revision) };
        }
      }
    }
    return results;
  }

  #commit(): void {
    const changed = this.#keys.takeChanged();
    if (changed !== undefined) this.watches.announce(this.history.append(changed), changed);
  }
}
