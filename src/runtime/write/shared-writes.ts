/**
 * Sends transactions of one turn of the event loop as one, for which a store takes hardly longer than for one of them:
 *
 *     a, b, c ──▶ one transaction with all comparisons ──all hold──▶ each is answered that it succeeded
 *                                                      └─one fails──▶ each is sent by itself
 *
 * Only for transactions that compare and write one key, and read nothing if they succeed. Those of the same key are sent apart.
 */
import { Failure } from '../../failure.ts';
import type { Transaction, TransactionResult } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { isTrouble } from './recovery.ts';
import { send } from './write-once.ts';

interface Waiting {
  readonly transaction: Transaction;
  readonly resolve: (result: TransactionResult) => void;
  readonly reject: (error: unknown) => void;
}

/** Stores limit the operations of a transaction, and its size. */
const MOST_AT_ONCE = 32;
const MOST_BYTES = 256 * 1024;

export class SharedWrites {
  readonly #runtime: Pick<Runtime, 'clock' | 'commit'>;
  #waiting: Waiting[] = [];

  constructor(runtime: Pick<Runtime, 'clock' | 'commit'>) {
    this.#runtime = runtime;
  }

  send(transaction: Transaction): Promise<TransactionResult> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ transaction, resolve, reject }) > 1) return;
      const { clock } = this.#runtime;
      if (clock.afterOthers === undefined) this.#flush();
      else clock.afterOthers(() => this.#flush());
    });
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    let some: Waiting[] = [];
    let bytes = 0;
    let keys = new Set<string>();
    for (const one of all) {
      const own = one.transaction.compare.map(({ key }) => key);
      const size = sizeOf(one.transaction);
      const isFull = some.length === MOST_AT_ONCE || (some.length > 0 && bytes + size > MOST_BYTES);
      if (isFull || own.some((key) => keys.has(key))) {
        void this.#together(some);
        [some, bytes, keys] = [[], 0, new Set()];
      }
      some.push(one);
      bytes += size;
      for (const key of own) keys.add(key);
    }
    void this.#together(some);
  }

  async #together(some: readonly Waiting[]): Promise<void> {
    if (some.length === 1) return this.#alone(some);
    const transaction: Transaction = {
      compare: some.flatMap((one) => one.transaction.compare),
      success: some.flatMap((one) => one.transaction.success),
      failure: [],
    };
    try {
      const { succeeded, revision } = await send(this.#runtime, transaction);
      if (!succeeded) return this.#alone(some);
      for (const { resolve } of some) resolve({ succeeded, revision, results: [] });
    } catch (error) {
      // The store was not reached, or did not answer: that concerns all. Any other failure, such as the end of a lease,
      // concerns one of them, and nothing was done.
      if (!isTrouble(error) && !Failure.is(error, 'closed')) return this.#alone(some);
      for (const { reject } of some) reject(error);
    }
  }

  #alone(some: readonly Waiting[]): void {
    for (const { transaction, resolve, reject } of some) send(this.#runtime, transaction).then(resolve, reject);
  }
}

function sizeOf({ success }: Transaction): number {
  return success.reduce(
    (sum, operation) => sum + ('value' in operation ? Buffer.byteLength(operation.value.text) : 0),
    0,
  );
}
