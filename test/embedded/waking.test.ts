import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, linkSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Failure, open } from 'signalbox';
import { type Changes, openEmbedded, prefixed, type Store, Value } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openDatabase, sql as sqlOf } from '../support/sqlite.ts';
import { readStat } from '../../src/host/index.ts';

const clock = new TestClock();
let directory: string;
let handles: Store[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-waking-'));
  handles = [];
});

afterEach(async () => {
  for (const handle of handles) await handle.close();
  rmSync(directory, { recursive: true });
});

async function openHandle(): Promise<Store> {
  const store = await openEmbedded(directory, { clock });
  handles.push(store);
  return store;
}

function put(store: Store, key: string): Promise<unknown> {
  return store.transaction({ compare: [], success: [{ do: 'put', key, value: Value.text('x') }], failure: [] });
}

/** The next change of a watch, in one line. */
async function watching(store: Store, prefix: string): Promise<() => Promise<string>> {
  const watch = await store.watch(prefixed(prefix), 'now', new AbortController().signal);
  const iterator = watch[Symbol.asyncIterator]() as AsyncIterator<Changes>;
  return async () => {
    const step = await iterator.next();
    const [change] = (step.value as Changes).changes;
    return change?.kind === 'put' ? `put ${change.pair.key}` : `delete ${change?.key}`;
  };
}

function sql<T>(text: string): T[] {
  return sqlOf<T>(join(directory, 'store.db'), text);
}

const bells = (): string[] => sql<{ name: string }>('SELECT name FROM bell').map(({ name }) => name);

