/** The keys and their values, as rows. It checks nothing: the caller has decided before. */
import { holds } from '../compare.ts';
import type { Change, Compare, KeyRange, KeyValue, Put, Read, ReadResult, Revision } from '../contract.ts';
import { NO_END } from '../key-order.ts';
import { Value } from '../value.ts';
import { type Connection, type Statement, textOf } from './connection.ts';

interface PairRow {
  readonly key: string | Uint8Array;
  readonly value: string | Uint8Array;
  readonly created: Revision;
  readonly modified: Revision;
  readonly version: number;
  readonly lease: number | null;
}

/** The `WHERE` clause of a range, and the values to bind to it. */
export function rangeSql({ key, end }: KeyRange): readonly [where: string, bound: readonly string[]] {
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

export class Keyspace {
  readonly #connection: Connection;
  readonly #all: string;
  readonly #byKey: string;
  /** The rows that this transaction has read: most keys are first compared and then put. */
  readonly #found = new Map<string, KeyValue | undefined>();

  constructor(connection: Connection) {
    this.#connection = connection;
    const texts = `${connection.text('key')}, ${connection.text('value')}`;
    this.#all = `SELECT ${texts}, created, modified, version, lease FROM pair`;
    // Made once: a text that is put together anew would have to be hashed each time to find its statement.
    this.#byKey = `${this.#all} WHERE key = ?`;
  }

  /** To be called when a new transaction begins: others may have written. */
  forget(): void {
    this.#found.clear();
  }

  get(key: string): KeyValue | undefined {
    if (this.#found.has(key)) return this.#found.get(key);
    const row = this.#sql(this.#byKey).get(key) as PairRow | undefined;
    const pair = row === undefined ? undefined : pairOf(row);
    this.#found.set(key, pair);
    return pair;
  }

  holds(compare: Compare): boolean {
    if (compare.end === undefined) return holds(compare, this.get(compare.key));
    const [where, bound] = rangeSql(compare);
    // Every acquire and release asks whether anybody waits.
    if (this.#sql(compare.end === NO_END ? ANY_FROM : ANY_BETWEEN).get(...bound) === undefined) {
      return holds(compare, undefined);
    }
    for (const row of this.#sql(`${this.#all} WHERE ${where}`).iterate(...bound)) {
      if (!holds(compare, pairOf(row as PairRow))) return false;
    }
    return true;
  }

  read({ key, end, limit, order, countOnly = false }: Read): ReadResult {
    const [where, bound] = rangeSql({ key, end });
    if (countOnly) return { do: 'read', pairs: [], more: false, count: this.#count(where, bound) };
    if (end === undefined) return this.#readOne(key);
    const by = order === 'create' ? 'created, pair.key' : 'pair.key';
    // Reading one more than asked for tells whether there are more: counting them would make each page walk the whole range.
    const [limited, most] = limitSql(limit === undefined ? undefined : limit + 1);
    const rows = this.#sql(`${this.#all} WHERE ${where} ORDER BY ${by}${limited}`).all(...bound, ...most) as PairRow[];
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
    const row = this.#sql(`SELECT count(*) AS count FROM pair WHERE ${where}`).get(...bound);
    return (row as { count: number }).count;
  }

  put({ key, value, lease: asked }: Put, revision: Revision): Change {
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
    this.#sql(
      'INSERT OR REPLACE INTO pair (key, value, created, modified, version, lease) VALUES (?, ?, ?, ?, ?, ?)',
    ).run(key, value.text, pair.createRevision, revision, pair.version, lease);
    return { kind: 'put', pair };
  }

  delete(range: KeyRange, revision: Revision): Change[] {
    const [where, bound] = rangeSql(range);
    return this.#delete(where, bound, revision);
  }

  /** Deletes the keys attached to a lease, in key order. */
  deleteAttached(lease: number, revision: Revision): Change[] {
    return this.#delete('lease = ?', [lease], revision);
  }

  attachedTo(lease: number): string[] {
    return this.#keys('lease = ?', [lease]);
  }

  #delete(where: string, bound: readonly (string | number)[], revision: Revision): Change[] {
    const keys = this.#keys(where, bound);
    if (keys.length === 0) return [];
    this.#sql(`DELETE FROM pair WHERE ${where}`).run(...bound);
    this.#found.clear();
    return keys.map((key) => ({ kind: 'delete', key, revision }));
  }

  #keys(where: string, bound: readonly (string | number)[]): string[] {
    const key = this.#connection.text('key');
    const rows = this.#sql(`SELECT ${key} FROM pair WHERE ${where} ORDER BY pair.key`).all(...bound);
    return (rows as { key: PairRow['key'] }[]).map((row) => textOf(row.key));
  }

  #sql(text: string): Statement {
    return this.#connection.sql(text);
  }
}

export function pairOf({ key, value, created, modified, version, lease }: PairRow): KeyValue {
  return {
    key: textOf(key),
    value: Value.text(textOf(value)),
    createRevision: created,
    modRevision: modified,
    version,
    lease: lease === null ? null : String(lease),
  };
}
