import { expect, it } from 'vitest';
import { OwnMemberships } from './own-memberships.ts';

it('keeps nothing of a membership that has ended', () => {
  const all = new OwnMemberships();
  const session = { isValid: () => true } as never;
  let released = 0;
  const kept = all.add('a', 1, session, () => undefined);
  const left = all.add('b', 2, session, () => void (released += 1));
  expect(all.count).toBe(2);
  left.end();
  left.end();
  expect([all.count, released]).toEqual([1, 1]);
  expect([all.has('a', (incarnation) => incarnation === 1), all.has('b', () => true)]).toEqual([true, false]);
  expect([kept, left].map(({ isValid }) => isValid)).toEqual([true, false]);
  all.sessionEnded(session);
  expect(all.count).toBe(0);
  expect(kept.signal.aborted).toBe(true);
});
