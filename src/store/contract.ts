/**
 * The store contract: where state lives, and what every engine promises.
 *
 * Its shape is etcd's, because that shape is proven and because a real etcd can then be the judge of the other engines.
 * Each promise below is a named test in `src/testing/store-contract.ts`.
 *
 * Every call may throw a `Failure`: `unavailable` (certainly not applied), `outcome-unknown` (maybe applied), `closed`,
 * `forbidden`, `corrupt`, `invalid`.
 */
import type { ProcessIdentity } from '../host/index.ts';
import type { Value } from './value.ts';

/** One counter for the whole store, 1 when it is new: every transaction that changes something raises it by one. */
export type Revision = number;

/** A string, because etcd's lease ids exceed what a JavaScript number holds. */
export type LeaseId = string;

/** A key and its value. */
export interface KeyValue {
  /** The key. */
  readonly key: string;
  /** Its value. */
  readonly value: Value;
  /** The revision that made the key; a key that is deleted and made again gets a new one. */
  readonly createRevision: Revision;
  /** The revision that changed it last. */
  readonly modRevision: Revision;
  /** One when the key was made, raised by every put. */
  readonly version: number;
  /** The lease whose end deletes it, if it has one. */
  readonly lease: LeaseId | null;
}

/**
 * The keys from `key` up to but not including `end`, in order of their UTF-8 bytes; without `end`, just `key`. As in
 * etcd, the end `'\0'` (no key can come before it) means no end: every key from `key` on. A range that ends before it
 * begins is empty. Neither key nor end may be the empty string, and a key that is put is well-formed Unicode.
 */
export interface KeyRange {
  /** The first key. */
  readonly key: string;
  /** The key after the last one; just `key`, if not given. */
  readonly end?: string | undefined;
}

/**
 * Over a range, a comparison must hold for every key in it. A key that does not exist has version, create and mod
 * revision 0 and no lease; so `version = 0` over a range says that the range is empty. A comparison of values never
 * holds where there is no key.
 */
export type Compare = KeyRange &
  (
    | {
        readonly target: 'version' | 'create' | 'mod';
        readonly is: '=' | '!=' | '<' | '>';
        readonly than: number;
      }
    | { readonly target: 'value'; readonly is: '=' | '!='; readonly than: string }
    | { readonly target: 'lease'; readonly is: '=' | '!='; readonly than: LeaseId | null }
  );

/** Writes a key. */
export interface Put {
  /** Which operation it is. */
  readonly do: 'put';
  /** The key. */
  readonly key: string;
  /** Its value. */
  readonly value: Value;
  /** The lease whose end deletes the key; `keep` leaves the lease it has; absent means none, whatever it had. */
  readonly lease?: LeaseId | 'keep' | undefined;
}

/** Deletes the keys of a range. */
export interface Delete extends KeyRange {
  /** Which operation it is. */
  readonly do: 'delete';
}

/** Reads the keys of a range. */
export interface Read extends KeyRange {
  /** Which operation it is. */
  readonly do: 'read';
  /** At most this many pairs, from 1; `more` then tells whether there were others. */
  readonly limit?: number | undefined;
  /** By key (the default), or by age: create revision, then key. */
  readonly order?: 'key' | 'create' | undefined;
  /** Only the count: no pairs are returned, and `more` is false. */
  readonly countOnly?: boolean | undefined;
}

/**
 * At most 128 comparisons, and as many operations in each branch; a nested transaction may have as many as the longest
 * list around it left of the 128. No key may be put twice, or put and deleted, by operations that could be applied
 * together; the two branches of one transaction could not. Deletions may overlap.
 */
export interface Transaction {
  /** What must hold. */
  readonly compare: readonly Compare[];
  /** Done if every comparison holds. */
  readonly success: readonly Operation[];
  /** Done otherwise. */
  readonly failure: readonly Operation[];
}

/**
 * Part of the transaction around it: applied with it, in its revision. Its comparisons look at the store as it was
 * before the whole transaction (as in etcd: they do not see the puts beside them, but its reads do).
 */
export interface Nested extends Transaction {
  /** Which operation it is. */
  readonly do: 'transaction';
}

/** One step of a transaction. */
export type Operation = Put | Delete | Read | Nested;

/** What a read answers. */
export interface ReadResult {
  /** Which operation it answers. */
  readonly do: 'read';
  /** The keys and their values. */
  readonly pairs: readonly KeyValue[];
  /** Whether the limit left some out. */
  readonly more: boolean;
  /** How many pairs are in this result; for a read with `countOnly`, how many keys are in the range. */
  readonly count: number;
}

/** What one step of a transaction answers. */
export type OperationResult =
  | { readonly do: 'put' }
  | { readonly do: 'delete'; readonly deleted: number }
  | ReadResult
  | ({ readonly do: 'transaction' } & Omit<TransactionResult, 'revision'>);

/** What a transaction answers. */
export interface TransactionResult {
  /** Which branch was applied. */
  readonly succeeded: boolean;
  /** The store's revision after the transaction; if the transaction changed something, the revision of these changes. */
  readonly revision: Revision;
  /** One for each operation of that branch, in order. */
  readonly results: readonly OperationResult[];
}

/** One change of a key. */
export type Change =
  | { readonly kind: 'put'; readonly pair: KeyValue }
  | { readonly kind: 'delete'; readonly key: string; readonly revision: Revision };

/** All that one revision changed in the watched range, in the order of the operations; never a part of it. */
export interface Changes {
  /** The revision that made them. */
  readonly revision: Revision;
  /** All changes of that revision. */
  readonly changes: readonly Change[];
}

