import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Asked, requestProblem } from './request.ts';

describe('a request', () => {
  it('that makes sense has no problem', () => {
    const asked: Asked = {
      id: 'r1',
      holder: 'worker:ci-3',
      lease: 'l1',
      priority: -100,
      mode: 'shared',
      weight: 3,
      capacity: 8,
      token: 1,
      ttlMs: 60_000,
      maxHoldMs: 0.5,
      waitMs: 0,
      wait: false,
      onStale: 'alert',
      reason: 'release\nof version 7',
      metadata: { pid: 17, tags: ['a', null, true], none: undefined },
    };
    expect(requestProblem(asked)).toBeUndefined();
    expect(requestProblem({})).toBeUndefined();
  });

  it.each<[Asked, string]>([
    [{ priority: Number.NaN }, 'priority is NaN; expected a whole number from -100 to 100'],
    [{ priority: 101 }, 'priority is 101; expected a whole number from -100 to 100'],
    [{ priority: '5' }, 'priority is "5"; expected a whole number from -100 to 100'],
    [{ weight: 1.5 }, 'weight is 1.5; expected a whole number of at least 1'],
    [{ weight: 0 }, 'weight is 0; expected a whole number of at least 1'],
    [{ capacity: Infinity }, 'capacity is Infinity; expected a whole number of at least 1'],
    [{ ttlMs: -1 }, 'ttlMs is -1; expected a number of milliseconds above zero'],
    [{ ttlMs: 0 }, 'ttlMs is 0; expected a number of milliseconds above zero'],
    [{ maxHoldMs: Number.NaN }, 'maxHoldMs is NaN; expected a number of milliseconds above zero'],
    [{ waitMs: -1 }, 'waitMs is -1; expected a number of milliseconds that is not negative'],
    [{ mode: 'read' }, 'mode is "read"; expected "exclusive" or "shared"'],
    [{ onStale: null }, 'onStale is null; expected "reclaim" or "alert"'],
    [{ wait: 1 }, 'wait is 1; expected true or false'],
    [{ reason: 7 }, 'reason is 7, not a string'],
    [{ holder: '' }, 'holder is empty; expected 1 to 200 printable characters'],
    [{ token: 1e20 }, 'token is 100000000000000000000; expected a whole number of at least 1'],
  ])('%j is told what is wrong and what is accepted', (asked, problem) => {
    expect(requestProblem(asked)).toBe(problem);
  });

  it('that lacks what it needs is told so', () => {
    expect(requestProblem({}, ['holder'])).toMatch(/^holder is undefined, not a string/u);
  });
});

describe('metadata', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  let doubling: unknown = [];
  for (let i = 0; i < 60; i++) doubling = [doubling, doubling];

  it.each<[string, unknown, string]>([
    ['NaN deep inside', { a: [1, Number.NaN] }, 'metadata.a[1] is NaN, which JSON cannot express'],
    ['a function', { call: () => 1 }, 'metadata.call is function, which JSON cannot express'],
    ['a bigint', 1n, 'metadata is 1, which JSON cannot express'],
    ['a hole in a list', [undefined], 'metadata[0] is undefined, which JSON cannot express'],
    ['a date, which would come back as text', { at: new Date(0) }, 'metadata.at is a Date; expected plain JSON'],
    ['a map, which would come back empty', new Map(), 'metadata is a Map; expected plain JSON'],
    ['a value within itself', circular, 'nested more than 100 deep, or in itself'],
    ['a value within itself 2^60 times', doubling, 'metadata has more than 65536 bytes as JSON'],
  ])('may not be %s', (_what, metadata, problem) => {
    expect(requestProblem({ metadata })).toContain(problem);
  });

  it('may have 64 KiB as JSON and not one byte more, counted in bytes', () => {
    const quotes = 2;
    expect(requestProblem({ metadata: 'x'.repeat(65_536 - quotes) })).toBeUndefined();
    expect(requestProblem({ metadata: 'x'.repeat(65_537 - quotes) })).toContain('has 65537 bytes as JSON');
    expect(requestProblem({ metadata: 'ä'.repeat(32_768) })).toContain('has 65538 bytes as JSON');
  });

  it('that is accepted comes back from JSON as it was', () => {
    fc.assert(
      fc.property(
        fc.anything({ withDate: true, withMap: true, withBigInt: true, withSparseArray: true }),
        (metadata) => {
          if (metadata === undefined || requestProblem({ metadata }) !== undefined) return;
          expect(JSON.parse(JSON.stringify({ metadata }))).toEqual(withoutMinusZero({ metadata }));
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('of any kind is judged without throwing', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withObjectString: true }), (metadata) => {
        requestProblem({ metadata, holder: metadata, priority: metadata, ttlMs: metadata, mode: metadata });
      }),
      { numRuns: 1000 },
    );
  });
});

/** JSON has no minus zero, and nobody would miss it. */
function withoutMinusZero(value: unknown): unknown {
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(withoutMinusZero);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, withoutMinusZero(child)]));
}
