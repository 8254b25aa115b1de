/** Engines with one bug each: a suite that lets one of them pass is not worth its name. */
import {
  type Changes,
  type Compare,
  type KeyValue,
  type Operation,
  type OperationResult,
  openSharedMemory,
  type Store,
  type TransactionResult,
  type Watch,
} from 'signalbox/store';
import { type ContractSubject, keepsPromise, storePromises, TestClock } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { forwarding } from './forwarding.ts';

interface PlantedBug {
  readonly bug: string;
  /** One of the promises that it breaks. */
  readonly breaks: string;
  plant(inner: Store): Partial<Store>;
}

const planted: readonly PlantedBug[] = [
  {
    bug: 'a watch that resumes one revision too late',
    breaks: 'a watch resumed after the last revision it delivered neither repeats nor skips',
    plant: (inner) => ({
      watch: (range, since, signal) => inner.watch(range, since === 'now' ? since : since + 1, signal),
    }),
  },
  {
    bug: 'a watch that resumes one revision too early',
    breaks: 'a watch resumed after the last revision it delivered neither repeats nor skips',
    plant: (inner) => ({
      watch: (range, since, signal) => inner.watch(range, since === 'now' ? since : Math.max(0, since - 1), signal),
    }),
  },
  {
    bug: 'a watch that is not open yet when it says so',
    breaks: 'whatever is written once a watch is open is delivered, however soon',
    plant: (inner) => ({
      watch: async (range, since, signal) => ({
        since: since === 'now' ? (await inner.health()).revision : since,
        async *[Symbol.asyncIterator]() {
          yield* await inner.watch(range, since, signal);
        },
      }),
    }),
  },
  {
    bug: 'a watch that delivers the changes of one revision one by one',
    breaks: 'what one transaction changed is delivered as a whole, in the order of its operations',
    plant: (inner) => ({
      watch: async (range, since, signal) =>
        relayed(await inner.watch(range, since, signal), async function* (watch) {
          for await (const { revision, changes } of watch)
            for (const change of changes) yield { revision, changes: [change] };
        }),
    }),
  },
  {
    bug: 'a watch that goes on from now when its history is gone, and says nothing',
    breaks: 'a watch that starts before what is compacted fails with `compacted`, even by one revision',
    plant: (inner) => ({
      watch: async (range, since, signal) =>
        relayed(await inner.watch(range, since, signal), async function* (watch) {
          try {
            yield* watch;
          } catch {
            yield* await inner.watch(range, 'now', signal);
          }
        }),
    }),
  },
  {
    bug: 'a lease that comes back when it is kept alive after its end',
    breaks: 'a lease that ran out never comes back',
    plant: (inner) => ({ keepLeaseAlive: async (id) => (await inner.keepLeaseAlive(id)) ?? { id, ttlMs: 10 } }),
  },
  {
    bug: 'a lease that is not kept alive',
    breaks: 'keeping a lease alive gives it its full time again, as often as it is done',
    plant: () => ({ keepLeaseAlive: async (id) => ({ id, ttlMs: 20 }) }),
  },
  {
    bug: 'a lease whose keys are deleted one revision after the other',
    breaks: 'revoking a lease ends it at once, in one revision and in order',
    plant: (inner) => ({
      async revokeLease(id) {
        for (const key of (await inner.leaseState(id))?.keys ?? []) await change(inner, [{ do: 'delete', key }]);
        await inner.revokeLease(id);
      },
    }),
  },
  {
    bug: '`keep` that forgets the lease',
    breaks: '`keep` leaves a key on the lease it has, or on none',
    plant: (inner) =>
      rewriting(inner, (operation) =>
        operation.do === 'put' && operation.lease === 'keep' ? { ...operation, lease: undefined } : operation,
      ),
  },
  {
    bug: 'a comparison over an empty range that never holds',
    breaks: '"version = 0" over a range says that it is empty',
    plant: (inner) =>
      comparing(inner, async (compare) => compare.end === undefined || (await find(inner, compare)).length > 0),
  },
  {
    bug: 'a comparison over a range that looks at its first key only',
    breaks: 'over a range a comparison must hold for every key in it',
    plant: (inner) => ({
      async transaction({ compare, ...branches }, signal) {
        const first = async (each: Compare): Promise<Compare> => ({
          ...each,
          key: (await find(inner, each))[0]?.key ?? each.key,
          end: undefined,
        });
        return inner.transaction({ ...branches, compare: await Promise.all(compare.map(first)) }, signal);
      },
    }),
  },
  {
    bug: 'a missing key that passes for one with another value',
    breaks: 'a comparison of values never holds where there is no key, not even for "unequal" or the empty text',
    plant: (inner) => ({
      async transaction({ compare, ...branches }, signal) {
        const missing = await Promise.all(
          compare.map(
            async (each) => each.target === 'value' && each.is === '!=' && (await find(inner, each)).length === 0,
          ),
        );
        return inner.transaction({ ...branches, compare: compare.filter((_, i) => !missing[i]) }, signal);
      },
    }),
  },
  {
    bug: 'a failure branch of which only the first operation is applied',
    breaks: 'the failure branch is applied, all of it, if one comparison does not hold',
    plant: (inner) => ({
      transaction: (each, signal) => inner.transaction({ ...each, failure: each.failure.slice(0, 1) }, signal),
    }),
  },
  {
    bug: 'comparisons that are looked at before the writing, not with it',
    breaks: 'a hundred increments at once, by compare and swap, lose none',
    plant: (inner) => ({
      async transaction({ compare, success, failure }, signal) {
        const { succeeded } = await inner.transaction({ compare, success: [], failure: [] }, signal);
        return {
          ...(await inner.transaction({ compare: [], success: succeeded ? success : failure, failure: [] }, signal)),
          succeeded,
        };
      },
    }),
  },
  {
    bug: 'operations that are applied one by one',
    breaks: 'a transaction that changes several keys raises the revision by one, and they all carry it',
    plant: (inner) => ({
      async transaction({ compare, success, failure }, signal) {
        const result = await inner.transaction({ compare, success: [], failure: [] }, signal);
        const results: OperationResult[] = [];
        let { revision } = result;
        for (const operation of result.succeeded ? success : failure) {
          const step = await change(inner, [operation]);
          results.push(...step.results);
          ({ revision } = step);
        }
        return { succeeded: result.succeeded, revision, results };
      },
    }),
  },
  {
    bug: 'versions that go on counting when a key is made again',
    breaks: 'a key that is deleted and made again starts over at version 1 with a new create revision',
    plant: (inner) => {
      const puts = new Map<string, number>();
      const counted = (operation: Operation): Operation => {
        if (operation.do === 'put') puts.set(operation.key, (puts.get(operation.key) ?? 0) + 1);
        return operation;
      };
      return rewriting(inner, counted, (pair) => ({ ...pair, version: puts.get(pair.key) ?? pair.version }));
    },
  },
  {
    bug: 'keys in the order of UTF-16',
    breaks: 'keys come in the order of their UTF-8 bytes, those past U+FFFF last',
    plant: (inner) => sorting(inner, (a, b) => (a.key < b.key ? -1 : 1), 'key'),
  },
  {
    bug: 'age by the last put instead of the first',
    breaks: 'by age, the oldest come first, whatever was put again since',
    plant: (inner) => sorting(inner, (a, b) => a.modRevision - b.modRevision, 'create'),
  },
  {
    bug: 'a closed store whose watches stay open',
    breaks: 'closing a store ends its watches without an error, also while a reader waits',
    plant: () => ({ close: async () => {} }),
  },
];

