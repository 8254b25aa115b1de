/**
 * The store contract: where state lives, and what every engine promises of it.
 *
 * Its shape is etcd's, because that shape is proven and because a real etcd can then be the judge
 * of the other engines. Each promise below is a named test in `src/testing/store-contract.ts`.
 *
 * Every call may throw a `Failure`: `unavailable` (certainly not applied), `outcome-unknown`
 * (maybe applied), `closed`, `forbidden`, `corrupt`, `invalid`.
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
  /** The revision at which the key came to be; changes when it is deleted and made again. */
  readonly createRevision: Revision;
  /** The revision that changed it last. */
  readonly modRevision: Revision;
  /** One when the key came to be, raised by every put. */
  readonly version: number;
  /** The lease whose end deletes it, if it has one. */
  readonly lease: LeaseId | null;
}

/**
 * The keys from `key` up to but not including `end`, in order of their UTF-8 bytes; without `end`, just `key`. As in
 * etcd, the end `'\0'` (before which no key can be) says that there is none: every key from `key` on. A range that ends
 * before it begins is empty. Neither key nor end may be the empty string, and a key that is put is well-formed Unicode.
 */
export interface KeyRange {
  /** The first key. */
  readonly key: string;
  /** The key after the last one; just `key`, if not given. */
  readonly end?: string | undefined;
}

/**
 * Over a range a comparison must hold for every key in it. A key that does not exist has version,
 * create and mod revision 0 and no lease; so `version = 0` over a range says that it is empty.
 * A comparison of values never holds where there is no key.
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
 * At most 128 comparisons, and as many operations in each branch; what is nested has as many to itself as the longest
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
 * before any of the whole was applied (as in etcd: they do not see the puts beside them, though its reads do).
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
  /** How many pairs there are here; of a read with `countOnly`, how many keys are in the range. */
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
  /** The store's revision after it: the revision of its own changes, where it made any. */
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

/** It can be read once: a second iteration continues where the first one stopped. */
export interface Watch extends AsyncIterable<Changes> {
  /** Every change after this revision will be delivered: in order, none skipped, none twice. */
  readonly since: Revision;
}

/** What a watcher knows of the keys that it watches. */
export interface WatchHint {
  /**
   * `lease-ends`: the watcher acts on keys that go because their lease ended. All other changes in the range may be
   * delivered later, in order, with the next such key or when the engine looks by itself; an engine that wakes processes
   * then wakes none for them. An engine may ignore it.
   */
  readonly urgent?: 'lease-ends' | undefined;
}

/** A lease. */
export interface Lease {
  /** Its id. */
  readonly id: LeaseId;
  /** What the store granted: at least what was asked for. */
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
  /** History up to and including this is forgotten (0: none is): watches may start since it, or later. */
  readonly compacted: Revision;
}

/**
 * A call whose signal is aborted throws the signal's reason. If it was aborted before the call, nothing was applied;
 * if later, it may have been.
 */
export interface Store {
  /**
   * Applies `success` if every comparison holds, else `failure`; all or nothing. Operations see
   * the ones before them. A lease that is gone, or `keep` on a key that is not there, in the
   * branch that is to be applied, throws `not-found` and changes nothing.
   */
  transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult>;

  /**
   * The same, answered at once: for engines that live in this process. The runtime uses it where
   * it exists, so that an uncontended acquire costs no more promises than its caller awaits.
   * Watchers are woken, but run only after it has returned.
   */
  transactionNow?(transaction: Transaction): TransactionResult;

  /**
   * Changes after `since`, or from now on. Resolves once the store has confirmed it: every
   * later write is delivered. Iterating throws `compacted` if history was compacted past
   * what is to be delivered next, and always if `since` lies before `compacted`; `unavailable` if
   * the connection broke; then open another one after the last revision that was delivered. Ends,
   * without an error, when `signal` aborts.
   *
   * (etcd itself accepts a watch whose first wanted revision is the compacted one, and before
   * 3.4.36 and 3.5.18 then loses the deletions of that revision. An engine on etcd asks for `since`
   * instead of `since + 1` and drops what comes for `since`: the server then refuses as it should.)
   */
  watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal, hint?: WatchHint): Promise<Watch>;

  /**
   * Keys put with this lease are deleted when it ends: all in one revision, by key, as an ordinary
   * change. `ttlMs` is a finite number above 0.
   */
  grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease>;
  /** Full time again. `null` if the lease has ended: it never comes back. */
  keepLeaseAlive(id: LeaseId, signal?: AbortSignal): Promise<Lease | null>;
  /**
   * The same, answered at once where that is possible: hundreds of waiting processes do little else. False: `keepLeaseAlive`
   * is to be called, which waits for its turn, and says what is wrong.
   */
  keepLeaseAliveNow?(id: LeaseId): boolean;
  /** Ends a lease now. Ending one that has ended is not an error. */
  revokeLease(id: LeaseId, signal?: AbortSignal): Promise<void>;
  /** A lease, or null if it has ended. */
  leaseState(id: LeaseId, signal?: AbortSignal): Promise<LeaseState | null>;
  /**
   * For engines that serve the processes of one machine: the lease ends as soon as it is proven that none of these
   * processes is left. Only ever sooner: a process that lives keeps no lease alive. Said again, it replaces what was
   * said before. Throws `not-found` if the lease has ended.
   */
  endLeaseWith?(id: LeaseId, processes: readonly ProcessIdentity[], signal?: AbortSignal): Promise<void>;
  /** For those engines: other users may have written what is in it. Where it is not said, this user alone has. */
  readonly isOfSeveralUsers?: boolean;

  /**
   * Forgets history up to and including `revision`; current values stay. Throws `compacted` if
   * that is already compacted, `invalid` if it is still to come or no revision.
   */
  compact(revision: Revision, signal?: AbortSignal): Promise<void>;
  /**
   * Programs other than signalbox may need the history of this store too: it is compacted only on request, and not by
   * maintenance.
   */
  readonly historyIsShared?: boolean;
  /** Answers if the store works, and throws if it does not. */
  health(signal?: AbortSignal): Promise<Health>;
  /**
   * Aborts when the store that was opened is there no more: it was removed, replaced, or restored from a backup. What this
   * process knows of it, and holds in it, is void. The reason is the `closed` failure with which all watches end and all
   * calls are refused from then on.
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
