import { expect, it } from 'vitest';
import { type ChainEnd, NO_CHAIN } from '../../src/runtime/layout.ts';
import { ChainEnds } from '../../src/runtime/write/witness.ts';

const PATH = 'task/7';
const first: ChainEnd = { seq: 1, hash: 'a', keyMod: 32 };
const second: ChainEnd = { seq: 2, hash: 'b', keyMod: 33 };

it('keeps the newer end if an older answer comes late', () => {
  const ends = new ChainEnds();
  ends.saw(PATH, second, 33);
  ends.saw(PATH, first, 32);
  expect(ends.newest(PATH)).toBe(second);
});

it('takes what it was told only if that was written after what it has seen', () => {
  const ends = new ChainEnds();
  expect(ends.newest(PATH, first)).toBe(first);
  ends.saw(PATH, first, 32);
  expect(ends.newest(PATH, second)).toBe(second);
  ends.saw(PATH, second, 40);
  expect(ends.newest(PATH, { ...first, keyMod: 40 })).toBe(second);
});

it('knows that a chain was dropped', () => {
  const ends = new ChainEnds();
  ends.saw(PATH, second, 33);
  ends.saw(PATH, NO_CHAIN, 50);
  expect(ends.newest(PATH, second)).toBe(NO_CHAIN);
});

it('drops an end that a write has disproved, although that was seen at a later revision: the store was restored', () => {
  const ends = new ChainEnds();
  ends.saw(PATH, second, 10_000);
  ends.saw(PATH, first, 501, second);
  expect(ends.newest(PATH)).toBe(first);
});
