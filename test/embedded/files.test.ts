import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure, open } from 'signalbox';
import { networkFileSystem, openEmbedded, storeFile, Value } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Connection } from '../../src/store/embedded/connection.ts';
import { openDatabase } from '../support/sqlite.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import { errorOf, lossOf } from '../support/outcome.ts';

const WRITER = fileURLToPath(new URL('programs/writer.mjs', import.meta.url));
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-files-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

async function refusalToOpen(): Promise<Failure> {
  const error = await errorOf(openEmbedded(directory));
  expect(error).toBeInstanceOf(Failure);
  return error as Failure;
}

async function makeStore(): Promise<void> {
  const store = await openEmbedded(directory);
  for (let i = 0; i < 200; i++) {
    const put = { do: 'put', key: `key/${i}`, value: Value.text('x'.repeat(200)) } as const;
    await store.transaction({ compare: [], success: [put], failure: [] });
  }
  await store.close();
}

describe('a file that is there already', () => {
  it('and is not a database is refused, and left as it is', async () => {
    writeFileSync(storeFile(directory), 'Dear diary, today I made a database.');
    const failure = await refusalToOpen();
    expect(failure.code).toBe('corrupt');
    expect(failure.message).toContain('is not a store of signalbox');
    expect(readFileSync(storeFile(directory), 'utf8')).toBe('Dear diary, today I made a database.');
  });

  it('and is the database of another program is refused, and left as it is', async () => {
    const foreign = openDatabase(storeFile(directory));
    foreign.exec('CREATE TABLE recipes (name TEXT)');
    foreign.close();
    const before = readFileSync(storeFile(directory));
    const failure = await refusalToOpen();
    expect(failure.code).toBe('corrupt');
    expect(failure.message).toContain('database of another program');
    expect(readFileSync(storeFile(directory)).equals(before)).toBe(true);
  });

  it('and was written by a later version is refused, with what to do, and left as it is', async () => {
    await makeStore();
    const later = openDatabase(storeFile(directory));
    later.pragma('user_version = 99');
    // So that opening it as one of ours would have something to change.
    later.pragma('journal_mode = DELETE');
    later.close();
    const before = readFileSync(storeFile(directory));
    const failure = await refusalToOpen();
    expect(failure.code).toBe('corrupt');
    expect(failure.message).toMatch(/format 99.*knows 3.*newer version/);
    expect(readFileSync(storeFile(directory)).equals(before)).toBe(true);
    expect(readdirSync(directory).filter((name) => /^store\.db.+/.test(name))).toEqual([]);
  });

  it.each([0, -1])(
    'and says that it has format %d, which never was, is told as damaged, and left as it is',
    async (format) => {
      await makeStore();
      const odd = openDatabase(storeFile(directory));
      odd.pragma(`user_version = ${format}`);
      odd.close();
      const before = readFileSync(storeFile(directory));
      const failure = await refusalToOpen();
      expect(failure.code).toBe('corrupt');
      expect(failure.message).toMatch(new RegExp(`format ${format}, .*damaged.*not touched`));
      expect(readFileSync(storeFile(directory)).equals(before)).toBe(true);
    },
  );

  it('and was left by a killed process of a later version is refused, with its log as it is', async () => {
    await makeStore();
    const later = openDatabase(storeFile(directory));
    later.pragma('user_version = 99');
    const left = join(directory, 'left');
    mkdirSync(left);
    for (const suffix of ['', '-wal']) copyFileSync(storeFile(directory) + suffix, storeFile(left) + suffix);
    later.close();
    const before = ['', '-wal'].map((suffix) => readFileSync(storeFile(left) + suffix));
    const error = await errorOf(openEmbedded(left));
    expect((error as Failure).message).toMatch(/format 99.*not touched/);
    const after = ['', '-wal'].map((suffix) => readFileSync(storeFile(left) + suffix));
    expect(after.every((bytes, i) => bytes.equals(before[i] as Buffer))).toBe(true);
    expect(existsSync(`${storeFile(left)}-shm`)).toBe(false);
  });

  it.each([1, 2])('and is of format %i is brought up to date, and what was held in it is held', async (format) => {
    const old = openDatabase(storeFile(directory));
    old.exec(readFileSync(new URL(`stores/format-${format}.sql`, import.meta.url), 'utf8'));
    old.close();
    const clock = new TestClock();
    const box = await open(await openEmbedded(directory, { clock }), { clock });
    expect(await box.lock('deploy').tryAcquire()).toMatchObject({ kind: 'busy', holders: [{ holder: 'person' }] });
    expect(await box.lock('main').tryAcquire()).toMatchObject({ kind: 'busy', holders: [{ holder: 'me' }] });
    // The process of its holder cannot be seen any more, and its lease of 15 s counts from here.
    await clock.advance(16_000);
    expect(await box.lock('main').tryAcquire({ holder: 'next' })).toMatchObject({ kind: 'reclaimed' });
    expect(await box.lock('deploy').tryAcquire()).toMatchObject({ kind: 'busy' });
    await box.close();
    const now = openDatabase(storeFile(directory));
    expect(now.pragma('user_version')).toBe(3);
    expect(now.pragma('auto_vacuum')).toBe(2);
    expect(now.pragma('integrity_check')).toBe('ok');
    now.close();
  });

  it.each(['SQLITE_FULL', 'SQLITE_IOERR_WRITE'])(
    'and is of format 1 is used although it cannot be made to shrink yet: %s',
    async (code) => {
      const old = openDatabase(storeFile(directory));
      old.exec(readFileSync(new URL('stores/format-1.sql', import.meta.url), 'utf8'));
      old.close();
      const { execute } = Connection.prototype;
      const spy = vi.spyOn(Connection.prototype, 'execute').mockImplementation(function (this: Connection, sql) {
        if (sql === 'VACUUM') throw Object.assign(new Error('no room'), { code });
        execute.call(this, sql);
      });
      onTestFinished(() => spy.mockRestore());
      const store = await openEmbedded(directory);
      expect(await store.health()).toMatchObject({ revision: expect.any(Number) as number });
      await store.close();
      spy.mockRestore();
      await (await openEmbedded(directory)).close();
      const now = openDatabase(storeFile(directory));
      expect(now.pragma('auto_vacuum')).toBe(2);
      now.close();
    },
  );

  it('and is damaged is told as such, and nothing is made up', async () => {
    await makeStore();
    const bytes = readFileSync(storeFile(directory));
    bytes.fill(0xaa, 4096);
    writeFileSync(storeFile(directory), bytes);
    const attempt = async (): Promise<unknown> => {
      const store = await openEmbedded(directory);
      try {
        const read = { do: 'read', key: 'key/', end: 'key0' } as const;
        return await store.transaction({ compare: [], success: [read], failure: [] });
      } finally {
        await store.close();
      }
    };
    const error = await errorOf(attempt());
    expect(Failure.is(error, 'corrupt')).toBe(true);
    expect((error as Failure).message).toContain('damaged');
  });

  it('and was cut off in the middle is told as damaged', async () => {
    await makeStore();
    const bytes = readFileSync(storeFile(directory));
    writeFileSync(storeFile(directory), bytes.subarray(0, bytes.length / 2));
    const error = await errorOf(
      (async () => {
        const store = await openEmbedded(directory);
        try {
          const read = { do: 'read', key: 'key/', end: 'key0' } as const;
          return await store.transaction({ compare: [], success: [read], failure: [] });
        } finally {
          await store.close();
        }
      })(),
    );
    expect(Failure.is(error, 'corrupt')).toBe(true);
  });

  it('and is empty becomes a store', async () => {
    writeFileSync(storeFile(directory), '');
    const store = await openEmbedded(directory);
    expect(await store.health()).toEqual({ revision: 1, compacted: 0 });
    await store.close();
  });

  it('is found as it was left by processes that ended without a word', async () => {
    const store = await openEmbedded(directory);
    const put = { do: 'put', key: 'kept', value: Value.text('yes') } as const;
    const { revision } = await store.transaction({ compare: [], success: [put], failure: [] });
    // What a killed process leaves: the file, and what it had not carried over into it yet.
    const left = `${directory}/left`;
    mkdirSync(left);
    for (const suffix of ['', '-wal']) copyFileSync(storeFile(directory) + suffix, storeFile(left) + suffix);
    await store.close();
    const found = await openEmbedded(left);
    const read = await found.transaction({ compare: [], success: [{ do: 'read', key: 'kept' }], failure: [] });
    expect(read).toMatchObject({ revision, results: [{ pairs: [{ modRevision: revision }] }] });
    await found.close();
  });
});