describe('waking another handle', () => {
  it('is for those who listen, and only for them', async () => {
    const [writer, listener] = [await openHandle(), await openHandle()];
    const next = await watching(listener, 'm/');
    await put(writer, 'other');
    await put(writer, 'm/1');
    expect(await next()).toBe('put m/1');
    const ranges = sql<{ first: string; end: string }>('SELECT first, end FROM listener');
    expect(ranges).toEqual([{ first: 'm/', end: 'm0' }]);
  });

  /** The bell of another process, which listens for this prefix. Answers whether it was rung since it was last asked. */
  async function bellElsewhere(prefix: string, urgent: 'lease-ends' | null): Promise<() => boolean> {
    await watching(await openHandle(), 'makes the directory/');
    const name = randomBytes(8).toString('hex');
    const file = join(directory, 'bells', name);
    writeFileSync(file, '');
    utimesSync(file, 1, 1);
    const { key, end } = prefixed(prefix);
    const shown = urgent === null ? 'NULL' : `'${urgent}'`;
    sql(
      `INSERT INTO bell (name, clock, heard) VALUES ('${name}', (SELECT clock FROM bell LIMIT 1), ${clock.monotonic()})`,
    );
    sql(`INSERT INTO listener VALUES ('${name}', 1, '${key}', '${end}', ${shown})`);
    sql('UPDATE state SET listeners = listeners + 1');
    return () => {
      const wasRung = statSync(file).mtimeMs !== 1000;
      utimesSync(file, 1, 1);
      return wasRung;
    };
  }

  it('is for the ends of leases alone, where nothing else is urgent', async () => {
    const wasRung = await bellElsewhere('a/', 'lease-ends');
    const writer = await openHandle();
    const { id } = await writer.grantLease(60_000);
    await put(writer, 'a/1');
    const leased = { do: 'put', key: 'a/2', value: Value.text('x'), lease: id } as const;
    await writer.transaction({ compare: [], success: [leased, { do: 'delete', key: 'a/1' }], failure: [] });
    await writer.keepLeaseAlive(id);
    expect(wasRung()).toBe(false);
    await writer.revokeLease(id);
    expect(wasRung()).toBe(true);
  });

  it('is not for a process that comes, stays, and leaves with nothing held, but for one that dies', async () => {
    const wasRung = await bellElsewhere('a/', 'lease-ends');
    const box = await open(await openEmbedded(directory, { clock }), { clock });
    await box.lock('main').run(() => clock.advance(20_000));
    await box.close();
    expect(sql("SELECT * FROM pair WHERE key LIKE 'a/%'")).toEqual([]);
    expect(wasRung()).toBe(false);
    const dying = await openHandle();
    const mayDie = await open(dying, { clock });
    await mayDie.lock('main').acquire();
    await dying.close();
    await clock.advance(16_000);
    expect(wasRung()).toBe(true);
    await mayDie.close();
  });

  describe('by a process that closes', () => {
    /** A store that can be kept from writing records: before, or after it has written. */
    async function openUnreliable(): Promise<{ store: Store; fail: (how: 'refused' | 'unanswered') => void }> {
      const store = await openEmbedded(directory, { clock });
      let failing: 'refused' | 'unanswered' | undefined;
      const transaction: Store['transaction'] = async (asked, signal) => {
        const writes = asked.success.some((operation) => operation.do !== 'read' && 'key' in operation);
        if (!writes || failing === undefined) return store.transaction(asked, signal);
        const how = failing;
        // What follows cannot make up for it.
        failing = 'refused';
        if (how === 'unanswered') await store.transaction(asked, signal);
        throw new Failure(how === 'unanswered' ? 'outcome-unknown' : 'unavailable', 'as the test wants it');
      };
      const unreliable = new Proxy(store, {
        get(target, name) {
          const value: unknown = name === 'transaction' ? transaction : Reflect.get(target, name);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
      return { store: unreliable, fail: (how) => (failing = how) };
    }

    const holds = (): string[] => sql<{ value: string }>("SELECT value FROM pair WHERE key LIKE 'r/%'").map(holdersIn);
    const holdersIn = ({ value }: { value: string }): string => (/"holds":\[\]/.test(value) ? 'free' : 'held');

    it('is not needed where it could give back what it held', async () => {
      const wasRung = await bellElsewhere('a/', 'lease-ends');
      const box = await open(await openEmbedded(directory, { clock }), { clock });
      await box.lock('main').acquire();
      await box.close();
      expect(holds()).not.toContain('held');
      expect(sql("SELECT * FROM pair WHERE key LIKE 'a/%'")).toEqual([]);
      expect(wasRung()).toBe(false);
    });

    it('happens where it could not give back what it held', async () => {
      const wasRung = await bellElsewhere('a/', 'lease-ends');
      const { store, fail } = await openUnreliable();
      const box = await open(store, { clock, requestTimeoutMs: 1000 });
      await box.lock('main').acquire();
      fail('refused');
      const closing = box.close();
      await clock.advance(2000);
      await closing;
      expect(holds()).toEqual(['held']);
      expect(wasRung()).toBe(true);
    });

    it('happens where it was granted something without ever hearing of it', async () => {
      const wasRung = await bellElsewhere('a/', 'lease-ends');
      const { store, fail } = await openUnreliable();
      const box = await open(store, { clock, requestTimeoutMs: 1000 });
      await box.lock('other').run(() => undefined);
      fail('unanswered');
      const asking = box
        .lock('main')
        .acquire()
        .catch((error: unknown) => error);
      await clock.advance(2000);
      expect(await asking).toMatchObject({ code: 'outcome-unknown' });
      const closing = box.close();
      await clock.advance(2000);
      await closing;
      expect(holds()).toContain('held');
      expect(wasRung()).toBe(true);
    });
  });

  it('is not needed by a renewal, which also says that the process still listens', async () => {
    const listener = await openHandle();
    await watching(listener, 'm/');
    const wasRung = await bellElsewhere('a/', null);
    const { id } = await listener.grantLease(30_000);
    const heard = (): number[] =>
      sql<{ heard: number }>('SELECT heard FROM bell ORDER BY heard').map((row) => row.heard);
    const before = heard();
    await listener.keepLeaseAlive(id);
    await clock.advance(18_000);
    expect(heard()).toEqual(before);
    expect(listener.keepLeaseAliveNow?.(id)).toBe(true);
    expect(heard().at(-1)).toBe(clock.monotonic());
    expect(wasRung()).toBe(false);
  });

  it('ends with the watch, and with the handle', async () => {
    const listener = await openHandle();
    const stop = new AbortController();
    await listener.watch({ key: 'a' }, 'now', stop.signal);
    await watching(listener, 'b/');
    expect(sql('SELECT * FROM listener')).toHaveLength(2);
    stop.abort();
    await listener.health();
    expect(sql('SELECT * FROM listener')).toHaveLength(1);
    await listener.close();
    expect(sql('SELECT * FROM listener')).toHaveLength(0);
    expect(bells()).toEqual([]);
    expect(readdirSync(join(directory, 'bells'))).toEqual([]);
  });

  it('happens without a bell too, a little later', async () => {
    const [writer, listener] = [await openHandle(), await openHandle()];
    const next = await watching(listener, 'm/');
    // As if somebody had taken it off the list while it slept.
    sql('DELETE FROM listener');
    sql('UPDATE state SET listeners = listeners + 1');
    await put(writer, 'm/1');
    const delivered = next();
    await clock.advance(300);
    expect(await delivered).toBe('put m/1');
  });

  it('is given up for one that is not heard of, which enters itself again when it wakes', async () => {
    const listener = await openHandle();
    await watching(listener, 'm/');
    const [bell] = bells();
    sql('DELETE FROM listener');
    sql('DELETE FROM bell');
    await clock.advance(21_000);
    expect(bells()).toEqual([bell]);
    expect(sql('SELECT * FROM listener')).toHaveLength(1);
  });

  it('leaves no socket behind that its process made under a name of its own, and was killed before it could move it', async () => {
    const listener = await openHandle();
    await watching(listener, 'm/');
    const left = join(directory, 'bells', '00000000000000cc');
    const server = createServer().listen(`${directory}-socket`);
    await once(server, 'listening');
    linkSync(`${directory}-socket`, left);
    server.close();
    await once(server, 'close');
    await clock.advance(5000);
    // It could be one that is about to be moved.
    expect(existsSync(left)).toBe(true);
    const later = Date.now() + 61_000;
    vi.spyOn(Date, 'now').mockReturnValue(later);
    await clock.advance(5000);
    vi.restoreAllMocks();
    expect(existsSync(left)).toBe(false);
    expect(bells()).toHaveLength(1);
  });

  it('is not tried for ever for those that are gone without a word', async () => {
    const listener = await openHandle();
    await watching(listener, 'm/');
    const shared = '(SELECT clock FROM bell LIMIT 1)';
    sql(`INSERT INTO bell (name, clock, heard) VALUES ('00000000000000aa', ${shared}, ${clock.monotonic() - 61_000})`);
    sql(`INSERT INTO bell (name, clock, heard) VALUES ('00000000000000bb', 4711, ${clock.monotonic() - 61_000})`);
    sql(`INSERT INTO listener VALUES ('00000000000000aa', 1, 'm/', 'm0', NULL)`);
    await clock.advance(5000);
    expect(bells()).toHaveLength(2);
    // How long it has been silent is told by our own clock alone.
    await clock.advance(61_000);
    expect(bells()).toHaveLength(1);
    expect(sql('SELECT * FROM listener')).toHaveLength(1);
  });
});

describe('a file that another process keeps busy', () => {
  it('does not stop the event loop, and is asked again until it is free', async () => {
    const store = await openEmbedded(directory, { busyMs: 60_000 });
    handles.push(store);
    const other = openDatabase(join(directory, 'store.db'));
    other.exec('BEGIN IMMEDIATE');
    let turns = 0;
    const written = put(store, 'a').then(() => turns);
    // Reading needs nobody's leave.
    expect(await store.health()).toMatchObject({ revision: 1 });
    while (turns < 50) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    other.exec('COMMIT');
    other.close();
    expect(await written).toBeGreaterThanOrEqual(50);
  });

  it('is unavailable after a stated time, and nothing was changed', async () => {
    const store = await openEmbedded(directory, { clock, busyMs: 1000 });
    handles.push(store);
    const other = openDatabase(join(directory, 'store.db'));
    other.exec('BEGIN IMMEDIATE');
    const written = put(store, 'a').catch((error: unknown) => error);
    const behind = put(store, 'b').catch((error: unknown) => error);
    for (let i = 0; i < 30; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(50);
    }
    const told = new RegExp(
      `process ${process.pid} \\(.*, user .*\\) has kept the store busy for 1\\d\\d\\d ms; nothing was changed$`,
    );
    expect(await written).toMatchObject({ code: 'unavailable', message: expect.stringMatching(told) as string });
    expect(await behind).toMatchObject({ code: 'unavailable' });
    other.exec('COMMIT');
    other.close();
    expect(await store.health()).toMatchObject({ revision: 1 });
  });

  it('by one that was stopped in the middle of a write is told with its pid, and with what to do', async () => {
    const store = await openEmbedded(directory, { busyMs: 300 });
    handles.push(store);
    const program = fileURLToPath(new URL('programs/stopped-writer.mjs', import.meta.url));
    const child = fork(program, [join(directory, 'store.db')], { execArgv: [] });
    try {
      await once(child, 'message');
      await expect.poll(() => readStat(child.pid as number)?.state).toBe('T');
      const told = new RegExp(
        `process ${child.pid} .* is stopped: let it go on \\(kill -CONT ${child.pid}\\) or end it`,
      );
      await expect(put(store, 'a')).rejects.toThrow(told);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await put(store, 'a');
  });
});
