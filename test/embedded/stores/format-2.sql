-- A store of format 2: the lock main was held by a process that was killed, deploy is held by a person for an hour.
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN TRANSACTION;
CREATE TABLE bell (
    name TEXT PRIMARY KEY,
    process TEXT,
    -- When its owner last said that it still listens, on its clock.
    heard REAL NOT NULL,
    clock INTEGER NOT NULL
  ) WITHOUT ROWID;
INSERT INTO "bell" VALUES('1d07bfbaefff9e19','{"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","timeSpace":"time:[4026531834]","pid":16406,"start":"1471910"}',14720132.188692,232787264492348);
CREATE TABLE clock (
    id INTEGER PRIMARY KEY,
    boot TEXT NOT NULL,
    time_space TEXT NOT NULL,
    -- The clock that counts suspend less the monotonic one. NULL: not known.
    suspended_ms REAL
  );
INSERT INTO "clock" VALUES(232787264492348,'of another machine','time:[1]',-7.69922149926424);
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
INSERT INTO "history" VALUES(2,0,'a/6a7f542fd1262d9e','{"host":"old","pid":16406,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","timeSpace":"time:[4026531834]","start":"1471910"}',2,1,1);
INSERT INTO "history" VALUES(2,1,'m/6a7f542fd1262d9e','{"answers":[],"losses":[]}',2,1,1);
INSERT INTO "history" VALUES(3,0,'r/lock/main','{"record":{"v":1,"kind":"lock","token":3,"holds":[{"id":"6a7f542fd1262d9e.1","holder":"me","token":3,"lease":"6a7f542fd1262d9e","mode":"exclusive","acquiredAt":1794842841030,"metadata":{"why":"old"}}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794842841030,"holder":"me","token":3,"mode":"exclusive"}],"by":"6a7f542fd1262d9e"}',3,1,NULL);
INSERT INTO "history" VALUES(4,0,'a/6a7f542fd1262d9e.2','{"host":"old","pid":16406,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","timeSpace":"time:[4026531834]","start":"1471910"}',4,1,2);
INSERT INTO "history" VALUES(5,0,'r/lock/deploy','{"record":{"v":1,"kind":"lock","token":5,"holds":[{"id":"6a7f542fd1262d9e.3","holder":"person","token":5,"lease":"6a7f542fd1262d9e.2","mode":"exclusive","acquiredAt":1794842841035}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794842841035,"holder":"person","token":5,"mode":"exclusive"}],"by":"6a7f542fd1262d9e"}',5,1,NULL);
CREATE TABLE lease (
    id INTEGER PRIMARY KEY,
    ttl_ms REAL NOT NULL,
    deadline REAL NOT NULL,
    clock INTEGER NOT NULL,
    -- JSON: it ends as soon as none of these is left. NULL: only its time decides.
    processes TEXT
  );
INSERT INTO "lease" VALUES(1,15000.0,14735140.665878,232787264492348,'[{"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","timeSpace":"time:[4026531834]","pid":16406,"start":"1471910"}]');
INSERT INTO "lease" VALUES(2,3600000.0,1.83201600720409974454e+07,232787264492348,NULL);
CREATE TABLE listener (
    bell TEXT NOT NULL,
    id INTEGER NOT NULL,
    first TEXT NOT NULL,
    -- NULL: this key only.
    end TEXT,
    PRIMARY KEY (bell, id)
  ) WITHOUT ROWID;
INSERT INTO "listener" VALUES('1d07bfbaefff9e19',1,'a/','a0');
INSERT INTO "listener" VALUES('1d07bfbaefff9e19',2,'m/6a7f542fd1262d9e',NULL);
CREATE TABLE notice (
    lease INTEGER NOT NULL,
    -- The observer's.
    clock INTEGER NOT NULL,
    deadline REAL NOT NULL,
    PRIMARY KEY (lease, clock)
  ) WITHOUT ROWID;
CREATE TABLE pair (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    version INTEGER NOT NULL,
    lease INTEGER
  ) WITHOUT ROWID;
INSERT INTO "pair" VALUES('a/6a7f542fd1262d9e','{"host":"old","pid":16406,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","timeSpace":"time:[4026531834]","start":"1471910"}',2,2,1,1);
INSERT INTO "pair" VALUES('a/6a7f542fd1262d9e.2','{"host":"old","pid":16406,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","timeSpace":"time:[4026531834]","start":"1471910"}',4,4,1,2);
INSERT INTO "pair" VALUES('m/6a7f542fd1262d9e','{"answers":[],"losses":[]}',2,2,1,1);
INSERT INTO "pair" VALUES('r/lock/deploy','{"record":{"v":1,"kind":"lock","token":5,"holds":[{"id":"6a7f542fd1262d9e.3","holder":"person","token":5,"lease":"6a7f542fd1262d9e.2","mode":"exclusive","acquiredAt":1794842841035}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794842841035,"holder":"person","token":5,"mode":"exclusive"}],"by":"6a7f542fd1262d9e"}',5,5,1,NULL);
INSERT INTO "pair" VALUES('r/lock/main','{"record":{"v":1,"kind":"lock","token":3,"holds":[{"id":"6a7f542fd1262d9e.1","holder":"me","token":3,"lease":"6a7f542fd1262d9e","mode":"exclusive","acquiredAt":1794842841030,"metadata":{"why":"old"}}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794842841030,"holder":"me","token":3,"mode":"exclusive"}],"by":"6a7f542fd1262d9e"}',3,3,1,NULL);
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
INSERT INTO "state" VALUES(1,5,0,0,2,2,1103);
CREATE INDEX pair_by_lease ON pair (lease, key) WHERE lease IS NOT NULL;
CREATE INDEX lease_by_deadline ON lease (clock, deadline);
COMMIT;
PRAGMA application_id = 1365721720;
PRAGMA user_version = 2;
