/** What becomes of a call when servers fail it, each in its own way: told by scripted servers, in a time of our own. */
import { getEventListeners } from 'node:events';
import { Value, type Store, type Transaction } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { expect, it } from 'vitest';
import { openEtcd, type EtcdOptions } from '../../src/store/etcd/open.ts';
import { CallFailure } from '../../src/grpc/transport.ts';
import { newWriter } from '../../src/store/etcd/wire/protobuf.ts';
import { connectTo, ScriptedServer } from '../support/etcd/scripted-servers.ts';

const write: Transaction = {
  compare: [],
  success: [{ do: 'put', key: 'a', value: Value.text('x') }],
  failure: [],
};
const read: Transaction = { compare: [], success: [{ do: 'read', key: 'a' }], failure: [] };

interface Stage {
  readonly clock: TestClock;
  readonly one: ScriptedServer;
  readonly other: ScriptedServer;
  readonly store: Store;
}

/** Two servers, of which the first is asked first. */
function stage(options: Partial<EtcdOptions> = {}): Stage {
  const clock = new TestClock();
  const [one, other] = [new ScriptedServer('one'), new ScriptedServer('other')];
  const endpoints = [one, other].map(({ host }) => ({ host, port: 1 }));
  const store = openEtcd({ endpoints, clock, connect: connectTo(one, other), random: () => 0, ...options });
  return { clock, one, other, store };
}

/** What it ends with: `done`, or the code of its failure; time passes until it does. */
async function outcome(clock: TestClock, call: Promise<unknown>): Promise<string> {
  let ended: string | undefined;
  const noted = call.then(
    () => (ended = 'done'),
    (error: unknown) => (ended = (error as { code?: string }).code ?? String(error)),
  );
  for (let passed = 0; ended === undefined && passed < 20_000; passed += 10) await clock.advance(10);
  if (ended === undefined) throw new Error('the call never ended');
  await noted;
  return ended;
}

function says(message: string, status = 14): () => CallFailure {
  return () => new CallFailure(status, message, false);
}

it.each(['etcdserver: no leader', 'etcdserver: rpc not supported for learner'])(
  'a write that a server refuses because of its own state is done by another: %s',
  async (message) => {
    const { clock, one, other, store } = stage();
    one.reply = says(message);
    expect(await outcome(clock, store.transaction(write))).toBe('done');
    expect([one.asked, other.asked]).toEqual([['Txn'], ['Txn']]);
  },
);

it.each([
  'etcdserver: request timed out',
  'etcdserver: request timed out, possibly due to previous leader failure',
  'etcdserver: leader changed',
  'etcdserver: server stopped',
])('a write of which a server says “%s” may have been applied, and is not sent again', async (message) => {
  const { clock, one, other, store } = stage();
  one.reply = says(message);
  expect(await outcome(clock, store.transaction(write))).toBe('outcome-unknown');
  expect([one.asked.length, other.asked.length]).toEqual([1, 0]);
});

it('a read is asked again after any such answer, and answered', async () => {
  const { clock, one, store } = stage();
  const troubles = ['request timed out', 'leader changed', 'server stopped'];
  one.reply = () => {
    const trouble = troubles.pop();
    return trouble === undefined ? new Uint8Array() : new CallFailure(14, `etcdserver: ${trouble}`, false);
  };
  expect(await outcome(clock, store.transaction(read))).toBe('done');
});

it('a lease that may have been granted is asked for again: one that nobody knows of ends by itself', async () => {
  const { clock, one, store } = stage();
  one.reply = (method) => (one.asked.length > 1 ? new Uint8Array() : says(`${method}: request timed out`)());
  expect(await outcome(clock, store.grantLease(5000))).toBe('done');
});

it('a read that nobody can answer is `unavailable` in the end; so is a write that every server refused', async () => {
  const { clock, one, other, store } = stage();
  one.reply = other.reply = says('etcdserver: no leader');
  expect(await outcome(clock, store.transaction(read))).toBe('unavailable');
  expect(await outcome(clock, store.transaction(write))).toBe('unavailable');
  // Patiently: not as fast as the machine goes.
  expect(one.asked.length + other.asked.length).toBeLessThan(400);
});

it('a write on its way when the connection breaks may have been applied', async () => {
  const { clock, one, other, store } = stage();
  one.reply = () => 'silence';
  const writing = store.transaction(write);
  await clock.advance(10);
  one.break();
  expect(await outcome(clock, writing)).toBe('outcome-unknown');
  expect(other.asked).toEqual([]);
});

