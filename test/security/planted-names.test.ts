// A store that somebody else prepared: what is in it never becomes a path that leads out of its own directory.

import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure, storeUrl } from 'signalbox';
import { openEmbedded, prefixed, type Store, storeFile, Value } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sql as sqlOf } from '../support/sqlite.ts';
import { errorOf } from '../support/outcome.ts';

const OLD = new Date(2001, 1, 1);
const HEX = '0123456789abcdef';
const clock = new TestClock();
let top: string;
let directory: string;
let precious: string;
let handles: Store[];

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'signalbox-planted-'));
  directory = join(top, 'store');
  precious = join(top, 'precious.txt');
  mkdirSync(directory);
  writeFileSync(precious, 'data');
  utimesSync(precious, OLD, OLD);
  handles = [];
});

afterEach(async () => {
  for (const handle of handles) await handle.close();
  rmSync(top, { recursive: true });
});

async function openHandle(): Promise<Store> {
  const store = await openEmbedded(directory, { clock });
  handles.push(store);
  return store;
}

async function watching(): Promise<Store> {
  const store = await openHandle();
  await store.watch(prefixed('m/'), 'now', new AbortController().signal);
  return store;
}

function sql<T>(text: string, ...values: unknown[]): T[] {
  return sqlOf<T>(storeFile(directory), text, ...values);
}

/** A bell whose owner has said nothing for long: the next tidying removes it. There has to be another one. */
function plantBell(name: string | Buffer): void {
  sql('INSERT INTO bell SELECT ?, NULL, -1000000, clock FROM bell LIMIT 1', name);
}

function plantListener(bell: string | Buffer): void {
  sql('INSERT INTO listener (bell, id, first, end) VALUES (?, 1, ?, ?)', bell, 'm/', 'm0');
  sql('UPDATE state SET listeners = listeners + 1');
}

async function refusal(work: Promise<unknown> | (() => unknown)): Promise<Failure> {
  const error = await errorOf(typeof work === 'function' ? Promise.resolve().then(work) : work);
  expect(error).toBeInstanceOf(Failure);
  return error as Failure;
}

const ODD_NAMES = ['../../precious.txt', '../precious.txt', '..', '.', '', 'a/b', 'x', `${HEX}/`, `${HEX}\n`];

describe('a name in a store that is no bell', () => {
  it.each(['../../precious.txt', '/etc/hosts', '..', '', `${HEX}\n`])(
    '%j is taken off the list, and no file',
    async (name) => {
      await watching();
      plantBell(name);
      plantListener(name);
      await clock.advance(5000);
      expect(existsSync(precious)).toBe(true);
      expect(sql('SELECT name FROM bell WHERE name = ?', name)).toEqual([]);
      expect(sql('SELECT bell FROM listener WHERE bell = ?', name)).toEqual([]);
    },
  );

  it('is taken off the list although its owner seems to live, and although it is no text', async () => {
    await watching();
    for (const name of ODD_NAMES) plantListener(name);
    plantListener(Buffer.from('../../precious.txt'));
    sql(`INSERT INTO bell SELECT '../../precious.txt', process, heard, clock FROM bell`);
    plantBell(Buffer.from('../../precious.txt'));
    await clock.advance(5000);
    expect(sql('SELECT name FROM bell')).toHaveLength(1);
    expect(sql('SELECT bell FROM listener')).toHaveLength(1);
    expect(readFileSync(precious, 'utf8')).toBe('data');
  });

  it('is not rung: the file that it leads to keeps its times and its contents', async () => {
    const store = await openHandle();
    await store.watch({ key: 'z' }, 'now', new AbortController().signal);
    plantListener('../../precious.txt');
    const put = { do: 'put', key: 'm/1', value: Value.text('x') } as const;
    await store.transaction({ compare: [], success: [put], failure: [] });
    expect(lstatSync(precious).mtime).toEqual(OLD);
    expect(readFileSync(precious, 'utf8')).toBe('data');
  });

  it('does not keep bells of the gone from being removed, nor does an owner that makes no sense', async () => {
    await watching();
    plantBell('../../precious.txt');
    sql(`INSERT INTO bell SELECT 'fedcba9876543210', 'no JSON', heard, clock FROM bell WHERE process IS NOT NULL`);
    plantBell(HEX);
    writeFileSync(join(directory, 'bells', HEX), '');
    await clock.advance(5000);
    expect(existsSync(join(directory, 'bells', HEX))).toBe(false);
  });
});

