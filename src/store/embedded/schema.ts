/**
 * The tables. Everything that processes must agree on is in the file; what each of them remembers besides is only to
 * be faster.
 *
 *     state      one row: the counters
 *     pair       the keys as they are now
 *     history    what each of the last revisions changed, for watches
 *     lease      with its deadline on the clock that the processes of this machine share
 *     bell       whom to wake, and
 *     listener   for which keys
 */

/** Written into the file's header, so that a file of another program is known before it is touched. */
export const APPLICATION_ID = 0x51674278;
/** Raised when older versions could not use the file. */
export const FORMAT = 1;

/** As an empty etcd has it. */
const FIRST_REVISION = 1;

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
    listeners INTEGER NOT NULL
  );
  INSERT INTO state VALUES (1, ${FIRST_REVISION}, 0, 0, 0, 0);

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
    lease INTEGER,
    PRIMARY KEY (revision, part)
  ) WITHOUT ROWID;

  CREATE TABLE lease (
    id INTEGER PRIMARY KEY,
    ttl_ms REAL NOT NULL,
    deadline REAL NOT NULL,
    boot TEXT NOT NULL,
    -- JSON: it ends as soon as none of these is left. NULL: only its time decides.
    processes TEXT
  );
  CREATE INDEX lease_by_deadline ON lease (deadline);

  CREATE TABLE bell (
    name TEXT PRIMARY KEY,
    process TEXT,
    boot TEXT NOT NULL,
    -- When its owner last said that it still listens.
    heard REAL NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE listener (
    bell TEXT NOT NULL,
    id INTEGER NOT NULL,
    first TEXT NOT NULL,
    -- NULL: this key only.
    end TEXT,
    PRIMARY KEY (bell, id)
  ) WITHOUT ROWID;

  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
`;
