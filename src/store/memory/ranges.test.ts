import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { KeyRange, ReadResult } from '../contract.ts';
import { compareKeys, isInRange } from '../key-order.ts';
import { Value } from '../value.ts';
import { openMemory } from './index.ts';
import type { MemoryStore } from './store.ts';

/** The same keys in a plain map, asked without any cleverness. */
class Model {
  /** Key to create revision. */
  readonly #keys = new Map<string, number>();

  put(key: string, revision: number): void {
    if (!this.#keys.has(key)) this.#keys.set(key, revision);
  }

  delete(keys: readonly string[]): void {
    for (const key of keys) this.#keys.delete(key);
  }

  byKey(range: KeyRange): string[] {
    return [...this.#keys.keys()].filter((key) => isInRange(key, range)).sort(compareKeys);
  }

  byAge(range: KeyRange): string[] {
    return this.byKey(range).sort((a, b) => (this.#keys.get(a) ?? 0) - (this.#keys.get(b) ?? 0));
  }
}

function isEmpty(store: MemoryStore, { key, end }: KeyRange): boolean {
  const nothing = { key, end, target: 'version', is: '=', than: 0 } as const;
  return store.transactionNow({ compare: [nothing], success: [], failure: [] }).succeeded;
}

function read(store: MemoryStore, range: KeyRange, order?: 'create', limit?: number): ReadResult {
  const { results } = store.transactionNow({
    compare: [],
    success: [{ do: 'read', ...range, order, limit }],
    failure: [],
  });
  return results[0] as ReadResult;
}

function keysOf({ pairs }: ReadResult): string[] {
  return pairs.map((pair) => pair.key);
}

function checkAlike(store: MemoryStore, model: Model, range: KeyRange, limit: number): void {
  const byKey = model.byKey(range);
  const byAge = model.byAge(range);
  expect(isEmpty(store, range)).toBe(byKey.length === 0);
  expect(isEmpty(store, range), 'asked again').toBe(byKey.length === 0);
  expect(keysOf(read(store, range))).toEqual(byKey);
  expect(keysOf(read(store, range, 'create'))).toEqual(byAge);
  expect(keysOf(read(store, range, 'create', limit))).toEqual(byAge.slice(0, limit));
  const first = read(store, range, undefined, limit);
  expect([keysOf(first), first.count, first.more]).toEqual([
    byKey.slice(0, limit),
    Math.min(limit, byKey.length),
    byKey.length > limit,
  ]);
}

function nameOf(i: number): string {
  return `q/${String.fromCharCode(97 + (i % 5))}/${i}`;
}

// Few enough names that they come back, enough of them that they fill several chunks.
const name = fc.oneof(
  { weight: 5, arbitrary: fc.nat(400).map(nameOf) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: fc.constantFrom('a', '/', '\0', '\uffff', '𝄞'), minLength: 1, maxLength: 3 }),
  },
);
const names = fc.array(name, { minLength: 1, maxLength: 80 });
const group = fc.constantFrom('q/a', 'q/b', 'q/c', 'q/d', 'q/e').map((key) => ({ key: `${key}/`, end: `${key}0` }));
const any = fc.record({ key: name, end: fc.oneof(name, fc.constantFrom('q/c0', 'q0', '\0')) });
const range = fc.oneof({ weight: 3, arbitrary: group }, { weight: 1, arbitrary: any });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), names }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), names }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete range' as const), range }) },
);

it('the memory engine answers every question about a range as a plain list would, whatever came and went before', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(step, range, range, fc.integer({ min: 1, max: 20 })), { maxLength: 40 }), (steps) => {
      const store = openMemory();
      const model = new Model();
      const put = (key: string): void => {
        const value = Value.text('x');
        model.put(
          key,
          store.transactionNow({ compare: [], success: [{ do: 'put', key, value }], failure: [] }).revision,
        );
      };
      for (let i = 0; i < 400; i += 2) put(nameOf((i * 37) % 401));
      for (const [each, one, two, limit] of steps) {
        if (each.do === 'put') {
          for (const key of each.names) put(key);
        } else {
          const gone = each.do === 'delete' ? each.names : model.byKey(each.range);
          const ranges: KeyRange[] = each.do === 'delete' ? each.names.map((key) => ({ key })) : [each.range];
          for (const where of ranges)
            store.transactionNow({ compare: [], success: [{ do: 'delete', ...where }], failure: [] });
          model.delete(gone);
          if (each.do === 'delete range') checkAlike(store, model, each.range, limit);
        }
        checkAlike(store, model, one, limit);
        checkAlike(store, model, { key: one.key, end: two.end }, limit);
      }
    }),
  );
});