describe('a bell that is a link', () => {
  it('is not rung, and what it leads to keeps its times', async () => {
    const store = await watching();
    symlinkSync('../../precious.txt', join(directory, 'bells', HEX));
    plantListener(HEX);
    const put = { do: 'put', key: 'm/1', value: Value.text('x') } as const;
    await store.transaction({ compare: [], success: [put], failure: [] });
    expect(lstatSync(precious).mtime).toEqual(OLD);
  });

  it('is removed itself, and not what it leads to', async () => {
    await watching();
    symlinkSync('../../precious.txt', join(directory, 'bells', HEX));
    plantBell(HEX);
    await clock.advance(5000);
    expect(readdirSync(join(directory, 'bells'))).toHaveLength(1);
    expect(readFileSync(precious, 'utf8')).toBe('data');
  });
});

describe('in the directory of the bells', () => {
  /** Past the minute for which files of processes are spared that are just entering themselves. */
  async function tidyLater(): Promise<void> {
    const now = Date.now;
    Date.now = () => now() + 120_000;
    try {
      await clock.advance(5000);
    } finally {
      Date.now = now;
    }
  }

  it('files that are no bells are left alone, however old', async () => {
    await watching();
    for (const name of ['thesis.tex', HEX]) writeFileSync(join(directory, 'bells', name), 'data');
    await tidyLater();
    expect(existsSync(join(directory, 'bells', HEX))).toBe(false);
    expect(existsSync(join(directory, 'bells', 'thesis.tex'))).toBe(true);
  });

  it('a directory is left alone, whatever its name', async () => {
    await watching();
    mkdirSync(join(directory, 'bells', HEX));
    plantBell(HEX);
    await tidyLater();
    expect(existsSync(join(directory, 'bells', HEX))).toBe(true);
  });
});

describe('a store with links in it is refused, and what they lead to is left as it is:', () => {
  it('the directory of the bells', async () => {
    mkdirSync(join(top, 'home'));
    writeFileSync(join(top, 'home', HEX), 'data');
    symlinkSync('../home', join(directory, 'bells'));
    const { code, message } = await refusal(openEmbedded(directory));
    expect(code).toBe('forbidden');
    expect(message).toMatch(/bells is a symbolic link, .* no directory/);
    expect(readFileSync(join(top, 'home', HEX), 'utf8')).toBe('data');
    expect(existsSync(storeFile(directory))).toBe(false);
  });

  it.each(['store.db', 'store.db-wal', 'store.db-shm', 'store.db-journal', 'rounds-4026531836'])('%s', async (name) => {
    symlinkSync('../precious.txt', join(directory, name));
    const { code, message } = await refusal(openEmbedded(directory));
    expect(code).toBe('forbidden');
    expect(message).toContain(`${name} is a symbolic link`);
    expect(readFileSync(precious, 'utf8')).toBe('data');
  });

  it('a link that leads nowhere, too', async () => {
    symlinkSync('../made-by-a-link', join(directory, 'store.db'));
    expect(await refusal(openEmbedded(directory))).toMatchObject({ code: 'forbidden' });
    expect(existsSync(join(top, 'made-by-a-link'))).toBe(false);
  });

  it('and one with a directory for a file, or a file for the directory of the bells', async () => {
    mkdirSync(join(directory, 'store.db-wal'));
    expect((await refusal(openEmbedded(directory))).message).toContain('store.db-wal is a directory');
    rmSync(join(directory, 'store.db-wal'), { recursive: true });
    writeFileSync(join(directory, 'bells'), '');
    expect((await refusal(openEmbedded(directory))).message).toContain('bells is a file');
  });

  it('the store of a git repository', async () => {
    const git = join(top, '.git');
    for (const part of ['objects', 'refs']) mkdirSync(join(git, part), { recursive: true });
    writeFileSync(join(git, 'HEAD'), 'ref: refs/heads/main\n');
    symlinkSync('../store', join(git, 'signalbox'));
    const { code, message } = await refusal(() => storeUrl(undefined, {}, top));
    expect(code).toBe('forbidden');
    expect(message).toMatch(/\.git\/signalbox is a symbolic link/);
  });

  it('but a link that a user names in the URL is followed', async () => {
    symlinkSync('store', join(top, 'by-link'));
    expect(storeUrl(`file:${join(top, 'by-link')}`)).toBe(`file:${directory}`);
    const store = await openEmbedded(join(top, 'by-link'));
    await store.close();
    expect(existsSync(storeFile(directory))).toBe(true);
  });
});
