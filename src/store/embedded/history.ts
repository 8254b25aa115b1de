/** What the last revisions changed, for watches that start in the past, fall behind, or live in another process. */
import type { Change, Changes, KeyRange, Revision } from '../contract.ts';
import { NO_END } from '../key-order.ts';
import { type Connection, type Statement, textOf } from './connection.ts';
import { pairOf } from './keyspace.ts';

interface HistoryRow {
  readonly revision: Revision;
  readonly key: string | Uint8Array;
  readonly value: string | Uint8Array | null;
  readonly created: Revision;
  readonly version: number;
  readonly lease: number | null;
}

/** A changed key, with what decides which processes to wake. */
export interface Touched {
  readonly key: string;
  readonly wentWithLease: boolean;
  /** The last revision that changed it. */
  readonly revision: Revision;
}

/** About how many changes are read at a time, so that a watch that is far behind does not hold up all others. */
const READ_AT_ONCE = 256;

const BYTES = 'octet_length(key) + coalesce(octet_length(value), 0)';

const INSERT = 'INSERT INTO history (revision, part, key, value, created, version, lease) VALUES (?, ?, ?, ?, ?, ?, ?)';
const IN_ORDER = 'ORDER BY revision, part';
const COUNT = 'UPDATE state SET revision = ?, history_bytes = ?';

export class History {
  readonly #connection: Connection;
  readonly #after: string;
  // What every handoff needs is looked up once.
  #insert: Statement | undefined;
  #count: Statement | undefined;
  #afterOfKey: Statement | undefined;
  #afterBetween: Statement | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    const texts = `${connection.text('key')}, ${connection.text('value')}`;
    this.#after = `SELECT revision, ${texts}, created, version, lease FROM history WHERE revision > ?`;
  }

  /** `before`: the size of the history in bytes. `lease`: the lease whose end deleted these keys. Returns the new size. */
  append(revision: Revision, changes: readonly Change[], before: number, lease: number | null): number {
    this.#insert ??= this.#connection.sql(INSERT);
    this.#count ??= this.#connection.sql(COUNT);
    let bytes = before;
    for (let part = 0; part < changes.length; part++) {
      const change = changes[part] as Change;
      if (change.kind === 'delete') {
        bytes += Buffer.byteLength(change.key);
        this.#insert.run(revision, part, change.key, null, 0, 0, lease);
      } else {
        const { key, value, createRevision, version, lease: of } = change.pair;
        const { text } = value;
        bytes += Buffer.byteLength(key) + Buffer.byteLength(text);
        this.#insert.run(revision, part, key, text, createRevision, version, of === null ? null : Number(of));
      }
    }
    this.#count.run(revision, bytes);
    return bytes;
  }

  /** The changes in a range after `since`: the first revisions of them, each whole, and whether these are all. */
  after(since: Revision, range: KeyRange): { readonly changes: readonly Changes[]; readonly isAll: boolean } {
    const rows = this.#rowsAfter(since, range) as IterableIterator<HistoryRow>;
    const found: { revision: Revision; changes: Change[] }[] = [];
    let count = 0;
    for (const row of rows) {
      const last = found.at(-1);
      if (last?.revision === row.revision) last.changes.push(changeOf(row));
      else if (count >= READ_AT_ONCE) return { changes: found, isAll: false };
      else found.push({ revision: row.revision, changes: [changeOf(row)] });
      count += 1;
    }
    return { changes: found, isAll: true };
  }

  #rowsAfter(since: Revision, { key, end }: KeyRange): IterableIterator<unknown> {
    if (end === undefined) {
      this.#afterOfKey ??= this.#connection.sql(`${this.#after} AND key = ? ${IN_ORDER}`);
      return this.#afterOfKey.iterate(since, key);
    }
    if (end === NO_END) return this.#connection.sql(`${this.#after} AND key >= ? ${IN_ORDER}`).iterate(since, key);
    this.#afterBetween ??= this.#connection.sql(`${this.#after} AND key >= ? AND key < ? ${IN_ORDER}`);
    return this.#afterBetween.iterate(since, key, end);
  }

  /** The keys that were changed after `since`, each once, and whether the key went with its lease. */
  keysAfter(since: Revision): Touched[] {
    const rows = this.#connection
      .sql(
        `SELECT ${this.#connection.text('key')}, value IS NULL AND lease IS NOT NULL AS wentWithLease,
           max(revision) AS revision
         FROM history WHERE revision > ? GROUP BY history.key, wentWithLease`,
      )
      .all(since) as { key: string | Uint8Array; wentWithLease: number; revision: Revision }[];
    return rows.map(({ key, wentWithLease, revision }) => {
      return { key: textOf(key), wentWithLease: wentWithLease === 1, revision };
    });
  }

  /** The revision up to which history has to be forgotten to free this many bytes. */
  firstBytes(bytes: number): Revision {
    let [upTo, found] = [0, 0];
    const rows = this.#connection
      .sql(`SELECT revision, ${BYTES} AS bytes FROM history ORDER BY revision, part`)
      .iterate() as IterableIterator<{ revision: Revision; bytes: number }>;
    for (const { revision, bytes: some } of rows) {
      if (found >= bytes && revision !== upTo) break;
      found += some;
      upTo = revision;
    }
    return upTo;
  }

  /** Answers how many bytes went. */
  forget(upTo: Revision): number {
    const { bytes } = this.#connection
      .sql(`SELECT coalesce(sum(${BYTES}), 0) AS bytes FROM history WHERE revision <= ?`)
      .get(upTo) as { bytes: number };
    this.#connection.sql('DELETE FROM history WHERE revision <= ?').run(upTo);
    this.#connection
      .sql(
        `UPDATE state SET forgotten = max(forgotten, ?), compacted = max(compacted, ?),
           history_bytes = max(0, history_bytes - ?)`,
      )
      .run(upTo, upTo, bytes);
    return bytes;
  }
}

function changeOf({ revision, key: text, value, created, version, lease }: HistoryRow): Change {
  const key = textOf(text);
  if (value === null) return { kind: 'delete', key, revision };
  return { kind: 'put', pair: pairOf({ key, value, created, modified: revision, version, lease }) };
}
