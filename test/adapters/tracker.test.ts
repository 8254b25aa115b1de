// The local tracker: a file that several write at once, that people edit by hand, and that may be something else.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../support/sqlite.ts';
import { openTracker } from 'signalbox';

const FILER = fileURLToPath(new URL('programs/filer.mjs', import.meta.url));

let folder: string;
let path: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-tracker-')));
  path = join(folder, 'issues.json');
});

afterEach(() => rmSync(folder, { recursive: true }));

function filer(name: string, count: number): ChildProcess {
  return spawn(process.execPath, [FILER, path, name, String(count)], { stdio: ['ignore', 'pipe', 'inherit'] });
}

it('what is no regular file is refused, and not waited for', async () => {
  execFileSync('mkfifo', [path]);
  await expect(openTracker(path).list()).rejects.toThrow("is not a tracker's file");
  rmSync(path);
  mkdirSync(path);
  await expect(openTracker(path).list()).rejects.toThrow("is not a tracker's file");
});

describe('a tracker', () => {
  it('adds, finds and changes issues', async () => {
    const tracker = openTracker(join(folder, 'new', 'folder', 'issues.json'));
    const first = { id: '1', title: 'First', status: 'todo', labels: [], assignee: null, milestone: null };
    expect(await tracker.add({ title: 'First' })).toEqual({ kind: 'added', issue: first });
    expect(await tracker.add({ id: 7, title: 'Seventh', labels: ['bug'] })).toMatchObject({ issue: { id: '7' } });
    expect(await tracker.add({ title: 'Eighth' })).toMatchObject({ issue: { id: '8' } });
    expect(await tracker.add({ id: '1', title: 'Again' })).toEqual({ kind: 'exists', issue: first });
    expect(await tracker.update(1, { status: 'done' })).toEqual({
      kind: 'updated',
      issue: { ...first, status: 'done' },
    });
    expect(await tracker.update('99', { status: 'done' })).toEqual({ kind: 'missing' });
    expect(await tracker.get(1)).toMatchObject({ status: 'done' });
    expect(await tracker.get('2')).toBeUndefined();
    expect((await tracker.list({ labels: ['bug'] })).map(({ id }) => id)).toEqual(['7']);
    expect(await tracker.list()).toHaveLength(3);
    expect(readFileSync(tracker.path, 'utf8')).toMatch(
      /^\{\n {2}"version": 1,\n {2}"issues": \[\n {4}\{\n {6}"id": "1",/,
    );
  });

  it('that is not there is an error for whoever looks, and nothing is made beside it', async () => {
    await expect(openTracker(path).list()).rejects.toMatchObject({ code: 'not-found' });
    await expect(openTracker(path).update(1, {})).rejects.toMatchObject({ code: 'not-found' });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('writes nothing that it could not read again', async () => {
    const tracker = openTracker(path);
    await tracker.add({ title: 'First' });
    const before = readFileSync(path);
    const odd = [
      { status: 'open' },
      { labels: 'bug' },
      { labels: [1] },
      { title: 7 },
      { assignee: {} },
      { milestone: 1 },
    ];
    for (const changes of odd) {
      await expect(tracker.update(1, changes as object)).rejects.toMatchObject({ code: 'invalid' });
      await expect(tracker.add({ title: 'x', ...(changes as object) })).rejects.toMatchObject({ code: 'invalid' });
    }
    await expect(tracker.add({ id: '', title: 'x' })).rejects.toMatchObject({ code: 'invalid' });
    expect(readFileSync(path)).toEqual(before);
  });

  it('searches for words, and refuses the language of other trackers', async () => {
    const tracker = openTracker(path);
    await tracker.add({ title: 'Tree burns', labels: ['Fire'] });
    expect(await tracker.list({ query: 'fire TREE' })).toHaveLength(1);
    for (const query of ['', ' ', 'is:open', 'label:fire', '-fire', '"tree burns"', 'tree OR fire', '(tree)']) {
      await expect(tracker.list({ query }), query).rejects.toMatchObject({ code: 'invalid' });
    }
  });
});

describe('the file of a tracker', () => {
  it('may be written by hand, and keeps what is not ours', async () => {
    const own = { id: 1, title: 'First', status: 'todo', url: 'https://example.org/1', labels: ['a'] };
    writeFileSync(path, JSON.stringify({ version: 1, issues: [own, { id: 'X-2', title: '', status: 'blocked' }] }));
    const tracker = openTracker(path);
    expect(await tracker.issue('1')).toEqual({ status: 'todo' });
    await tracker.update('X-2', { status: 'done' });
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      issues: [
        { ...own, id: '1' },
        { id: 'X-2', status: 'done' },
      ],
    });
  });

  it.each([
    ['', 'not JSON'],
    ['{"version":1,"issues":[', 'not JSON'],
    ['null', 'no list of "issues"'],
    ['[]', 'no list of "issues"'],
    ['{"issues":[]}', 'no "version"'],
    ['{"version":2,"issues":[]}', 'of version 2'],
    ['{"version":"1","issues":[]}', 'no "version"'],
    ['{"version":1,"issues":{}}', 'no list of "issues"'],
    ['{"version":1,"issues":[7]}', 'issue number 1 in it is not an object'],
    ['{"version":1,"issues":[{"title":"x","status":"todo"}]}', 'has no "id"'],
    ['{"version":1,"issues":[{"id":1.5,"title":"x","status":"todo"}]}', 'has no "id"'],
    ['{"version":1,"issues":[{"id":1,"status":"todo"}]}', 'has no "title"'],
    ['{"version":1,"issues":[{"id":1,"title":"x","status":"open"}]}', 'not one of todo, in-progress, blocked, done'],
    ['{"version":1,"issues":[{"id":1,"title":"x","status":"todo","labels":"a"}]}', '"labels"'],
    ['{"version":1,"issues":[{"id":1,"title":"x","status":"todo","assignee":7}]}', '"assignee"'],
    [
      '{"version":1,"issues":[{"id":1,"title":"x","status":"todo"},{"id":"1","title":"y","status":"done"}]}',
      'two issues "1"',
    ],
    ['\0\0\0', 'not text'],
  ])('%j is refused, and never written over', async (text, why) => {
    writeFileSync(path, text);
    const tracker = openTracker(path);
    await expect(tracker.list()).rejects.toThrow(why);
    await expect(tracker.issues({})).rejects.toThrow(why);
    await expect(tracker.add({ title: 'New' })).rejects.toThrow(why);
    await expect(tracker.update(1, { status: 'done' })).rejects.toThrow(why);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('keeps its mode, and stays a link if it was one', async () => {
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    const real = join(elsewhere, 'real.json');
    writeFileSync(real, '{"version":1,"issues":[]}');
    chmodSync(real, 0o660);
    symlinkSync(real, path);
    await openTracker(path).add({ title: 'First' });
    expect(await openTracker(real).list()).toHaveLength(1);
    expect(await openTracker(path).list()).toHaveLength(1);
    expect(statSync(real).mode & 0o777).toBe(0o660);
  });

  it('that cannot be written stays as it is, and what was left by the dead is cleared away', async () => {
    await openTracker(path).add({ title: 'First' });
    const before = readFileSync(path);
    writeFileSync(join(folder, '.issues.json.new-0123456789ab'), 'half of it');
    await openTracker(path).add({ title: 'Second' });
    expect(readdirSync(folder).toSorted()).toEqual(['issues.json', 'issues.json.lock']);
    expect(readFileSync(path)).not.toEqual(before);
  });
});

describe('several writers', () => {
  it('in one process lose nothing', async () => {
    const numbers = Array.from({ length: 40 }, (_, number) => number);
    // Half of them by one tracker, half by another.
    const trackers = [openTracker(path), openTracker(path)];
    const adding = trackers.flatMap((tracker, half) =>
      numbers.filter((number) => number % 2 === half).map((number) => tracker.add({ title: String(number) })),
    );
    const ids = (await Promise.all(adding)).map(({ issue }) => Number(issue.id));
    expect(ids.toSorted((one, other) => one - other)).toEqual(numbers.map((number) => number + 1));
    expect(await openTracker(path).list()).toHaveLength(40);
  });

  it('in several processes lose nothing, and nobody ever reads half a file', async () => {
    const names = ['ana', 'bo', 'cy'];
    const children = names.map((name) => filer(name, 25));
    const ends = Promise.all(children.map((child) => once(child, 'exit')));
    let isOver = false;
    void ends.then(() => (isOver = true));
    const tracker = openTracker(path);
    const seen = async (): Promise<number> =>
      tracker.list().then(
        (issues) => issues.length,
        (error: { readonly code?: string }) => (error.code === 'not-found' ? 0 : Promise.reject(error as Error)),
      );
    for (let last = 0; !isOver;) {
      const now = await seen();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    expect((await ends).map(([code]) => code as number)).toEqual([0, 0, 0]);
    const all = await tracker.list();
    expect(new Set(all.map(({ id }) => id)).size).toBe(75);
    for (const name of names) expect(all.filter(({ assignee }) => assignee === name)).toHaveLength(25);
    expect(all.every(({ status, title, assignee }) => status === 'done' && title.startsWith(`${assignee} `))).toBe(
      true,
    );
  });

  it('killed at any moment leave a sound file, everything that was confirmed, and nobody waiting', async () => {
    const confirmed: string[] = [];
    for (let round = 0; round < 5; round++) {
      const child = filer(`round-${round}`, 1000);
      const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
      let count = 0;
      for await (const id of lines) {
        confirmed.push(id);
        if (++count === 3 + round) child.kill('SIGKILL');
      }
      const added = await openTracker(path).add({ title: 'after' });
      expect(added.kind).toBe('added');
      confirmed.push(added.issue.id);
    }
    const ids = new Set((await openTracker(path).list()).map(({ id }) => id));
    expect(confirmed.filter((id) => !ids.has(id))).toEqual([]);
    expect(readdirSync(folder).toSorted()).toEqual(['issues.json', 'issues.json.lock']);
  });

  it('wait no longer than they want to', async () => {
    await openTracker(path).add({ title: 'First' });
    const other = openDatabase(`${path}.lock`);
    other.exec('BEGIN EXCLUSIVE');
    try {
      const waiting = openTracker(path).add({ title: 'Second' }, AbortSignal.timeout(100));
      await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' });
    } finally {
      other.close();
    }
    expect(await openTracker(path).add({ title: 'Second' })).toMatchObject({ kind: 'added' });
  });
});
