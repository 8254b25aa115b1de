/**
 * Engines with one bug each: a comparison that lets one of them pass is not worth its name. A sound engine of our own is
 * the judge here, because it is quick and must find them just as well.
 */
import fc from 'fast-check';
import {
  type Changes,
  type Compare,
  type KeyValue,
  type Operation,
  type OperationResult,
  openMemory,
  type ReadResult,
  type Store,
  type Watch,
} from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Failure } from '../../src/failure.ts';
import { forwarding } from '../contract/forwarding.ts';
import { compareEngines } from './compare-engines.ts';
import { sequences } from './sequence.ts';

const planted: Readonly<Record<string, (inner: Store) => Partial<Store>>> = {
  'a comparison over a range that looks at its first key only': (inner) => ({
    async transaction({ compare, ...branches }, signal) {
      const first = async (each: Compare): Promise<Compare> => {
        const [found] = (await apply(inner, [{ do: 'read', key: each.key, end: each.end }])) as ReadResult[];
        return {
          ...each,
          key: found?.pairs[0]?.key ?? each.key,
          end: found?.pairs.length === 0 ? each.end : undefined,
        };
      };
      return inner.transaction({ ...branches, compare: await Promise.all(compare.map(first)) }, signal);
    },
  }),
  'a comparison that takes “at most” for “less”': (inner) => ({
    transaction: ({ compare, ...branches }, signal) =>
      inner.transaction(
        { ...branches, compare: compare.map((each) => (each.is === '<' ? { ...each, than: each.than + 1 } : each)) },
        signal,
      ),
  }),
  'a `more` that is said whenever the limit is reached': (inner) =>
    answering(inner, (result, operation) =>
      result.do === 'read' && operation.do === 'read'
        ? { ...result, more: result.more || result.pairs.length === operation.limit }
        : result,
    ),
  'a limit that is forgotten when reading by age': (inner) =>
    asking(inner, (each) => (each.do === 'read' && each.order === 'create' ? { ...each, limit: undefined } : each)),
  'versions that go on counting when a key is made again': (inner) => {
    const puts = new Map<string, number>();
    const counted = (pair: KeyValue): KeyValue => {
      const version = Math.max(pair.version, (puts.get(pair.key) ?? 0) + (pair.version === 1 ? 1 : 0));
      puts.set(pair.key, version);
      return { ...pair, version };
    };
    return answering(inner, (result) =>
      result.do === 'read' ? { ...result, pairs: result.pairs.map(counted) } : result,
    );
  },
  'a revision that is raised by a deletion of nothing': (inner) => ({
    async transaction(transaction, signal) {
      const answer = await inner.transaction(transaction, signal);
      const isIdle = answer.results.some((result) => result.do === 'delete' && result.deleted === 0);
      return isIdle && answer.results.length === 1 ? { ...answer, revision: answer.revision + 1 } : answer;
    },
  }),
  '`keep` that forgets the lease': (inner) =>
    asking(inner, (each) => (each.do === 'put' && each.lease === 'keep' ? { ...each, lease: undefined } : each)),
  'a put on a lease that is gone, made without one': (inner) => ({
    async transaction(transaction, signal) {
      try {
        return await inner.transaction(transaction, signal);
      } catch (error) {
        if (!Failure.is(error, 'not-found')) throw error;
        const success = transaction.success.map((each) => (each.do === 'put' ? { ...each, lease: undefined } : each));
        return inner.transaction({ ...transaction, success }, signal);
      }
    },
  }),
  'a lease whose end leaves its keys behind': () => ({ revokeLease: async () => {} }),
  'a watch that drops deletions': (inner) =>
    watching(inner, ({ revision, changes }) => ({
      revision,
      changes: changes.filter((change) => change.kind === 'put'),
    })),
  'a watch that tells the changes of one revision in another order': (inner) =>
    watching(inner, ({ revision, changes }) => ({ revision, changes: changes.toReversed() })),
  'a watch that begins one revision too late': (inner) => ({
    async watch(range, since, signal) {
      if (since === 'now') return inner.watch(range, since, signal);
      return { ...iterating(await inner.watch(range, since + 1, signal)), since };
    },
  }),
  'history that is never compacted': () => ({ compact: async () => {} }),
};

describe('the comparison of engines finds one with', () => {
  for (const [bug, plant] of Object.entries(planted)) {
    it(bug, async () => {
      const engines = [
        { name: 'sound', open: async () => openMemory() },
        { name: 'planted', open: async () => withBug(plant) },
      ];
      const property = fc.asyncProperty(sequences({ minLength: 1, maxLength: 20 }), (commands) =>
        // In one process, what is not delivered at once never is.
        compareEngines(engines, commands, { patienceMs: 250 }),
      );
      const { failed, errorInstance } = await fc.check(property, { numRuns: 2000, endOnFailure: true });
      expect(failed).toBe(true);
      expect(String(errorInstance)).toContain('the engines differ');
    });
  }

  it('no bug: then it finds nothing', async () => {
    const engines = ['one', 'other'].map((name) => ({ name, open: async () => openMemory() }));
    await fc.assert(
      fc.asyncProperty(sequences({ minLength: 1, maxLength: 20 }), (commands) => compareEngines(engines, commands)),
    );
  });
});

function withBug(plant: (inner: Store) => Partial<Store>): Store {
  const inner = openMemory();
  return { ...forwarding(inner), ...plant(inner) };
}

async function apply(store: Store, operations: readonly Operation[]): Promise<readonly OperationResult[]> {
  return (await store.transaction({ compare: [], success: operations, failure: [] })).results;
}

function asking(inner: Store, asked: (operation: Operation) => Operation): Partial<Store> {
  return {
    transaction: ({ compare, success, failure }, signal) =>
      inner.transaction({ compare, success: success.map(asked), failure: failure.map(asked) }, signal),
  };
}

function answering(
  inner: Store,
  answered: (result: OperationResult, operation: Operation) => OperationResult,
): Partial<Store> {
  return {
    async transaction(transaction, signal) {
      const answer = await inner.transaction(transaction, signal);
      const operations = answer.succeeded ? transaction.success : transaction.failure;
      return { ...answer, results: answer.results.map((each, i) => answered(each, operations[i] as Operation)) };
    },
  };
}

function watching(inner: Store, told: (changes: Changes) => Changes): Partial<Store> {
  return {
    async watch(range, since, signal) {
      const watch = await inner.watch(range, since, signal);
      return {
        since: watch.since,
        async *[Symbol.asyncIterator]() {
          for await (const changes of watch) yield told(changes);
        },
      };
    },
  };
}

function iterating(watch: Watch): AsyncIterable<Changes> {
  return { [Symbol.asyncIterator]: () => watch[Symbol.asyncIterator]() };
}
