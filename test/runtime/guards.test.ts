import {
  all,
  any,
  branchClean,
  branchExists,
  branchMerged,
  branchNotExists,
  command,
  type Condition,
  fileContains,
  fileExists,
  fileNotExists,
  issuesComplete,
  issueStatus,
  lockFree,
  lockHeld,
  memberAlive,
  noBlockedIssues,
  not,
  open,
  pipelineComplete,
  pipelineInPhase,
  semaphoreAvailable,
  sessionAlive,
  type Signalbox,
  taskDone,
  worktreeClean,
} from 'signalbox';
import type { Guard } from 'signalbox/core';
import { type FakeAdapters, fakeAdapters } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, settled } from '../support/outcome.ts';

/** A world in which something of everything is there. */
async function furnished(): Promise<{ box: Signalbox; world: FakeAdapters }> {
  const world = fakeAdapters({
    git: {
      branches: ['main', 'feature', 'done'],
      worktrees: { '.': { branch: 'main' }, side: { branch: 'feature', clean: false } },
      merged: [['done', 'main']],
    },
    files: { 'notes.md': 'Version 2\nAll is new.\n' },
    sessions: ['agent-1'],
    issues: [
      { id: '1', status: 'done', labels: ['release'] },
      { id: '2', status: 'blocked', labels: ['later'] },
    ],
  });
  world.commands.set('make test', 0);
  world.commands.set(['false'], 1);
  const box = await open('memory:', { adapters: world });
  await box.lock('main').acquire({ holder: 'worker:1' });
  await box.semaphore('builds', { capacity: 3 }).acquire({ holder: 'job:1', weight: 2 });
  await box.tasks.publish('build', null);
  await (await box.tasks.claim('build')).complete();
  await box.tasks.publish('deploy', null);
  await box.members.join('agent-1');
  return { box, world };
}

const guard = (condition: Condition, id = 'guard'): Guard => ({ id, condition });

describe('what nobody can find fails, and its opposite does not pass', () => {
  it.each([
    semaphoreAvailable('nowhere', 1),
    issuesComplete({ labels: ['nowhere'], min: 1 }),
    noBlockedIssues({ labels: ['nowhere'], min: 1 }),
    issueStatus(99, 'done'),
    branchClean('nowhere'),
    worktreeClean('/nowhere'),
    branchMerged('main', 'nowhere'),
    fileContains('gone.md', 'Version'),
    pipelineInPhase('release', 'work'),
    pipelineComplete('release'),
    taskDone('nowhere'),
  ])('%j', async (condition) => {
    const { box } = await furnished();
    expect((await box.check(condition)).kind).toBe('failed');
    expect((await box.check(not(condition))).kind).toBe('needsInput');
    await box.close();
  });

  it('until it is there: who waits for the opposite is woken by that', async () => {
    const { box } = await furnished();
    const waiting = [box.guards.wait(not(taskDone('late'))), box.guards.wait(not(semaphoreAvailable('late', 2)))];
    await box.tasks.publish('late', null);
    await box.semaphore('late', { capacity: 1 }).acquire({ holder: 'job:9' });
    expect((await Promise.all(waiting)).map(({ kind }) => kind)).toEqual(['passed', 'passed']);
    await box.close();
  });
});

