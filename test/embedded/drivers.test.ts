import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox } from 'signalbox';
import { openEmbedded, prefixed, type ReadResult, type Store, Value } from 'signalbox/store';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { otherNode } from '../../scripts/nodes.mjs';
import { CLI, type Ended, startProgram } from '../support/cli.ts';

const node = otherNode();

// scripts/nodes.mjs says why, where there is no other Node.
describe.skipIf(node === undefined)(
  'one file, used at once by a Node with its own SQLite and by one with better-sqlite3',
  () => {
    let directory: string;
    let box: Signalbox;
    const byTheOther = (...args: readonly string[]): ReturnType<typeof startProgram> =>
      startProgram(node as string, [CLI, ...args], { env: { SIGNALBOX_URL: `file:${directory}` } });

    beforeEach(async () => {
      directory = mkdtempSync(join(tmpdir(), 'signalbox-drivers-'));
      box = await open(`file:${directory}`);
    });
    afterEach(async () => {
      await box.close();
      rmSync(directory, { recursive: true });
    });

    it('hands a lock from the one to the other and back, without a word on either side', async () => {
      const hold = await box.lock('main').acquire();
      const waiting = byTheOther('run', '--lock', 'main', '--', 'echo', 'let in');
      await expect.poll(async () => (await box.lock('main').inspect()).waiting.length).toBe(1);
      await hold.release();
      expect(await waiting.ended).toMatchObject({ code: 0, stdout: 'let in\n', stderr: '' } satisfies Partial<Ended>);

      const token = (
        await byTheOther('lock', 'acquire', 'main', '--holder', 'other', '--ttl', '5m').ended
      ).stdout.trim();
      expect(await box.lock('main').tryAcquire()).toMatchObject({ kind: 'busy', holders: [{ holder: 'other' }] });
      const here = box.lock('main').acquire();
      await expect.poll(async () => (await box.lock('main').inspect()).waiting.length).toBe(1);
      await byTheOther('lock', 'release', 'main', '--holder', 'other', '--token', token).ended;
      await (await here).release();
    });
  },
);

describe('text with a NUL in it', () => {
  let directory: string;
  let stores: Store[];

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'signalbox-drivers-'));
    stores = [await openEmbedded(directory), await openEmbedded(directory)];
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
    rmSync(directory, { recursive: true });
  });

  it('is read, watched and deleted whole, as a key, as a value, and as the end of a range', async () => {
    const [one, other] = stores as [Store, Store];
    const done = new AbortController();
    const watch = await other.watch({ key: 'a', end: 'a\0\0' }, 'now', done.signal);
    const put = { do: 'put', key: 'a\0', value: Value.text('b\0c') } as const;
    await one.transaction({ compare: [], success: [put], failure: [] });
    const [read] = (await other.transaction({ compare: [], success: [{ do: 'read', ...prefixed('a') }], failure: [] }))
      .results as ReadResult[];
    expect(read?.pairs.map(({ key, value }) => [key, value.text])).toEqual([['a\0', 'b\0c']]);
    const { value: seen } = await watch[Symbol.asyncIterator]().next();
    expect(seen?.changes).toMatchObject([{ kind: 'put', pair: { key: 'a\0' } }]);
    await one.transaction({ compare: [], success: [{ do: 'delete', key: 'a\0' }], failure: [] });
    const { value: gone } = await watch[Symbol.asyncIterator]().next();
    expect(gone?.changes).toMatchObject([{ kind: 'delete', key: 'a\0' }]);
    done.abort();
  });
});
