/**
 * One process's view of the file: every change is one SQLite transaction, which first ends the leases whose time is
 * over. What was changed is announced after it is committed.
 *
 *     write   begin immediate → end what is due → do it → counters, history → commit → announce
 */
import type { Clock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import { checkCompaction } from '../check.ts';
import type { Change, Changes, Health, KeyRange, Revision, Transaction, TransactionResult } from '../contract.ts';
import type { Connection } from './connection.ts';
import { History } from './history.ts';
import { Keyspace } from './keyspace.ts';
import { Leases } from './leases.ts';
import { apply } from './plan.ts';

export interface State {
  readonly revision: Revision;
  readonly compacted: Revision;
  readonly forgotten: Revision;
  readonly leases: number;
  readonly listeners: number;
  /** When the next lease ends. */
  readonly due: number | null;
}

/** History is forgotten so many revisions at a time: each time costs a look for them. */
const FORGET_AT_ONCE = 256;

const OVERDUE = Symbol('a lease is to be ended first');

export class Engine {
  readonly connection: Connection;
  readonly leases: Leases;
  readonly keys: Keyspace;
  readonly #history: History;
  readonly #historyLimit: number;
  /** Told of every revision that this process makes, after it is committed. */
  readonly #announce: (made: readonly Changes[], listeners: number) => void;

  constructor(
    connection: Connection,
    clock: Clock,
    historyLimit: number,
    announce: (made: readonly Changes[], listeners: number) => void,
    isGone?: (process: ProcessIdentity) => boolean,
  ) {
    this.connection = connection;
    this.leases = new Leases(connection, clock, isGone);
    this.keys = new Keyspace(connection);
    this.#history = new History(connection);
    this.#historyLimit = historyLimit;
    this.#announce = announce;
  }

  transact(transaction: Transaction): TransactionResult {
    return this.write(({ revision }, made) => {
      const { succeeded, results, changes } = apply(this.keys, this.leases, transaction, revision + 1);
      return { succeeded, results, revision: this.#changed(changes, revision, made) };
    });
  }

  /** The same for a transaction that only reads: others may write meanwhile. */
  consult(transaction: Transaction): TransactionResult {
    return this.look(({ revision }) => {
      const { succeeded, results } = apply(this.keys, this.leases, transaction, revision);
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

  /** Ends those of these leases that still are, each in a revision of its own. Which they are is found out in it. */
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
      // What is compacted stays until it is old: a watch in another process may still be on its way through it.
      this.connection.sql('UPDATE state SET compacted = ?').run(revision);
    });
  }

  health(): Health {
    return this.look(({ revision, compacted }) => ({ revision, compacted }));
  }

  state(): State {
    return this.connection
      .sql(
        'SELECT revision, compacted, forgotten, leases, listeners, (SELECT min(deadline) FROM lease) AS due FROM state',
      )
      .get() as State;
  }

  /** What was changed in a range after `since`; `compacted` if that is not there any more. `asOf`: all up to there. */
  changesAfter(since: Revision, range: KeyRange): { readonly asOf: Revision; readonly changes: readonly Changes[] } {
    return this.connection.read(() => {
      const { revision, forgotten } = this.state();
      if (since < forgotten) {
        throw new Failure('compacted', `all history up to revision ${forgotten} is forgotten: list again`);
      }
      const changes = since >= revision ? [] : this.#history.after(since, range);
      return { asOf: revision, changes };
    });
  }

  /** `work` may put what it made into `made`. */
  write<T>(work: (state: State, made: Changes[]) => T): T {
    const made: Changes[] = [];
    let listeners = 0;
    this.keys.forget();
    const result = this.connection.write(() => {
      let state = this.state();
      ({ listeners } = state);
      if (this.leases.isOver(state.due)) state = this.#end(this.leases.due(), state, made);
      return work(state, made);
    });
    if (made.length > 0) this.#announce(made, listeners);
    return result;
  }

  /** All that is read is of one moment, and nothing of it hangs on a lease whose time is over. */
  look<T>(read: (state: State) => T): T {
    this.keys.forget();
    const found = this.connection.read(() => {
      const state = this.state();
      return this.leases.isOver(state.due) ? OVERDUE : read(state);
    });
    return found === OVERDUE ? this.write(read) : (found as T);
  }

  /** The state after it. */
  #end(ids: readonly number[], before: State, made: Changes[]): State {
    let { revision } = before;
    for (const id of ids) {
      this.leases.remove(id);
      revision = this.#changed(this.keys.deleteAttached(id, revision + 1), revision, made);
    }
    return { ...before, revision };
  }

  /** The revision after it. */
  #changed(changes: readonly Change[], before: Revision, made: Changes[]): Revision {
    if (changes.length === 0) return before;
    const revision = before + 1;
    this.#history.append(revision, changes);
    this.connection.sql('UPDATE state SET revision = ?').run(revision);
    if (revision % FORGET_AT_ONCE === 0) this.#forgetBefore(revision - this.#historyLimit);
    made.push({ revision, changes });
    return revision;
  }

  #forgetBefore(upTo: Revision): void {
    if (upTo <= 0) return;
    this.#history.forget(upTo);
    this.connection
      .sql('UPDATE state SET forgotten = max(forgotten, ?), compacted = max(compacted, ?)')
      .run(upTo, upTo);
  }
}
