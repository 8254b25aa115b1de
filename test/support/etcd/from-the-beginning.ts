/**
 * A used etcd as a new one: empty, and counting its revisions from 1. Starting another server takes longer than most
 * tests do, and the engines are compared by the revisions they answer with, so all of them have to begin alike.
 */
import {
  type Changes,
  type Compare,
  type KeyValue,
  type Operation,
  type OperationResult,
  type Revision,
  type Store,
  type Watch,
  Value,
} from 'signalbox/store';
import { GatewayStore } from './gateway-store.ts';
import type { EtcdServer } from './server.ts';

/** Opens handles on one etcd that was emptied for them: by its gateway, or as is said. */
export async function emptied(
  { port }: EtcdServer,
  open: (port: number) => Store = (where) => new GatewayStore(where),
): Promise<() => Store> {
  const store = new GatewayStore(port);
  await Promise.all((await store.leases()).map((id) => store.revokeLease(id)));
  // Two more revisions, so that nothing from here on was compacted before.
  await store.transaction({ compare: [], success: [{ do: 'put', key: '\0', value: Value.text('') }], failure: [] });
  const everything: Operation = { do: 'delete', key: '\0', end: '\0' };
  const { revision } = await store.transaction({ compare: [], success: [everything], failure: [] });
  await store.close();
  return () => countedFrom(open(port), revision - 1);
}

/** The same store, whose revision `before + 1` is shown as 1. */
function countedFrom(inner: Store, before: Revision): Store {
  const shown = (revision: Revision): Revision => revision - before;
  const meant = (revision: Revision): Revision => (revision >= 0 ? revision + before : revision);
  const pair = (each: KeyValue): KeyValue => ({
    ...each,
    createRevision: shown(each.createRevision),
    modRevision: shown(each.modRevision),
  });
  const compare = (each: Compare): Compare =>
    // 0 is of keys that do not exist, in any count.
    (each.target === 'create' || each.target === 'mod') && each.than > 0 ? { ...each, than: meant(each.than) } : each;
  const operation = (each: Operation): Operation =>
    each.do === 'transaction'
      ? {
          ...each,
          compare: each.compare.map(compare),
          success: each.success.map(operation),
          failure: each.failure.map(operation),
        }
      : each;
  const result = (each: OperationResult): OperationResult => {
    if (each.do === 'read') return { ...each, pairs: each.pairs.map(pair) };
    return each.do === 'transaction' ? { ...each, results: each.results.map(result) } : each;
  };
  const changes = (each: Changes): Changes => ({
    revision: shown(each.revision),
    changes: each.changes.map((change) =>
      change.kind === 'put'
        ? { kind: 'put', pair: pair(change.pair) }
        : { ...change, revision: shown(change.revision) },
    ),
  });

  return {
    async transaction(transaction, signal) {
      const answer = await inner.transaction(operation({ do: 'transaction', ...transaction }) as never, signal);
      return { ...answer, revision: shown(answer.revision), results: answer.results.map(result) };
    },
    async watch(range, since, signal) {
      return shownWatch(await inner.watch(range, since === 'now' ? since : meant(since), signal), changes, shown);
    },
    grantLease: (ttlMs, signal) => inner.grantLease(ttlMs, signal),
    keepLeaseAlive: (id, signal) => inner.keepLeaseAlive(id, signal),
    revokeLease: (id, signal) => inner.revokeLease(id, signal),
    leaseState: (id, signal) => inner.leaseState(id, signal),
    compact: (revision, signal) => inner.compact(revision > 0 ? meant(revision) : revision, signal),
    async health(signal) {
      const { revision, compacted } = await inner.health(signal);
      return { revision: shown(revision), compacted: Math.max(0, shown(compacted)) };
    },
    over: inner.over,
    close: () => inner.close(),
  };
}

function shownWatch(watch: Watch, changes: (each: Changes) => Changes, shown: (revision: Revision) => Revision): Watch {
  const inner = watch[Symbol.asyncIterator]();
  const step = (each: IteratorResult<Changes>): IteratorResult<Changes> =>
    each.done === true ? each : { done: false, value: changes(each.value) };
  const next = async (): Promise<IteratorResult<Changes>> => {
    const each = step(await inner.next());
    // The first revision emptied the store; in a new one it changes nothing.
    return each.done !== true && each.value.revision <= 1 ? next() : each;
  };
  const iterator: AsyncIterator<Changes> = {
    next,
    return: async () => {
      await inner.return?.();
      return { done: true, value: undefined };
    },
  };
  return { since: shown(watch.since), [Symbol.asyncIterator]: () => iterator };
}
