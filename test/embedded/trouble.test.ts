// What happens around a process that holds something: the machine sleeps, its clock is set, its directory cannot be reached.

import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LockHold, open, type Signalbox } from 'signalbox';
import { openEmbedded } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lossOf } from '../support/outcome.ts';

let clock: TestClock;
let directory: string;
let parent: string;
let box: Signalbox;
let hold: LockHold;

beforeEach(async () => {
  clock = new TestClock();
  directory = mkdtempSync(join(tmpdir(), 'signalbox-trouble-'));
  parent = join(directory, 'parent');
  mkdirSync(parent);
  box = await open(await openEmbedded(join(parent, 'store'), { clock }), { clock });
  hold = await box.lock('db').acquire();
});

afterEach(async () => {
  await box.close();
  rmSync(directory, { recursive: true });
});

describe('a hold on one machine', () => {
  it.each([20_000, -20_000, 86_400_000])('lives on when the wall clock is set by %d ms', async (ms) => {
    clock.jumpWall(ms);
    expect(hold.isValid).toBe(true);
    await clock.advance(60_000);
    expect(hold.isValid).toBe(true);
  });

  it('with a longest time lives on too, and ends at that time', async () => {
    const limited = await box.lock('limited').acquire({ maxHoldMs: 60_000 });
    clock.jumpWall(3_600_000);
    expect(limited.isValid).toBe(true);
    await clock.advance(59_000);
    expect(limited.isValid).toBe(false);
  });

  it('is lost when the machine was suspended past its lease, although the monotonic clock stood still', () => {
    clock.suspend(20_000);
    expect(hold.isValid).toBe(false);
    expect(lossOf(hold.signal)?.why).toBe('disconnected');
  });

  it('is lost when the machine was suspended and its wall clock set before', async () => {
    clock.jumpWall(3_600_000);
    await clock.advance(1000);
    clock.suspend(20_000);
    expect(hold.isValid).toBe(false);
  });
});

describe('a directory that cannot be looked into', () => {
  /** Not even root finds its way through it. */
  function block(): void {
    renameSync(parent, `${parent}-away`);
    symlinkSync(parent, parent);
  }

  function unblock(): void {
    rmSync(parent);
    renameSync(`${parent}-away`, parent);
  }

  it('for a moment changes nothing', async () => {
    block();
    await clock.advance(2000);
    unblock();
    await clock.advance(30_000);
    expect(hold.isValid).toBe(true);
  });

  it('for longer than a lease ends holds in time, and the process goes on', async () => {
    block();
    await clock.advance(20_000);
    expect(hold.isValid).toBe(false);
    expect(lossOf(hold.signal)?.why).toBe('disconnected');
    unblock();
    await clock.advance(30_000);
    expect((await box.lock('other').acquire()).isValid).toBe(true);
  });
});
