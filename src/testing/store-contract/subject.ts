/** The store under test, and the shape of the contract's promises. */
import type { Store } from '../../store/contract.ts';

/** A store under test. */
export interface ContractSubject {
  /** Empty, and used only by the suite. */
  readonly store: Store;
  /** Opens another handle on the same data, if the engine allows it. */
  readonly reopen?: () => Promise<Store>;
  /** Removes the store while it is in use, or puts an older one in its place, if that can happen to the engine. */
  readonly replace?: () => Promise<void>;
  /** Lets time pass for the store and its callers. */
  advance(ms: number): Promise<void>;
  /** The shortest lease that the store grants exactly as requested. */
  readonly minTtlMs: number;
  /** Cleans up. */
  close(): Promise<void>;
}

/** One promise of the store contract. */
export interface StorePromise {
  /** A sentence that is true of every store. */
  readonly name: string;
  /** Throws if it is not true of this store. */
  run(subject: ContractSubject): Promise<void>;
}

export function promise(name: string, run: (subject: ContractSubject) => Promise<void>): StorePromise {
  return { name, run };
}