describe('every condition is looked up where it is known', () => {
  it.each([
    ['passed', lockFree('other')],
    ['failed', lockFree('main')],
    ['passed', lockHeld('main', 'worker:1')],
    ['failed', lockHeld('main', 'worker:2')],
    ['passed', semaphoreAvailable('builds', 1)],
    ['failed', semaphoreAvailable('builds', 2)],
    ['passed', issuesComplete({ labels: ['release'] })],
    ['failed', issuesComplete({ labels: ['later'] })],
    ['passed', noBlockedIssues({ labels: ['release'] })],
    ['failed', noBlockedIssues({})],
    ['passed', issueStatus(1, 'done')],
    ['failed', issueStatus(2, 'done')],
    ['passed', branchExists('feature')],
    ['failed', branchExists('nowhere')],
    ['passed', branchNotExists('nowhere')],
    ['failed', branchNotExists('main')],
    ['passed', branchClean('main')],
    ['failed', branchClean('feature')],
    ['passed', worktreeClean()],
    ['failed', worktreeClean('side')],
    ['passed', branchMerged('done', 'main')],
    ['failed', branchMerged('feature', 'main')],
    ['passed', fileExists('notes.md')],
    ['failed', fileExists('gone.md')],
    ['passed', fileNotExists('gone.md')],
    ['failed', fileNotExists('notes.md')],
    ['passed', fileContains('notes.md', '/^version \\d/i')],
    ['failed', fileContains('notes.md', 'Version 3')],
    ['passed', sessionAlive('agent-1')],
    ['failed', sessionAlive('agent-2')],
    ['passed', taskDone('build')],
    ['failed', taskDone('deploy')],
    ['passed', memberAlive('agent-1')],
    ['failed', memberAlive('agent-2')],
    ['passed', command('make test')],
    ['failed', command(['false'])],
    ['passed', command(['false'], { expectSuccess: false })],
  ] as const)('%s: %j', async (kind, condition) => {
    const { box } = await furnished();
    const [outcome] = await box.guards.check([guard(condition)]);
    expect(outcome).toMatchObject({ kind, guard: 'guard' });
    expect((await box.check(condition)).kind).toBe(kind);
    expect((await box.check(not(condition))).kind).toBe(kind === 'passed' ? 'failed' : 'passed');
    await box.close();
  });
});

describe('an input that cannot be looked at', () => {
  const broken = branchExists('main');

  it.each([
    ['needsInput', broken],
    ['needsInput', not(broken)],
    ['needsInput', all([broken, fileExists('notes.md')])],
    ['failed', all([broken, fileExists('gone.md')])],
    ['passed', any([broken, fileExists('notes.md')])],
    ['needsInput', any([broken, fileExists('gone.md')])],
    ['needsInput', not(all([broken, not(fileExists('gone.md'))]))],
    ['passed', not(all([broken, fileExists('gone.md')]))],
  ] as const)(
    'never lets anything pass by itself, and does not matter where the rest decides: %s',
    async (kind, tree) => {
      const { box, world } = await furnished();
      world.git.failWith('no git here');
      const [outcome] = await box.guards.check([guard(tree)]);
      expect(outcome?.kind).toBe(kind);
      if (outcome?.kind === 'needsInput') {
        expect(outcome.missing).toEqual([{ key: 'branch:main', error: 'no git here' }]);
      }
      await box.close();
    },
  );

  it('is reported for each kind of adapter, and the others still answer', async () => {
    const { box, world } = await furnished();
    for (const one of [world.git, world.files, world.commands, world.sessions, world.issues])
      one.failWith('out of order');
    const tree = all([
      lockFree('other'),
      branchClean('main'),
      fileExists('notes.md'),
      fileContains('notes.md', 'x'),
      command('make test'),
      sessionAlive('agent-1'),
      issueStatus(1, 'done'),
      issuesComplete({}),
    ]);
    const verdict = await box.check(tree);
    expect(verdict).toMatchObject({ kind: 'needsInput' });
    expect('missing' in verdict && verdict.missing.map(({ error }) => error)).toEqual(Array(7).fill('out of order'));
    await box.close();
  });

  it('may be the adapters themselves', async () => {
    const { box } = await furnished();
    const none = {} as FakeAdapters;
    const [outcome] = await box.guards.check([guard(any([fileExists('x'), lockHeld('main')]))], { adapters: none });
    expect(outcome).toMatchObject({ kind: 'passed' });
    await box.close();
  });

  it('is a text in which a pattern would be looked for until the end of days', async () => {
    const world = fakeAdapters();
    world.files.write('log', `${'a'.repeat(60)}!`);
    await using box = await open('memory:', { adapters: world });
    const endless = fileContains('log', '/^(a+)+$/');
    for (const condition of [endless, not(endless)]) {
      expect(await box.check(condition)).toMatchObject({
        kind: 'needsInput',
        missing: [{ key: 'fileText:log', error: expect.stringContaining('takes longer than') as string }],
      });
    }
    expect(await box.check(fileContains('log', '/^a+!$/'))).toMatchObject({ kind: 'passed' });
  });

  it('is a record that this version cannot read', async () => {
    const fleet = new Fleet(true);
    const { box } = await fleet.start('reader');
    const { Value } = await import('signalbox/store');
    const odd = { do: 'put', key: 'r/lock/main', value: Value.json({ record: { v: 99 }, events: [] }) } as const;
    await fleet.store.transaction({ compare: [], success: [odd], failure: [] });
    expect(await box.check(lockFree('main'))).toMatchObject({
      kind: 'needsInput',
      missing: [{ key: 'lock:main', error: expect.stringContaining('version 99') as string }],
    });
  });
});

