/** The store contract on etcd. */
import { checkCompaction, checkTransaction, checkTtl, checkWatch } from '../check.ts';
import { Failure } from '../../failure.ts';
import { INTERNAL, UNAVAILABLE } from '../../grpc/status.ts';
import { CallFailure } from '../../grpc/transport.ts';
import type { Health, KeyRange, KeyValue, Operation, Revision, Store, Transaction } from '../contract.ts';
import type { Lease, LeaseId, LeaseState, TransactionResult } from '../contract.ts';
import { readsOnly } from '../reads-only.ts';
import { type Cut, putInOrder } from './by-age.ts';
import type { Calls } from './calls.ts';
import { CompactedRevision } from './compacted.ts';
import type { Continuity } from './continuity.ts';
import type { Keyspace } from './keyspace.ts';
import type { Attempt, Effect } from './pending.ts';
import { EtcdWatch } from './watch.ts';
import type { Watchdog } from './watchdog.ts';
import { grantedLease, grantMessage, leaseMessage, leaseState, leaseStateMessage } from './wire/lease.ts';
import { mustAnswer, readResult, revisionOf, transactionResult } from './wire/result.ts';
import { compactMessage, countMessage, type ServerStatus, STATUS_MESSAGE, statusOf } from './wire/server.ts';
import { peersMessage, transactionMessage } from './wire/transaction.ts';

/** A key that is never written: reading it returns the revision, and shows whether history reaches back to it. */
const NO_KEY = '\0';
const READ: readonly Operation[] = [{ do: 'read', key: NO_KEY, countOnly: true }];

/** A store on an etcd. */
export class EtcdStore implements Store {
  /** Whether other programs use the same history. */
  readonly historyIsShared: boolean;
  readonly #calls: Calls;
  readonly #keyspace: Keyspace;
  readonly #watchdog: Watchdog;
  readonly #watches = new Set<EtcdWatch>();
  readonly #compacted = new CompactedRevision((revision, signal) => this.#revision(revision, signal));
  readonly #continuity: Continuity;
  readonly #over = new AbortController();

