/**
 * The questions that a `faultyStore` asks for every call, and the possible answers. A decision may come late, as a promise: that
 * delays the call, and is the only way time enters.
 *
 *     caller ──▸ before ──▸ store ──▸ after ──▸ caller
 *                  │                    │
 *                  │                    ├─ drop   applied; the caller gets `outcome-unknown`
 *                  │                    └─ hang   applied; the caller never hears
 *                  ├─ fail   not applied; the caller gets `unavailable`
 *                  ├─ drop   not applied; the caller gets `outcome-unknown`
 *                  └─ hang   not applied; the caller never hears: its process is as good as dead
 */
import type { Changes, KeyRange, LeaseId, Revision, Transaction } from '../store/contract.ts';

/** A call to the store. */
export type Call =
  | { readonly kind: 'transaction'; readonly transaction: Transaction }
  | { readonly kind: 'watch'; readonly range: KeyRange; readonly since: Revision | 'now' }
  | { readonly kind: 'grantLease'; readonly ttlMs: number }
  | { readonly kind: 'keepLeaseAlive'; readonly id: LeaseId }
  | { readonly kind: 'revokeLease'; readonly id: LeaseId }
  | { readonly kind: 'leaseState'; readonly id: LeaseId }
  | { readonly kind: 'compact'; readonly revision: Revision }
  | { readonly kind: 'health' };

/** A decision, which may come late. */
export type Decision<T> = T | Promise<T>;
/** What happens to a call before it reaches the store. */
export type Before = 'pass' | 'fail' | 'drop' | 'hang';
/** What happens to an answer. */
export type After = 'pass' | 'drop' | 'hang';

/** Decides which calls fail, and how. */
export interface Faults {
  /** Asked before the call reaches the store. */
  before(call: Call): Decision<Before>;
  /** Asked once the store has answered, before the caller gets the answer. */
  after(call: Call): Decision<After>;
  /**
   * Asked before a watch delivers; the watch delivers nothing more until this is answered. `cut` loses the changes and the watch,
   * like a broken connection.
   */
  delivery(range: KeyRange, changes: Changes): Decision<'pass' | 'cut'>;
  /** Asked when a watch opens: aborting this signal cuts it. */
  cutSignal(range: KeyRange): AbortSignal | undefined;
}
