// The record of the witness, as users of the library see it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox } from 'signalbox';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { always, openEmbedded, openEtcdUrl, openMemory, prefixed, type Store, Value } from '../../src/store/index.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-record-'));
const opened: Signalbox[] = [];
let count = 0;

async function opening(url: string | Store, options: Parameters<typeof open>[1] = {}): Promise<Signalbox> {
  const box = await open(url, { maintains: false, ...options });
  opened.push(box);
  return box;
}

let etcd: EtcdServer;
const engines: Readonly<Record<string, () => Store | Promise<Store>>> = {
  memory: () => openMemory(),
  'a file': () => openEmbedded(join(directory, `s${++count}`)),
  etcd: () => openEtcdUrl(`etcd://127.0.0.1:${etcd.port}/s${++count}`),
};

beforeAll(async () => {
  if (!isMissing('etcd')) etcd = await startEtcd();
});
afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
});
afterAll(async () => {
  await etcd?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function story(box: Signalbox, resource: string): Promise<readonly string[]> {
  const told: string[] = [];
  for await (const { commands } of box.witness.entries({ resource }))
    for (const { actor, command, outcome, events } of commands)
      // Whether a request waits in the write that serves it, or in one before, depends on the engine.
      if (outcome !== 'queued') told.push(`${actor} ${command} ${outcome} ${events.join(' ')}`.trim());
  return told;
}

describe.each(Object.entries(engines).filter(([name]) => name !== 'etcd' || !isMissing('etcd')))(
  'in %s',
  (_, openStore) => {
    let store: Store;
    async function place(): Promise<Signalbox> {
      store = await openStore();
      return opening(store, { witness: true });
    }

    it('every change of a lock has an entry that says who did what, and the chain verifies', async () => {
      const box = await place();
      const lock = box.lock('main');
      const hold = await lock.acquire({ holder: 'ann', reason: 'deploy' });
      const waiting = lock.acquire({ holder: 'bob' });
      await hold.release();
      await (await waiting).release();
      await lock.configure({ onStale: 'alert' });
      await lock.acquire({ holder: 'eve' });
      await lock.break({ holder: 'root', reason: 'she left' });
      expect(await story(box, 'lock/main')).toEqual([
        'ann acquire acquired lock:acquired',
        'ann release released lock:released',
        'bob acquire acquired lock:acquired',
        'bob release released lock:released',
        expect.stringContaining('configure configured'),
        'eve acquire acquired lock:acquired',
        'root break broken lock:forced',
      ]);
      expect((await box.witness.verify()).finding).toBeUndefined();
    });

    it('tasks, members and several locks at once are entered too, with the trace of the task', async () => {
      const box = await place();
      await box.tasks.publish('7', { secret: 'x' }, { by: 'ann', traceId: 'trace-7', sensitive: true });
      const { claim } = (await box.tasks.tryClaim('7', { holder: 'worker' })) as {
        claim: { fail(why: string): Promise<unknown> };
      };
      await claim.fail('broken');
      await box.tasks.forget('7');
      expect(await story(box, 'task/7')).toEqual([
        'ann publish published task:published',
        'worker claim claimed task:claimed',
        'worker fail failed task:failed',
        expect.stringContaining('forget forgotten'),
      ]);
      for await (const { commands } of box.witness.entries({ resource: 'task/7' })) {
        expect(JSON.stringify(commands)).not.toContain('"secret"');
        expect(commands.map(({ trace }) => trace)).toEqual(['trace-7']);
      }
      const joined = await box.members.join('north');
      if (joined.kind === 'joined') await joined.membership.leave();
      expect(await story(box, 'member/north')).toEqual([
        'north join joined member:joined',
        'north leave left member:left',
      ]);
      const set = await box.acquireAll([{ lock: 'a' }, { semaphore: 's', capacity: 2 }], { holder: 'ann' });
      await set.release();
      expect(await story(box, 'lock/a')).toHaveLength(2);
      expect((await box.witness.verify()).finding).toBeUndefined();
    });

    it('a task whose keys another program has deleted is entered as observed, once, and again after it came back', async () => {
      const box = await place();
      for (const id of ['7', '8']) await box.tasks.publish(id, {}, { by: 'ann' });
      await box.tasks.forget('8');
      const deleted = always([{ do: 'delete', ...prefixed('//tasks/7/') }]);
      await store.transaction(deleted);
      for (let round = 0; round < 2; round++) await box.maintain();
      await store.transaction(always([{ do: 'put', key: '//tasks/7/data', value: Value.text('{}') }]));
      await box.maintain();
      await store.transaction(deleted);
      await box.maintain();
      expect(await story(box, 'task/7')).toEqual([
        'ann publish published task:published',
        'observed deleted-by-others',
        'observed changed-by-others',
        'observed deleted-by-others',
      ]);
      expect(await story(box, 'task/8')).toHaveLength(2);
      expect((await box.witness.verify()).finding).toBeUndefined();
    });

    it('what was trimmed behind a checkpoint is missed by nobody, and a chain goes on after its record was deleted', async () => {
      const box = await place();
      for (let i = 0; i < 5; i++) await (await box.lock('main').acquire()).release();
      const { number } = await box.witness.checkpoint();
      const proof = await box.witness.proof({ resource: 'lock/main', seq: 3 });
      expect(proof.checkpoint.number).toBe(number);
      expect(await box.witness.trim()).toEqual({ trimmed: 10 });
      await (await box.lock('main').acquire()).release();
      const swept = (await box.maintain()).forgotten + (await box.maintain()).forgotten;
      expect(swept).toBeGreaterThan(0);
      await (await box.lock('main').acquire()).release();
      const seqs: number[] = [];
      for await (const { seq } of box.witness.entries({ resource: 'lock/main' })) seqs.push(seq);
      expect(seqs).toEqual([11, 12, 13, 14]);
      const { finding, trimmed } = await box.witness.verify();
      expect(finding).toBeUndefined();
      expect(trimmed).toBe(10);
    });

    it('entries of users are chained by component, and a watch hears of them', async () => {
      const box = await place();
      const heard = box.witness.watch({ resource: 'component/deploy' })[Symbol.asyncIterator]();
      const next = heard.next();
      // The watch is confirmed by the store before the entry is made, or the entry is what it is about to deliver.
      await box.lock('x').tryAcquire();
      const entry = await box.witness.record({ event: 'deploy:started', component: 'deploy', payload: { version: 2 } });
      expect(entry).toMatchObject({ resource: 'component/deploy', seq: 1 });
      expect((await next).value).toEqual(entry);
      await heard.return?.();
    });
  },
);

it('a process that is opened with the other setting is refused, and one without a setting follows the store', async () => {
  const url = `file:${join(directory, 'setting')}`;
  const box = await opening(url, { witness: false });
  await expect(open(`${url}?witness=on`)).rejects.toThrow('the witness of this store is off');
  const other = await opening(url);
  await (await other.lock('main').acquire()).release();
  expect(await story(box, 'lock/main')).toEqual([]);
});

it('it is off unless somebody asks for it, and cannot be switched on beside processes that do not know of it', async () => {
  const url = `file:${join(directory, 'later')}`;
  const box = await opening(url);
  await (await box.lock('main').acquire()).release();
  await expect(open(`${url}?witness=on`)).rejects.toThrow('when no other process is at work');
  await box.close();
  const on = await opening(`${url}?witness=on`);
  const follows = await opening(url);
  await (await follows.lock('main').acquire({ holder: 'a' })).release();
  expect(await story(on, 'lock/main')).toEqual([
    'a acquire acquired lock:acquired',
    'a release released lock:released',
  ]);
  expect((await on.witness.verify()).finding).toBeUndefined();
});
