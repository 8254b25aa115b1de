import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countSlots, isSlots, lowestFree, slotNumbers, slotsOf, slotTwice, splitSlots } from './slots.ts';

const numbers = fc.uniqueArray(fc.nat(120), { maxLength: 80 }).map((list) => list.toSorted((a, b) => a - b));

describe('slots kept as runs', () => {
  it('are the same numbers as one by one', () => {
    fc.assert(
      fc.property(numbers, (list) => {
        const slots = slotsOf(list);
        expect(slotNumbers(slots)).toEqual(list);
        expect(countSlots(slots)).toBe(list.length);
        expect(isSlots(JSON.parse(JSON.stringify(slots)))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it('are given out from the lowest free one on, and split where they were joined', () => {
    fc.assert(
      fc.property(numbers, fc.nat(60), fc.nat(60), (taken, count, first) => {
        const free: number[] = [];
        for (let slot = 0; free.length < count; slot++) if (!taken.includes(slot)) free.push(slot);
        const slots = lowestFree([slotsOf(taken)], count);
        expect(slotNumbers(slots)).toEqual(free);
        expect(splitSlots(slots, first).map(slotNumbers)).toEqual([free.slice(0, first), free.slice(first)]);
      }),
      { numRuns: 200 },
    );
  });

  it('of a few are listed as they always were, and a million in a row are one run', () => {
    expect(lowestFree([[1]], 3)).toEqual([0, 2, 3]);
    expect(lowestFree([], 1_000_000)).toEqual([[0, 999_999]]);
  });

  it('that two have are found', () => {
    expect(slotTwice([[0, 1], [[5, 40]], [41]])).toBeUndefined();
    expect(slotTwice([[0, 1], [[5, 40]], [17]])).toBe(17);
  });

  it.each([[[-1]], [[1.5]], [[[4, 2]]], [[[1]]], ['0'], [undefined]])('are not %j', (value) => {
    expect(isSlots(value)).toBe(false);
  });
});
