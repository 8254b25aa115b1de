// Waits that outlast a call, and requests that nobody asks for any more.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { Failure, type Signalbox } from 'signalbox';
import { placeText } from '../../src/mcp/place.ts';
import { type Agent, answerIn, requestWithTasks, streamWithTasks } from './agents.ts';
import { isSettled, Stage, type Way, WAYS } from './stage.ts';

let stage: Stage;
afterEach(() => stage.close());

async function waiters(box: Signalbox, name = 'main'): Promise<readonly string[]> {
  const { locks } = await box.survey({ resource: { kind: 'lock', name } });
  return locks.flatMap(({ waiting }) => waiting.map(({ holder }) => holder));
}

async function holders(box: Signalbox, name = 'main'): Promise<readonly string[]> {
  const { locks } = await box.survey({ resource: { kind: 'lock', name } });
  return locks.flatMap(({ holds }) => holds.filter(({ isStale }) => !isStale).map(({ holder }) => holder));
}

/** Three agents and an onlooker; the first holds the lock. */
async function begin(way: Way): Promise<{ a: Agent; b: Agent; c: Agent; token: number; box: Signalbox }> {
  stage = new Stage(way);
  const [a, b, c] = [await stage.agent(), await stage.agent('2025-11-25'), await stage.agent()];
  const { token } = await a.call('acquire', { name: 'main', holder: 'a', reason: 'merging' });
  return { a, b, c, token: token as number, box: await stage.box() };
}

/** Asks, and lets the time pass in which the call blocks. */
async function ticketOf(agent: Agent, holder: string): Promise<string> {
  const asking = agent.call('acquire', { name: 'main', holder });
  await stage.pass(45);
  const answer = await asking;
  expect(answer).toMatchObject({
    status: 'waiting',
    isError: false,
    position: 1,
    holders: [{ holder: 'a', reason: 'merging' }],
  });
  return answer['ticket'] as string;
}

