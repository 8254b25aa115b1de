// A server that stops answers the calls that wait; their agents go on at another server, at the same place in line.

import { afterEach, describe, expect, it } from 'vitest';
import { Failure, type Signalbox } from 'signalbox';
import { failureTold } from '../../src/mcp/result.ts';
import { listen } from '../../src/server/listen.ts';
import { LOCAL, type TestServer } from '../support/server.ts';
import { GENERATIONS, httpAgent, mcpServerOn, posted, requestWithTasks, urlAgent } from './agents.ts';
import { Stage } from './stage.ts';

let stage: Stage;
afterEach(() => stage.close());

async function waiters(box: Signalbox): Promise<readonly string[]> {
  const { locks } = await box.survey({ resource: { kind: 'lock', name: 'main' } });
  return locks.flatMap(({ waiting }) => waiting.map(({ holder }) => holder));
}

/** A server that will stop, another one on the same store, and a holder of the lock. */
async function begin(): Promise<{ box: Signalbox; other: TestServer; leave: () => Promise<unknown> }> {
  stage = new Stage('http');
  await stage.server();
  const box = await stage.box();
  const hold = await box.lock('main').acquire({ holder: 'a' });
  return { box, other: mcpServerOn({ box, clock: stage.clock }), leave: () => hold.release() };
}

describe.each(GENERATIONS)('a server that stops while an agent of %s waits', (generation) => {
  it.each([300, 20])(
    'for a lock for %d s answers with a ticket, and the agent keeps its place',
    async (waitSeconds) => {
      const { box, other, leave } = await begin();
      const first = await httpAgent(generation, await stage.server());
      const asking = first.call('acquire', { name: 'main', holder: 'b', waitSeconds });
      await expect.poll(() => waiters(box)).toEqual(['b']);
      void box
        .lock('main')
        .acquire({ holder: 'c' })
        .catch(() => undefined);
      await expect.poll(() => waiters(box)).toEqual(['b', 'c']);
      (await stage.server()).server.stop();
      const answer = await asking;
      expect(answer).toMatchObject({ status: 'waiting', position: 1, holders: [{ holder: 'a' }], isError: false });
      expect(await waiters(box)).toEqual(['b', 'c']);
      const second = await httpAgent(generation, other);
      await leave();
      expect(await second.call('wait', { ticket: answer['ticket'] })).toMatchObject({ status: 'granted', holder: 'b' });
      other.server.stop();
    },
  );

  it('over a port sends the answer before it closes the connection', async () => {
    const { box } = await begin();
    const { server } = await stage.server();
    const listening = await listen(server, { port: 0, host: '127.0.0.1' });
    const agent = await urlAgent(generation, `${listening.url}/mcp`, LOCAL);
    const heard: string[] = [];
    // With progress, the answer is a stream.
    const asking = agent.call('acquire', { name: 'main', holder: 'b' }, { onProgress: (text) => heard.push(text) });
    await expect.poll(() => waiters(box)).toEqual(['b']);
    await stage.pass(11);
    await expect.poll(() => heard).not.toEqual([]);
    await listening.close();
    expect(await asking).toMatchObject({ status: 'waiting', position: 1 });
    expect(await waiters(box)).toEqual(['b']);
    await agent.close();
  });

  it('for a task or a condition tells the agent to call again', async () => {
    await begin();
    const server = await stage.server();
    const agent = await httpAgent(generation, server);
    const claiming = agent.call('claim', { holder: 'b', waitSeconds: 20 });
    const checking = agent.call('guard_check', { condition: { lockFree: 'main' }, waitSeconds: 20 });
    await stage.turns();
    server.server.stop();
    expect(await claiming).toMatchObject({ status: 'none', next: expect.stringContaining('Go on waiting') });
    expect(await checking).toMatchObject({ status: 'failed', next: expect.stringContaining('Go on waiting') });
  });
});

describe('a server that stops', () => {
  it('answers a client that has tasks with a task, which another server finishes', async () => {
    const { box, other, leave } = await begin();
    const server = await stage.server();
    const asked = { name: 'acquire', arguments: { name: 'main', holder: 't', waitSeconds: 4 } };
    const asking = requestWithTasks(server, 'tools/call', asked);
    await expect.poll(() => waiters(box)).toEqual(['t']);
    server.server.stop();
    const { taskId } = (await asking).result;
    await leave();
    await expect.poll(() => waiters(box)).toEqual([]);
    const { result } = await requestWithTasks(other, 'tasks/get', { taskId });
    expect(result).toMatchObject({ status: 'completed', result: { structuredContent: { status: 'granted' } } });
    other.server.stop();
  });

  it.each(['that has answered MCP requests', 'that has not'])(
    '%s refuses new ones as a server that stops',
    async (how) => {
      stage = new Stage('http');
      const server = await stage.server();
      if (how === 'that has answered MCP requests') await (await posted(server, 'tools/list', {})).text();
      server.server.stop();
      await stage.turns();
      const answer = await posted(server, 'tools/list', {});
      expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'closed' }]);
    },
  );
});

describe('an agent whose server has closed its store', () => {
  it('hears why, and is not told that the server stops if its store was removed', () => {
    const told = failureTold(
      new Failure('closed', '/a/store.db was removed or moved while it was in use; open it again'),
    );
    expect(told).toMatchObject({ status: 'closed', isError: true, message: expect.stringContaining('was removed') });
    expect(`${told.message} ${told.next}`).not.toContain('stopping');
    expect(told.next).toContain('Try again');
  });
});
