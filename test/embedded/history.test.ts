import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Store, openEmbedded, storeFile, Value } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sql as sqlOf } from '../support/sqlite.ts';
import { errorOf } from '../support/outcome.ts';

const KIB = 1024;
const LIMIT = 256 * KIB;

let directory: string;
let store: Store;
const clock = new TestClock();

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-history-'));
  store = await openEmbedded(directory, { clock, historyBytes: LIMIT });
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

async function put(key: string, bytes: number): Promise<void> {
  const operation = { do: 'put', key, value: Value.text('x'.repeat(bytes)) } as const;
  await store.transaction({ compare: [], success: [operation], failure: [] });
}

function ask(sql: string): number {
  const [row] = sqlOf<Record<string, number>>(storeFile(directory), sql);
  return Object.values(row ?? {})[0] as number;
}

const KEPT = 'SELECT coalesce(sum(octet_length(key) + coalesce(octet_length(value), 0)), 0) FROM history';

describe('the history of a store', () => {
  it('takes no more bytes than it may, whatever the size of the values, and neither does the file', async () => {
    for (let i = 0; i < 600; i++) await put('same', 8 * KIB);
    expect(ask(KEPT)).toBeLessThanOrEqual(LIMIT);
    expect(ask(KEPT)).toBe(ask('SELECT history_bytes FROM state'));
    await store.close();
    expect(statSync(storeFile(directory)).size).toBeLessThan(4 * LIMIT);
  });

  it('that was forgotten for its size is told to those who ask for it', async () => {
    for (let i = 0; i < 100; i++) await put('same', 8 * KIB);
    const watch = await store.watch({ key: 'same' }, 1, new AbortController().signal);
    expect(await errorOf(watch[Symbol.asyncIterator]().next())).toMatchObject({ code: 'compacted' });
  });

  it('goes back some revisions, however large they are', async () => {
    for (let i = 0; i < 20; i++) await put('same', 64 * KIB);
    const { revision } = await store.health();
    expect(ask('SELECT forgotten FROM state')).toBeLessThanOrEqual(revision - 10);
  });

  it('and what was deleted give their space back while somebody watches', async () => {
    for (let i = 0; i < 200; i++) await put(`key/${i}`, 32 * KIB);
    await store.watch({ key: 'key/' }, 'now', new AbortController().signal);
    const all = { do: 'delete', key: 'key/', end: 'key0' } as const;
    await store.transaction({ compare: [], success: [all], failure: [] });
    const pages = ask('PRAGMA page_count');
    expect(pages).toBeGreaterThan(1600);
    await clock.advance(20_000);
    expect(ask('PRAGMA page_count')).toBeLessThan(pages / 2);
  });
});