describe.each(WAYS)('over %s', (way) => {
  it('a wait of five minutes costs a client without tasks seven calls, none of them longer than 45 s', async () => {
    const { a, b, token } = await begin(way);
    let answering = b.call('acquire', { name: 'main', holder: 'b', waitSeconds: 3600 });
    for (let second = 0; second < 300; second += 5) {
      await stage.pass(5);
      if (!(await isSettled(answering))) continue;
      const { status, ticket } = await answering;
      expect(status).toBe('waiting');
      answering = b.call('wait', { ticket });
    }
    await stage.turns();
    await a.call('release', { name: 'main', holder: 'a', token });
    expect(await answering).toMatchObject({ status: 'granted', holder: 'b' });
    expect(b.calls).toBe(7);
  });

  it('a call that wants to wait no longer leaves the line', async () => {
    const { b, box } = await begin(way);
    const asking = b.call('acquire', { name: 'main', holder: 'b', waitSeconds: 20 });
    await stage.pass(10);
    expect(await waiters(box)).toEqual(['b']);
    await stage.pass(10);
    expect(await asking).toMatchObject({ status: 'busy', isError: false });
    expect(await waiters(box)).toEqual([]);
  });

  it('a ticket that nobody asks for leaves the line after a minute', async () => {
    const { a, b, c, token, box } = await begin(way);
    const ticket = await ticketOf(b, 'b');
    const asking = c.call('acquire', { name: 'main', holder: 'c', waitSeconds: 3600 });
    await stage.pass(44);
    expect(await waiters(box)).toEqual(['b', 'c']);
    await stage.pass(1);
    const waiting = c.call('wait', { ticket: (await asking)['ticket'] });
    await stage.pass(20);
    expect(await waiters(box)).toEqual(['c']);
    await a.call('release', { name: 'main', holder: 'a', token });
    expect(await waiting).toMatchObject({ status: 'granted', holder: 'c' });
    expect(await b.call('wait', { ticket })).toMatchObject({ status: 'lost', isError: true });
  });

  it('a grant that nobody collects goes to the next in line after a minute', async () => {
    const { a, b, c, token, box } = await begin(way);
    const ticket = await ticketOf(b, 'b');
    await a.call('release', { name: 'main', holder: 'a', token });
    expect(await holders(box)).toEqual(['b']);
    const asking = c.call('acquire', { name: 'main', holder: 'c', waitSeconds: 3600 });
    await stage.pass(45);
    const waiting = c.call('wait', { ticket: (await asking)['ticket'] });
    await stage.pass(30);
    expect(await waiting).toMatchObject({ status: 'granted', holder: 'c' });
    expect(await b.call('wait', { ticket })).toMatchObject({ status: 'lost', isError: true });
  });

  it('a grant that is collected in time stays', async () => {
    const { a, b, token, box } = await begin(way);
    const ticket = await ticketOf(b, 'b');
    await a.call('release', { name: 'main', holder: 'a', token });
    await stage.pass(40);
    expect(await b.call('wait', { ticket })).toMatchObject({ status: 'granted', holder: 'b' });
    await stage.pass(300);
    expect(await holders(box)).toEqual(['b']);
  });

  it('a client that asks again and again stands in line once', async () => {
    const { a, b, c, token, box } = await begin(way);
    const asked = [b, b, b].map((agent) => agent.call('acquire', { name: 'main', holder: 'b', waitSeconds: 60 }));
    await stage.pass(10);
    expect(await waiters(box)).toEqual(['b']);
    await a.call('release', { name: 'main', holder: 'a', token });
    await stage.pass(6);
    const [first, ...others] = await Promise.all(asked);
    expect(first).toMatchObject({ status: 'granted', holder: 'b' });
    for (const one of others) expect(['granted', 'lost']).toContain(one.status);
    await b.call('release', { name: 'main', holder: 'b', token: first?.['token'] });
    expect(await c.call('acquire', { name: 'main', holder: 'c' })).toMatchObject({ status: 'granted' });
    await stage.pass(120);
    expect(await holders(box)).toEqual(['c']);
  });

  it.each(['2026-07-28', '2025-11-25'] as const)(
    'a client of %s that gives up a call leaves the line',
    async (generation) => {
      const { box } = await begin(way);
      const agent = await stage.agent(generation);
      const gone = new AbortController();
      const asking = agent
        .call('acquire', { name: 'main', holder: 'x' }, { signal: gone.signal })
        .catch(() => 'given up');
      await stage.pass(5);
      expect(await waiters(box)).toEqual(['x']);
      // Over HTTP, older clients cannot take back one call: the server does not know which one they mean.
      if (way === 'http' && generation === '2025-11-25') await agent.close();
      else gone.abort();
      expect(await asking).toBe('given up');
      await stage.turns();
      await stage.pass(1);
      expect(await waiters(box)).toEqual([]);
    },
  );

  it('a waiting call reports where it stands', async () => {
    const { b, c } = await begin(way);
    const heard: string[] = [];
    for (const [agent, holder] of [
      [b, 'b'],
      [c, 'c'],
    ] as const) {
      void agent.call(
        'acquire',
        { name: 'main', holder },
        { onProgress: (message) => heard.push(`${holder}: ${message}`) },
      );
      await stage.turns();
    }
    await stage.pass(21);
    expect(heard).toContain('b: You are number 1 in line for lock/main, held by a (merging).');
    expect(heard).toContain('c: You are number 2 in line for lock/main, held by a (merging).');
    expect(heard).toHaveLength(4);
  });

  it('a place in line can be given up by its ticket', async () => {
    const { b, box } = await begin(way);
    const ticket = await ticketOf(b, 'b');
    expect(await b.call('release', { ticket })).toMatchObject({ status: 'withdrawn' });
    expect(await waiters(box)).toEqual([]);
    expect(await b.call('wait', { ticket })).toMatchObject({ status: 'lost', isError: true });
  });

  it('a hold ends after half an hour, unless its holder extends it', async () => {
    stage = new Stage(way);
    const agent = await stage.agent();
    const box = await stage.box();
    const { token } = await agent.call('acquire', { name: 'main', holder: 'a' });
    await agent.call('acquire', { name: 'long', holder: 'a' });
    for (let minutes = 0; minutes < 25; minutes += 5) {
      await stage.pass(300);
      expect(await agent.call('renew', { holder: 'a' })).toMatchObject({ status: 'renewed' });
    }
    expect(await agent.call('renew', { name: 'long', holder: 'a', maxHoldMinutes: 60 })).toMatchObject({
      status: 'renewed',
    });
    await stage.pass(302);
    expect(await holders(box)).toEqual([]);
    expect(await holders(box, 'long')).toEqual(['a']);
    expect(await agent.call('renew', { name: 'main', holder: 'a', token })).toMatchObject({ isError: true });
  });

  it('a repeated acquire says how long the hold may still last, and extends nothing', async () => {
    stage = new Stage(way);
    const agent = await stage.agent();
    const box = await stage.box();
    const minutes = 60_000;
    const again = () => agent.call('acquire', { name: 'main', holder: 'a', maxHoldMinutes: 60 });
    expect(await agent.call('acquire', { name: 'main', holder: 'a' })).toMatchObject({ maxHoldMs: 30 * minutes });
    await stage.pass(300);
    await agent.call('renew', { holder: 'a' });
    await stage.pass(300);
    const { maxHoldMs, message } = await again();
    expect(maxHoldMs).toBeLessThanOrEqual(20 * minutes);
    expect(maxHoldMs).toBeGreaterThan(19 * minutes);
    expect(message).toMatch(/give it back within (19|20) minutes/);
    await agent.call('renew', { name: 'main', holder: 'a', maxHoldMinutes: 40 });
    await stage.pass(120);
    expect((await again())['maxHoldMs']).toBeLessThanOrEqual(38 * minutes);
    expect((await again())['maxHoldMs']).toBeGreaterThan(37 * minutes);
    expect(await holders(box)).toEqual(['a']);
  });

  it('a reader that asks to write has the same hold, with a new token and the same limit', async () => {
    stage = new Stage(way);
    const agent = await stage.agent();
    const box = await stage.box();
    const minutes = 60_000;
    const { token } = await agent.call('acquire', { name: 'main', holder: 'a', mode: 'shared' });
    await stage.pass(300);
    const writer = await agent.call('acquire', { name: 'main', holder: 'a' });
    expect(writer).toMatchObject({ mode: 'exclusive', message: expect.stringContaining('You had lock/main already') });
    expect(writer['token']).toBeGreaterThan(token as number);
    expect(writer['maxHoldMs']).toBeLessThanOrEqual(25 * minutes);
    const claim = { name: 'main', holder: 'a', token: writer['token'] };
    expect(await agent.call('renew', { ...claim, maxHoldMinutes: 60 })).toMatchObject({ status: 'renewed' });
    for (let passed = 0; passed < 30; passed += 5) {
      await stage.pass(300);
      await agent.call('renew', { holder: 'a' });
    }
    expect(await holders(box)).toEqual(['a']);
    expect(await agent.call('release', claim)).toMatchObject({ status: 'released' });
    expect(await holders(box)).toEqual([]);
  });

  it('a task is waited for, and a condition', async () => {
    const { a, b, c, token } = await begin(way);
    const claiming = b.call('claim', { holder: 'b', waitSeconds: 40 });
    const checking = c.call('guard_check', { condition: { lockFree: 'main' }, waitSeconds: 40 });
    await stage.pass(10);
    expect(await isSettled(Promise.race([claiming, checking]))).toBe(false);
    await a.call('publish', { task: 'build' });
    await a.call('release', { name: 'main', holder: 'a', token });
    await stage.pass(1);
    expect(await claiming).toMatchObject({ status: 'claimed', task: 'build' });
    expect(await checking).toMatchObject({ status: 'passed' });
  });
});