/** The changes of a range. They can be read once: a second iteration continues where the first one stopped. */
export interface Watch extends AsyncIterable<Changes> {
  /** Every change after this revision will be delivered: in order, none skipped, none twice. */
  readonly since: Revision;
}

/** What a watcher says about the keys that it watches. */
export interface WatchHint {
  /**
   * `lease-ends`: the watcher acts on keys that go because their lease ended. All other changes in the range may be
   * delivered later, in order, with the next such key or when the engine looks by itself; an engine that wakes
   * processes then wakes none for those changes. An engine may ignore the hint.
   */
  readonly urgent?: 'lease-ends' | undefined;
}

/** A lease. */
export interface Lease {
  /** Its id. */
  readonly id: LeaseId;
  /** The time that the store granted: at least what was asked for. */
  readonly ttlMs: number;
}

/** A lease that has not ended. */
export interface LeaseState extends Lease {
  /** What is left of its time. */
  readonly remainingMs: number;
  /** The keys that its end deletes. */
  readonly keys: readonly string[];
}

/** The answer of a store that works. */
export interface Health {
  /** Its revision. */
  readonly revision: Revision;
  /** History up to and including this revision is forgotten (0: nothing is): watches may start here, or later. */
  readonly compacted: Revision;
}

/**
 * A call whose signal is aborted throws the signal's reason. If it was aborted before the call, nothing was applied; if
 * later, the call may have been applied.
 */
export interface Store {
  /**
   * Applies `success` if every comparison holds, else `failure`; all or nothing. Operations see the effects of those
   * before them. If the branch to apply names a lease that is gone, or says `keep` for a key that is not there, throws
   * `not-found` and changes nothing.
   */
  transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult>;

  /**
   * The same, answered at once: for engines that live in this process. The runtime uses it where it exists, so that an
   * uncontended acquire costs no more promises than its caller awaits. Watchers are woken, but run only after the call
   * has returned.
   */
  transactionNow?(transaction: Transaction): TransactionResult;

  /**
   * Changes after `since`, or from now on. Resolves once the store has confirmed the watch: every later write is
   * delivered. Iterating throws `compacted` if history was compacted past the next change to deliver, and always if
   * `since` lies before `compacted`. It throws `unavailable` if the connection broke; then open another watch after the
   * last revision that was delivered. Ends, without an error, when `signal` aborts.
   *
   * (etcd itself accepts a watch whose first wanted revision is the compacted one, and before 3.4.36 and 3.5.18 then
   * loses the deletions of that revision. An engine on etcd asks for `since` instead of `since + 1` and drops the
   * changes of `since`: the server then refuses as it should.)
   */
  watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal, hint?: WatchHint): Promise<Watch>;

  /**
   * Grants a lease. Keys put with it are deleted when it ends: all in one revision, by key, as an ordinary change.
   * `ttlMs` is a finite number above 0.
   */
  grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease>;
  /** Renews the lease for its full time. `null` if it has ended: an ended lease never comes back. */
  keepLeaseAlive(id: LeaseId, signal?: AbortSignal): Promise<Lease | null>;
  /**
   * The same, answered at once where that is possible: hundreds of waiting processes do little else. If it returns
   * false, call `keepLeaseAlive`, which waits for its turn and says what is wrong.
   */
  keepLeaseAliveNow?(id: LeaseId): boolean;
  /** Ends a lease now. Ending a lease that has ended is not an error. */
  revokeLease(id: LeaseId, signal?: AbortSignal): Promise<void>;
  /** A lease, or null if it has ended. */
  leaseState(id: LeaseId, signal?: AbortSignal): Promise<LeaseState | null>;
  /**
   * For engines that serve the processes of one machine: ends the lease as soon as it is proven that none of these
   * processes is left. This can only end a lease sooner: a process that lives keeps no lease alive. A second call
   * replaces the processes of the first. Throws `not-found` if the lease has ended.
   */
  endLeaseWith?(id: LeaseId, processes: readonly ProcessIdentity[], signal?: AbortSignal): Promise<void>;
  /** For the same engines: whether other users may have written to the store. Undefined means that only this user has. */
  readonly isOfSeveralUsers?: boolean;

  /**
   * Forgets history up to and including `revision`; current values stay. Throws `compacted` if that revision is already
   * compacted, and `invalid` if it is still to come or is no revision.
   */
  compact(revision: Revision, signal?: AbortSignal): Promise<void>;
  /**
   * Whether programs other than signalbox may need the history of this store too: then it is compacted only on request,
   * not by maintenance.
   */
  readonly historyIsShared?: boolean;
  /** Answers if the store works, and throws if it does not. */
  health(signal?: AbortSignal): Promise<Health>;
  /**
   * Aborts when the opened store no longer exists: it was removed, replaced, or restored from a backup. Whatever this
   * process knows of it, and holds in it, is void. The reason is the `closed` failure with which all watches end and
   * all calls are refused from then on.
   */
  readonly over?: AbortSignal | undefined;
  /** Ends watches, without an error, and refuses further calls with `closed`. Leases run on until they end. */
  close(): Promise<void>;
}

/** The range of all keys that begin with `prefix`. */
export function prefixed(prefix: string): { readonly key: string; readonly end: string } {
  return { key: prefix, end: afterPrefix(prefix) };
}

/** The first key after all keys that begin with `prefix`, which ends in an ASCII character. */
export function afterPrefix(prefix: string): string {
  const last = prefix.length - 1;
  return prefix.slice(0, last) + String.fromCharCode(prefix.charCodeAt(last) + 1);
}
