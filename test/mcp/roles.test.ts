// What a token allows over MCP is what it allows over HTTP.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { TestClock } from 'signalbox/testing';
import type { TestServer } from '../support/server.ts';
import { GENERATIONS, httpAgent, mcpServerOn, posted, requestWithTasks } from './agents.ts';

let server: TestServer;
beforeAll(async () => {
  server = mcpServerOn({ box: await open('memory:'), limits: { taskAfterMs: 0 } });
});
afterAll(() => server.close());

async function toolsOf(token: string): Promise<readonly string[]> {
  const agent = await httpAgent('2026-07-28', server, token);
  return (await agent.client.listTools()).tools.map(({ name }) => name);
}

describe('a token over MCP', () => {
  it('shows the tools that its role allows, and lets no others be called', async () => {
    const [viewer, worker] = [await server.token('viewer'), await server.token('worker')];
    expect(await toolsOf(viewer)).toEqual(['status', 'guard_check', 'events', 'members']);
    expect(await toolsOf(worker)).not.toContain('break_lock');
    expect(await toolsOf(worker)).toContain('acquire');
    for (const generation of GENERATIONS) {
      const agent = await httpAgent(generation, server, viewer);
      await expect(agent.call('acquire', { name: 'main' })).rejects.toThrow(
        /there is no tool "acquire" for this token/,
      );
      expect(await agent.call('guard_check', { condition: { fileExists: '/etc/passwd' } })).toMatchObject({
        ...{ status: 'wrong-role', isError: true },
      });
      expect(await agent.call('guard_check', { condition: { lockFree: 'main' } })).toMatchObject({ status: 'passed' });
    }
    expect(await server.box.lock('main').isFree()).toBe(true);
  });

  it('acts only for its own holders, with tickets and tasks of others too', async () => {
    const token = await server.token('worker', { holders: ['agent:*'] });
    const agent = await httpAgent('2026-07-28', server, token);
    const granted = await agent.call('acquire', { name: 'bound' });
    expect(granted['holder']).toMatch(/^agent:[0-9a-f]+$/);
    expect(await agent.call('acquire', { name: 'bound', holder: 'ci' })).toMatchObject({
      status: 'foreign-holder',
      isError: true,
    });
    expect(await agent.call('renew', { holder: 'ci' })).toMatchObject({ status: 'foreign-holder' });
    expect(await agent.call('status', { holder: 'ci' })).toMatchObject({ status: 'foreign-holder' });
    const calling = { name: 'acquire', arguments: { name: 'bound', holder: 'ci', waitSeconds: 600 } };
    const { taskId } = (await requestWithTasks(server, 'tools/call', calling)).result;
    expect(await agent.call('wait', { ticket: taskId })).toMatchObject({ status: 'foreign-holder' });
    expect(await agent.call('release', { ticket: taskId })).toMatchObject({ status: 'foreign-holder' });
    expect((await requestWithTasks(server, 'tasks/get', { taskId }, token)).error.message).toContain('acts only for');
    expect((await requestWithTasks(server, 'tasks/cancel', { taskId }, token)).error.message).toContain(
      'acts only for',
    );
    expect((await requestWithTasks(server, 'tasks/get', { taskId })).result.status).toBe('working');
  });

  it('is counted once for each call: a batch of several is refused, and none of them is carried out', async () => {
    const call = { name: 'acquire', arguments: { name: 'batched', holder: 'agent:a' } };
    const batch = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: call }));
    const headers = { Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2025-11-25' };
    for (const body of [batch, batch.slice(0, 1), []]) {
      const told = await server.post('/mcp', body, { headers });
      expect(told).toMatchObject({ status: 400, body: { jsonrpc: '2.0', id: null, error: { code: -32_600 } } });
    }
    expect(await server.box.lock('batched').isFree()).toBe(true);
  });

  it('has as many streams as it may, whose end it is when the token is revoked', async () => {
    const clock = new TestClock();
    const box = await open('memory:', { clock });
    const limited = mcpServerOn({ box, clock, mostStreams: 2, limits: { blockMs: 3_600_000 } });
    try {
      const secret = await limited.token('worker');
      const board = { notifications: { resourceSubscriptions: ['signalbox://board'] } };
      const listen = () => posted(limited, 'subscriptions/listen', board, secret);
      const [left, kept] = [await listen(), await listen()];
      expect(left.headers.get('content-type')).toBe('text/event-stream');
      const refused = await listen();
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
      await left.body?.cancel();
      // What is answered at once leaves room for more.
      for (let calls = 0; calls < 5; calls++) {
        expect((await requestWithTasks(limited, 'tools/list', {}, secret)).result.tools).toHaveLength(11);
      }
      const held = { name: 'acquire', arguments: { name: 'main', holder: 'agent:a' } };
      expect((await posted(limited, 'tools/call', held)).status).toBe(200);
      const asked = { name: 'acquire', arguments: { name: 'main', holder: 'agent:b', waitSeconds: 600 } };
      const waiting = posted(limited, 'tools/call', asked, secret).then(
        (answer) => answer.status,
        () => 'broken off',
      );
      const waiters = async () =>
        (await box.survey()).locks.flatMap((lock) => lock.waiting.map(({ holder }) => holder));
      await expect.poll(waiters).toEqual(['agent:b']);
      const ended: unknown[] = [];
      for (const one of [kept.text(), waiting]) void one.then((how) => ended.push(how));
      await box.tokens.revoke((await box.tokens.list())[0]?.id ?? '');
      await expect
        .poll(async () => {
          await clock.advance(2_000);
          return ended.length;
        })
        .toBe(2);
      expect(ended).not.toContain(200);
      await expect.poll(waiters).toEqual([]);
    } finally {
      await limited.close();
    }
  });

  it('is needed, on loopback too; a page of another site gets nothing', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    expect(await server.post('/mcp', list, { token: '' })).toMatchObject({ status: 401 });
    expect(await server.post('/mcp', list, { token: 'sbx_guessed' })).toMatchObject({ status: 401 });
    const foreign = { headers: { Origin: 'https://evil.example' } };
    expect(await server.post('/mcp', list, foreign)).toMatchObject({ status: 403 });
  });
});
