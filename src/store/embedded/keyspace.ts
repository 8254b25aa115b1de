/** The keys and their values, as rows. It applies what plan.ts has checked. */
import { checkWellFormed } from '../check.ts';
import { holds } from '../compare.ts';
import type { Change, Compare, KeyRange, KeyValue, LeaseId, Put, Read, ReadResult, Revision } from '../contract.ts';
import { NO_END } from '../key-order.ts';
import type { TransactionKeys } from '../plan.ts';
import { Value } from '../value.ts';
import { type Connection, type Statement, textOf } from './connection.ts';
import type { Leases } from './leases.ts';

interface PairRow {
  readonly key: string | Uint8Array;
  readonly value: string | Uint8Array;
  readonly created: Revision;
  readonly modified: Revision;
  readonly version: number;
  readonly lease: number | null;
}

/** The `WHERE` clause of a range, and the values to bind to it. */
function rangeSql({ key, end }: KeyRange): readonly [where: string, bound: readonly string[]] {
  if (end === undefined) return ['key = ?', [key]];
  if (end === NO_END) return ['key >= ?', [key]];
  return ['key >= ? AND key < ?', [key, end]];
}

/** Reads of single keys and of the front of a queue have limits below this. */
const SMALL_LIMIT = 256;

/**
 * The `LIMIT` clause, and the values to bind to it. SQLite plans a statement with a bound limit anew at every run,
 * which takes as long as the read itself. So small limits are written into the text: there are only a few of them.
 */
function limitSql(limit: number | undefined): readonly [limited: string, bound: readonly number[]] {
  if (limit === undefined) return ['', []];
  return limit < SMALL_LIMIT ? [` LIMIT ${limit}`, []] : [' LIMIT ?', [limit]];
}

const ANY_FROM = 'SELECT 1 FROM pair WHERE key >= ? LIMIT 1';
const ANY_BETWEEN = 'SELECT 1 FROM pair WHERE key >= ? AND key < ? LIMIT 1';
const PUT = 'INSERT OR REPLACE INTO pair (key, value, created, modified, version, lease) VALUES (?, ?, ?, ?, ?, ?)';

export class Keyspace implements TransactionKeys {
  /** The revision that the next change gets. */
  nextRevision: Revision = 0;
  readonly #connection: Connection;
  readonly #leases: Leases;
  readonly #all: string;
  /** The rows that this transaction has read: most keys are first compared and then put. */
  readonly #found = new Map<string, KeyValue | undefined>();
  #changed: Change[] = [];
  // What every handoff needs is looked up once.
  #byKey: Statement | undefined;
  #anyBetween: Statement | undefined;
  #put: Statement | undefined;
  #drop: Statement | undefined;

  constructor(connection: Connection, leases: Leases) {
    this.#connection = connection;
    this.#leases = leases;
    const texts = `${connection.text('key')}, ${connection.text('value')}`;
    this.#all = `SELECT ${texts}, created, modified, version, lease FROM pair`;
  }

