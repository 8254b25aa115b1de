import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ownerOf } from './placement.ts';
import type { ViewMember } from './view.ts';

const KEYS = Array.from({ length: 60 }, (_, n) => `key-${n}`);
const fleet = fc.uniqueArray(
  fc.record({
    id: fc.string({ minLength: 1, maxLength: 8 }),
    weight: fc.constantFrom(1, 1, 2, 5),
    incarnation: fc.constant(1),
  }),
  { minLength: 2, maxLength: 10, selector: ({ id }) => id },
);
const owners = (members: readonly ViewMember[]): Map<string, string | null> =>
  new Map(KEYS.map((key) => [key, ownerOf(key, members)]));

describe('the owner of a key', () => {
  it('is nobody without members', () => {
    expect(ownerOf('key', [])).toBeNull();
  });

  it('is the same in every process, in whatever order it knows the members', () => {
    fc.assert(
      fc.property(fleet, fc.string(), (members, key) => ownerOf(key, members) === ownerOf(key, [...members].reverse())),
    );
  });

  it('stays when another member goes: only the keys of that member move', () => {
    fc.assert(
      fc.property(fleet, ([gone, ...rest]) => {
        const [before, after] = [owners([gone as ViewMember, ...rest]), owners(rest)];
        const stayed = KEYS.filter((key) => before.get(key) !== gone?.id);
        expect(stayed.filter((key) => after.get(key) !== before.get(key))).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });

  it('changes only to or from the member whose weight changed', () => {
    fc.assert(
      fc.property(fleet, fc.constantFrom(0.5, 3, 8), ([one, ...rest], weight) => {
        const before = owners([one as ViewMember, ...rest]);
        const after = owners([{ ...(one as ViewMember), weight }, ...rest]);
        for (const key of KEYS) {
          const moved = [before.get(key), after.get(key)];
          if (moved[0] !== moved[1]) expect(moved).toContain(one?.id);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('is each member in proportion to its weight', () => {
    const members = ['a', 'b', 'c', 'd'].map((id) => ({ id, incarnation: 1, weight: id === 'd' ? 3 : 1 }));
    const counts = new Map<string | null, number>();
    for (let n = 0; n < 12_000; n++) {
      const owner = ownerOf(`asset/${n}`, members);
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    // 2,000 each and 6,000 are expected; a good hash is within four standard deviations, which are 41 and 55.
    for (const id of ['a', 'b', 'c']) expect(Math.abs((counts.get(id) ?? 0) - 2000)).toBeLessThan(170);
    expect(Math.abs((counts.get('d') ?? 0) - 6000)).toBeLessThan(220);
  });
});