it('a read on its way when the connection breaks is answered by another server', async () => {
  const { clock, one, other, store } = stage();
  one.reply = () => 'silence';
  const reading = store.transaction(read);
  await clock.advance(10);
  one.break();
  expect(await outcome(clock, reading)).toBe('done');
  expect(other.asked).toEqual(['Txn']);
});

it('what never left this process is sent again, a write too', async () => {
  const { clock, one, store } = stage();
  one.reply = () => (one.asked.length > 1 ? new Uint8Array() : new CallFailure(14, 'refused stream', true));
  expect(await outcome(clock, store.transaction(write))).toBe('done');
});

it('a server that says nothing is left: reads go elsewhere at half of their time, a write waits and is unknown', async () => {
  const { clock, one, other, store } = stage({ requestTimeoutMs: 4000 });
  one.reply = () => 'silence';
  const writing = outcome(clock, store.transaction(write));
  const reading = store.transaction(read).then(() => clock.monotonic());
  expect(await writing).toBe('outcome-unknown');
  expect(await reading).toBeLessThanOrEqual(2500);
  expect(other.asked).toEqual(['Txn']);
  expect(await outcome(clock, store.transaction(write))).toBe('done');
});

it('one slow answer is no reason to leave a server that answers others', async () => {
  const { clock, one, other, store } = stage({ requestTimeoutMs: 4000 });
  one.reply = () => (one.asked.length === 1 ? 'silence' : new Uint8Array());
  const slow = store.transaction(write);
  await clock.advance(0);
  for (let i = 0; i < 20; i++) {
    await store.transaction(write);
    await clock.advance(100);
  }
  expect(other.asked).toEqual([]);
  expect(await outcome(clock, slow)).toBe('outcome-unknown');
});

it('when no server can be reached, nothing was applied, and it says why', async () => {
  const { clock, one, other, store } = stage({ requestTimeoutMs: 1000 });
  one.refuses = other.refuses = new CallFailure(14, 'connect ECONNREFUSED', true);
  const failure = store.transaction(write).catch((error: unknown) => error as Error);
  await clock.advance(1200);
  expect(await failure).toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/one:1: connect ECONNREFUSED; other:1: connect ECONNREFUSED|other.*; one/),
  });
});

it('a server whose name reads like that of a certificate is tried again like any other', async () => {
  const { clock, one, other, store } = stage();
  one.refuses = other.refuses = new CallFailure(
    14,
    'connect ECONNREFUSED concert.example:2379 (certificate-store)',
    true,
  );
  const writing = store.transaction(write);
  await clock.advance(1000);
  one.refuses = other.refuses = undefined;
  expect(await outcome(clock, writing)).toBe('done');
});

it('calls that wait for a server are sent as soon as there is one', async () => {
  const { clock, one, other, store } = stage();
  one.refuses = other.refuses = new CallFailure(14, 'connect ECONNREFUSED', true);
  const writing = store.transaction(write);
  await clock.advance(1000);
  other.refuses = undefined;
  expect(await outcome(clock, writing)).toBe('done');
  expect(clock.monotonic()).toBeLessThan(2000);
});

it('a server that hangs up on everybody is not called without a pause', async () => {
  const { clock, one, store } = stage({ endpoints: [{ host: 'one', port: 1 }] });
  one.reply = () => {
    queueMicrotask(() => one.break());
    return 'silence';
  };
  expect(await outcome(clock, store.transaction(read))).toBe('unavailable');
  expect(one.asked.length).toBeLessThan(60);
});

it.each([
  ['etcdserver: permission denied', 7, 'forbidden'],
  ['etcdserver: user name is empty', 3, 'forbidden'],
  ['etcdserver: requested lease not found', 5, 'not-found'],
  ['etcdserver: key not found', 3, 'not-found'],
  ['etcdserver: mvcc: required revision has been compacted', 11, 'compacted'],
  ['etcdserver: mvcc: required revision is a future revision', 11, 'invalid'],
  ['etcdserver: request is too large', 3, 'invalid'],
  ['grpc: received message larger than max (3145741 vs. 2097152)', 8, 'invalid'],
  ['etcdserver: corrupt cluster', 15, 'corrupt'],
  ['etcdserver: mvcc: database space exceeded', 8, 'outcome-unknown'],
  ['unknown service etcdserverpb.KV', 12, 'invalid'],
  ['context canceled', 1, 'outcome-unknown'],
])('a write of which a server says “%s” (%i) is told as %s', async (message, status, code) => {
  const { clock, one, store } = stage();
  one.reply = says(message, status);
  expect(await outcome(clock, store.transaction(write))).toBe(code);
  expect(one.asked).toEqual(['Txn']);
});

