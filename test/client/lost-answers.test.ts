// Every change that a client makes, when the answer to it gets lost: its caller hears what the first request did.

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { open } from 'signalbox';
import { connect, type RemoteMembership, type RemoteSignalbox } from 'signalbox/client';
import { TestClock } from 'signalbox/testing';
import { OPERATIONS } from '../../src/server/index.ts';
import { RouteTable } from '../../src/server/route-table.ts';
import { Fleet } from '../support/fleet.ts';
import { LOCAL, TestServer, type Told } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, Wire } from '../support/wire.ts';

let clock: TestClock;
let server: TestServer;
let wire: Wire;
let box: RemoteSignalbox;

beforeAll(async () => {
  clock = new TestClock();
  server = new TestServer(await open('memory:', { clock, witness: true }), { clock, allowsCommands: true });
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
const slots = async (name: string): Promise<{ holder: string; token: number }> => {
  const { holder, token } = await box.semaphore(name, { capacity: 1 }).acquireDetached({ holder: 'a' });
  return { holder, token };
};
/** The ticket of another who waits for what is held. */
const waitingFor = async (path: string): Promise<{ ticket: string }> =>
  (await server.post(`${path}/acquire`, { holder: 'b', waitMs: 0 })).body;
/** It never comes to its command: its guard waits for a task that nobody does. */
const RELEASE = {
  name: 'release',
  phases: [{ name: 'one', pre: { taskDone: 'never' }, run: 'true' }],
} as const;
const now = (act: () => Promise<unknown>): Promise<() => Promise<unknown>> => Promise.resolve(act);

/** A client never sends the first again, because nobody keeps its answer; a guard changes nothing. */
const NOT_OF_A_CLIENT = ['token.create', 'guard.check'];

const member = async (name: string): Promise<RemoteMembership> => {
  const outcome = await box.members.join(name);
  if (outcome.kind !== 'joined') throw new Error(`${name} is to join`);
  return outcome.membership;
};

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
  'lock.withdraw': {
    path: '/withdraw',
    prepared: async (name) => {
      await held(name);
      const { ticket } = await waitingFor(`/v1/locks/${encodeURIComponent(name)}`);
      return () => box.lock(name).withdraw({ holder: 'b', ticket });
    },
  },
  'semaphore.withdraw': {
    path: '/withdraw',
    prepared: async (name) => {
      await slots(name);
      const { ticket } = await waitingFor(`/v1/semaphores/${encodeURIComponent(name)}`);
      return () => box.semaphore(name).withdraw({ holder: 'b', ticket });
    },
  },
  'semaphore.renew': {
    path: '/renew',
    prepared: async (name) => {
      const claim = await slots(name);
      return () => box.semaphore(name).renew(claim);
    },
  },
  'semaphore.break': {
    path: '/break',
    prepared: async (name) => {
      await slots(name);
      return () => box.semaphore(name).break({ holder: 'ann', reason: 'over' });
    },
  },
  'semaphore.configure': {
    path: '/settings',
    prepared: (name) => now(() => box.semaphore(name).configure({ maxHoldMs: 1000 })),
  },
  'semaphore.resize from what was seen': {
    path: '/settings',
    prepared: async (name) => {
      await box.semaphore(name).resize(3);
      return () => box.semaphore(name).resize(4, { from: 3 });
    },
  },
  'semaphore.drain': {
    path: '/drain',
    prepared: (name) => now(async () => (await box.semaphore(name).drain({ holder: 'ann', reason: 'moves' })).kind),
  },
  'semaphore.undrain': {
    path: '/undrain',
    prepared: async (name) => {
      await box.semaphore(name).drain({ holder: 'ann', reason: 'moves' });
      return async () => (await box.semaphore(name).undrain({ holder: 'ann' })).kind;
    },
  },
  'pipelines.cancel': {
    path: '/cancel',
    prepared: async (name) => {
      await server.box.pipelines.start(RELEASE, { id: name });
      return async () => (await box.pipelines.cancel(name, { by: 'ann' })).outcome;
    },
  },
  'pipelines.resume': {
    path: '/resume',
    prepared: async (name) => {
      await server.box.pipelines.start(RELEASE, { id: name });
      return async () => (await box.pipelines.resume(name)).outcome;
    },
  },
  'tasks.claimNext': {
    path: '/v1/tasks/claim',
    prepared: async (name) => {
      await box.tasks.publish(name, {}, { capabilities: [name] });
      return async () => (await box.tasks.claimNextDetached({ holder: 'w', capabilities: [name] })).attempt;
    },
  },
  'witness.checkpoint': {
    path: '/checkpoints',
    prepared: () => now(async () => typeof (await box.witness.checkpoint()).root),
  },
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
  'members.join': { path: '/members', prepared: (name) => now(async () => (await box.members.join(name)).kind) },
  'members.addAssets': {
    path: '/assets',
    prepared: async (name) => {
      const one = await member(name);
      return async () => (await one.addAssets([name])).kind;
    },
  },
  'members.moveAssets': {
    path: '/move',
    prepared: async (name) => {
      await (await member(name)).addAssets([name]);
      await member(`other ${name}`);
      return async () => (await box.members.moveAssets([name], { from: name, to: `other ${name}` })).kind;
    },
  },
  'members.leave': {
    path: '/leave',
    prepared: async (name) => {
      const one = await member(name);
      return async () => {
        await one.leave();
        return box.members.isAlive(name);
      };
    },
  },
  'pipelines.forget': {
    path: '',
    prepared: async (name) => {
      await server.box.pipelines.start(RELEASE, { id: name });
      await server.box.pipelines.cancel(name, { by: 'ann', reason: 'over' });
      return () => box.pipelines.forget(name);
    },
  },
  'tokens.revoke': {
    path: '',
    prepared: async (name) => {
      const { token } = await server.box.tokens.create({ name, role: 'viewer' });
      return () => box.tokens.revoke(token.id);
    },
  },
  'witness.record': {
    path: '/entries',
    prepared: (name) => now(async () => (await box.witness.record({ component: name, event: 'deploy:started' })).seq),
  },
};

/** The operations whose answers got lost. */
const lostOf = new Set<string>();
const table = new RouteTable(OPERATIONS);

it.each(Object.entries(MUTATIONS))('%s answers what its first request did', async (name, { path, prepared }) => {
  const plain = await (await prepared(`plain ${name}`))();
  const act = await prepared(`lost ${name}`);
  let lost = 0;
  wire.losesAnswer = (asked) => {
    const isMeant = asked.endsWith(path);
    if (isMeant) {
      lost += 1;
      lostOf.add(operationOf(wire.sent.at(-1)));
    }
    return isMeant;
  };
  expect(await settledIn(clock, act())).toEqual(plain);
  expect(lost).toBe(1);
});

it('a membership whose renewal got no answer is renewed again', async () => {
  const one = await member('renewed');
  wire.losesAnswer = (asked) => {
    const isMeant = asked.endsWith('/renewed/renew');
    if (isMeant) lostOf.add(operationOf(wire.sent.at(-1)));
    return isMeant;
  };
  await clock.advance(60_000);
  expect([lostOf.has('member.renew'), one.isValid, await box.members.isAlive('renewed')]).toEqual([true, true, true]);
});

it('a ticket that was refused is refused again for two minutes, at any server of the store', async () => {
  const fleet = new Fleet(true);
  const [one, other] = await fleet.startAll('one', 'other');
  const [first, second] = [one!, other!].map(({ box: store }) => new TestServer(store, { clock: fleet.clock }));
  const pool = '/v1/semaphores/pool';
  await first!.post(`${pool}/acquire`, { holder: 'a', capacity: 2 });
  const { ticket } = (await first!.post(`${pool}/acquire`, { holder: 'b', weight: 2, waitMs: 0 })).body;
  await one!.box.semaphore('pool').resize(1);
  const goOn = (at: TestServer, holder = 'b'): Promise<Told> =>
    at.post(`${pool}/acquire`, { holder, ticket, waitMs: 0 });
  const refused = await goOn(first!);
  expect(refused).toMatchObject({ status: 422, body: { refusal: { kind: 'impossible' } } });
  for (const at of [first!, second!]) {
    expect(await goOn(at)).toMatchObject({ status: refused.status, body: refused.body });
    // A ticket can be guessed: only its holder learns what became of it.
    expect(await goOn(at, 'c')).toMatchObject({ status: 410, body: { code: 'gone' } });
  }
  await fleet.advance(121_000);
  expect(await goOn(first!)).toMatchObject({ status: 410, body: { code: 'gone' } });
});

it('the refusal of a ticket whose answer got lost is what its caller hears', async () => {
  const pool = box.semaphore('refused', { capacity: 2 });
  await pool.acquireDetached({ holder: 'a' });
  const asked = { holder: 'b', weight: 2, capacity: 2, waitMs: 0 };
  const { ticket } = (await server.post('/v1/semaphores/refused/acquire', asked)).body;
  await server.box.semaphore('refused').resize(1);
  wire.losesAnswer = (asked) => asked.endsWith('/acquire');
  await expect(settledIn(clock, pool.collect({ ticket, holder: 'b' }))).rejects.toMatchObject({
    refusal: { kind: 'capacity-mismatch', capacity: 1 },
  });
});

it('a request whose server was killed may have been done, and that is what its caller hears', async () => {
  const store = await open('memory:', { clock });
  const { server: both } = new TestServer(store, { clock });
  let isKilled = (_: TypeError): void => undefined;
  const killed = new Promise<never>((_, reject) => (isKilled = reject));
  const sent: Promise<Response>[] = [];
  const person = connect(URL_OF_TESTS, {
    ...{ token: LOCAL, clock, retryMs: 3_000 },
    fetch: (input, init) => {
      sent.push(both.fetch(new Request(String(input), init)));
      return sent.length === 1 ? Promise.race([...sent, killed]) : (sent.at(-1) as Promise<Response>);
    },
  });
  // What it began never ends, and its connection breaks.
  const begun = vi.spyOn(store.bus, 'transaction').mockImplementationOnce(() => {
    isKilled(new TypeError('terminated'));
    return new Promise(() => undefined);
  });
  await expect(settledIn(clock, person.bus.put('colour', 'red'))).rejects.toMatchObject({
    code: 'outcome-unknown',
    message: expect.stringContaining('may have been done') as string,
  });
  expect(begun).toHaveBeenCalledOnce();
  expect(sent.length).toBeGreaterThan(1);
  await person.close();
  await store.close();
});

it('are all that change anything, but for what a client does not do', () => {
  const changing = OPERATIONS.filter(({ id, method }) => method !== 'get' && !NOT_OF_A_CLIENT.includes(id));
  expect(changing.map(({ id }) => id).filter((id) => !lostOf.has(id))).toEqual([]);
  const sent = wire.sent.filter(({ method }) => method !== 'GET').map(operationOf);
  expect([...new Set(sent)].filter((id) => !lostOf.has(id))).toEqual([]);
});

function operationOf(sent: { readonly method: string; readonly path: string } | undefined): string {
  return table.find(sent?.method ?? '', sent?.path ?? '')?.operation.id ?? '';
}

it('a port that fetch avoids got no request, so nothing may have been done', async () => {
  const client = connect('http://127.0.0.1:1', { token: 'x', retryMs: 1 });
  await expect(client.lock('a').tryAcquire({ holder: 'me' })).rejects.toMatchObject({
    code: 'unavailable',
    message: 'http://127.0.0.1:1 cannot be reached: web clients avoid this port; choose another one',
  });
  await client.close();
});
