import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextOf } from '../../test/laws/index.ts';
import { goesAhead, nextInLine, type Passed, passing, PATIENCE, placeFor, type Waiting, without } from './queue.ts';

type Choice = (waiting: readonly Waiting[], passed: Passed | null) => number;

const request = (id: number, priority: number, upgrades?: string): Waiting => {
  return { id: `#${id}`, holder: `#${id}`, lease: 'l', priority, ...(upgrades !== undefined && { upgrades }) };
};
const priority = fc.constantFrom(0, 0, 1, 5, -3);
const line = (most: number): fc.Arbitrary<Waiting[]> =>
  fc.array(priority, { maxLength: most }).map((priorities) => priorities.map((value, id) => request(id, value)));

/** Arrivals and grants in any order: a number arrives with that priority, `next` is a grant. */
const days = fc.array(
  fc.oneof({ arbitrary: priority, weight: 3 }, { arbitrary: fc.constant('next' as const), weight: 2 }),
  {
    maxLength: 120,
    size: 'max',
  },
);

/** Lives through a day, and shows who was served, and who else was waiting then. */
function served(day: readonly (number | 'next')[], choose: Choice): { one: Waiting; among: readonly Waiting[] }[] {
  let waiting: readonly Waiting[] = [];
  let passed: Passed | null = null;
  const grants: { one: Waiting; among: readonly Waiting[] }[] = [];
  day.forEach((what, id) => {
    if (what !== 'next') waiting = [...waiting, request(id, what)];
    const place = what === 'next' ? choose(waiting, passed) : -1;
    const one = waiting[place];
    if (one === undefined) return;
    grants.push({ one, among: waiting });
    passed = passing(waiting, place, passed);
    waiting = without(waiting, place);
  });
  return grants;
}

const LAWS: { readonly [sentence: string]: (choose: Choice) => fc.IPropertyWithHooks<[(number | 'next')[]]> } = {
  'the request that has waited longest is passed at most eight times in a row': (choose) =>
    fc.property(days, (day) => {
      let times = 0;
      let longest = '';
      for (const { one, among } of served(day, choose)) {
        const oldest = (among[0] as Waiting).id;
        times = one.id === oldest ? 0 : oldest === longest ? times + 1 : 1;
        longest = oldest;
        expect(times).toBeLessThanOrEqual(8);
      }
    }),

  'among equals it is first come, first served': (choose) =>
    fc.property(days, (day) => {
      for (const { one, among } of served(day, choose)) {
        expect(among.find(({ priority }) => priority === one.priority)?.id).toBe(one.id);
      }
    }),

  'a request that goes past others has the highest priority of all': (choose) =>
    fc.property(days, (day) => {
      for (const { one, among } of served(day, choose)) {
        const highest = Math.max(...among.map(({ priority }) => priority));
        if (one.id !== among[0]?.id) expect(one.priority).toBe(highest);
      }
    }),

  'the longest waiting goes first only if it is as important, or was passed often enough': (choose) =>
    fc.property(days, (day) => {
      let times = 0;
      let longest = '';
      for (const { one, among } of served(day, choose)) {
        const oldest = among[0] as Waiting;
        if (oldest.id !== longest) times = 0;
        longest = oldest.id;
        const isOutranked = among.some(({ priority }) => priority > oldest.priority);
        if (one === oldest && isOutranked) expect(times).toBe(8);
        times = one === oldest ? 0 : times + 1;
      }
    }),

  'a request is served whenever one waits': (choose) =>
    fc.property(days, (day) => {
      const grants = served(day, choose).length;
      let waiting = 0;
      let due = 0;
      for (const what of day) {
        if (what !== 'next') waiting++;
        else if (waiting > 0) [waiting, due] = [waiting - 1, due + 1];
      }
      expect(grants).toBe(due);
    }),
};

