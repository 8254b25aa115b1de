/**
 * One process's view of the file: every change is one SQLite transaction, which first ends the leases whose time is
 * over. Changes are announced after they are committed. Looking changes nothing: keys of such a lease are not shown,
 * but stay in the file until the next write.
 *
 *     write   begin immediate → end what is over → do it → counters, history → commit → announce
 *     look    begin → read → commit; if a lease is over: begin immediate → end what is over → read → roll back
 */
import type { Clock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import { checkCompaction } from '../check.ts';
import type { Changes, Health, KeyRange, Revision, Transaction, TransactionResult } from '../contract.ts';
import { applyTransaction } from '../plan.ts';
import type { Connection, Statement } from './connection.ts';
import { History, type Touched } from './history.ts';
import { Keyspace } from './keyspace.ts';
import { type Dues, Leases } from './leases.ts';

export interface State extends Dues {
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly forgotten: Revision;
  readonly leases: number;
  readonly listeners: number;
  readonly historyBytes: number;
}

/** The part of the state that every look for news needs; the rest, about leases, costs queries of its own. */
export type Counters = Pick<State, 'revision' | 'forgotten' | 'listeners'>;

/** Where a watch is: changes in its range after `since` are news to it. */
export interface Cursor {
  readonly since: Revision;
  readonly range: KeyRange;
}

export interface News {
  /** If `isAll`: everything up to this revision has been looked through. */
  readonly asOf: Revision;
  readonly changes: readonly Changes[];
  /** False if there may be more, which is read next. */
  readonly isAll: boolean;
}

/** A revision that this process made. */
export interface Made extends Changes {
  /** The lease whose end deleted these keys. */
  readonly lease: number | null;
}

export interface HistoryLimits {
  readonly revisions: number;
  readonly bytes: number;
}

/** How many revisions of history are forgotten at a time: each time costs a search for them. */
const FORGET_AT_ONCE = 256;

/** When the history has too many bytes, this part of the allowed size is forgotten at once. */
const FORGET_PART = 1 / 16;
/** These newest revisions stay, however large: so that a watch that is only a moment behind need not list again. */
const KEPT_REVISIONS = 16;
/** Unused pages are given back from this many on, a part at a time, which takes some milliseconds. */
const SPARE_PAGES = 512;
const PAGES_AT_ONCE = 256;

const STATE = `
  SELECT revision, compacted, forgotten, leases, listeners, history_bytes AS historyBytes,
    (SELECT min(deadline) FROM lease WHERE clock = ?) AS due,
    EXISTS (SELECT 1 FROM lease WHERE clock < ?) OR EXISTS (SELECT 1 FROM lease WHERE clock > ?) AS strangers
  FROM state`;

const OVERDUE = Symbol('a lease is to be ended first');

export class Engine {
  readonly connection: Connection;
  readonly leases: Leases;
  readonly keys: Keyspace;
  readonly #history: History;
  readonly #limits: HistoryLimits;
  #state: Statement | undefined;
  #counters: Statement | undefined;
  /** Called with every revision that this process makes, after it is committed. */
  readonly #announce: (made: readonly Made[], listeners: number) => void;

  constructor(
    connection: Connection,
    clock: Clock,
    limits: HistoryLimits,
    announce: (made: readonly Made[], listeners: number) => void,
    isGone?: (process: ProcessIdentity) => boolean,
  ) {
    this.connection = connection;
    this.leases = new Leases(connection, clock, isGone);
    this.keys = new Keyspace(connection, this.leases);
    this.#history = new History(connection);
    this.#limits = limits;
    this.#announce = announce;
  }

  transact(transaction: Transaction): TransactionResult {
    return this.write((state, made) => {
      const { succeeded, results } = applyTransaction(this.keys, transaction);
      return { succeeded, results, revision: this.#changed(state, made).revision };
    });
  }

  /** Runs a transaction that only reads: others may write meanwhile. */
  consult(transaction: Transaction): TransactionResult {
    return this.look(({ revision }) => {
      const { succeeded, results } = applyTransaction(this.keys, transaction);
      return { succeeded, results, revision };
    });
  }

  grantLease(ttlMs: number): string {
    return this.write(({ leases }) => {
      const id = leases + 1;
      this.connection.sql('UPDATE state SET leases = ?').run(id);
      this.leases.grant(id, ttlMs);
      return String(id);
    });
  }

  /** Ends the leases that `find` returns within the write, each in a revision of its own. */
  endLeases(find: () => readonly number[]): void {
    this.write((state, made) => this.#end(find(), state, made));
  }

  compact(revision: Revision): void {
    this.write((state) => {
      checkCompaction(revision, state.revision);
      if (revision <= state.compacted) {
        throw new Failure(
          'compacted',
          `revision ${revision} is forgotten already, as is all history up to ${state.compacted}`,
        );
      }
      // Compacted history stays in the file until it is old: a watch in another process may still be reading it.
      this.connection.sql('UPDATE state SET compacted = ?').run(revision);
    });
  }

  health(): Health {
    return this.look(({ revision, compacted }) => ({ revision, compacted }));
  }

  state(): State {
    const clock = this.leases.own.id;
    this.#state ??= this.connection.sql(STATE);
    return this.#state.get(clock, clock, clock) as State;
  }

  counters(): Counters {
    this.#counters ??= this.connection.sql('SELECT revision, forgotten, listeners FROM state');
    return this.#counters.get() as Counters;
  }

  /** What is new to each of these watches, as of one moment; `compacted` for a watch whose news has been forgotten. */
  news(cursorsAt: (counters: Counters) => readonly Cursor[]): (News | Failure)[] {
    return this.connection.read(() => {
      const counters = this.counters();
      return cursorsAt(counters).map((cursor) => this.#newsTo(cursor, counters));
    });
  }

  #newsTo({ since, range }: Cursor, { revision, forgotten }: Counters): News | Failure {
    if (since < forgotten) {
      return new Failure('compacted', `all history up to revision ${forgotten} is forgotten: list again`);
    }
    if (since >= revision) return { asOf: revision, changes: [], isAll: true };
    return { asOf: revision, ...this.#history.after(since, range) };
  }

  /** The keys that were changed after `since`, as far as the history reaches. */
  keysAfter(since: Revision): readonly Touched[] {
    return this.#history.keysAfter(since);
  }

  /** Gives some of the unused pages back to the file system; answers whether there may be more. */
  giveBack(): boolean {
    const unused = Number(this.connection.pragma('freelist_count'));
    if (unused < SPARE_PAGES) return false;
    this.connection.execute(`PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`);
    return true;
  }

  /** `work` adds the revisions that it makes to `made`. */
  write<T>(work: (state: State, made: Made[]) => T): T {
    const made: Made[] = [];
    let listeners = 0;
    const result = this.connection.write(() => {
      let state = this.state();
      ({ listeners } = state);
      this.keys.begin(state.revision + 1);
      const { over, noticed } = this.leases.judge(state);
      if (noticed.length > 0) this.leases.notice(noticed);
      if (over.length > 0) state = this.#end(over, state, made);
      return work(state, made);
    });
    this.leases.judged();
    if (made.length > 0) this.#announce(made, listeners);
    return result;
  }

  /** Everything that `read` sees is of one moment, without the keys of leases that are over. Changes nothing. */
  look<T>(read: (state: State) => T): T {
    const found = this.connection.read(() => {
      const state = this.state();
      const { over, noticed } = this.leases.judge(state);
      if (over.length > 0) return OVERDUE;
      if (noticed.length === 0) this.leases.judged();
      this.keys.begin(state.revision + 1);
      return read(state);
    });
    if (found !== OVERDUE) return found as T;
    return this.connection.attempt(() => {
      const state = this.state();
      this.keys.begin(state.revision + 1);
      this.#end(this.leases.judge(state).over, state, []);
      // The result has the revision before: the next revision belongs to the next write.
      return read(state);
    });
  }

  /** Whether a write would end a lease, or begin to count the time of one. */
  get isCalledFor(): boolean {
    return this.connection.read(() => {
      const { over, noticed } = this.leases.judge(this.state());
      return over.length > 0 || noticed.length > 0;
    });
  }

  /** Returns the state after it. */
  #end(ids: readonly number[], before: State, made: Made[]): State {
    let state = before;
    for (const id of ids) {
      this.leases.remove(id);
      this.keys.deleteAttached(id);
      state = this.#changed(state, made, id);
    }
    return state;
  }

  /** Makes a revision of what was changed since the last one. Returns the state after it. */
  #changed(before: State, made: Made[], lease: number | null = null): State {
    const changes = this.keys.takeChanged();
    if (changes.length === 0) return before;
    const revision = before.revision + 1;
    let bytes = this.#history.append(revision, changes, before.historyBytes, lease);
    if (revision % FORGET_AT_ONCE === 0) bytes -= this.#forget(revision - this.#limits.revisions);
    if (bytes > this.#limits.bytes) bytes -= this.#forgetBytes(bytes, revision);
    made.push({ revision, changes, lease });
    this.keys.nextRevision = revision + 1;
    return { ...before, revision, historyBytes: Math.max(0, bytes) };
  }

  /** Forgets more than it has to, since each time costs a search. Returns how many bytes went. */
  #forgetBytes(bytes: number, revision: Revision): number {
    const upTo = this.#history.firstBytes(bytes - this.#limits.bytes * (1 - FORGET_PART));
    return this.#forget(Math.min(upTo, revision - KEPT_REVISIONS));
  }

  #forget(upTo: Revision): number {
    return upTo > 0 ? this.#history.forget(upTo) : 0;
  }
}
