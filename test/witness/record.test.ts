// The record of the witness, as users of the library see it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox } from 'signalbox';
import type { WitnessedCommand } from 'signalbox/core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-record-'));
const opened: Signalbox[] = [];
let count = 0;

async function opening(url: string, options: Parameters<typeof open>[1] = {}): Promise<Signalbox> {
  const box = await open(url, { maintains: false, ...options });
  opened.push(box);
  return box;
}

const places = {
  memory: () => opening('memory:', { witness: true }),
  'a file': () => opening(`file:${join(directory, `s${++count}`)}`, { witness: true }),
};

afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function commandsOf(box: Signalbox, resource: string): Promise<readonly WitnessedCommand[]> {
  const all: WitnessedCommand[] = [];
  for await (const { commands } of box.witness.entries({ resource })) all.push(...commands);
  return all;
}

async function story(box: Signalbox, resource: string): Promise<readonly string[]> {
  // Whether a request waits in the write that serves it, or in one before, depends on the engine.
  const told = (await commandsOf(box, resource)).filter(({ outcome }) => outcome !== 'queued');
  return told.map(({ actor, command, outcome, events }) => `${actor} ${command} ${outcome} ${events.join(' ')}`.trim());
}

describe.each(Object.entries(places))('in %s', (_, place) => {
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

  it('every step of a pipeline is entered, from its start to its end, and who cancelled another one and why', async () => {
    const box = await place();
    const phases = ['build', 'deploy'].map((name) => ({ name, run: () => undefined }));
    await box.pipelines.run({ name: 'release', phases }, { id: 'whole', by: 'ann' });
    const whole = await commandsOf(box, 'pipeline/whole');
    const driver = whole[1]?.actor;
    expect(driver).toMatch(/^driver:/);
    const steps = [
      { actor: 'ann', command: 'start', events: ['pipeline:started'], detail: { state: 'pending' } },
      { actor: driver, command: 'drive', events: [], detail: { state: 'running' } },
      { actor: driver, command: 'begun', events: ['pipeline:phase'], detail: { phase: 0, when: 'during' } },
      { actor: driver, command: 'ended', events: [], detail: { phase: 1, when: 'before' } },
      { actor: driver, command: 'begun', events: ['pipeline:phase'], detail: { phase: 1, when: 'during' } },
      { actor: driver, command: 'ended', events: ['pipeline:done'], detail: { state: 'done' } },
    ];
    expect(whole).toMatchObject(steps.map((step) => ({ component: 'pipeline', ...step })));

    await box.pipelines.start({ name: 'release', phases }, { id: 'cut', by: 'ann' });
    await box.pipelines.cancel('cut', { by: 'root', reason: 'wrong branch' });
    await box.pipelines.forget('cut');
    expect(await commandsOf(box, 'pipeline/cut')).toMatchObject([
      { actor: 'ann', command: 'start', events: ['pipeline:started'] },
      { actor: 'root', command: 'cancel', events: ['pipeline:cancelled'], detail: { reason: 'wrong branch' } },
      { command: 'forget', outcome: 'forgotten' },
    ]);
    expect((await box.witness.verify()).finding).toBeUndefined();
  });

  it('what was forced is entered with its reason, what was configured with its values, and both ends of a move', async () => {
    const box = await place();
    const slots = box.semaphore('slots', { capacity: 2 });
    await slots.acquire({ holder: 'ann', weight: 2 });
    await slots.resize(3);
    await slots.drain({ holder: 'ops', reason: 'repairs' });
    await slots.undrain({ holder: 'ops' });
    await slots.break({ holder: 'root', reason: 'she left' });
    expect(await commandsOf(box, 'semaphore/slots')).toMatchObject([
      { actor: 'ann', command: 'acquire', outcome: 'acquired', detail: { weight: 2 } },
      { command: 'resize', events: ['semaphore:resized'], detail: { capacity: 3 } },
      { actor: 'ops', command: 'drain', events: ['semaphore:drained'], detail: { reason: 'repairs' } },
      { actor: 'ops', command: 'undrain', events: ['semaphore:undrained'] },
      {
        ...{ actor: 'root', command: 'break', outcome: 'broken', events: ['semaphore:forced'] },
        detail: { reason: 'she left', lost: [{ holder: 'ann', why: 'forced' }] },
      },
    ]);
    await box.lock('main').acquire({ holder: 'eve' });
    await box.lock('main').acquire({ holder: 'bob', strategy: 'force', reason: 'urgent' });
    expect((await commandsOf(box, 'lock/main')).at(-1)).toMatchObject({
      ...{ actor: 'bob', command: 'acquire', events: ['lock:forced', 'lock:acquired'] },
      detail: { force: true, reason: 'urgent', lost: [{ holder: 'eve', why: 'forced' }] },
    });
    await box.tasks.publish('7', {});
    await box.tasks.tryClaim('7', { holder: 'worker' });
    await box.tasks.forceRelease('7', { holder: 'root', reason: 'stuck' });
    expect((await commandsOf(box, 'task/7')).at(-1)).toMatchObject({
      ...{ actor: 'root', command: 'force', outcome: 'forced', detail: { reason: 'stuck' } },
    });
    await box.tasks.configure({ keepMost: 7 });
    await box.witness.configure({ mostEntries: 1000 });
    expect(await commandsOf(box, 'settings/*')).toMatchObject([
      { command: 'configure', outcome: 'configured', detail: { keepMost: 7 } },
      { command: 'configure', outcome: 'configured', detail: { mostEntries: 1000 } },
    ]);
    await box.members.join('north', undefined, { assets: ['press'] });
    await box.members.join('south');
    await box.members.moveAssets(['press'], { from: 'north', to: 'south' });
    expect((await commandsOf(box, 'member/north')).at(-1)).toMatchObject({
      ...{ command: 'move-away', detail: { data: ['press'], to: 'south' } },
    });
    expect((await commandsOf(box, 'member/south')).at(-1)).toMatchObject({
      ...{ command: 'move-here', detail: { data: ['press'], from: 'north' } },
    });
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
});

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
