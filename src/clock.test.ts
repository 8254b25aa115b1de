import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { pause, systemClock, timeLimit } from './clock.ts';

const DAY_MS = 86_400_000;

describe('a timer of the system clock', () => {
  it('waits as long as it was told, also where that is longer than the timers of Node can', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const called = vi.fn();
    systemClock.timer(60 * DAY_MS, called);
    const cancelled = vi.fn();
    const timer = systemClock.timer(60 * DAY_MS, cancelled);
    vi.advanceTimersByTime(59 * DAY_MS);
    expect(called).not.toHaveBeenCalled();
    timer.cancel();
    vi.advanceTimersByTime(DAY_MS);
    expect(called).toHaveBeenCalledOnce();
    expect(cancelled).not.toHaveBeenCalled();
  });
});

describe('a timer that was cancelled', () => {
  it('does not wake the process', async () => {
    for (let ms = 1; ms <= 100; ms++) systemClock.timer(ms, () => undefined).cancel();
    const before = turnsOfTheEventLoop();
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(turnsOfTheEventLoop() - before).toBeLessThan(50);
  });
});

function turnsOfTheEventLoop(): number {
  // Newer than the types.
  const timing = performance.nodeTiming as unknown as { readonly uvMetricsInfo: { readonly loopCount: number } };
  return timing.uvMetricsInfo.loopCount;
}

describe('a pause and a time limit of months', () => {
  it('last as long as they were told, and end early when asked to', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const over = vi.fn();
    void pause(90 * DAY_MS).then(over);
    const limit = timeLimit(90 * DAY_MS);
    const cancelled = timeLimit(90 * DAY_MS);
    cancelled.cancel();
    const left = new AbortController();
    const cut = pause(90 * DAY_MS, left.signal);
    await vi.advanceTimersByTimeAsync(89 * DAY_MS);
    expect([over.mock.calls.length, limit.signal.aborted]).toEqual([0, false]);
    left.abort();
    await cut;
    await pause(90 * DAY_MS, left.signal);
    await vi.advanceTimersByTimeAsync(DAY_MS);
    expect([over.mock.calls.length, limit.signal.aborted, cancelled.signal.aborted]).toEqual([1, true, false]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