describe('the contract suite finds an engine with', () => {
  for (const { bug, breaks, plant } of planted) {
    it(bug, async () => {
      const broken: string[] = [];
      for (const promise of storePromises)
        await keepsPromise(promise, opener(plant)).catch(() => broken.push(promise.name));
      expect(broken).toContain(breaks);
    });
  }
});

let names = 0;

function opener(plant: PlantedBug['plant']): () => Promise<ContractSubject> {
  return async () => {
    const clock = new TestClock();
    const name = `planted-${names++}`;
    const seen = (inner: Store): Store => ({ ...forwarding(inner), ...plant(inner) });
    const store = openSharedMemory(name, { clock });
    return {
      store: seen(store),
      reopen: async () => seen(openSharedMemory(name)),
      advance: (ms) => clock.advance(ms),
      minTtlMs: 10,
      close: () => store.close(),
    };
  };
}

function change(store: Store, operations: readonly Operation[]): Promise<TransactionResult> {
  return store.transaction({ compare: [], success: operations, failure: [] });
}

async function find(store: Store, { key, end }: Compare): Promise<readonly KeyValue[]> {
  const [found] = (await change(store, [{ do: 'read', key, end }])).results;
  return found?.do === 'read' ? found.pairs : [];
}

function relayed(watch: Watch, relay: (watch: Watch) => AsyncGenerator<Changes>): Watch {
  return { since: watch.since, [Symbol.asyncIterator]: () => relay(watch) };
}

function comparing(inner: Store, passes: (compare: Compare) => Promise<boolean>): Partial<Store> {
  return {
    async transaction({ compare, success, failure }, signal) {
      const all = await Promise.all(compare.map(passes));
      if (all.every((each) => each)) return inner.transaction({ compare, success, failure }, signal);
      return { ...(await inner.transaction({ compare: [], success: failure, failure: [] }, signal)), succeeded: false };
    },
  };
}

function rewriting(
  inner: Store,
  rewrite: (operation: Operation) => Operation,
  shown: (pair: KeyValue) => KeyValue = (pair) => pair,
): Partial<Store> {
  return {
    async transaction({ compare, success, failure }, signal) {
      const result = await inner.transaction(
        { compare, success: success.map(rewrite), failure: failure.map(rewrite) },
        signal,
      );
      return {
        ...result,
        results: result.results.map((each) => (each.do === 'read' ? { ...each, pairs: each.pairs.map(shown) } : each)),
      };
    },
  };
}

function sorting(inner: Store, compare: (a: KeyValue, b: KeyValue) => number, order: 'key' | 'create'): Partial<Store> {
  return {
    async transaction(transaction, signal) {
      const result = await inner.transaction(transaction, signal);
      const operations = result.succeeded ? transaction.success : transaction.failure;
      const sorted = (each: OperationResult, i: number): OperationResult => {
        const operation = operations[i];
        if (each.do !== 'read' || operation?.do !== 'read' || (operation.order ?? 'key') !== order) return each;
        return { ...each, pairs: [...each.pairs].sort(compare) };
      };
      return { ...result, results: result.results.map(sorted) };
    },
  };
}
