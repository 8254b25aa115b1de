-- A store of format 1: the lock main was held by a process that was killed, deploy is held by a person for an hour.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO state VALUES(1,9,0,0,3,7);
CREATE TABLE pair (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    created INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    version INTEGER NOT NULL,
    lease INTEGER
  ) WITHOUT ROWID;
INSERT INTO pair VALUES('a/730887ce0538fe99.1','{"host":"old","pid":19791,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","start":"241975"}',7,7,1,3);
INSERT INTO pair VALUES('a/7994fee59684130d','{"host":"old","pid":19780,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","start":"241808"}',2,2,1,1);
INSERT INTO pair VALUES('m/7994fee59684130d','{"answers":[],"losses":[]}',2,2,1,1);
INSERT INTO pair VALUES('r/lock/deploy','{"record":{"v":1,"kind":"lock","token":8,"holds":[{"id":"730887ce0538fe99.2","holder":"person","token":8,"lease":"730887ce0538fe99.1","mode":"exclusive","acquiredAt":1794830541409}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794830541409,"holder":"person","token":8,"mode":"exclusive"}],"by":"730887ce0538fe99"}',8,8,1,NULL);
INSERT INTO pair VALUES('r/lock/main','{"record":{"v":1,"kind":"lock","token":3,"holds":[{"id":"7994fee59684130d.1","holder":"me","token":3,"lease":"7994fee59684130d","mode":"exclusive","acquiredAt":1794830540575,"metadata":{"why":"old"}}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794830540575,"holder":"me","token":3,"mode":"exclusive"}],"by":"7994fee59684130d"}',3,3,1,NULL);
INSERT INTO pair VALUES('r/lock/other','{"record":{"v":1,"kind":"lock","token":4,"holds":[],"onStale":"reclaim","passed":null},"events":[{"type":"lock:released","at":1794830540586,"holder":"me","token":4}],"by":"7994fee59684130d"}',4,5,2,NULL);
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
INSERT INTO history VALUES(2,0,'a/7994fee59684130d','{"host":"old","pid":19780,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","start":"241808"}',2,1,1);
INSERT INTO history VALUES(2,1,'m/7994fee59684130d','{"answers":[],"losses":[]}',2,1,1);
INSERT INTO history VALUES(3,0,'r/lock/main','{"record":{"v":1,"kind":"lock","token":3,"holds":[{"id":"7994fee59684130d.1","holder":"me","token":3,"lease":"7994fee59684130d","mode":"exclusive","acquiredAt":1794830540575,"metadata":{"why":"old"}}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794830540575,"holder":"me","token":3,"mode":"exclusive"}],"by":"7994fee59684130d"}',3,1,NULL);
INSERT INTO history VALUES(4,0,'r/lock/other','{"record":{"v":1,"kind":"lock","token":4,"holds":[{"id":"7994fee59684130d.2","holder":"me","token":4,"lease":"7994fee59684130d","mode":"exclusive","acquiredAt":1794830540585}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794830540585,"holder":"me","token":4,"mode":"exclusive"}],"by":"7994fee59684130d"}',4,1,NULL);
INSERT INTO history VALUES(5,0,'r/lock/other','{"record":{"v":1,"kind":"lock","token":4,"holds":[],"onStale":"reclaim","passed":null},"events":[{"type":"lock:released","at":1794830540586,"holder":"me","token":4}],"by":"7994fee59684130d"}',4,2,NULL);
INSERT INTO history VALUES(6,0,'a/730887ce0538fe99','{"host":"old","pid":19791,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","start":"241975"}',6,1,2);
INSERT INTO history VALUES(6,1,'m/730887ce0538fe99','{"answers":[],"losses":[]}',6,1,2);
INSERT INTO history VALUES(7,0,'a/730887ce0538fe99.1','{"host":"old","pid":19791,"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","start":"241975"}',7,1,3);
INSERT INTO history VALUES(8,0,'r/lock/deploy','{"record":{"v":1,"kind":"lock","token":8,"holds":[{"id":"730887ce0538fe99.2","holder":"person","token":8,"lease":"730887ce0538fe99.1","mode":"exclusive","acquiredAt":1794830541409}],"onStale":"reclaim","passed":null},"events":[{"type":"lock:acquired","at":1794830541409,"holder":"person","token":8,"mode":"exclusive"}],"by":"730887ce0538fe99"}',8,1,NULL);
INSERT INTO history VALUES(9,0,'a/730887ce0538fe99',NULL,0,0,NULL);
INSERT INTO history VALUES(9,1,'m/730887ce0538fe99',NULL,0,0,NULL);
CREATE TABLE lease (
    id INTEGER PRIMARY KEY,
    ttl_ms REAL NOT NULL,
    deadline REAL NOT NULL,
    boot TEXT NOT NULL,
    -- JSON: it ends as soon as none of these is left. NULL: only its time decides.
    processes TEXT
  );
INSERT INTO lease VALUES(1,15000.0,2434673.4085659999401,'4ff2caf6-3346-4d0f-b782-3f43e94126fe','[{"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","pid":19780,"start":"241808"}]');
INSERT INTO lease VALUES(3,3600000.0,6020530.2579020000992,'4ff2caf6-3346-4d0f-b782-3f43e94126fe',NULL);
CREATE TABLE bell (
    name TEXT PRIMARY KEY,
    process TEXT,
    boot TEXT NOT NULL,
    -- When its owner last said that it still listens.
    heard REAL NOT NULL
  ) WITHOUT ROWID;
INSERT INTO bell VALUES('98a02ba6f24fc392','{"boot":"4ff2caf6-3346-4d0f-b782-3f43e94126fe","space":"pid:[4026531836]","pid":19780,"start":"241808"}','4ff2caf6-3346-4d0f-b782-3f43e94126fe',2419662.9863140000961);
CREATE TABLE listener (
    bell TEXT NOT NULL,
    id INTEGER NOT NULL,
    first TEXT NOT NULL,
    -- NULL: this key only.
    end TEXT,
    PRIMARY KEY (bell, id)
  ) WITHOUT ROWID;
INSERT INTO listener VALUES('98a02ba6f24fc392',1,'a/','a0');
INSERT INTO listener VALUES('98a02ba6f24fc392',2,'m/7994fee59684130d',NULL);
CREATE INDEX pair_by_lease ON pair (lease, key) WHERE lease IS NOT NULL;
CREATE INDEX lease_by_deadline ON lease (deadline);
COMMIT;
PRAGMA application_id = 1365721720;
PRAGMA user_version = 1;
