import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Failure } from '../../failure.ts';
import { type ProcessIdentity, thisProcess } from '../../host/index.ts';
import { sqliteDriver } from '../../sqlite/index.ts';
import { TestClock } from '../../testing/index.ts';
import { Connection } from './connection.ts';
import type { Engine, News } from './engine.ts';
import { Listening } from './listening.ts';
import { SCHEMA } from './schema.ts';
import { EmbeddedWatch } from './watches.ts';

const EIGHT = 8;
let directory: string;
let connection: Connection;
let listening: Listening;
let clock: TestClock;
/** How often it was told to look. */
let rings: number;
let engine: { connection: Connection; leases: object; write: object; news: (at: CursorsAt) => (News | Failure)[] };

type CursorsAt = Parameters<Engine['news']>[0];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-listening-'));
  connection = new Connection(sqliteDriver().open(join(directory, 'store.db')));
  connection.execute(SCHEMA);
  engine = {
    connection,
    news: () => [],
    leases: { own: { enter: () => 1, id: 1 } },
    write: (work: (state: object) => unknown) => work({ revision: 1, compacted: 0 }),
  };
  clock = new TestClock();
  rings = 0;
  listening = newListening(() => void (rings += 1));
  listening.enter({ key: 'a' });
});

function newListening(onRing: () => void): Listening {
  const access = { share: 'none', heir: undefined } as const;
  return new Listening(engine as unknown as Engine, clock, directory, access, onRing, () => undefined);
}

afterEach(() => {
  listening.abandon();
  connection.close();
  rmSync(directory, { recursive: true });
});

/** Bells that are older than ours, of processes like this one. */
function older(count: number, process: ProcessIdentity): void {
  const rows = connection.sql('SELECT count(*) AS count FROM bell').get() as { count: number };
  for (let i = 0; i < count; i++) {
    const name = (rows.count + i).toString(16).padStart(16, '0');
    connection
      .sql('INSERT INTO bell (name, process, clock, heard) VALUES (?, ?, 1, 0)')
      .run(name, JSON.stringify(process));
  }
}

// Only Linux tells which process is which, and so only there do processes share the duty.
describe.skipIf(thisProcess() === undefined)('the eldest of those that listen', () => {
  const ours = thisProcess() as ProcessIdentity;
  const dead: ProcessIdentity = { ...ours, start: '1' };
  const elsewhere: ProcessIdentity = { ...ours, space: 'pid:[1]' };

  it('are the ones whose bells were hung first', () => {
    older(EIGHT - 1, ours);
    expect(listening.isAmongEldest(EIGHT)).toBe(true);
    older(1, ours);
    expect(listening.isAmongEldest(EIGHT)).toBe(false);
  });

  it('are of our own pid namespace: another one has its own process on duty, and deputies', () => {
    older(EIGHT, elsewhere);
    expect(listening.isAmongEldest(EIGHT)).toBe(true);
    expect(listening.count()).toBe(1);
  });

  it('are not looked for behind many that have died: that would hold up hundreds of processes', () => {
    older(EIGHT + 32, dead);
    expect(listening.isAmongEldest(EIGHT)).toBe(false);
  });

  it('are alive, although the bells of the dead are still listed', () => {
    older(EIGHT, dead);
    expect(listening.isAmongEldest(EIGHT)).toBe(true);
    older(EIGHT, ours);
    expect(listening.isAmongEldest(EIGHT)).toBe(false);
  });
});

