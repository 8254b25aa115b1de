import { all, fileExists, lockFree, open, type GuardOutcome } from 'signalbox';
import { fakeAdapters, TestClock } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { settle } from '../../src/testing/test-clock.ts';

describe.each(transports)('a registered guard on $transport', ({ atOnce }) => {
  it('is looked at again whenever its answer may have changed, to either side', async () => {
    const fleet = new Fleet(atOnce);
    const [worker, keeper] = await fleet.startAll('worker', 'keeper');
    const kinds: string[] = [];
    const registered = await keeper!.box.guards.register(
      { id: 'main-is-free', condition: lockFree('main') },
      ({ kind }) => void kinds.push(kind),
      { pollMs: 1e9 },
    );
    expect(registered.outcome).toMatchObject({ kind: 'passed' });
    const hold = await worker!.box.lock('main').acquire();
    await settle();
    expect(registered.outcome).toMatchObject({ kind: 'failed' });
    await hold.release();
    await settle();
    expect(registered.outcome).toMatchObject({ kind: 'passed' });
    await (await worker!.box.lock('other').acquire()).release();
    await settle();
    expect(kinds).toEqual(['passed', 'failed', 'passed']);
    registered.unregister();
    await worker!.box.lock('main').acquire();
    await settle();
    expect(kinds).toHaveLength(3);
  });
});

describe('registered guards', () => {
  it('tell what becomes of them as events, with reasons', async () => {
    await using box = await open('memory:');
    await box.lock('main').acquire({ holder: 'worker:1' });
    const told: unknown[] = [];
    await box.on('guard:*', (event) => {
      if (event.type !== 'resync') told.push([event.type, event.resource, event.reasons]);
    });
    await box.guards.register({ id: 'g', condition: lockFree('main') });
    await settle();
    expect(told).toEqual([
      ['guard:evaluating', 'guard/g', undefined],
      ['guard:failed', 'guard/g', ['lock "main" is held by worker:1']],
    ]);
  });

  it('can be found, listed, replaced and unregistered', async () => {
    await using box = await open('memory:');
    const outcomes: GuardOutcome[] = [];
    await box.guards.register({ id: 'b', condition: lockFree('x') }, (outcome) => void outcomes.push(outcome));
    await box.guards.register({ id: 'a', condition: lockFree('x') });
    expect(box.guards.list().map(({ guard }) => guard.id)).toEqual(['a', 'b']);
    await box.guards.register({ id: 'b', condition: lockFree('y') });
    expect(box.guards.get('b')?.guard.condition).toEqual(lockFree('y'));
    expect(box.guards.list()).toHaveLength(2);
    await box.lock('x').acquire();
    await settle();
    expect(outcomes).toHaveLength(1);
    expect([box.guards.unregister('b'), box.guards.unregister('b')]).toEqual([true, false]);
    expect(box.guards.get('b')).toBeUndefined();
  });

  it('poll what nobody announces, for as long as they are registered', async () => {
    const clock = new TestClock();
    const world = fakeAdapters();
    const box = await open('memory:', { clock, adapters: world, maintains: false });
    const guard = { id: 'g', condition: all([fileExists('go'), lockFree('x')]) };
    using registered = await box.guards.register(guard, undefined, { pollMs: 500 });
    world.files.write('go', '');
    await clock.advance(500);
    expect(registered.outcome?.kind).toBe('passed');
    world.files.remove('go');
    await clock.advance(500);
    expect(registered.outcome?.kind).toBe('failed');
    registered.unregister();
    const asked = world.files.asked.length;
    await clock.advance(10_000);
    expect(world.files.asked).toHaveLength(asked);
    await box.close();
  });

  it('look again after so long if they say so, and not at all once they have given up', async () => {
    const clock = new TestClock();
    const box = await open('memory:', { clock, maintains: false });
    const hold = await box.lock('x').acquire();
    const looks: string[] = [];
    await box.on('guard:evaluating', ({ resource }) => void looks.push(resource));
    await box.guards.register({ id: 'retry', condition: lockFree('x'), onFailure: { retry: 1000 } });
    const given = await box.guards.register({ id: 'fail', condition: lockFree('x'), onFailure: { fail: 'no' } });
    await clock.advance(3000);
    await hold.release();
    await settle();
    expect(looks.filter((resource) => resource === 'guard/fail')).toHaveLength(1);
    expect(looks.filter((resource) => resource === 'guard/retry')).toHaveLength(5);
    expect(given.outcome).toMatchObject({ kind: 'failed', action: { fail: 'no' } });
    await box.close();
  });

  it('are those of their process alone, and end with its signalbox', async () => {
    await using one = await open('memory:shared-guards');
    const other = await open('memory:shared-guards');
    await other.guards.register({ id: 'g', condition: lockFree('x') });
    expect(one.guards.list()).toEqual([]);
    await other.close();
    await (await one.lock('x').acquire()).release();
    await settle();
  });
});
