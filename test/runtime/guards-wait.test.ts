import {
  all,
  any,
  command,
  fileExists,
  type GuardWatch,
  lockFree,
  open,
  semaphoreAvailable,
  taskDone,
} from 'signalbox';
import type { Guard } from 'signalbox/core';
import { fakeAdapters, TestClock } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { isForgotten } from '../support/memory.ts';
import { errorOf, isPending, settled } from '../support/outcome.ts';
import { settle } from '../../src/testing/test-clock.ts';

describe('waiting for a guard', () => {
  it('ends at once with what can never pass, and says so', async () => {
    await using box = await open('memory:');
    const outcome = await box.guards.wait(all([lockFree('x'), any([])]));
    expect(outcome).toMatchObject({
      kind: 'failed',
      outlook: 'never',
      reasons: ['"any" of no conditions can never pass'],
    });
  });

  it('goes on for what cannot pass as things stand, and tells it', async () => {
    await using box = await open('memory:');
    const told: unknown[] = [];
    const waiting = box.guards.wait(semaphoreAvailable('agents', 2), {
      pollMs: 1e9,
      onVerdict: ({ outcome }) => void told.push('outlook' in outcome ? outcome.outlook : outcome.kind),
    });
    await settle();
    expect(await isPending(waiting)).toBe(true);
    // Too small a one is not enough yet.
    const hold = await box.semaphore('agents', { capacity: 1 }).acquire();
    await settle();
    await hold.release();
    await settle();
    await box.semaphore('agents').resize(2);
    expect(await waiting).toMatchObject({ kind: 'passed' });
    expect(told.at(0)).toBe('stuck');
    expect(told.at(-1)).toBe('passed');
  });

  it('ends with the last outcome when time is over, all reasons included', async () => {
    const clock = new TestClock();
    const box = await open('memory:', { clock, adapters: fakeAdapters() });
    await box.lock('x').acquire({ holder: 'worker:1' });
    const waiting = box.guards.wait(all([lockFree('x'), fileExists('go')]), { timeoutMs: 10_000 });
    await clock.advance(9_999);
    expect(await isPending(waiting)).toBe(true);
    await clock.advance(1);
    expect(await waiting).toMatchObject({
      kind: 'failed',
      reasons: ['lock "x" is held by worker:1', 'file "go" does not exist'],
    });
    await box.close();
  });

  it('looks once however short the time, and cuts short a later look that takes longer', async () => {
    const clock = new TestClock();
    const world = fakeAdapters();
    world.commands.set('slow', 1);
    const box = await open('memory:', { clock, adapters: world });
    expect(await box.guards.wait(command('slow'), { timeoutMs: 0 })).toMatchObject({ kind: 'failed' });
    const waiting = box.guards.wait(command('slow'), { timeoutMs: 5000, pollMs: 1000 });
    await settle();
    let cut = false;
    world.commands.set(
      'slow',
      (signal) =>
        new Promise((_, reject) => signal?.addEventListener('abort', () => ((cut = true), reject(new Error('cut'))))),
    );
    await clock.advance(5000);
    expect(await waiting).toMatchObject({ kind: 'failed', reasons: ['command "slow" exited with 1, 0 was expected'] });
    expect(cut).toBe(true);
    await box.close();
  });

  it('throws the reason of a signal that aborts, before and meanwhile', async () => {
    await using box = await open('memory:');
    await box.lock('x').acquire();
    const over = AbortSignal.abort(new Error('too late'));
    expect(await errorOf(box.guards.wait(lockFree('x'), { signal: over }))).toMatchObject({ message: 'too late' });
    const stop = new AbortController();
    const waiting = errorOf(box.guards.wait(lockFree('x'), { signal: stop.signal }));
    await settle();
    stop.abort(new Error('enough'));
    expect(await waiting).toMatchObject({ message: 'enough' });
  });

  it('ends when the signalbox is closed', async () => {
    const box = await open('memory:');
    await box.semaphore('s', { capacity: 1 }).acquire();
    const waiting = errorOf(box.guards.wait(semaphoreAvailable('s', 2)));
    await settle();
    await box.close();
    expect(await waiting).toMatchObject({ code: 'closed' });
  });

  it.each([
    ['warn', 'warn' as const],
    ['fail', { fail: 'not today' }],
  ])('ends with the first failure of a guard that is to %s', async (_, onFailure) => {
    await using box = await open('memory:');
    await box.lock('x').acquire();
    const outcome = await box.guards.wait({ id: 'g', condition: lockFree('x'), onFailure });
    expect(outcome).toMatchObject({ kind: 'failed', guard: 'g', action: onFailure });
  });

  it('looks again after so long where the guard says so, although nothing is told', async () => {
    const clock = new TestClock();
    const box = await open('memory:', { clock, maintains: false });
    await box.lock('x').acquire();
    let looks = 0;
    const guard: Guard = { id: 'g', condition: lockFree('x'), onFailure: { retry: 700 } };
    const stop = new AbortController();
    const waiting = errorOf(box.guards.wait(guard, { onVerdict: () => void (looks += 1), signal: stop.signal }));
    await clock.advance(7000);
    expect(looks).toBe(11);
    stop.abort(new Error('enough'));
    await waiting;
    await box.close();
  });

  it('refuses options that make no sense', async () => {
    await using box = await open('memory:');
    for (const bad of [{ timeout: 5 }, { timeoutMs: -1 }, { pollMs: 0 }, { onVerdict: 5 }]) {
      expect(await errorOf(box.guards.wait(lockFree('x'), bad as never))).toMatchObject({ code: 'invalid' });
    }
    await settled();
  });

  it('leaves nothing behind in the memory of a process that waits again and again', async () => {
    await using box = await open('memory:', { adapters: fakeAdapters() });
    await box.lock('x').acquire();
    const closed = async (): Promise<WeakRef<GuardWatch>> => {
      const guard: Guard = { id: 'g', condition: all([lockFree('x'), taskDone('t'), fileExists('go')]) };
      const watch = await box.guards.watch([guard]);
      await box.guards.check([guard]);
      watch.close();
      return new WeakRef(watch);
    };
    expect(await isForgotten(await closed())).toBe(true);
  });
});