it('a server that is asked too much is asked again later', async () => {
  const { clock, one, other, store } = stage();
  one.reply = () => (one.asked.length > 3 ? new Uint8Array() : says('etcdserver: too many requests', 8)());
  expect(await outcome(clock, store.transaction(write))).toBe('done');
  expect(other.asked).toEqual([]);
});

it('an answer that cannot be read is no answer: of a write nobody knows the outcome', async () => {
  const { clock, one, store } = stage();
  one.reply = () => Uint8Array.of(0x0a, 0xff);
  expect(await outcome(clock, store.transaction(write))).toBe('outcome-unknown');
});

it('a queue is read again if it cannot be told who was first, instead of naming just anybody', async () => {
  const { clock, one, store } = stage({ prefix: '' });
  const pair = (key: string): Uint8Array => newWriter().uint32(0x0a).string(key).uint32(0x10).int64(7).finish();
  // Both were made by one transaction, and etcd has kept the second one.
  const found = newWriter().uint32(0x12).bytes(pair('q/b')).uint32(0x12).bytes(pair('q/c')).finish();
  const reading = newWriter().uint32(0x0a).bytes(found).finish();
  const answer = newWriter().uint32(0x10).bool(true).uint32(0x1a).bytes(reading).finish();
  let looks = 0;
  one.reply = (method) => {
    if (method === 'Txn') return answer;
    looks += 1;
    if (looks === 1) return says('etcdserver: mvcc: required revision has been compacted', 11)();
    return newWriter().uint32(0x12).bytes(pair('q/a')).uint32(0x12).bytes(pair('q/b')).finish();
  };
  const first = store.transaction({
    compare: [],
    success: [{ do: 'read', key: 'q/', end: 'q0', order: 'create', limit: 1 }],
    failure: [],
  });
  await clock.advance(1000);
  expect((await first).results[0]).toMatchObject({ pairs: [{ key: 'q/a' }] });
});