/** Of this process on the store, as the kernel knows them: on what SQLite calls the shared range of a database. */
function sharedLocks(): number {
  const locks = readFileSync('/proc/locks', 'latin1').split('\n');
  // Tests of other files share this process, and may have stores of their own.
  const ours = [` READ ${process.pid} `, `:${statSync(storeFile(directory)).ino} `, ' 1073741826 '];
  return locks.filter((lock) => ours.every((part) => lock.includes(part))).length;
}

// Closing any descriptor of a file takes away all locks that the process has on it.
describe.skipIf(!existsSync('/proc/locks'))("SQLite's lock on the file", () => {
  it('is kept when the store is opened a second time, by another thread or another copy of signalbox', async () => {
    await makeStore();
    const other = openDatabase(storeFile(directory));
    other.prepare('SELECT count(*) FROM pair').get();
    expect(sharedLocks()).toBe(1);
    const store = await openEmbedded(directory);
    expect(sharedLocks()).toBe(1);
    await store.close();
    expect(sharedLocks()).toBe(1);
    other.close();
    expect(sharedLocks()).toBe(0);
  });

  it('is kept when the file was busy while it was opened', async () => {
    const old = openDatabase(storeFile(directory));
    old.exec(readFileSync(new URL('stores/format-1.sql', import.meta.url), 'utf8'));
    old.pragma('journal_mode = WAL');
    old.close();
    const writer = spawn(process.execPath, [WRITER, storeFile(directory)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(writer.stdout, 'data');
    let retries = 0;
    const timer: Clock['timer'] = (delayMs, call) => {
      if (++retries === 2) writer.stdin.end();
      return systemClock.timer(delayMs, call);
    };
    const store = await openEmbedded(directory, { clock: { ...systemClock, timer }, busyMs: 60_000 });
    expect(retries).toBeGreaterThan(1);
    expect(sharedLocks()).toBe(1);
    await store.close();
  });

  it('does not keep a later format from being refused, if this process has the file open', async () => {
    await makeStore();
    const later = openDatabase(storeFile(directory));
    later.pragma('user_version = 99');
    expect((await refusalToOpen()).message).toMatch(/format 99.*not touched/);
    expect(sharedLocks()).toBe(1);
    later.close();
  });
});

describe('a place', () => {
  it('that cannot be made is refused with its name', async () => {
    writeFileSync(join(directory, 'a-file'), '');
    const error = await errorOf(open(`file:${directory}/a-file/store`));
    expect(Failure.is(error, 'forbidden')).toBe(true);
    // Which part it is only some versions of Node tell.
    expect((error as Failure).message).toMatch(/a-file.* is a file; expected a directory$/);
  });

  it('where nothing can ever be made is refused, and not tried for ever', async () => {
    const error = await errorOf(open('file:/proc/signalbox/store'));
    expect(Failure.is(error, 'forbidden')).toBe(true);
  });

  it('that everybody shares by default and cannot be written names the ways out', async () => {
    writeFileSync(join(directory, 'not-a-directory'), '');
    vi.stubEnv('XDG_STATE_HOME', join(directory, 'not-a-directory'));
    vi.stubEnv('SIGNALBOX_URL', undefined);
    // Outside of any repository.
    const cwd = vi.spyOn(process, 'cwd').mockReturnValue(directory);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      cwd.mockRestore();
    });
    const error = (await errorOf(open())) as Failure;
    expect(error.code).toBe('forbidden');
    for (const way of ['SIGNALBOX_URL=', 'signalbox serve', 'signalbox mcp']) expect(error.message).toContain(way);
  });

  it('on a network file system is known as one', () => {
    const of = (type: number, mounts = ''): string | undefined =>
      networkFileSystem(
        '/mnt/shared/repo',
        () => type,
        () => mounts,
      );
    expect(of(0x6969)).toBe('nfs');
    expect(of(0xff534d42 | 0)).toBe('cifs');
    expect(of(0xef53)).toBeUndefined();
    const mounts = [
      '22 1 8:1 / / rw - ext4 /dev/sda1 rw',
      '40 22 0:35 / /mnt/shared rw,nosuid - fuse.sshfs host:/home rw',
    ].join('\n');
    expect(of(0x65735546, mounts)).toBe('fuse.sshfs');
    expect(of(0x65735546, mounts.replace('fuse.sshfs', 'fuseblk'))).toBeUndefined();
    expect(of(0xef53, mounts.replace('fuse.sshfs', 'ext4'))).toBeUndefined();
    for (const [type, kind] of [
      [0x786f4256, 'vboxsf'],
      [0x01161970, 'gfs2'],
      [0x19830326, 'beegfs'],
      [0x20030528, 'orangefs'],
      [0x7461636f, 'ocfs2'],
      [0x73757245, 'coda'],
      [0xbacbacbc, 'vmhgfs'],
    ] as const) {
      expect(of(type)).toBe(kind);
    }
    // Whatever number the kernel gives it, its name is known.
    for (const kind of ['vboxsf', 'gfs2', 'beegfs', 'orangefs', 'virtiofs']) {
      expect(of(0x1234, mounts.replace('fuse.sshfs', kind))).toBe(kind);
    }
    for (const kind of ['s3fs', 'gcsfuse', 'rclone', 'mfs', 'juicefs', 'glusterfs', 'hf3fs', 'mount-s3', 'dbxfs']) {
      expect(of(0x65735546, mounts.replace('sshfs', kind))).toBe(`fuse.${kind}`);
    }
    for (const kind of ['fuse.gocryptfs', 'fuse.fuse-overlayfs', 'fuse.bindfs']) {
      expect(of(0x65735546, mounts.replace('fuse.sshfs', kind))).toBeUndefined();
    }
  });

  it('is left tidy: after the last handle is closed nothing but the store remains', async () => {
    const store = await openEmbedded(directory);
    await store.watch({ key: 'a' }, 'now', new AbortController().signal);
    expect(existsSync(`${storeFile(directory)}-wal`)).toBe(true);
    await store.close();
    expect(existsSync(`${storeFile(directory)}-wal`)).toBe(false);
    const bells = statSync(join(directory, 'bells'));
    expect(bells.isDirectory()).toBe(true);
  });
});