describe('what guards need', () => {
  it('is looked at once, whichever and however many guards ask for it', async () => {
    const { box, world } = await furnished();
    const files = all([fileExists('notes.md'), fileNotExists('notes.md'), branchExists('main')]);
    await box.guards.check([guard(files), guard(not(files), 'other'), guard(branchNotExists('main'), 'third')]);
    expect(world.files.asked).toEqual([['file', 'notes.md']]);
    expect(world.git.asked).toEqual([['branch', 'main']]);
    await box.close();
  });

  it('is looked at all at the same time', async () => {
    const { box, world } = await furnished();
    const begun: string[] = [];
    let go = (): void => undefined;
    const together = new Promise<void>((resolve) => (go = resolve));
    for (const name of ['one', 'two', 'three']) {
      world.commands.set(name, async () => {
        begun.push(name);
        // Each ends only when all have begun.
        if (begun.length === 3) go();
        await together;
        return { exitCode: 0 };
      });
    }
    expect(await box.check(all([command('one'), command('two'), command('three')]))).toMatchObject({ kind: 'passed' });
    await box.close();
  });

  it('is looked at by so many child processes at most', async () => {
    const { box, world } = await furnished();
    let running = 0;
    let most = 0;
    const names = Array.from({ length: 30 }, (_, place) => `command ${place}`);
    for (const name of names) {
      world.commands.set(name, async () => {
        most = Math.max(most, ++running);
        await settled();
        running -= 1;
        return { exitCode: 0 };
      });
    }
    expect(await box.check(all(names.map((name) => command(name))))).toMatchObject({ kind: 'passed' });
    expect(most).toBe(4);
    await box.close();
  });

  it('can be given, and is not looked at then', async () => {
    const { box, world } = await furnished();
    const given = { 'file:notes.md': { value: { exists: false } } } as const;
    expect(await box.check(fileExists('notes.md'), given)).toMatchObject({ kind: 'failed' });
    expect(world.files.asked).toEqual([]);
    await box.close();
  });

  it('is not waited for when the signal aborts, however long it takes', async () => {
    const { box, world } = await furnished();
    const abort = new AbortController();
    world.commands.set('hang', () => new Promise<never>(() => undefined));
    const checking = errorOf(box.guards.check([guard(command('hang'))], { signal: abort.signal }));
    await settled();
    abort.abort(new Error('enough'));
    expect(await checking).toMatchObject({ message: 'enough' });
    await box.close();
  });
});