describe('the queue', () => {
  for (const [law, of] of Object.entries(LAWS)) {
    it(law, () => {
      fc.assert(of(nextInLine), { numRuns: 1000 });
    });
  }

  it('serves the same one as the rule told in other words', () => {
    const queue = fc.record({
      waiting: line(12),
      upgrader: fc.option(fc.nat(11)),
      times: fc.nat(10),
      same: fc.boolean(),
    });
    fc.assert(
      fc.property(queue, ({ waiting: ordinary, upgrader, times, same }) => {
        const waiting = ordinary.map((waiter, place) => (place === upgrader ? { ...waiter, upgrades: 'h' } : waiter));
        const passed = times === 0 ? null : { id: same ? '#0' : '#gone', times };
        expect(waiting[nextInLine(waiting, passed)]?.id).toBe(nextOf(waiting, passed)?.id);
      }),
      { numRuns: 2000 },
    );
  });

  it('lets a newcomer go ahead exactly if it would be next after joining', () => {
    fc.assert(
      fc.property(line(12), priority, fc.nat(10), fc.option(fc.nat(11)), (ordinary, priority, times, upgrader) => {
        const waiting = ordinary.map((waiter, place) => (place === upgrader ? { ...waiter, upgrades: 'h' } : waiter));
        const newcomer = request(99, priority);
        const passed = times === 0 ? null : { id: '#0', times };
        const isNext = nextInLine([...waiting, newcomer], passed) === waiting.length;
        expect(goesAhead(newcomer, waiting, passed)).toBe(isNext);
      }),
      { numRuns: 2000 },
    );
  });

  it('tells a newcomer how many will be served before it, if nobody else comes and nobody has to be patient', () => {
    fc.assert(
      fc.property(line(PATIENCE), priority, (waiting, priority) => {
        const grants = served(
          [...waiting.map((waiter) => waiter.priority), priority, ...nexts(waiting.length + 1)],
          nextInLine,
        );
        const place = grants.findIndex(({ one }) => one.id === `#${waiting.length}`) + 1;
        expect(placeFor(waiting, priority, null)).toBe(place);
      }),
      { numRuns: 1000 },
    );
  });

  it('counts the one that has been passed often enough among those before a newcomer', () => {
    const waiting = [request(0, 0), request(1, 5)];
    expect(placeFor(waiting, 9, { id: '#0', times: PATIENCE - 1 })).toBe(1);
    expect(placeFor(waiting, 9, { id: '#0', times: PATIENCE })).toBe(2);
  });

  it('serves everyone within a bound, however many come with a higher priority', () => {
    fc.assert(
      fc.property(line(10), (waiting) => {
        const day = waiting.flatMap((waiter) => [waiter.priority, 5]);
        const crowd = Array.from({ length: waiting.length * 2 * (PATIENCE + 1) }, () => [9, 'next'] as const).flat();
        const ids = served([...day, ...crowd], nextInLine).map(({ one }) => one.id);
        for (let id = 0; id < day.length; id++) expect(ids).toContain(`#${id}`);
      }),
      { numRuns: 1000 },
    );
  });

  it('lets an upgrade go before everyone, even before the request that has waited longest', () => {
    const waiting = [request(0, 0), request(1, 9), request(2, 0, 'h')];
    expect(nextInLine(waiting, null)).toBe(2);
    expect(nextInLine(waiting, { id: '#0', times: PATIENCE })).toBe(2);
  });
});

function nexts(count: number): 'next'[] {
  return Array.from({ length: count }, () => 'next' as const);
}

// A law that nothing breaks proves nothing.

const BUGS: readonly { readonly bug: string; readonly breaks: string; readonly planted: Choice }[] = [
  {
    bug: 'nobody ages',
    breaks: 'the request that has waited longest is passed at most eight times in a row',
    planted: (waiting) => nextInLine(waiting, null),
  },
  {
    bug: 'one is passed once too often',
    breaks: 'the request that has waited longest is passed at most eight times in a row',
    planted: (waiting, passed) => nextInLine(waiting, passed && { ...passed, times: passed.times - 1 }),
  },
  {
    bug: 'the last to come is the first to be served',
    breaks: 'among equals it is first come, first served',
    planted: (waiting, passed) => {
      const place = nextInLine(waiting, passed);
      return waiting.findLastIndex(({ priority }) => priority === waiting[place]?.priority);
    },
  },
  {
    bug: 'the least important goes first',
    breaks: 'a request that goes past others has the highest priority of all',
    planted: (waiting) =>
      nextInLine(
        waiting.map((waiter) => ({ ...waiter, priority: -waiter.priority })),
        null,
      ),
  },
  {
    bug: 'priorities are not heeded',
    breaks: 'the longest waiting goes first only if it is as important, or was passed often enough',
    planted: (waiting) => (waiting.length > 0 ? 0 : -1),
  },
  {
    bug: 'nobody is served while only one waits',
    breaks: 'a request is served whenever one waits',
    planted: (waiting, passed) => (waiting.length === 1 ? -1 : nextInLine(waiting, passed)),
  },
];

describe('a queue with a planted bug is caught when', () => {
  for (const { bug, breaks, planted } of BUGS) {
    it(bug, () => {
      const law = LAWS[breaks];
      if (law === undefined) throw new Error(`there is no such law: ${breaks}`);
      expect(fc.check(law(planted), { numRuns: 1000, seed: 1, endOnFailure: true }).failed).toBe(true);
    });
  }

  it('there is a bug for every law', () => {
    const caught = new Set(BUGS.map(({ breaks }) => breaks));
    expect(Object.keys(LAWS).filter((law) => !caught.has(law))).toEqual([]);
  });
});
