/**
 * The tables. Everything that processes must agree on is in the file; what a process remembers besides only makes it
 * faster.
 *
 *     state      one row: the counters
 *     pair       the keys as they are now
 *     history    what each of the last revisions changed, for watches
 *     clock      the clocks that processes of this machine have counted on: mostly one
 *     lease      with its deadline, on one of these clocks
 *     notice     a lease on another clock than the observer's: from when on, and until when, its time is counted there
 *     bell       which processes to wake, and
 *     listener   for which keys
 *
 * Format 2 added `clock` and `notice`, counts the bytes of the history, and gives unused pages back. Format 3 says for
 * each listener what is urgent to it, and for each key in the history whether it went with its lease.
 */

/** Written into the file's header, so that the file of another program is recognized before it is touched. */
export const APPLICATION_ID = 0x51674278;
/** Raised by a change after which older versions cannot use the file. `MIGRATIONS` brings older files up to it. */
export const FORMAT = 3;

/** The revision of an empty etcd. */
const FIRST_REVISION = 1;

const CLOCKS = `
  CREATE TABLE clock (
    id INTEGER PRIMARY KEY,
    boot TEXT NOT NULL,
    time_space TEXT NOT NULL,
    -- The clock that counts suspend less the monotonic one. NULL: not known.
    suspended_ms REAL
  );

  CREATE TABLE lease (
    id INTEGER PRIMARY KEY,
    ttl_ms REAL NOT NULL,
    deadline REAL NOT NULL,
    clock INTEGER NOT NULL,
    -- JSON: it ends as soon as none of these is left. NULL: only its time decides.
    processes TEXT
  );
  CREATE INDEX lease_by_deadline ON lease (clock, deadline);

  CREATE TABLE notice (
    lease INTEGER NOT NULL,
    -- The observer's.
    clock INTEGER NOT NULL,
    deadline REAL NOT NULL,
    PRIMARY KEY (lease, clock)
  ) WITHOUT ROWID;

  CREATE TABLE bell (
    name TEXT PRIMARY KEY,
    process TEXT,
    -- When its owner last said that it still listens, on its clock.
    heard REAL NOT NULL,
    clock INTEGER NOT NULL
  ) WITHOUT ROWID;
`;

export const SCHEMA = `
  CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL,
    -- Watches may start since this revision, or later.
    compacted INTEGER NOT NULL,
    -- History up to this revision is not there any more.
    forgotten INTEGER NOT NULL,
    -- How many leases were ever granted: the last one's id.
    leases INTEGER NOT NULL,
    -- Raised whenever a listener comes or goes.
    listeners INTEGER NOT NULL,
    -- Of the keys and values in the history.
    history_bytes INTEGER NOT NULL
  );
  INSERT INTO state VALUES (1, ${FIRST_REVISION}, 0, 0, 0, 0, 0);

  CREATE TABLE pair (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    version INTEGER NOT NULL,
    lease INTEGER
  ) WITHOUT ROWID;
  CREATE INDEX pair_by_lease ON pair (lease, key) WHERE lease IS NOT NULL;

  CREATE TABLE history (
    revision INTEGER NOT NULL,
    part INTEGER NOT NULL,
    key TEXT NOT NULL,
    -- NULL: deleted.
    value TEXT,
    created INTEGER NOT NULL,
    version INTEGER NOT NULL,
    -- Of a key that was deleted: the lease whose end deleted it.
    lease INTEGER,
    PRIMARY KEY (revision, part)
  ) WITHOUT ROWID;

  ${CLOCKS}

  CREATE TABLE listener (
    bell TEXT NOT NULL,
    id INTEGER NOT NULL,
    first TEXT NOT NULL,
    -- NULL: this key only.
    end TEXT,
    -- 'lease-ends': its bell rings for keys that go with their lease; NULL: for every change.
    urgent TEXT,
    PRIMARY KEY (bell, id)
  ) WITHOUT ROWID;

  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
`;

/**
 * The statements that bring a file to the format named, from the one before. Leases of format 1 say too little about
 * their clock to be compared with any other, so their full time counts once more. Its history had no limit in bytes, so
 * it begins anew.
 */
export const MIGRATIONS: ReadonlyMap<number, string> = new Map([
  [
    2,
    `
      ALTER TABLE state ADD COLUMN history_bytes INTEGER NOT NULL DEFAULT 0;
      DELETE FROM history;
      UPDATE state SET forgotten = revision, compacted = revision;
      ALTER TABLE lease RENAME TO old_lease;
      DROP INDEX lease_by_deadline;
      DROP TABLE bell;
      ${CLOCKS}
      INSERT INTO clock (id, boot, time_space) VALUES (1, 'unknown', 'unknown');
      INSERT INTO lease (id, ttl_ms, deadline, clock, processes) SELECT id, ttl_ms, deadline, 1, processes FROM old_lease;
      DROP TABLE old_lease;
      DELETE FROM listener;
      UPDATE state SET listeners = listeners + 1;
      PRAGMA user_version = 2;
    `,
  ],
  [3, `ALTER TABLE listener ADD COLUMN urgent TEXT; PRAGMA user_version = 3;`],
]);
