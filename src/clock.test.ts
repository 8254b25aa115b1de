import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from './clock.ts';

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
