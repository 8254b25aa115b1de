/** The same random sequences on every engine, with a real etcd as the judge: whoever answers otherwise is wrong. */
import fc from 'fast-check';
import type { Operation, Store, Transaction } from 'signalbox/store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Failure } from '../../src/failure.ts';
import { checkTransaction } from '../../src/store/check.ts';
import { openEtcd } from '../../src/store/etcd/open.ts';
import { emptied } from '../support/etcd/from-the-beginning.ts';
import { GatewayStore } from '../support/etcd/gateway-store.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { compareEngines, type Engine } from './compare-engines.ts';
import { Coverage } from './coverage.ts';
import { ownEngines } from './engines.ts';
import { sequences, transaction } from './sequence.ts';

/** There are as many on a busy machine as on an idle one, or what is left out is a matter of chance. */
const PATIENCE_MS = 1_800_000;

let server: EtcdServer;
/** For our engine on etcd: what it writes must not be in the judge's way. */
let ours: EtcdServer;

/** The judge first. */
const engines: readonly Engine[] = [
  { name: 'etcd', open: async () => (await emptied(server))() },
  ...ownEngines,
  { name: 'our engine on etcd', open: async () => (await emptied(ours, onEtcd))() },
];

function onEtcd(port: number): Store {
  return openEtcd({ endpoints: [{ host: '127.0.0.1', port }], prefix: '', requestTimeoutMs: 20_000 });
}

describe.skipIf(isMissing('etcd'))(`${engines.map((engine) => engine.name).join(', ')}`, () => {
  beforeAll(async () => {
    [server, ours] = await Promise.all([startEtcd(), startEtcd()]);
  });
  afterAll(() => Promise.all([server.stop(), ours.stop()]));

  it('begin at the same revision', async () => {
    for (const { open } of [{ open: async () => new GatewayStore(server.port) }, ...ownEngines]) {
      const store = await open();
      expect(await store.health()).toEqual({ revision: 1, compacted: 0 });
      await store.close();
    }
  });

  const coverage = new Coverage();
  // A part of it, where the same was asked on the other driver of SQLite.
  const part = Number(process.env['DIFFERENTIAL_PART'] ?? 1);
  it.each([
    ['long', { numRuns: Math.ceil(20 / part) }, { minLength: 80, maxLength: 120 }],
    ['short', { numRuns: 300 / part }, { minLength: 1, maxLength: 20 }],
  ] as const)(
    'answer alike to every step of %s sequences',
    async (_, runs, length) => {
      await fc.assert(
        fc.asyncProperty(sequences(length), (commands) =>
          compareEngines(engines, commands, { observe: coverage.note }),
        ),
        runs,
      );
    },
    PATIENCE_MS,
  );

  it.runIf(part === 1)('were asked everything that makes a difference', () => {
    expect(coverage.missing()).toEqual([]);
  });

  it('refuse what etcd refuses, and more only where it is known to look away', async () => {
    const store = new GatewayStore(server.port);
    const isRefused = async (check: () => unknown): Promise<boolean> => {
      try {
        await check();
        return false;
      } catch (error) {
        if (Failure.is(error, 'invalid')) return true;
        if (Failure.is(error, 'not-found')) return false;
        throw error;
      }
    };
    await fc.assert(
      fc.asyncProperty(transaction, async (each) => {
        const byUs = await isRefused(() => checkTransaction(each));
        const byEtcd = await isRefused(() => store.transactionUnchecked(withoutLeases(each)));
        if (byEtcd || !mayLookAway(each)) expect(byUs).toBe(byEtcd);
      }),
      { numRuns: 500 },
    );
    await store.close();
  });
});

/** Whether etcd may fail to see that a key is both put and deleted: where it nests, and where it deletes without end. */
function mayLookAway({ success, failure }: Transaction): boolean {
  return [...success, ...failure].some(
    (each) => each.do === 'transaction' || (each.do === 'delete' && each.end === '\0'),
  );
}

/** Their names mean nothing to etcd, and they have no part in what is refused. */
function withoutLeases({ compare, success, failure }: Transaction): Transaction {
  const operation = (each: Operation): Operation => {
    if (each.do === 'put') return { ...each, lease: undefined };
    return each.do === 'transaction' ? { do: 'transaction', ...withoutLeases(each) } : each;
  };
  return {
    compare: compare.filter((each) => each.target !== 'lease'),
    success: success.map(operation),
    failure: failure.map(operation),
  };
}
