import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KeepAlive } from './keep-alive.ts';

const PERIOD_MS = 1000;

describe('a peer from which nothing is heard', () => {
  let said: string[];
  let isAwaited: boolean;
  let keepAlive: KeepAlive;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'hrtime'] });
    said = [];
    isAwaited = true;
    keepAlive = new KeepAlive(PERIOD_MS, {
      isAwaited: () => isAwaited,
      ask: () => said.push('asked'),
      isGone: () => said.push('gone'),
    });
    keepAlive.start();
  });
  afterEach(() => {
    keepAlive.stop();
    vi.useRealTimers();
  });

  it('is asked after a while, and is gone if it does not answer for as long again', () => {
    vi.advanceTimersByTime(PERIOD_MS - 1);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(2);
    expect(said).toEqual(['asked']);
    vi.advanceTimersByTime(PERIOD_MS - 3);
    expect(said).toEqual(['asked']);
    vi.advanceTimersByTime(4);
    expect(said).toEqual(['asked', 'gone']);
    vi.advanceTimersByTime(10 * PERIOD_MS);
    expect(said).toEqual(['asked', 'gone']);
  });

  it('is there if it says anything at all, and is asked again after the next silence', () => {
    for (let times = 1; times <= 3; times++) {
      vi.advanceTimersByTime(PERIOD_MS + 1);
      expect(said).toEqual(Array(times).fill('asked'));
      vi.advanceTimersByTime(PERIOD_MS / 2);
      keepAlive.heard();
    }
  });

  it('is never asked while it talks', () => {
    for (let times = 0; times < 20; times++) {
      vi.advanceTimersByTime(PERIOD_MS / 2);
      keepAlive.heard();
    }
    expect(said).toEqual([]);
  });

  it('is not asked as long as nobody waits for it, but soon after somebody does', () => {
    isAwaited = false;
    vi.advanceTimersByTime(10 * PERIOD_MS);
    expect(said).toEqual([]);
    isAwaited = true;
    vi.advanceTimersByTime(PERIOD_MS + 1);
    expect(said).toEqual(['asked']);
  });

  it('is not gone if it was this process that slept: what came meanwhile is read first', () => {
    vi.advanceTimersByTime(PERIOD_MS + 1);
    expect(said).toEqual(['asked']);
    // The timer is long due; in the same turn of the event loop the socket is read, and only then it is decided.
    setTimeout(() => keepAlive.heard(), PERIOD_MS);
    vi.advanceTimersByTime(PERIOD_MS + 1);
    expect(said).toEqual(['asked']);
  });
});