it('aborting a call ends it with the reason, whether it was sent or still waits for a server', async () => {
  const { clock, one, store } = stage({ endpoints: [{ host: 'one', port: 1 }] });
  const reason = new Error('no longer wanted');
  for (const trouble of ['no server', 'no answer']) {
    one.refuses = trouble === 'no server' ? new CallFailure(14, 'ECONNREFUSED', true) : undefined;
    one.reply = () => 'silence';
    const abort = new AbortController();
    const writing = store.transaction(write, abort.signal).catch((error: unknown) => error);
    await clock.advance(500);
    abort.abort(reason);
    expect(await writing).toBe(reason);
  }
  const asked = one.asked.length;
  await expect(store.transaction(write, AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(one.asked.length).toBe(asked);
});

it('a signal of its own for every call leaves nothing behind, however long it lasts', async () => {
  const { clock, store } = stage();
  const long = new AbortController();
  const signals = Array.from({ length: 5 }, () => AbortSignal.any([long.signal]));
  for (const signal of signals) expect(await outcome(clock, store.transaction(write, signal))).toBe('done');
  await clock.advance(1000);
  expect(signals.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([0, 0, 0, 0, 0]);
});

function token(text: string): Uint8Array {
  return newWriter().uint32(0x12).string(text).finish();
}

it('a user is logged in before anything else, and again when the token is no longer good', async () => {
  const { clock, one, store } = stage({ user: 'me', password: 'secret' });
  let current = 'first';
  one.reply = (method) => {
    if (method === 'Authenticate') return token(current);
    const isGood = one.tokens.at(-1) === current;
    return isGood ? new Uint8Array() : new CallFailure(16, 'etcdserver: invalid auth token', false);
  };
  expect(await outcome(clock, store.transaction(write))).toBe('done');
  current = 'second';
  const both = Promise.all([store.transaction(write), store.transaction(read)]);
  expect(await outcome(clock, both)).toBe('done');
  expect(one.asked.filter((method) => method === 'Authenticate').length).toBe(2);
});

it.each([true, false])(
  'a write that was given up while it waited for a new token is not sent later, and was not applied (%s)',
  async (neverSent) => {
    const { clock, one, other, store } = stage({ user: 'me', password: 'secret', requestTimeoutMs: 1000 });
    let logins = 0;
    one.reply = (method) => {
      if (method === 'Authenticate') return ++logins === 1 ? token('old') : 'silence';
      return new CallFailure(16, 'etcdserver: invalid auth token', false);
    };
    other.reply = (method) => (method === 'Authenticate' ? token('new') : new Uint8Array());
    expect(await outcome(clock, store.transaction(write))).toBe('unavailable');
    one.break(neverSent);
    await outcome(clock, store.health());
    await clock.advance(5000);
    expect(other.asked).not.toContain('Txn');
  },
);

it('a write that waits for a new token when the connection breaks was not applied, and is done elsewhere', async () => {
  const { clock, one, other, store } = stage({ user: 'me', password: 'secret' });
  let logins = 0;
  one.reply = (method) => {
    if (method === 'Authenticate') return ++logins === 1 ? token('old') : 'silence';
    return new CallFailure(16, 'etcdserver: invalid auth token', false);
  };
  other.reply = (method) => (method === 'Authenticate' ? token('new') : new Uint8Array());
  const writing = store.transaction(write);
  await clock.advance(100);
  one.break();
  expect(await outcome(clock, writing)).toBe('done');
  expect(other.asked.filter((method) => method === 'Txn').length).toBe(1);
});

it('a wrong password is told at once, without the password', async () => {
  const { clock, one, other, store } = stage({ user: 'me', password: 'secret' });
  one.reply = other.reply = says('etcdserver: authentication failed, invalid user ID or password', 3);
  const failure = store.transaction(write).catch((error: unknown) => error as Error);
  await clock.advance(100);
  expect(await failure).toMatchObject({ code: 'forbidden' });
  expect(String(await failure)).not.toContain('secret');
});

it('an etcd without users does not mind that one is named', async () => {
  const { clock, one, store } = stage({ user: 'me', password: 'secret' });
  one.reply = (method) =>
    method === 'Authenticate' ? says('etcdserver: authentication is not enabled', 9)() : new Uint8Array();
  expect(await outcome(clock, store.transaction(write))).toBe('done');
});

it('what asks several times ends when it is closed in between', async () => {
  const { clock, one, store } = stage();
  one.reply = () => {
    // After the first answer, and before the second question.
    queueMicrotask(() => queueMicrotask(() => void store.close()));
    return new Uint8Array();
  };
  expect(await outcome(clock, store.health())).toBe('closed');
  expect(one.asked.length).toBe(1);
  expect(clock.pendingTimers).toBe(0);
});

it('users that are introduced while it is in use are no reason to turn away who has always named one', async () => {
  const { clock, one, store } = stage({ user: 'me', password: 'secret' });
  let wantsUsers = false;
  one.reply = (method) => {
    const isMissing = wantsUsers && method !== 'Authenticate' && one.tokens.at(-1) === undefined;
    if (isMissing) return says('etcdserver: user name is empty', 3)();
    if (method !== 'Authenticate') return new Uint8Array();
    return wantsUsers ? token('good') : says('etcdserver: authentication is not enabled', 9)();
  };
  expect(await outcome(clock, store.transaction(write))).toBe('done');
  wantsUsers = true;
  expect(await outcome(clock, store.transaction(write))).toBe('done');
});

it.each([[['127.0.0.1:2379']], [[{ host: '', port: 1 }]], [[{ host: 'a', port: 65_536 }]], [[null]], [[]], ['a:1']])(
  'servers that are not named by host and port are `invalid` at once: %j',
  (endpoints) => {
    expect(() => stage({ endpoints: endpoints as never })).toThrow(
      expect.objectContaining({ code: 'invalid' }) as Error,
    );
  },
);

it('closing it during a login, or a pause between two tries, leaves no connection and makes none', async () => {
  const loggingIn = stage({ user: 'me', password: 'secret' });
  loggingIn.one.reply = () => 'silence';
  void loggingIn.store.transaction(write).catch(() => undefined);
  await loggingIn.clock.advance(10);
  await loggingIn.store.close();
  expect(loggingIn.one.connections.map(({ isOpen }) => isOpen)).toEqual([false]);

  const pausing = stage({ endpoints: [{ host: 'one', port: 1 }] });
  pausing.one.refuses = new CallFailure(14, 'connect ECONNREFUSED', true);
  void pausing.store.transaction(write).catch(() => undefined);
  await pausing.clock.advance(0);
  pausing.one.refuses = undefined;
  await pausing.store.close();
  await pausing.clock.advance(1000);
  expect(pausing.one.connections).toEqual([]);
});

it('closing it closes a connection that was left for its silence too', async () => {
  const { clock, one, store } = stage({ requestTimeoutMs: 4000 });
  one.reply = () => 'silence';
  const writing = outcome(clock, store.transaction(write));
  await writing;
  await store.close();
  expect(one.connections.map(({ isOpen }) => isOpen)).toEqual([false]);
  expect(clock.pendingTimers).toBe(0);
});

it('closing it ends every call that is still on its way', async () => {
  const { clock, one, store } = stage();
  one.reply = () => 'silence';
  const writing = outcome(clock, store.transaction(write));
  await store.close();
  expect(await writing).toBe('closed');
  expect(clock.pendingTimers).toBe(0);
});
