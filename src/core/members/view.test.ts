import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changeBetween, coordinatorOf, NO_VIEW, updated, type View, type ViewMember, viewOf } from './view.ts';

const member = (id: string, incarnation = 1): ViewMember => ({ id, incarnation });
const ids = (members: readonly ViewMember[]): string => members.map(({ id }) => id).join(' ');

/** One revision after the other: some members come, some go, some come again. */
const histories = fc.array(
  fc.array(fc.tuple(fc.constantFrom('a', 'b', 'Z', 'é', 'a/1'), fc.boolean()), { minLength: 1, maxLength: 3 }),
  { maxLength: 12 },
);

function viewsOf(history: readonly (readonly (readonly [string, boolean])[])[]): View[] {
  let view: View = NO_VIEW;
  return history.map((step, place) => {
    const revision = place + 10;
    const updates = [...new Map(step)].map(
      ([id, stays]) =>
        [
          id,
          stays ? member(id, view.members.find((one) => one.id === id)?.incarnation ?? revision) : undefined,
        ] as const,
    );
    view = updated(view, revision, updates);
    return view;
  });
}

describe('a view', () => {
  it('has its members in the order of code units, which is the same on every machine', () => {
    expect(
      ids(
        viewOf(
          1,
          ['é', 'b', 'a/1', 'Z', 'a', 'z'].map((id) => member(id)),
        ).members,
      ),
    ).toBe('Z a a/1 b z é');
  });

  it('has the later of two incarnations of an id', () => {
    expect(viewOf(1, [member('a', 7), member('a', 3)]).members).toEqual([member('a', 7)]);
  });

  it('tells who joined and who left, and of a member that came again, both', () => {
    const before = viewOf(1, [member('a'), member('b'), member('c')]);
    const after = viewOf(2, [member('b', 2), member('c'), member('d')]);
    const { joined, left, changed } = changeBetween(before, after);
    expect([ids(joined), ids(left), ids(changed)]).toEqual(['b d', 'a b', '']);
  });

  it('tells of a member that stayed and has something else now', () => {
    const before = viewOf(1, [{ ...member('a'), metadata: 1 }, member('b')]);
    const after = viewOf(2, [{ ...member('a'), metadata: 2 }, { ...member('b') }]);
    expect(changeBetween(before, after).changed).toEqual([{ ...member('a'), metadata: 2 }]);
  });

  it('follows from the one before and what the change says, whatever happened', () => {
    fc.assert(
      fc.property(histories, (history) => {
        let known = new Map<string, ViewMember>();
        let before: View = NO_VIEW;
        for (const view of viewsOf(history)) {
          const { joined, left } = changeBetween(before, view);
          for (const { id, incarnation } of left) {
            expect(known.get(id)?.incarnation).toBe(incarnation);
            known.delete(id);
          }
          for (const one of joined) {
            expect(known.has(one.id)).toBe(false);
            known.set(one.id, one);
          }
          expect([...known.keys()].sort()).toEqual(view.members.map(({ id }) => id).sort());
          before = view;
        }
      }),
    );
  });

  it('skipped by some, leads to the same members: the change of several steps is the difference of their ends', () => {
    fc.assert(
      fc.property(histories, fc.nat(11), (history, skip) => {
        const views = viewsOf(history);
        const [from, to] = [views[skip] ?? NO_VIEW, views.at(-1) ?? NO_VIEW];
        const { joined, left } = changeBetween(from, to, true);
        const gone = new Set(left);
        const stayed = from.members.filter((one) => !gone.has(one));
        expect(viewOf(to.version, [...stayed, ...joined])).toEqual(to);
      }),
    );
  });

  it('has the first member as its coordinator, in whatever order they joined, and none without members', () => {
    expect(coordinatorOf(NO_VIEW)).toBeNull();
    expect(coordinatorOf(viewOf(9, [member('b', 1), member('a', 9)]))).toBe('a');
  });
});