describe.each(transports)('a guard on what the store knows, on $transport', ({ atOnce }) => {
  it('does not count what the one who asks holds itself', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('one');
    await box.lock('main').acquire({ holder: 'pipeline:7' });
    await box.semaphore('builds', { capacity: 2 }).acquire({ holder: 'pipeline:7', weight: 2 });
    const tree = all([lockFree('main'), semaphoreAvailable('builds', 2)]);
    const [seen] = await box.guards.check([guard(tree)]);
    const [own] = await box.guards.check([guard(tree)], { own: 'pipeline:7' });
    expect([seen?.kind, own?.kind]).toEqual(['failed', 'passed']);
  });

  it('is judged at one revision: two locks that change hands together are never seen both free', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const transactions = (): number => one!.link.asked.length;
    await other!.box.acquireAll([{ lock: 'a' }, { lock: 'b' }], { holder: 'other' });
    const before = transactions();
    await one!.box.check(all([lockFree('a'), lockFree('b'), semaphoreAvailable('s', 1), memberAlive('m')]));
    // All records in one transaction, and the leases of those who hold them in another.
    expect(transactions() - before).toBe(2);
  });

  it('says of a dead holder that it is stale, and that it still holds', async () => {
    const fleet = new Fleet(atOnce);
    const [dead, other] = await fleet.startAll('dead', 'other');
    await dead!.box.lock('main').acquire({ holder: 'worker:1' });
    dead!.crash();
    await fleet.advance(16_000);
    expect(await other!.box.check(lockFree('main'))).toMatchObject({
      kind: 'failed',
      reasons: ['lock "main" is held by worker:1 (stale)'],
    });
  });

  it('tells that it is looked at, and what came of it, in this process alone', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const here: string[] = [];
    const there: string[] = [];
    await one!.box.on('guard:*', ({ type, resource }) => void here.push(`${type} ${resource}`));
    await other!.box.on('guard:*', ({ type }) => void there.push(type));
    await one!.box.guards.check([guard(lockFree('main'), 'a'), guard(lockHeld('main'), 'b')]);
    await settled();
    expect(here).toEqual([
      'guard:evaluating guard/a',
      'guard:evaluating guard/b',
      'guard:passed guard/a',
      'guard:failed guard/b',
    ]);
    expect(there).toEqual([]);
  });
});

describe('a guard that makes no sense', () => {
  it('is refused as such by whoever takes one, whatever it is', async () => {
    await using box = await open('memory:');
    for (const bad of [null, undefined, 'lockFree', 5, [], {}, { lockfree: 'x' }]) {
      const refused = [
        ...[box.guards.wait(bad as never), box.guards.check([bad as never]), box.guards.watch([bad as never])],
        ...[box.guards.register(bad as never), box.check(bad as never), box.explain(bad as never)],
      ];
      for (const one of refused) expect(await errorOf(one), JSON.stringify(bad)).toMatchObject({ code: 'invalid' });
    }
  });

  it('is one that waits for an event that there is not: nothing would ever wake it', async () => {
    await using box = await open('memory:');
    const misspelt = { id: 'g', condition: lockFree('x'), wakeOn: ['task:*', 'lock:realeased'] };
    const error = await errorOf(box.guards.wait(misspelt));
    expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining('did you mean lock:released?') });
  });

  it.each([
    [{ id: '', condition: lockFree('a') }, 'id is empty'],
    [{ id: 'g', condition: { lockfree: 'a' } }, 'lockfree'],
    [{ id: 'g', condition: lockFree('a'), onFailure: 'explode' }, 'onFailure is "explode"'],
    [{ id: 'g', condition: lockFree('a'), wakeOn: 'lock:*' }, 'wakeOn is "lock:*"'],
  ])('is refused before anything is looked at: %j', async (bad, told) => {
    await using box = await open('memory:');
    for (const attempt of [
      box.guards.check([bad as unknown as Guard]),
      box.guards.watch([bad as unknown as Guard]),
      box.guards.wait(bad as unknown as Guard),
      box.guards.register(bad as unknown as Guard),
    ]) {
      expect(await errorOf(attempt)).toMatchObject({
        code: 'invalid',
        message: expect.stringContaining(told) as string,
      });
    }
  });
});