describe('a store that is removed while it is in use', () => {
  it('is over for every process that has it open: each hears of it, and loses what it held there', async () => {
    const clock = new TestClock();
    const box = await open(await openEmbedded(directory, { clock }), { clock, maintenanceMs: 60_000 });
    const hold = await box.lock('db').acquire();
    rmSync(storeFile(directory));
    await clock.advance(5000);
    expect(hold.isValid).toBe(false);
    expect(await errorOf(box.lock('db').acquire({ waitMs: 100 }))).toMatchObject({ code: 'closed' });
    await box.close();
  });

  it('ends every wait and every loop over what happens in it with the reason', async () => {
    const clock = new TestClock();
    const box = await open(await openEmbedded(directory, { clock }), { clock, maintenanceMs: 60_000 });
    const hold = await box.lock('db').acquire();
    const removed = { code: 'closed', message: expect.stringContaining('was removed or moved') };
    const members = await box.members.follow({ keepAlive: false });
    const heard: string[] = [];
    await box.on('lock:*', ({ type }) => void heard.push(type), { keepAlive: false });
    const waited = [box.lock('db').acquire({ holder: 'next' }), box.tasks.claimNext()].map((wait) => errorOf(wait));
    const endings = [
      box.guards.wait({ lockFree: 'db' }),
      first(box.events('lock:released', { keepAlive: false })),
      first(members.changes()),
      first(box.witness.watch({}, { keepAlive: false })),
    ].map((ending) => errorOf(ending));
    await clock.advance(100);
    rmSync(storeFile(directory));
    await clock.advance(5000);
    expect(await Promise.all(waited)).toMatchObject(waited.map(() => ({ code: 'not-acquired' })));
    expect(() => members.coordinator()).toThrow('was removed or moved');
    expect(await Promise.all(endings)).toMatchObject(endings.map(() => removed));
    expect(heard.at(-1)).toBe('resync');
    expect(lossOf(hold.signal)?.why).toBe('disconnected');
    expect(box.over?.aborted).toBe(true);
    await box.close();
  });
});

async function first<T>(all: AsyncIterable<T>): Promise<T | undefined> {
  for await (const one of all) return one;
  return undefined;
}
