/** What the contract suite needs to test a store, and the shape of its promises. */
import type { Store } from '../../store/contract.ts';

/** A store that is put to the test. */
export interface ContractSubject {
  /** Empty, and nobody else's: what the suite writes is all that is written. */
  readonly store: Store;
  /** Another handle on the same data, where there can be one. */
  readonly reopen?: () => Promise<Store>;
  /** Lets time pass, for the store and for its callers. */
  advance(ms: number): Promise<void>;
  /** The shortest lease that the store grants as asked. */
  readonly minTtlMs: number;
  /** Cleans up. */
  close(): Promise<void>;
}

/** One promise of the store contract. */
export interface StorePromise {
  /** A sentence that is true of every store. */
  readonly name: string;
  /** Throws if it is not true of this one. */
  run(subject: ContractSubject): Promise<void>;
}

export function promise(name: string, run: (subject: ContractSubject) => Promise<void>): StorePromise {
  return { name, run };
}