  /** To be called when a new transaction begins: others may have written. Forgets changes that were undone. */
  begin(nextRevision: Revision): void {
    this.nextRevision = nextRevision;
    this.#found.clear();
    if (this.#changed.length > 0) this.#changed = [];
  }

  /** Returns the changes since the last call, in order. */
  takeChanged(): readonly Change[] {
    const changed = this.#changed;
    if (changed.length > 0) this.#changed = [];
    return changed;
  }

  get(key: string): KeyValue | undefined {
    const known = this.#found.get(key);
    if (known !== undefined || this.#found.has(key)) return known;
    this.#byKey ??= this.#connection.sql(`${this.#all} WHERE key = ?`);
    const row = this.#byKey.get(key) as PairRow | undefined;
    const pair = row === undefined ? undefined : pairOf(row);
    this.#found.set(key, pair);
    return pair;
  }

  holds(compare: Compare): boolean {
    const { key, end } = compare;
    if (end === undefined) return holds(compare, this.get(key));
    // Every acquire and release asks whether anybody waits.
    if (this.#isEmpty(key, end)) return holds(compare, undefined);
    const [where, bound] = rangeSql(compare);
    for (const row of this.#connection.sql(`${this.#all} WHERE ${where}`).iterate(...bound)) {
      if (!holds(compare, pairOf(row as PairRow))) return false;
    }
    return true;
  }

  #isEmpty(key: string, end: string): boolean {
    if (end === NO_END) return this.#connection.sql(ANY_FROM).get(key) === undefined;
    this.#anyBetween ??= this.#connection.sql(ANY_BETWEEN);
    return this.#anyBetween.get(key, end) === undefined;
  }

  checkKey(key: string): void {
    checkWellFormed(key);
  }

  exists(key: string): boolean {
    return this.get(key) !== undefined;
  }

  hasLease(id: LeaseId): boolean {
    return this.#leases.get(Number(id)) !== undefined;
  }

  read({ key, end, limit, order, countOnly = false }: Read): ReadResult {
    if (end === undefined && !countOnly) return this.#readOne(key);
    const [where, bound] = rangeSql({ key, end });
    if (countOnly) return { do: 'read', pairs: [], more: false, count: this.#count(where, bound) };
    const by = order === 'create' ? 'created, pair.key' : 'pair.key';
    // Reading one more than asked for tells whether there are more: counting them would make each page walk the whole range.
    const [limited, most] = limitSql(limit === undefined ? undefined : limit + 1);
    const select = this.#connection.sql(`${this.#all} WHERE ${where} ORDER BY ${by}${limited}`);
    const rows = select.all(...bound, ...most) as PairRow[];
    const more = limit !== undefined && rows.length > limit;
    if (more) rows.pop();
    return { do: 'read', pairs: rows.map(pairOf), more, count: rows.length };
  }

  /** Reads one key, which most often was compared a moment ago. */
  #readOne(key: string): ReadResult {
    const pair = this.get(key);
    return { do: 'read', pairs: pair === undefined ? [] : [pair], more: false, count: pair === undefined ? 0 : 1 };
  }

  #count(where: string, bound: readonly string[]): number {
    const row = this.#connection.sql(`SELECT count(*) AS count FROM pair WHERE ${where}`).get(...bound);
    return (row as { count: number }).count;
  }

  put({ key, value, lease: asked }: Put): void {
    const revision = this.nextRevision;
    const before = this.get(key);
    const pair: KeyValue = {
      key,
      value,
      createRevision: before?.createRevision ?? revision,
      modRevision: revision,
      version: (before?.version ?? 0) + 1,
      lease: asked === 'keep' ? (before?.lease ?? null) : (asked ?? null),
    };
    const lease = pair.lease === null ? null : Number(pair.lease);
    this.#found.set(key, pair);
    this.#put ??= this.#connection.sql(PUT);
    this.#put.run(key, value.text, pair.createRevision, revision, pair.version, lease);
    this.#changed.push({ kind: 'put', pair });
  }

  delete(range: KeyRange): number {
    if (range.end === undefined) return this.#deleteOne(range.key);
    const [where, bound] = rangeSql(range);
    return this.#delete(where, bound);
  }

  /** Deletes the keys attached to a lease, in key order. */
  deleteAttached(lease: number): void {
    this.#delete('lease = ?', [lease]);
  }

  attachedTo(lease: number): string[] {
    return this.#keys('lease = ?', [lease]);
  }

  #deleteOne(key: string): number {
    this.#drop ??= this.#connection.sql(`DELETE FROM pair WHERE key = ? RETURNING ${this.#connection.text('key')}`);
    const row = this.#drop.get(key) as Pick<PairRow, 'key'> | undefined;
    if (row === undefined) return 0;
    // A driver may have found another key than was asked for: SQLite keeps no half of a surrogate pair.
    const deleted = textOf(row.key);
    this.#found.set(deleted, undefined);
    this.#changed.push({ kind: 'delete', key: deleted, revision: this.nextRevision });
    return 1;
  }

  #delete(where: string, bound: readonly (string | number)[]): number {
    const keys = this.#keys(where, bound);
    if (keys.length === 0) return 0;
    this.#connection.sql(`DELETE FROM pair WHERE ${where}`).run(...bound);
    this.#found.clear();
    for (const key of keys) this.#changed.push({ kind: 'delete', key, revision: this.nextRevision });
    return keys.length;
  }

  #keys(where: string, bound: readonly (string | number)[]): string[] {
    const key = this.#connection.text('key');
    const rows = this.#connection.sql(`SELECT ${key} FROM pair WHERE ${where} ORDER BY pair.key`).all(...bound);
    return (rows as { key: PairRow['key'] }[]).map((row) => textOf(row.key));
  }
}

export function pairOf({ key, value, created, modified, version, lease }: PairRow): KeyValue {
  return {
    key: typeof key === 'string' ? key : textOf(key),
    value: Value.text(typeof value === 'string' ? value : textOf(value)),
    createRevision: created,
    modRevision: modified,
    version,
    lease: lease === null ? null : String(lease),
  };
}