describe('a look for news', () => {
  const stopped = new AbortController().signal;
  const ended = (): void => undefined;

  function watchThatReads(read: () => News | Failure): EmbeddedWatch {
    const watch = new EmbeddedWatch({ key: 'a' }, 1, read, stopped, ended);
    listening.add(watch, { id: 1, hint: {} });
    return watch;
  }

  it('reads once for all watches, and only if something was written', async () => {
    let [reads, own] = [0, 0];
    engine.news = (at) => {
      reads += 1;
      const news = { asOf: 2, changes: [{ revision: 2, changes: [] }], isAll: true };
      return at({ revision: 2, forgotten: 0, listeners: 1 }).map(() => news);
    };
    const nothing = { asOf: 1, changes: [], isAll: true };
    const watches = [1, 2, 3].map(() => watchThatReads(() => (own++, nothing)));
    const first = watches.map((watch) => watch.next());
    expect([reads, own]).toEqual([0, 3]);
    listening.look();
    expect((await Promise.all(first)).map(({ value }) => value?.revision)).toEqual([2, 2, 2]);
    // They have all that there is: their readers wait for the next ring.
    const second = watches.map((watch) => watch.next());
    listening.look();
    expect([reads, own]).toEqual([2, 3]);
    for (const watch of watches) watch.end();
    expect((await Promise.all(second)).every(({ done }) => done)).toBe(true);
  });

  it('lets each watch read by itself where that fails, so that each ends with what is wrong', async () => {
    let isGone = false;
    engine.news = () => {
      throw new Error('the disk is gone');
    };
    const watch = watchThatReads(() => {
      if (isGone) throw new Error('the disk is still gone');
      return { asOf: 1, changes: [], isAll: true };
    });
    // It has all that there is, and waits for the next ring.
    const waiting = watch.next();
    isGone = true;
    listening.look();
    await expect(waiting).rejects.toThrow('still gone');
  });

  it('reads nothing for a watch whose reader is slow', () => {
    const changes = Array.from({ length: 256 }, (_, place) => ({ revision: place + 2, changes: [] }));
    const slow = watchThatReads(() => ({ asOf: 257, changes, isAll: true }));
    watchThatReads(() => ({ asOf: 1, changes: [], isAll: true }));
    slow.lookFurther();
    let cursors: unknown[] = [];
    engine.news = (at) => {
      cursors = [...at({ revision: 300, forgotten: 0, listeners: 1 })];
      return cursors.map(() => ({ asOf: 300, changes: [], isAll: true }));
    };
    listening.look();
    expect(cursors).toEqual([{ since: 1, range: { key: 'a' } }]);
  });

  it('delivers nothing twice that a watch has read meanwhile', async () => {
    const changes = [2, 3].map((revision) => ({ revision, changes: [] }));
    const watch = watchThatReads(() => ({ asOf: 2, changes: changes.slice(0, 1), isAll: true }));
    watch.lookFurther();
    watch.receive({ asOf: 3, changes, isAll: true });
    watch.receive({ asOf: 2, changes: changes.slice(0, 1), isAll: true });
    const read = [await watch.next(), await watch.next()].map(({ value }) => value?.revision);
    expect(read).toEqual([2, 3]);
    const waiting = watch.next();
    watch.end();
    expect((await waiting).done).toBe(true);
  });
});

describe('a process that listens', () => {
  let other: Listening;
  let watch: EmbeddedWatch;

  beforeEach(() => {
    other = newListening(() => undefined);
    other.enter({ key: 'z' });
    watch = new EmbeddedWatch(
      { key: 'a' },
      1,
      () => ({ asOf: 1, changes: [], isAll: true }),
      stopped,
      () => undefined,
    );
    listening.add(watch, { id: 1, hint: {} });
  });

  afterEach(() => other.abandon());

  const stopped = new AbortController().signal;
  const keysOnList = (): unknown[] => {
    const rows = connection
      .sql("SELECT CAST(first AS TEXT) AS first FROM listener WHERE first <> 'z' ORDER BY 1")
      .all();
    return rows.map((row) => (row as { first: unknown }).first);
  };
  const isHung = (): boolean => readdirSync(join(directory, 'bells')).includes(listening.bell ?? '');
  const seconds = async (count: number): Promise<void> => {
    for (let passed = 0; passed < count; passed += 5) {
      await clock.advance(5000);
      other.stayOnList();
      other.tidy();
    }
  };
  const lookAsked = async (): Promise<void> => vi.waitFor(() => expect(rings).toBeGreaterThan(0));

  it('stays on the list however often it begins to watch', async () => {
    for (let passed = 0; passed < 100; passed += 5) {
      await seconds(5);
      listening.enter({ key: 'b' });
      listening.stayOnListAlong();
      listening.stayOnList();
    }
    expect(keysOnList()[0]).toBe('a');
    expect(isHung()).toBe(true);
  });

  it('that others took for dead is on the list with all its watches once it begins another one, and looks', async () => {
    await seconds(65);
    expect([keysOnList(), isHung()]).toEqual([[], false]);
    listening.enter({ key: 'b' });
    expect([keysOnList(), isHung()]).toEqual([['a', 'b'], true]);
    await lookAsked();
  });

  it('that others took for dead is on the list again with its next renewal, and looks', async () => {
    await seconds(65);
    listening.stayOnListAlong();
    expect([keysOnList(), isHung()]).toEqual([['a'], true]);
    await lookAsked();
  });

  it('hears again after a time in which it had no watches', async () => {
    listening.remove(watch)?.();
    await seconds(65);
    expect(isHung()).toBe(false);
    listening.enter({ key: 'b' });
    expect([keysOnList(), isHung()]).toEqual([['b'], true]);
  });

  it('hangs its bell again a moment after a program removed it, and looks', async () => {
    rmSync(join(directory, 'bells', listening.bell ?? ''));
    await vi.waitFor(() => expect(clock.pendingTimers).toBeGreaterThan(0));
    expect(isHung()).toBe(false);
    await clock.advance(1000);
    expect(isHung()).toBe(true);
    await lookAsked();
  });

  it('puts nothing into a store that a program removes', async () => {
    rmSync(join(directory, 'bells'), { recursive: true });
    await vi.waitFor(() => expect(clock.pendingTimers).toBeGreaterThan(0));
    await clock.advance(2000);
    expect(readdirSync(directory)).not.toContain('bells');
  });

  it('hangs its bell again with its next word where no event tells that it was removed', async () => {
    rmSync(join(directory, 'bells'), { recursive: true });
    await clock.advance(17_000);
    listening.stayOnListAlong();
    expect(isHung()).toBe(true);
  });
});
