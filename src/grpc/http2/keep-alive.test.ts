import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../clock.ts';
import { TestClock } from '../../testing/test-clock.ts';
import { KeepAlive } from './keep-alive.ts';

const PERIOD_MS = 1000;

describe('a silent peer', () => {
  let clock: TestClock;
  let said: string[];
  let isAwaited: boolean;
  /** The peer's answer lies in the socket and is read right after the timers of this turn. */
  let hasUnread: boolean;
  let keepAlive: KeepAlive;

  beforeEach(() => {
    clock = new TestClock();
    said = [];
    isAwaited = true;
    hasUnread = false;
    const timer: Clock['timer'] = (delayMs, call) =>
      clock.timer(delayMs, () => {
        call();
        if (hasUnread) keepAlive.heard();
      });
    const ofThisProcess = { now: () => clock.now(), monotonic: () => clock.monotonic(), timer };
    keepAlive = new KeepAlive(ofThisProcess, PERIOD_MS, {
      isAwaited: () => isAwaited,
      ask: () => said.push('asked'),
      isGone: () => said.push('gone'),
    });
    keepAlive.start();
  });
  afterEach(() => keepAlive.stop());

  it('is pinged after one period, and is gone if it does not answer for another one', async () => {
    await clock.advance(PERIOD_MS - 1);
    expect(said).toEqual([]);
    await clock.advance(1);
    expect(said).toEqual(['asked']);
    await clock.advance(PERIOD_MS - 1);
    expect(said).toEqual(['asked']);
    await clock.advance(1);
    expect(said).toEqual(['asked', 'gone']);
    await clock.advance(10 * PERIOD_MS);
    expect(said).toEqual(['asked', 'gone']);
  });

  it('is there if it sends anything at all, and is pinged again after the next silence', async () => {
    for (let times = 1; times <= 3; times++) {
      await clock.advance(PERIOD_MS);
      expect(said).toEqual(Array(times).fill('asked'));
      await clock.advance(PERIOD_MS / 2);
      keepAlive.heard();
    }
  });

  it('is never pinged while it talks', async () => {
    for (let times = 0; times < 20; times++) {
      await clock.advance(PERIOD_MS / 2);
      keepAlive.heard();
    }
    expect(said).toEqual([]);
  });

  it('is not pinged while nothing waits for it, and is soon after something does', async () => {
    isAwaited = false;
    await clock.advance(10 * PERIOD_MS);
    expect(said).toEqual([]);
    isAwaited = true;
    await clock.advance(PERIOD_MS);
    expect(said).toEqual(['asked']);
  });

  it('is not gone if this process slept: what arrived meanwhile is read before the decision', async () => {
    await clock.advance(PERIOD_MS);
    expect(said).toEqual(['asked']);
    // The timer is overdue. In the same turn of the event loop the socket is read, and only then KeepAlive decides.
    hasUnread = true;
    await clock.advance(PERIOD_MS);
    expect(said).toEqual(['asked']);
  });
});
