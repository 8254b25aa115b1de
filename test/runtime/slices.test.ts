/** The event loop is never kept for long by a store that has much in it: heartbeats and everything else get their turns. */
import { open, type Signalbox } from 'signalbox';
import { openMemory, type OperationResult, type Store } from 'signalbox/store';
import { describe, expect, it } from 'vitest';

/** How many turns of the event loop there were, and how many keys the store answered with during the busiest of them. */
class Turns {
  count = 0;
  busiest = 0;
  #read = 0;
  #next: NodeJS.Immediate | undefined;

  begin(): void {
    this.#read = 0;
    this.#next = setImmediate(() => {
      this.busiest = Math.max(this.busiest, this.#read);
      this.count += 1;
      this.begin();
    });
  }

  end(): { readonly count: number; readonly busiest: number } {
    clearImmediate(this.#next);
    return { count: this.count, busiest: Math.max(this.busiest, this.#read) };
  }

  see(results: readonly OperationResult[]): void {
    for (const result of results) {
      if (result.do === 'read') this.#read += result.pairs.length;
      else if (result.do === 'transaction') this.see(result.results);
    }
  }
}

function counted(store: Store, turns: Turns): Store {
  const transaction: Store['transaction'] = async (...asked) => {
    const answer = await store.transaction(...asked);
    turns.see(answer.results);
    return answer;
  };
  return Object.assign(Object.create(store) as Store, {
    transaction,
    ...Object.fromEntries(
      (
        ['watch', 'grantLease', 'keepLeaseAlive', 'revokeLease', 'leaseState', 'compact', 'health', 'close'] as const
      ).map((name) => [name, store[name].bind(store)]),
    ),
    transactionNow: undefined,
  });
}

const scenes: readonly {
  readonly what: string;
  readonly many: number;
  /** So many keys are read in one turn: the largest page, and what comes with it. */
  readonly atOnce: number;
  /** How many steps of the work there are for each: no more than 250 of them in one turn. */
  readonly steps: number;
  readonly make: (box: Signalbox, name: string) => Promise<unknown>;
  readonly work: (box: Signalbox) => Promise<unknown>;
}[] = [
  {
    what: 'maintenance of locks that are free',
    many: 1000,
    atOnce: 600,
    steps: 1,
    make: async (box, name) => (await box.lock(name).acquire()).release(),
    work: (box) => box.maintain(),
  },
  {
    what: 'maintenance of holds that each have a lease of their own',
    many: 1000,
    atOnce: 600,
    steps: 4,
    make: (box, name) => box.lock(name).acquire({ maxHoldMs: 3_600_000 }),
    work: (box) => box.maintain(),
  },
  {
    what: 'maintenance where there are tasks',
    many: 1600,
    atOnce: 3000,
    steps: 2,
    make: (box, name) => box.tasks.publish(name, {}),
    work: (box) => box.maintain(),
  },
  {
    what: 'the search for a deadlock among locks that are waited for',
    many: 1000,
    atOnce: 600,
    steps: 5,
    make: async (box, name) => {
      await box.lock(name).acquire();
      void box
        .lock(name)
        .acquire()
        .catch(() => undefined);
    },
    work: async (box) => {
      await box.lock('x').acquire({ holder: 'ann' });
      await box.lock('y').acquire({ holder: 'bob' });
      const waits = [box.lock('y').acquire({ holder: 'ann' }), box.lock('x').acquire({ holder: 'bob' })];
      const refused = await Promise.race(waits.map((wait) => wait.catch((error: unknown) => error)));
      expect(refused).toMatchObject({ refusal: { kind: 'deadlock' } });
    },
  },
];

describe('work that is about thousands of keys is done in slices:', () => {
  it.each(scenes)('$what', async ({ many, atOnce, steps, make, work }) => {
    const turns = new Turns();
    const box = await open(counted(openMemory(), turns), { maintains: false });
    for (let n = 0; n < many; n++) await make(box, `n${n}`);
    turns.begin();
    await work(box);
    const { count, busiest } = turns.end();
    expect(busiest).toBeLessThanOrEqual(atOnce);
    expect(count).toBeGreaterThanOrEqual(Math.floor((many * steps) / 250));
    await box.close();
  });
});
