import { describe, expect, it } from 'vitest';
import { fakeAdapters } from 'signalbox/testing';
import {
  all,
  fileExists,
  lockFree,
  lockHeld,
  not,
  open,
  renderExplanation,
  semaphoreAvailable,
  taskDone,
} from 'signalbox';

describe('a guard on what the store knows', () => {
  it('passes and fails with the locks and semaphores as they are now', async () => {
    await using box = await open('memory:');
    const deploy = all([lockFree('main'), semaphoreAvailable('agents', 2)]);
    expect(await box.check(deploy)).toMatchObject({ kind: 'failed' });
    const agents = box.semaphore('agents', { capacity: 2 });
    await (await agents.acquire()).release();
    expect(await box.check(deploy)).toMatchObject({ kind: 'passed' });

    const hold = await box.lock('main').acquire({ holder: 'worker:1' });
    const slot = await agents.acquire();
    const verdict = await box.check(deploy);
    expect(verdict.kind).toBe('failed');
    expect('reasons' in verdict && verdict.reasons.length).toBe(2);
    expect(await box.check(lockHeld('main', 'worker:1'))).toMatchObject({ kind: 'passed' });
    expect(await box.check(not(lockFree('main')))).toMatchObject({ kind: 'passed' });
    await hold.release();
    await slot.release();
    expect(await box.check(deploy)).toMatchObject({ kind: 'passed' });
  });

  it('knows which tasks are done', async () => {
    await using box = await open('memory:');
    expect(await box.check(taskDone('build'))).toMatchObject({ kind: 'failed' });
    await box.tasks.publish('build', null);
    expect(await box.check(taskDone('build'))).toMatchObject({ kind: 'failed' });
    await (await box.tasks.claim('build')).complete();
    expect(await box.check(taskDone('build'))).toMatchObject({ kind: 'passed' });
  });

  it('needs what the store cannot tell, and takes it from the caller', async () => {
    const world = fakeAdapters();
    world.files.failWith('the disk is on fire');
    await using box = await open('memory:', { adapters: world });
    const ready = all([lockFree('main'), fileExists('release-notes.md')]);
    const verdict = await box.check(ready);
    expect(verdict).toMatchObject({
      kind: 'needsInput',
      missing: [{ key: expect.stringContaining('release-notes.md') as string }],
    });
    const given = { 'file:release-notes.md': { value: { exists: true } } } as const;
    expect(await box.check(ready, given)).toMatchObject({ kind: 'passed' });
  });

  it('is explained leaf by leaf', async () => {
    await using box = await open('memory:');
    await box.lock('main').acquire({ holder: 'worker:1' });
    const lines = renderExplanation(await box.explain(all([lockFree('main'), not(lockHeld('other'))])));
    expect(lines.join('\n')).toContain('worker:1');
    expect(lines.length).toBeGreaterThan(2);
  });
});
