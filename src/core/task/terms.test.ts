import { describe, expect, it } from 'vitest';
import { lacking, NO_TERMS, termsOf, withTerms } from './terms.ts';

describe('what a task asks for', () => {
  it('is read from its data, and is nothing if the data says nothing', () => {
    for (const data of [null, 1, 'x', [], {}, { other: 1 }]) expect(termsOf(data)).toEqual({ terms: NO_TERMS });
    expect(termsOf({ capabilities: ['a', 'b', 'a'], priority: -3, dependsOn: ['x'], retries: 2, more: true })).toEqual({
      terms: { capabilities: ['a', 'b'], priority: -3, dependsOn: ['x'], retries: 2, backoffMs: 0, lossLimit: 3 },
    });
  });

  it.each([
    [{ capabilities: 'gpu' }, 'capabilities is "gpu", not a list of names'],
    [{ capabilities: [''] }, 'capability is empty; expected 1 to 200 printable characters'],
    [{ dependsOn: Array(65).fill('x') }, 'dependsOn has 65 names; expected at most 64'],
    [{ priority: 101 }, 'priority is 101; expected a whole number from -100 to 100'],
    [{ backoffMs: -1 }, 'backoffMs is -1; expected a whole number from 0 to 86400000'],
    [{ lossLimit: 0 }, 'lossLimit is 0; expected a whole number from 1 to 1000000'],
    [{ retries: 0.5 }, 'retries is 0.5; expected a whole number from 0 to 1000000'],
  ])('is told to be wrong in %j', (data, problem) => {
    expect(termsOf(data)).toEqual({ terms: NO_TERMS, problem });
  });

  it('may be said beside the data, once', () => {
    expect(withTerms({ x: 1 }, { priority: 2, retries: 1 })).toEqual({ data: { x: 1, priority: 2, retries: 1 } });
    expect(withTerms(7, {})).toEqual({ data: 7 });
    expect(withTerms(7, { priority: 1 })).toMatchObject({ problem: expect.stringContaining('object') as unknown });
    expect(withTerms({ priority: 1 }, { priority: 1 })).toMatchObject({
      problem: expect.stringContaining('once') as unknown,
    });
  });

  it('fits a worker that has at least that', () => {
    const { terms } = termsOf({ capabilities: ['a', 'b'] });
    expect(lacking(terms, ['b', 'a', 'c'])).toEqual([]);
    expect(lacking(terms, ['c', 'b'])).toEqual(['a']);
    expect(lacking(NO_TERMS, [])).toEqual([]);
  });
});
