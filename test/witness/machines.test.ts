// The entries of every machine: pipelines step by step, settings with their values, and forced writes with their reasons.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox } from 'signalbox';
import type { WitnessedCommand } from 'signalbox/core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-entered-'));
const opened: Signalbox[] = [];
let count = 0;

afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function commandsOf(box: Signalbox, resource: string): Promise<readonly WitnessedCommand[]> {
  const all: WitnessedCommand[] = [];
  for await (const { commands } of box.witness.entries({ resource })) all.push(...commands);
  return all;
}

describe.each(['memory', 'a file'])('in %s', (engine) => {
  async function place(): Promise<Signalbox> {
    const url = engine === 'memory' ? 'memory:' : `file:${join(directory, `s${++count}`)}`;
    const box = await open(url, { witness: true, maintains: false });
    opened.push(box);
    return box;
  }

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
});