describe('over HTTP', () => {
  it.each([
    { since: 1e300, until: 1e300 },
    { since: 8.65e15, until: 8.65e15 },
    { since: -1, until: 0 },
    { since: 0, until: 86_400_001 },
  ])('the id of a task with times that no wait has is refused, and claims nothing: %o', async (times) => {
    stage = new Stage('http');
    const server = await stage.server();
    await server.box.tasks.publish('build', {});
    const taskId = placeText({ of: 'claim', id: 'forged', holder: 'x', ...times });
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const { error } = await requestWithTasks(server, method, { taskId });
      expect(error).toMatchObject({ code: -32_602, message: expect.stringContaining('is not a ticket') });
    }
    expect(await server.box.tasks.status('build')).toBe('pending');
  });

  it('the store keeps a cancelled claim for no longer than a wait may last, whatever its id says', async () => {
    stage = new Stage('http');
    const server = await stage.server();
    const settle = vi.spyOn(server.box.once, 'settle');
    const taskId = placeText({ of: 'claim', id: 'forged', holder: 'x', since: 8e15, until: 8e15 });
    expect(await requestWithTasks(server, 'tasks/cancel', { taskId })).toHaveProperty('result');
    expect(settle.mock.calls.map(([, , , keptMs]) => keptMs)).toEqual([86_400_000 + 60_000]);
  });

  it('a call waits beside a process of the same holder, and leaves the place of that process alone', async () => {
    const { b, box, a, token } = await begin('http');
    const process = await stage.box();
    const own = await process.lock('own').acquire({ holder: 'q' });
    const waiting = process.lock('main').acquire({ holder: 'b' });
    await expect.poll(() => waiters(box)).toEqual(['b']);
    const asking = b.call('acquire', { name: 'main', holder: 'b', waitSeconds: 20 });
    await stage.pass(25);
    expect(await asking).toMatchObject({ status: 'busy' });
    expect(await waiters(box)).toEqual(['b']);
    await a.call('release', { name: 'main', holder: 'a', token });
    expect((await waiting).isValid).toBe(true);
    await stage.pass(30);
    expect([own.isValid, await holders(box, 'own')]).toEqual([true, ['q']]);
  });

  it('any call of a holder renews what it holds, and what nobody touched for ten minutes ends', async () => {
    const { a, b, box } = await begin('http');
    await b.call('publish', { task: 'build' });
    await b.call('claim', { holder: 'b', task: 'build' });
    await b.call('acquire', { name: 'other', holder: 'b' });
    await stage.pass(480);
    await b.call('guard_check', { condition: { lockFree: 'x' }, holder: 'b' });
    await stage.pass(180);
    expect(await holders(box)).toEqual([]);
    expect(await holders(box, 'other')).toEqual(['b']);
    expect(await box.tasks.ownerOf('build')).toBe('b');
    expect(await a.call('renew', { holder: 'a' })).toMatchObject({ status: 'lost', isError: true });
    await stage.pass(600);
    expect(await holders(box, 'other')).toEqual([]);
    expect(await box.tasks.status('build')).toBe('pending');
  });

  it.each(['with tickets', 'with tasks'])('an agent that waits %s for one lock keeps the other', async (how) => {
    const { a, b, token, box } = await begin('http');
    const server = await stage.server();
    await b.call('acquire', { name: 'other', holder: 'b' });
    const asked = { name: 'main', holder: 'b', waitSeconds: 3600 };
    const calling =
      how === 'with tasks'
        ? requestWithTasks(server, 'tools/call', { name: 'acquire', arguments: asked })
        : b.call('acquire', asked);
    await stage.pass(45);
    const first = await calling;
    const ticket = first['ticket'] ?? first.result.taskId;
    for (let minutes = 0; minutes < 12; minutes++) {
      await a.call('renew', { holder: 'a' });
      if (how === 'with tasks') await requestWithTasks(server, 'tasks/get', { taskId: ticket });
      else await b.call('wait', { ticket, waitSeconds: 0 });
      await stage.pass(50);
    }
    expect(await holders(box, 'other')).toEqual(['b']);
    await a.call('release', { name: 'main', holder: 'a', token });
    expect(await b.call('wait', { ticket })).toMatchObject({ status: 'granted' });
    expect(await holders(box, 'other')).toEqual(['b']);
  });

  it('a grant that nobody collects goes back although its holder calls for other things, and is not told as held', async () => {
    const { a, b, token, box } = await begin('http');
    await ticketOf(b, 'b');
    await b.call('acquire', { name: 'other', holder: 'b' });
    await a.call('release', { name: 'main', holder: 'a', token });
    expect(await holders(box)).toEqual(['b']);
    for (let calls = 0; calls < 7; calls++) {
      expect(await b.call('renew', { holder: 'b' })).toMatchObject({ holds: [{ resource: 'lock/other' }] });
      await stage.pass(10);
    }
    expect(await holders(box)).toEqual([]);
    expect(await holders(box, 'other')).toEqual(['b']);
  });

  it('a wait of five minutes costs a client with tasks one call: it polls, and the model does nothing', async () => {
    const { a, token, box } = await begin('http');
    const server = await stage.server();
    const calling = requestWithTasks(server, 'tools/call', {
      name: 'acquire',
      arguments: { name: 'main', holder: 't', waitSeconds: 3600 },
    });
    await stage.pass(5);
    const { result: task } = await calling;
    expect(task).toMatchObject({ resultType: 'task', status: 'working', pollIntervalMs: 2000 });
    const get = async () => (await requestWithTasks(server, 'tasks/get', { taskId: task.taskId })).result;
    for (let second = 0; second < 300; second += 30) {
      await stage.pass(30);
      expect(await get()).toMatchObject({ resultType: 'complete', status: 'working', taskId: task.taskId });
    }
    expect(await waiters(box)).toEqual(['t']);
    await a.call('release', { name: 'main', holder: 'a', token });
    const done = await get();
    expect(done).toMatchObject({ status: 'completed' });
    expect(answerIn(done.result)).toMatchObject({ status: 'granted', holder: 't', isError: false });
    // The answer may have been lost on its way.
    expect((await get()).result.structuredContent.token).toBe(done.result.structuredContent.token);
  });

  it('tasks for claims and conditions are done once, also if the client asks twice; a wait that is over says so', async () => {
    stage = new Stage('http', { taskAfterMs: 0 });
    const server = await stage.server();
    const box = await stage.box();
    const call = async (name: string, args: object): Promise<string> =>
      (await requestWithTasks(server, 'tools/call', { name, arguments: args })).result.taskId;
    const get = async (taskId: string) => (await requestWithTasks(server, 'tasks/get', { taskId })).result;
    const claim = await call('claim', { holder: 'w', waitSeconds: 600 });
    const guard = await call('guard_check', { condition: { taskDone: 'one' }, waitSeconds: 600 });
    const late = await call('claim', { holder: 'w', capabilities: ['gpu'], waitSeconds: 50 });
    for (const id of [claim, guard, late]) expect(await get(id)).toMatchObject({ status: 'working' });
    await box.tasks.publish('one', {});
    await box.tasks.publish('two', {}, { capabilities: ['cpu'] });
    const first = await get(claim);
    expect(first).toMatchObject({
      status: 'completed',
      result: { structuredContent: { status: 'claimed', task: 'one' } },
    });
    expect((await get(claim)).result).toEqual(first.result);
    expect(await box.tasks.status('two')).toBe('pending');
    await box.tasks.complete('one', { holder: 'w' });
    expect(await get(guard)).toMatchObject({
      status: 'completed',
      result: { structuredContent: { status: 'passed' } },
    });
    await stage.pass(51);
    expect(await get(late)).toMatchObject({ status: 'completed', result: { structuredContent: { status: 'none' } } });
  });

  it('to cancel a task that is done takes nothing away; to cancel one before its answer does', async () => {
    const { a, token, box } = await begin('http');
    const server = await stage.server();
    const taskFor = async (holder: string): Promise<string> => {
      const asked = { name: 'main', holder, waitSeconds: 3600 };
      const calling = requestWithTasks(server, 'tools/call', { name: 'acquire', arguments: asked });
      await stage.pass(5);
      return (await calling).result.taskId;
    };
    const [first, second] = [await taskFor('t'), await taskFor('u')];
    await a.call('release', { name: 'main', holder: 'a', token });
    const { result } = (await requestWithTasks(server, 'tasks/get', { taskId: first })).result;
    expect(result.structuredContent).toMatchObject({ status: 'granted', holder: 't' });
    await requestWithTasks(server, 'tasks/cancel', { taskId: first });
    expect(await holders(box)).toEqual(['t']);
    await a.call('release', { name: 'main', holder: 't', token: result.structuredContent.token });
    expect(await holders(box)).toEqual(['u']);
    await requestWithTasks(server, 'tasks/cancel', { taskId: second });
    expect(await holders(box)).toEqual([]);
  });

  it.each([30_000, 60_000])(
    'a cancelled wait leaves the lock to others, also where a rule ends a silent hold after %s ms',
    async (ttlMs) => {
      const { a, c, token, box } = await begin('http');
      await box.lock('main').configure({ ttlMs });
      const server = await stage.server();
      const asked = { name: 'main', holder: 'b', waitSeconds: 3600 };
      const calling = requestWithTasks(server, 'tools/call', { name: 'acquire', arguments: asked });
      await stage.pass(5);
      const { taskId } = (await calling).result;
      await a.call('release', { name: 'main', holder: 'a', token });
      expect(await holders(box)).toEqual(['b']);
      expect(await a.call('renew', { holder: 'b' })).toMatchObject({ status: 'lost' });
      await requestWithTasks(server, 'tasks/cancel', { taskId });
      expect(await c.call('acquire', { name: 'main', holder: 'c' })).toMatchObject({ status: 'granted' });
      expect(await c.call('renew', { holder: 'c' })).toMatchObject({ holds: [{ resource: 'lock/main' }] });
    },
  );

  it('a claim by a task that is cancelled goes to another worker, also if it was just made', async () => {
    stage = new Stage('http', { taskAfterMs: 0 });
    const server = await stage.server();
    const claim = async (holder: string): Promise<string> => {
      const asked = { name: 'claim', arguments: { holder, waitSeconds: 600 } };
      return (await requestWithTasks(server, 'tools/call', asked)).result.taskId;
    };
    const get = async (taskId: string) => (await requestWithTasks(server, 'tasks/get', { taskId })).result;
    const cancel = (taskId: string) => requestWithTasks(server, 'tasks/cancel', { taskId });
    const [early, late, done] = [await claim('early'), await claim('late'), await claim('done')];
    await cancel(early);
    await server.box.tasks.publish('build', {});
    expect(await get(early)).toMatchObject({ status: 'cancelled' });
    expect(await server.box.tasks.status('build')).toBe('pending');
    const { tasks } = server.box;
    const claiming = vi.spyOn(tasks, 'claimNextDetached').mockImplementation(async (options) => {
      claiming.mockRestore();
      const claimed = await tasks.claimNextDetached(options);
      await cancel(late);
      return claimed;
    });
    await get(late);
    expect(await get(late)).toMatchObject({ status: 'cancelled' });
    expect(await tasks.status('build')).toBe('pending');
    expect(await get(done)).toMatchObject({ status: 'completed' });
    await cancel(done);
    expect(await tasks.ownerOf('build')).toBe('done');
  });

  it.each(['landed', 'did not land'])(
    'a claim whose answer could not be kept for sure is handed out only if it stands: the write %s',
    async (how) => {
      stage = new Stage('http', { taskAfterMs: 0 });
      const server = await stage.server();
      const { tasks, once } = server.box;
      const asked = { name: 'claim', arguments: { holder: 'w', waitSeconds: 600 } };
      const { taskId } = (await requestWithTasks(server, 'tools/call', asked)).result;
      await tasks.publish('build', {});
      const begin = once.begin.bind(once);
      const beginning = vi.spyOn(once, 'begin').mockImplementation(async (...given) => {
        beginning.mockRestore();
        const begun = await begin(...given);
        if (begun.kind !== 'first') return begun;
        const done: typeof begun.done = async (...answer) => {
          if (how === 'landed') await begun.done(...answer);
          throw new Failure('outcome-unknown', 'the connection broke');
        };
        return { ...begun, done };
      });
      const get = async () => (await requestWithTasks(server, 'tasks/get', { taskId })).result;
      const first = await get();
      expect(await tasks.status('build')).toBe(how === 'landed' ? 'running' : 'pending');
      if (how !== 'landed') return;
      expect(first).toMatchObject({ status: 'working' });
      expect(await get()).toMatchObject({ result: { structuredContent: { status: 'claimed', task: 'build' } } });
      expect(await tasks.ownerOf('build')).toBe('w');
    },
  );

  it('a task that is cancelled leaves the line; an id that is none is refused', async () => {
    const { box } = await begin('http');
    const server = await stage.server();
    const calling = requestWithTasks(server, 'tools/call', {
      name: 'acquire',
      arguments: { name: 'main', waitSeconds: 600 },
    });
    await stage.pass(5);
    const { taskId } = (await calling).result;
    expect(await waiters(box)).toHaveLength(1);
    expect((await requestWithTasks(server, 'tasks/cancel', { taskId })).result).toMatchObject({
      resultType: 'complete',
    });
    expect(await waiters(box)).toEqual([]);
    expect((await requestWithTasks(server, 'tasks/get', { taskId }, undefined, {})).error).toMatchObject({
      code: -32021,
    });
    expect((await requestWithTasks(server, 'tasks/get', { taskId: 'sbx-zzz' })).error).toMatchObject({ code: -32602 });
  });
});

