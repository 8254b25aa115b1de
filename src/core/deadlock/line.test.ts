import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { nextInLine, type Passed, passing, type Waiting, without } from '../queue.ts';
import { type Demand, inOrderOfService } from './line.ts';

const waiters: fc.Arbitrary<readonly Waiting[]> = fc
  .array(fc.constantFrom(-3, 0, 0, 0, 5, 5, 7), { maxLength: 60 })
  .chain((priorities) => fc.tuple(fc.constant(priorities), fc.integer({ min: 0, max: 120 })))
  .map(([priorities, upgrader]) =>
    priorities.map((priority, place) => {
      const request = { id: `r${place}`, holder: `h${place}`, lease: `h${place}`, priority };
      return place === upgrader ? { ...request, upgrades: 'x' } : request;
    }),
  );

const passedBefore = fc.option(fc.record({ id: fc.constantFrom('r0', 'gone'), times: fc.integer({ min: 1, max: 8 }) }));

it('the order of service that is foreseen is the one that queues keep, however long they are', () => {
  fc.assert(
    fc.property(waiters, passedBefore, (waiting, passed) => {
      const foreseen = inOrderOfService(waiting.map(demandOf), passed).map(({ request }) => request.id);
      expect(foreseen).toEqual(served(waiting, passed));
    }),
    { numRuns: 2000 },
  );
});

function served(waiting: readonly Waiting[], passed: Passed | null): readonly string[] {
  const place = nextInLine(waiting, passed);
  const next = waiting[place];
  if (next === undefined) return [];
  return [next.id, ...served(without(waiting, place), passing(waiting, place, passed))];
}

function demandOf(request: Waiting, place: number): Demand {
  return { request, holder: request.holder, place, want: 1, first: request.upgrades !== undefined, steals: false };
}