  /** @internal */
  constructor(calls: Calls, keyspace: Keyspace, continuity: Continuity, watchdog: Watchdog, historyIsShared: boolean) {
    this.#calls = calls;
    this.#keyspace = keyspace;
    this.#watchdog = watchdog;
    this.historyIsShared = historyIsShared;
    this.#continuity = continuity;
    continuity.listener = { readNewest: () => this.#revision(0), replaced: (why) => this.#replaced(why) };
  }

  /** Aborts when the etcd was restored from a backup, or replaced. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Not `async`, so that a transaction costs no more promises than its caller awaits. */
  transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult> {
    if (transaction.success.length + transaction.failure.length === 0) return this.#compared(transaction, signal);
    let message: Uint8Array;
    try {
      this.#calls.check(signal);
      checkTransaction(transaction);
      message = transactionMessage(transaction, this.#keyspace);
    } catch (error) {
      return Promise.reject(error as Error);
    }
    const attempt: Attempt<TransactionResult> = (link, done, failed) =>
      link.unary(
        '/etcdserverpb.KV/Txn',
        message,
        (answer) => this.#answered(transaction, answer, done, failed),
        failed,
      );
    return this.#calls.make(attempt, readsOnly(transaction) ? 'reads' : 'once', signal);
  }

  /** etcd lets any server answer a transaction without operations, even a server that lags behind. With a read it does not. */
  async #compared(transaction: Transaction, signal: AbortSignal | undefined): Promise<TransactionResult> {
    const result = await this.transaction({ ...transaction, success: READ, failure: READ }, signal);
    return { ...result, results: [] };
  }

  #answered(
    transaction: Transaction,
    answer: Uint8Array,
    done: (result: TransactionResult) => void,
    failed: (failure: CallFailure) => void,
  ): void {
    let result: TransactionResult;
    let cuts: readonly Cut[];
    try {
      result = transactionResult(answer, this.#keyspace);
      mustAnswer(transaction, result);
      cuts = putInOrder(transaction, result);
    } catch (cause) {
      return failed(unreadable(cause));
    }
    if (cuts.length === 0) return done(result);
    const settled = cuts.map(async (cut) => cut.settle(await this.#peers(cut, result.revision)));
    void Promise.all(settled).then(
      () => done(result),
      (cause: unknown) => {
        // The write is done even if these reads fail; only the order of the keys by age would then be uncertain.
        if (readsOnly(transaction))
          failed(new CallFailure(UNAVAILABLE, 'the order of the keys by age could not be read', false, { cause }));
        else done(result);
      },
    );
  }

  #peers({ read, created }: Cut, at: Revision): Promise<readonly KeyValue[]> {
    const message = peersMessage(read, created, at, this.#keyspace);
    const decode = (answer: Uint8Array): readonly KeyValue[] => readResult(answer, this.#keyspace).pairs;
    return this.#ask('/etcdserverpb.KV/Range', message, decode, 'reads', undefined);
  }

  /** Every change in a range: in order, none skipped, none twice. */
  async watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal): Promise<EtcdWatch> {
    this.#calls.check(signal);
    checkWatch(range, since);
    // Checked first: a mistake in the range must not break the stream that all watches share.
    this.#keyspace.etcdEnd(range);
    this.#keyspace.etcdStart(range);
    // To etcd, 0 means from now on. Why it asks for `since` itself: see the contract of `watch`.
    const start = since === 'now' ? 0 : Math.max(1, since);
    const attempt: Attempt<EtcdWatch> = (link, done, failed) => {
      const watch = new EtcdWatch(since === 'now' ? this.#continuity.newest : since, signal, (over) =>
        this.#watches.delete(over),
      );
      const created = (revision: Revision): void => {
        // A server that lags behind begins before what this process has seen; the watch leaves out that part.
        if (since === 'now') watch.since = Math.max(watch.since, revision);
        this.#watches.add(watch);
        done(watch);
      };
      const refused = (failure: CallFailure): void => {
        watch.end();
        failed(failure);
      };
      link.watches.create(watch, range, start, { created, failed: refused });
      return watch.end;
    };
    const watch = await this.#calls.make(attempt, 'reads', signal);
    this.#watchdog.watch();
    return watch;
  }

  /** Makes a lease, of two seconds at least. */
  async grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    this.#calls.check(signal);
    checkTtl(ttlMs);
    // A lease whose answer was lost ends by itself.
    return this.#ask('/etcdserverpb.Lease/LeaseGrant', grantMessage(ttlMs), grantedLease, 'repeatable', signal);
  }

  /** Renews a lease for its full time; null if it has ended. */
  async keepLeaseAlive(id: LeaseId, signal?: AbortSignal): Promise<Lease | null> {
    this.#calls.check(signal);
    if (!isLeaseId(id)) return null;
    const attempt: Attempt<Lease> = (link, done, failed) => link.renewals.renew(id, done, failed);
    const lease = await this.#calls.make(attempt, 'reads', signal);
    return lease.ttlMs === 0 ? null : lease;
  }

  /** Ends a lease. */
  async revokeLease(id: LeaseId, signal?: AbortSignal): Promise<void> {
    this.#calls.check(signal);
    if (!isLeaseId(id)) return;
    try {
      await this.#ask('/etcdserverpb.Lease/LeaseRevoke', leaseMessage(id), revisionOf, 'repeatable', signal);
    } catch (error) {
      if (!Failure.is(error, 'not-found')) throw error;
    }
  }

  /** A lease, or null if it has ended. */
  async leaseState(id: LeaseId, signal?: AbortSignal): Promise<LeaseState | null> {
    this.#calls.check(signal);
    if (!isLeaseId(id)) return null;
    const decode = (message: Uint8Array): LeaseState | null => leaseState(message, this.#keyspace);
    return this.#ask('/etcdserverpb.Lease/LeaseTimeToLive', leaseStateMessage(id), decode, 'reads', signal);
  }

  /** Forgets the history up to and including a revision. */
  async compact(revision: Revision, signal?: AbortSignal): Promise<void> {
    this.#calls.check(signal);
    checkCompaction(revision, Number.POSITIVE_INFINITY);
    await this.#ask('/etcdserverpb.KV/Compact', compactMessage(revision), revisionOf, 'once', signal);
  }

  /** Answers if the store works, and throws if it does not. */
  async health(signal?: AbortSignal): Promise<Health> {
    this.#calls.check(signal);
    const revision = await this.#revision(0, signal);
    return { revision, compacted: await this.#compacted.find(revision, signal) };
  }

  /** The status of the current server. */
  async status(signal?: AbortSignal): Promise<ServerStatus> {
    this.#calls.check(signal);
    return this.#ask('/etcdserverpb.Maintenance/Status', STATUS_MESSAGE, statusOf, 'reads', signal);
  }

  /** Ends its watches and connections. */
  async close(): Promise<void> {
    this.#watchdog.stop();
    for (const watch of [...this.#watches]) watch.end();
    this.#calls.close();
  }

  /**
   * Acts as if the store had been closed: what this process knows is of a store that no longer exists, and its holds
   * are over.
   */
  #replaced(why: string): void {
    const told = `etcd was restored from a backup or replaced while it was in use (${why}); open it again`;
    const failure = (): Failure => new Failure('closed', told);
    this.#watchdog.stop();
    for (const watch of [...this.#watches]) watch.fail(failure());
    this.#calls.close(failure);
    this.#over.abort(failure());
  }

  async #revision(at: Revision, signal?: AbortSignal): Promise<Revision> {
    const message = countMessage(this.#keyspace.etcdKey(NO_KEY), at);
    return this.#ask('/etcdserverpb.KV/Range', message, revisionOf, 'reads', signal);
  }

  #ask<T>(
    path: string,
    message: Uint8Array,
    decode: (message: Uint8Array) => T,
    effect: Effect,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const attempt: Attempt<T> = (link, done, failed) =>
      link.unary(
        path,
        message,
        (answer) => {
          let decoded: T;
          try {
            decoded = decode(answer);
          } catch (cause) {
            return failed(unreadable(cause));
          }
          done(decoded);
        },
        failed,
      );
    return this.#calls.make(attempt, effect, signal);
  }
}

function unreadable(cause: unknown): CallFailure {
  return new CallFailure(INTERNAL, `the answer cannot be read: ${(cause as Error).message}`, false, { cause });
}

/**
 * Whether etcd could have a lease with this id. If not, etcd would call the request malformed instead of answering that
 * there is none.
 */
function isLeaseId(id: LeaseId): boolean {
  return /^[1-9][0-9]{0,18}$/.test(id);
}