describe('over stdio', () => {
  it('a wait is a task too, whose answer can be asked for again', async () => {
    const { a, token, box } = await begin('stdio');
    const { request, close } = streamWithTasks({ box: await stage.box(), clock: stage.clock });
    expect((await request('server/discover', {})).result).toMatchObject({ capabilities: { extensions: {} } });
    const calling = request('tools/call', {
      name: 'acquire',
      arguments: { name: 'main', holder: 't', waitSeconds: 600 },
    });
    await stage.pass(5);
    const { taskId } = (await calling).result;
    expect((await request('tasks/get', { taskId })).result).toMatchObject({
      resultType: 'complete',
      status: 'working',
    });
    await a.call('release', { name: 'main', holder: 'a', token });
    await stage.turns();
    const { result } = await request('tasks/get', { taskId });
    expect(result).toMatchObject({
      status: 'completed',
      result: { structuredContent: { status: 'granted', holder: 't' } },
    });
    expect((await request('tasks/get', { taskId })).result.result).toEqual(result.result);
    expect(await holders(box)).toEqual(['t']);
    await close();
  });

  it('the end of the client releases what it holds, and what it waits for', async () => {
    const { a, b, c, box } = await begin('stdio');
    await b.call('acquire', { name: 'other', holder: 'b' });
    await b.call('publish', { task: 'build' });
    await b.call('claim', { holder: 'b' });
    void b.call('acquire', { name: 'main', holder: 'b' }).catch(() => undefined);
    const asking = c.call('acquire', { name: 'main', holder: 'c' });
    await stage.pass(1);
    await b.close();
    await stage.turns();
    expect(await holders(box, 'other')).toEqual([]);
    expect(await waiters(box)).toEqual(['c']);
    expect(await box.tasks.status('build')).toBe('pending');
    await a.close();
    await stage.pass(1);
    expect(await asking).toMatchObject({ status: 'granted', holder: 'c' });
  });
});
