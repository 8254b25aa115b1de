/** What the last revisions changed, for watches that start in the past, fall behind, or live in another process. */
import type { Change, Changes, KeyRange, Revision } from '../contract.ts';
import { Value } from '../value.ts';
import type { Connection } from './connection.ts';
import { rangeSql } from './keyspace.ts';

interface HistoryRow {
  readonly revision: Revision;
  readonly key: string;
  readonly value: string | null;
  readonly created: Revision;
  readonly version: number;
  readonly lease: number | null;
}

/** About so many changes are read at a time, so that one who is far behind does not hold up everyone else. */
const READ_AT_ONCE = 256;

export class History {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  append(revision: Revision, changes: readonly Change[]): void {
    const insert = this.#connection.sql(
      'INSERT INTO history (revision, part, key, value, created, version, lease) VALUES (?, ?, ?, ?, ?, ?, ?)',
    );
    changes.forEach((change, part) => {
      if (change.kind === 'delete') {
        insert.run(revision, part, change.key, null, 0, 0, null);
      } else {
        const { key, value, createRevision, version, lease } = change.pair;
        insert.run(revision, part, key, value.text, createRevision, version, lease === null ? null : Number(lease));
      }
    });
  }

  /** What was changed in a range after `since`: the first revisions of it, each of them whole. */
  after(since: Revision, range: KeyRange): Changes[] {
    const [where, bound] = rangeSql(range);
    const rows = this.#connection
      .sql(
        `SELECT revision, key, value, created, version, lease FROM history WHERE revision > ? AND ${where} ORDER BY revision, part`,
      )
      .iterate(since, ...bound) as IterableIterator<HistoryRow>;
    const found: { revision: Revision; changes: Change[] }[] = [];
    let count = 0;
    for (const row of rows) {
      const last = found.at(-1);
      if (last?.revision === row.revision) last.changes.push(changeOf(row));
      else if (count >= READ_AT_ONCE) break;
      else found.push({ revision: row.revision, changes: [changeOf(row)] });
      count += 1;
    }
    return found;
  }

  forget(upTo: Revision): void {
    this.#connection.sql('DELETE FROM history WHERE revision <= ?').run(upTo);
  }
}

function changeOf({ revision, key, value, created, version, lease }: HistoryRow): Change {
  if (value === null) return { kind: 'delete', key, revision };
  return {
    kind: 'put',
    pair: {
      key,
      value: Value.text(value),
      createRevision: created,
      modRevision: revision,
      version,
      lease: lease === null ? null : String(lease),
    },
  };
}
