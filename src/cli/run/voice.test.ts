import { describe, expect, it } from 'vitest';
import { isDue } from './voice.ts';

describe('a wait without a terminal', () => {
  const told = { text: 'behind a', atMs: 1000 };

  it('is reported at first, and again after 30 s', () => {
    expect(isDue(undefined, 'behind a', 1000, 'now-and-then')).toBe(true);
    expect(isDue(told, 'behind a', 30_999, 'now-and-then')).toBe(false);
    expect(isDue(told, 'behind a', 31_000, 'now-and-then')).toBe(true);
  });

  it('is reported at a change in between only with --verbose, and never with --quiet', () => {
    expect(isDue(told, 'behind b', 2000, 'now-and-then')).toBe(false);
    expect(isDue(told, 'behind b', 2000, 'every-change')).toBe(true);
    expect(isDue(told, 'behind a', 2000, 'every-change')).toBe(false);
    expect(isDue(undefined, 'behind a', 1000, 'never')).toBe(false);
  });
});
