import { describe, expect, it, vi } from 'vitest';
import type { Clock } from '../../clock.ts';
import type { Store } from '../../store/index.ts';
import { TestClock } from '../../testing/index.ts';
import { sentNow, Session } from './session.ts';

const TTL_MS = 15_000;

/** A session whose store is asked to renew at once, and whose process is stopped for so long while it is. */
function renewedAtOnce(answer: boolean, stopMs = 0, earlyMs = 0) {
  const time = new TestClock();
  let stoppedMs = 0;
  let woken = 0;
  const clock: Clock = {
    now: () => time.now() + stoppedMs,
    monotonic: () => time.monotonic() + stoppedMs,
    timer: (delayMs, call) =>
      time.timer(Math.max(0, delayMs - earlyMs), () => {
        woken++;
        call();
      }),
  };
  const asked = vi.fn(() => Promise.resolve({ id: '1', ttlMs: TTL_MS }));
  const onEnd = vi.fn();
  const store = {
    keepLeaseAlive: asked,
    keepLeaseAliveNow: () => {
      stoppedMs += stopMs;
      return answer;
    },
  } as unknown as Store;
  const host = {
    store,
    clock,
    anchors: { isGone: () => false },
    leases: { idOf: () => undefined },
    measures: { renewed: () => undefined },
  };
  const session = new Session(host, 'a', { id: '1', ttlMs: TTL_MS }, sentNow(clock), onEnd);
  return { time, session, asked, onEnd, woken: () => woken };
}

describe('a session whose store renews at once', () => {
  it('lasts, and asks for nothing that takes time', async () => {
    const { time, session, asked } = renewedAtOnce(true);
    await time.advance(20 * TTL_MS);
    expect(session.isValid()).toBe(true);
    expect(asked).not.toHaveBeenCalled();
  });

  it('wakes its process once for each renewal, although timers fire some milliseconds early', async () => {
    const { time, session, woken } = renewedAtOnce(true, 0, 8);
    await time.advance(20 * TTL_MS);
    expect(session.isValid()).toBe(true);
    expect(woken()).toBeLessThanOrEqual(61);
  });

  it('asks and waits where its store cannot answer at once', async () => {
    const { time, session, asked } = renewedAtOnce(false);
    await time.advance(20 * TTL_MS);
    expect(session.isValid()).toBe(true);
    expect(asked.mock.calls.length).toBeGreaterThanOrEqual(60);
  });

  it('does not believe a renewal during which its process was stopped past its time', async () => {
    const { time, session, onEnd } = renewedAtOnce(true, TTL_MS);
    await time.advance(TTL_MS / 3 + 100);
    expect(onEnd).toHaveBeenCalledExactlyOnceWith(session, 'disconnected');
    expect(session.isValid()).toBe(false);
  });
});
