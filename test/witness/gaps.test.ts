// What must not be missing from the record, or be in it twice.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox } from 'signalbox';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { WITNESS_IS_OFF } from '../../src/runtime/witness/log.ts';
import { always, openMemory, readRange, type Store, Value } from '../../src/store/index.ts';
import { faultyStore } from '../../src/testing/faulty-store.ts';
import { ScriptedFaults } from '../../src/testing/scripted-faults.ts';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-gaps-'));
const opened: Signalbox[] = [];
let count = 0;

async function opening(url: string | Store, options: Parameters<typeof open>[1] = {}): Promise<Signalbox> {
  const box = await open(url, { maintains: false, ...options });
  opened.push(box);
  return box;
}

const newFile = (): string => `file:${join(directory, `s${++count}`)}`;

afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function outcomes(box: Signalbox, resource: string): Promise<readonly string[]> {
  const told: string[] = [];
  for await (const { commands } of box.witness.entries({ resource }))
    for (const { outcome } of commands) told.push(outcome);
  return told;
}

it('an entry of a user is the one that the call returns, however many are made at once', async () => {
  const box = await opening('memory:', { witness: true });
  const all = [1, 2, 3, 4, 5, 6, 7, 8];
  const entries = await Promise.all(
    all.map((n) => box.witness.record({ event: 'x:y', component: 'c', payload: { n } })),
  );
  expect(entries.map(({ commands }) => commands[0]?.detail?.['data'])).toEqual(all.map((n) => ({ n })));
  expect(new Set(entries.map(({ seq }) => seq)).size).toBe(all.length);
});

it('a token that is created or revoked has an entry, without its secret', async () => {
  const box = await opening('memory:', { witness: true });
  const { secret, token } = await box.tokens.create({ name: 'ci', role: 'worker', holders: ['job:*'] });
  expect(await box.tokens.revoke(token.id)).toBe(true);
  expect(await box.tokens.revoke(token.id)).toBe(false);
  expect(await outcomes(box, `token/${token.id}`)).toEqual(['created', 'revoked']);
  const lines: string[] = [];
  for await (const line of box.witness.export()) lines.push(line);
  const text = lines.join('\n');
  expect(text).toContain('job:*');
  expect(text).not.toContain(secret.slice(21));
});

describe('a process without a session', () => {
  it.each(['a lock', 'a task'])('that took the witness to be off enters its write of %s all the same', async (what) => {
    const url = newFile();
    const early = await opening(url);
    // It looks, and so knows that the witness is off; a look needs no session.
    expect(await early.witness.isOn()).toBe(false);
    const on = await opening(`${url}?witness=on`);
    if (what === 'a lock') await early.lock('main').configure({ onStale: 'alert' });
    else await early.tasks.publish('7', {});
    const resource = what === 'a lock' ? 'lock/main' : 'task/7';
    expect(await outcomes(on, resource)).toEqual([what === 'a lock' ? 'configured' : 'published']);
    expect((await on.witness.verify()).finding).toBeUndefined();
  });

  it('that gets no answer when it asks whether the witness is on enters its write after the others', async () => {
    const store = openMemory();
    const first = await opening(store, { witness: true });
    await first.lock('main').configure({ onStale: 'alert' });
    const faults = new ScriptedFaults();
    const second = await opening(faultyStore(store, faults));
    faults.next('transaction', 'drop-request');
    await second.lock('main').configure({ onStale: 'reclaim' });
    expect(await outcomes(first, 'lock/main')).toEqual(['configured', 'configured']);
    expect((await first.witness.verify()).finding).toBeUndefined();
  });
});

describe('the end of a chain that another program has overwritten', () => {
  it.each(['no JSON', '{}', 'null'])('with %s makes a write fail, and no entry is overwritten', async (text) => {
    const store = openMemory();
    const [first, second] = [await opening(store, { witness: true }), await opening(store)];
    await first.tasks.publish('7', {});
    const key = 'witness.head/task/7';
    await store.transaction(always([{ do: 'put', key, value: Value.text(text) }]));
    const before = (await readRange(store, { key: 'witness/task/7/000000000001' })).pairs;
    for (const box of [first, second])
      await expect(box.tasks.forget('7')).rejects.toMatchObject({
        code: 'corrupt',
        message: expect.stringContaining(key) as string,
      });
    expect((await readRange(store, { key: 'witness/task/7/000000000001' })).pairs).toEqual(before);
    // Maintenance goes on with the rest.
    await first.lock('main').configure({ onStale: 'alert' });
    await first.maintain();
    expect(await outcomes(first, 'lock/main')).toEqual(['configured']);
  });
});

it('a store whose witness is off says so, instead of calling a record good that nobody keeps', async () => {
  const box = await opening('memory:');
  const { witness } = box;
  for (const call of [
    () => witness.verify(),
    () => witness.checkpoint(),
    () => witness.trim(),
    () => witness.configure({ mostEntries: 7 }),
    () => witness.record({ event: 'a', component: 'b' }),
    () => witness.proof({ resource: 'lock/a', seq: 1 }),
    () => witness.export()[Symbol.asyncIterator]().next(),
  ])
    await expect(call()).rejects.toThrow(WITNESS_IS_OFF);
});

describe('what happens without a command', () => {
  it('is entered once, however many maintainers see it at the same time', async () => {
    const store = openMemory();
    const boxes = await Promise.all(
      [1, 2, 3].map(async () => {
        const box = await open(store, { maintains: false, witness: true });
        opened.push(box);
        return box;
      }),
    );
    const [first, second, third] = boxes as [Signalbox, Signalbox, Signalbox];
    await second.members.join('north');
    // Its process is gone: its session ends, and the member with it, and nobody has said so.
    const session = await readRange(store, { key: 's/member/north' });
    await store.revokeLease(session.pairs[0]?.lease ?? '');
    await first.tasks.publish('7', {});
    const [data] = (await readRange(store, { key: '//tasks/7/data' })).pairs;
    await store.transaction(always([{ do: 'put', key: data?.key ?? '', value: data?.value ?? Value.text('') }]));
    await Promise.all([first.maintain(), third.maintain(), first.maintain()]);
    await third.maintain();
    expect(await outcomes(first, 'member/north')).toEqual(['joined', 'lease-ended']);
    expect(await outcomes(first, 'task/7')).toEqual(['published', 'changed-by-others']);
    expect((await first.witness.verify()).finding).toBeUndefined();
  });
});
