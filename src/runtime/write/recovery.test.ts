import { describe, expect, it } from 'vitest';
import { isRepeat } from './recovery.ts';

describe('of requests that are asked for again in one write', () => {
  const first = { command: { kind: 'acquire', id: 'P.1' }, isAgain: false };
  const again = { command: { kind: 'acquire', id: 'P.1', again: true as const }, isAgain: true };
  const upgrade = { command: { kind: 'upgrade', id: 'P.7', request: 'P.8' }, isAgain: false };
  const upgradeAgain = { command: { kind: 'upgrade', id: 'P.7', request: 'P.8', again: true as const }, isAgain: true };
  const other = { command: { kind: 'acquire', id: 'P.2' }, isAgain: false };

  it.each([
    ['behind the first', [first, other, again], [0, 1]],
    ['ahead of the first, which would put its ticket a second time', [again, other, first], [1, 2]],
    ['without the first', [again, again], [0]],
    ['an upgrade', [upgradeAgain, upgrade], [1]],
  ])('one stays: %s', (_, batch, left) => {
    expect([...batch.keys()].filter((place) => !isRepeat(batch[place]!, place, batch))).toEqual(left);
  });
});
