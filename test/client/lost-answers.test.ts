// Every change that a client makes, when the answer to it gets lost: its caller hears what the first request did.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { open } from 'signalbox';
import { connect, type RemoteSignalbox } from 'signalbox/client';
import { TestClock } from 'signalbox/testing';
import { LOCAL, TestServer } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, Wire } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;
let wire: Wire;
let box: RemoteSignalbox;

beforeAll(async () => {
  clock = new TestClock();
  server = new TestServer(await open('memory:', { clock, witness: true }), { clock });
  wire = new Wire(server);
  box = connect(URL_OF_TESTS, { token: LOCAL, fetch: wire.fetch, clock });
});
afterAll(async () => {
  await box.close();
  await server.close();
});

interface Mutation {
  /** How the path of its request ends. */
  readonly path: string;
  /** `name`: of a lock, a task and so on that nothing has used. Gives what to do while an answer gets lost. */
  readonly prepared: (name: string) => Promise<() => Promise<unknown>>;
}

const held = async (
  name: string,
  mode: 'exclusive' | 'shared' = 'exclusive',
): Promise<{ holder: string; token: number }> => {
  const { holder, token } = await box.lock(name).acquireDetached({ holder: 'a', mode });
  return { holder, token };
};
const claimed = async (name: string): Promise<{ token: number }> => {
  await box.tasks.publish(name, {}, { retries: 1 });
  const { token } = await box.tasks.claimDetached(name, { holder: 'w' });
  return { token };
};
const now = (act: () => Promise<unknown>): Promise<() => Promise<unknown>> => Promise.resolve(act);

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'lock.acquire': {
    path: '/acquire',
    prepared: (name) => now(async () => (await box.lock(name).acquireDetached({ holder: 'a' })).outcome),
  },
  'lock.tryAcquire': {
    path: '/acquire',
    prepared: (name) => now(async () => (await box.lock(name).tryAcquire({ holder: 'a' })).kind),
  },
  'lock.renew': {
    path: '/renew',
    prepared: async (name) => {
      const claim = await held(name);
      return () => box.lock(name).renew(claim);
    },
  },
  'lock.extend': {
    path: '/renew',
    prepared: async (name) => {
      const claim = await held(name);
      return () => box.lock(name).extend(claim, 90_000);
    },
  },
  'lock.release': {
    path: '/release',
    prepared: async (name) => {
      const claim = await held(name);
      return () => box.lock(name).release(claim);
    },
  },
  'lock.release without a token': {
    path: '/release',
    prepared: async (name) => {
      const { holder } = await held(name);
      return () => box.lock(name).release({ holder });
    },
  },
  'the release of a hold': {
    path: '/release',
    prepared: async (name) => {
      const hold = await box.lock(name).acquire();
      return () => hold.release();
    },
  },
  'lock.break': {
    path: '/break',
    prepared: async (name) => {
      await held(name);
      return () => box.lock(name).break({ holder: 'ann', reason: 'over' });
    },
  },
  'lock.upgrade': {
    path: '/upgrade',
    prepared: async (name) => {
      const claim = await held(name, 'shared');
      return async () => (await box.lock(name).upgrade(claim)).kind;
    },
  },
  'lock.downgrade': {
    path: '/downgrade',
    prepared: async (name) => {
      const claim = await held(name);
      return async () => (await box.lock(name).downgrade(claim)).kind;
    },
  },
  'lock.configure': { path: '/settings', prepared: (name) => now(() => box.lock(name).configure({ maxHoldMs: 1000 })) },
  'semaphore.acquire': {
    path: '/acquire',
    prepared: (name) =>
      now(async () => {
        const { outcome, slots } = await box
          .semaphore(name, { capacity: 3 })
          .acquireDetached({ holder: 'a', weight: 2 });
        return { outcome, slots };
      }),
  },
  'semaphore.release': {
    path: '/release',
    prepared: async (name) => {
      const { holder, token } = await box.semaphore(name, { capacity: 3 }).acquireDetached({ holder: 'a' });
      return () => box.semaphore(name).release({ holder, token });
    },
  },
  'semaphore.resize': { path: '/settings', prepared: (name) => now(() => box.semaphore(name).resize(4)) },
  'tasks.publish': {
    path: '/v1/tasks',
    prepared: (name) => now(async () => (await box.tasks.publish(name, {})).kind),
  },
  'tasks.claim': {
    path: '/claim',
    prepared: async (name) => {
      await box.tasks.publish(name, {});
      return async () => (await box.tasks.claimDetached(name, { holder: 'w' })).attempt;
    },
  },
  'tasks.renew': {
    path: '/renew',
    prepared: async (name) => {
      const claim = await claimed(name);
      return () => box.tasks.renew(name, claim);
    },
  },
  'tasks.complete': {
    path: '/complete',
    prepared: async (name) => {
      const claim = await claimed(name);
      return async () => (await box.tasks.complete(name, claim, { n: 1 })).kind;
    },
  },
  'tasks.fail': {
    path: '/fail',
    prepared: async (name) => {
      const claim = await claimed(name);
      return async () => (await box.tasks.fail(name, claim, 'broken')).kind;
    },
  },
  'tasks.release': {
    path: '/release',
    prepared: async (name) => {
      const claim = await claimed(name);
      return async () => (await box.tasks.release(name, claim)).kind;
    },
  },
  'tasks.forceRelease': {
    path: '/release',
    prepared: async (name) => {
      await claimed(name);
      return () => box.tasks.forceRelease(name, { holder: 'ann', reason: 'over' });
    },
  },
  'tasks.requeue': {
    path: '/requeue',
    prepared: async (name) => {
      await box.tasks.complete(name, await claimed(name));
      return async () => (await box.tasks.requeue(name)).kind;
    },
  },
  'tasks.retry': {
    path: '/retry',
    prepared: async (name) => {
      await box.tasks.fail(name, await claimed(name), 'broken', { retry: false });
      return async () => (await box.tasks.retry(name)).kind;
    },
  },
  'tasks.forget': {
    path: '',
    prepared: async (name) => {
      await box.tasks.publish(name, {});
      return () => box.tasks.forget(name);
    },
  },
  'bus.put': { path: '', prepared: (name) => now(async () => typeof (await box.bus.put(`k/${name}`, 'x')).revision) },
  'bus.delete': {
    path: '',
    prepared: async (name) => {
      await box.bus.put(`d/${name}`, 'x');
      return () => box.bus.delete(`d/${name}`);
    },
  },
  'bus.transaction': {
    path: '/v1/bus',
    prepared: (name) =>
      now(async () => {
        const key = `t/${name}`;
        const isNew = { key, target: 'version', is: '=', than: 0 } as const;
        return (await box.bus.transaction([isNew], [{ do: 'put', key, value: 'x' }])).succeeded;
      }),
  },
  'witness.record': {
    path: '/entries',
    prepared: (name) => now(async () => (await box.witness.record({ component: name, event: 'deploy:started' })).seq),
  },
};

it.each(Object.entries(MUTATIONS))('%s answers what its first request did', async (name, { path, prepared }) => {
  const plain = await (await prepared(`plain ${name}`))();
  const act = await prepared(`lost ${name}`);
  let lost = 0;
  wire.losesAnswer = (asked) => {
    const isMeant = asked.endsWith(path);
    if (isMeant) lost += 1;
    return isMeant;
  };
  expect(await settledIn(clock, act())).toEqual(plain);
  expect(lost).toBe(1);
});

it('are all that a client sends', () => {
  const changes = new Set(wire.sent.filter(({ method }) => method !== 'GET').map(({ path }) => path.split('/').at(-1)));
  for (const { path } of Object.values(MUTATIONS)) if (path !== '') expect(changes).toContain(path.split('/').at(-1));
});
