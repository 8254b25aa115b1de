import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareKeys, isInRange, isPlain, rangeTest } from './key-order.ts';

/** Short keys of characters on both sides of every border, so that most of them share a beginning. */
const key = fc.string({
  unit: fc.constantFrom('a', 'b', '/', '\0', 'é', '\ud7ff', '\ue000', '\uffff', '𐀀', '𝄞'),
  minLength: 1,
  maxLength: 4,
});

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

describe('the order of keys', () => {
  it('is that of their UTF-8 bytes', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        expect(Math.sign(compareKeys(a, b))).toBe(byBytes(a, b));
      }),
    );
  });

  it('is what `<` says whenever one of the two is plain', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        if (isPlain(a) || isPlain(b)) expect(a < b).toBe(byBytes(a, b) < 0);
      }),
    );
  });

  it('decides what is in a range, the quick way and the slow way alike', () => {
    fc.assert(
      fc.property(key, key, fc.option(key, { nil: undefined }), (each, first, end) => {
        const range = { key: first, end };
        const expected =
          end === undefined ? each === first : byBytes(each, first) >= 0 && (end === '\0' || byBytes(each, end) < 0);
        expect(isInRange(each, range)).toBe(expected);
        expect(rangeTest(range)(each)).toBe(expected);
      }),
    );
  });
});
