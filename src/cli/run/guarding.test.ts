import { describe, expect, it } from 'vitest';
import { pauseBeforeWaitMs } from './guarding.ts';

describe('the pauses of a run whose guard passes without the locks and fails under them', () => {
  const pauses = (pollMs?: number): readonly number[] =>
    Array.from({ length: 10 }, (_, passedInVain) => pauseBeforeWaitMs(passedInVain, pollMs));

  it('double from 40 ms, after a first wait without one, up to the interval at which guards are polled', () => {
    expect(pauses()).toEqual([0, 40, 80, 160, 320, 640, 1280, 2000, 2000, 2000]);
  });

  it('are never longer than the interval that the user asks for', () => {
    expect(pauses(100)).toEqual([0, 40, 80, 100, 100, 100, 100, 100, 100, 100]);
  });
});
