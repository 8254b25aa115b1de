// The official clients of both generations of the protocol, over both transports.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { Scratch } from '../support/cli.ts';
import type { TestServer } from '../support/server.ts';
import { type Agent, type Generation, GENERATIONS, httpAgent, mcpServerOn, processAgent } from './agents.ts';

const NAMES = [
  ...['status', 'acquire', 'wait', 'renew', 'release', 'break_lock', 'publish', 'claim', 'finish', 'guard_check'],
  ...['events', 'members'],
];

let scratch: Scratch;
let box: Signalbox;
let server: TestServer;

beforeAll(async () => {
  scratch = new Scratch();
  box = await open('memory:');
  server = mcpServerOn({ box });
});
afterAll(async () => {
  await server.close();
  scratch.remove();
});

const agentOver = {
  stdio: async (generation: Generation): Promise<Agent> => (await processAgent(generation, scratch)).agent,
  http: (generation: Generation): Promise<Agent> => httpAgent(generation, server),
};

describe.each(['stdio', 'http'] as const)('a client over %s', (transport) => {
  it.each(GENERATIONS)('of %s finds the tools, resources and the prompt, and takes part', async (generation) => {
    const agent = await agentOver[transport](generation);
    try {
      const { tools } = await agent.client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(NAMES);
      for (const { name, description = '', inputSchema, outputSchema, annotations } of tools) {
        expect(description.length, name).toBeLessThan(2_000);
        expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
        expect(annotations?.title, name).toBeDefined();
        // What may answer with a task has no schema of its answers.
        expect(outputSchema === undefined, name).toBe(['acquire', 'wait', 'claim', 'guard_check'].includes(name));
      }
      const { prompts } = await agent.client.listPrompts();
      expect(prompts.map(({ name }) => name)).toEqual(['etiquette']);
      const { messages } = await agent.client.getPrompt({ name: 'etiquette' });
      expect(JSON.stringify(messages)).toContain('acquire');

      const name = `main ${transport} ${generation}`;
      const granted = await agent.call('acquire', { name, reason: 'a test' });
      expect(granted).toMatchObject({ status: 'granted', isError: false, resource: `lock/${name}` });
      expect(granted['holder']).toMatch(/^agent:/);
      const { holder, token } = granted;
      expect(await agent.call('acquire', { name, holder })).toMatchObject({ status: 'granted', token });
      expect(await agent.call('acquire', { name, waitSeconds: 0 })).toMatchObject({ status: 'busy', isError: false });
      expect(await agent.call('renew', { name, holder, token })).toMatchObject({ status: 'renewed' });
      expect(await agent.call('renew', { holder })).toMatchObject({ holds: [{ resource: `lock/${name}`, token }] });
      expect(await agent.call('status', { holder })).toMatchObject({ yours: [{ resource: `lock/${name}`, token }] });
      expect(await agent.call('release', { name, holder: 'agent:other', token })).toMatchObject({
        ...{ status: 'not-owner', isError: true },
      });
      const { contents } = await agent.client.readResource({ uri: `signalbox://locks/${encodeURIComponent(name)}` });
      expect(JSON.stringify(contents)).toContain('a test');
      const { resources } = await agent.client.listResources();
      expect(resources.map(({ uri }) => uri)).toContain(`signalbox://locks/${encodeURIComponent(name)}`);
      const { completion } = await agent.client.complete({
        ref: { type: 'ref/resource', uri: 'signalbox://locks/{name}' },
        argument: { name: 'name', value: `main%20${transport}` },
      });
      expect(completion.values).toContain(encodeURIComponent(name));
      expect(await agent.call('release', { name, holder, token })).toMatchObject({ status: 'released' });
      expect(await agent.call('renew', { name, holder, token })).toMatchObject({ isError: true });

      const slots = { name: `ports ${transport}${generation}`, kind: 'semaphore', capacity: 2, slots: 2 };
      expect(await agent.call('acquire', { ...slots, holder })).toMatchObject({ status: 'granted', slots: [0, 1] });
      expect(await agent.call('status', { name: slots.name, kind: 'semaphore' })).toMatchObject({ one: { free: 0 } });

      const task = `build ${transport} ${generation}`;
      const data = { commit: '1a2b' };
      expect(await agent.call('publish', { task, data, retries: 1 })).toMatchObject({ status: 'published' });
      expect(await agent.call('publish', { task })).toMatchObject({ status: 'exists', isError: false });
      const claimed = await agent.call('claim', { task, holder });
      expect(claimed).toMatchObject({ status: 'claimed', data, attempt: 1 });
      const done = { task, holder, token: claimed['token'] };
      expect(await agent.call('finish', { ...done, outcome: 'fail', reason: 'x' })).toMatchObject({
        status: 'retried',
      });
      expect(await agent.call('finish', { ...done, outcome: 'complete' })).toMatchObject({
        status: 'not-owner',
        isError: true,
      });
      const again = await agent.call('claim', { holder });
      expect(again).toMatchObject({ status: 'claimed', task, attempt: 2 });
      expect(
        await agent.call('finish', { ...done, token: again['token'], outcome: 'complete', result: 7 }),
      ).toMatchObject({
        status: 'completed',
      });
      expect(await agent.call('claim', { holder })).toMatchObject({ status: 'none', isError: false });
      expect(await agent.call('status', { task })).toMatchObject({ task: { status: 'complete', result: 7 } });

      expect(await agent.call('guard_check', { condition: { taskDone: task } })).toMatchObject({ status: 'passed' });
      expect(await agent.call('guard_check', { condition: { not: { lockFree: name } } })).toMatchObject({
        status: 'failed',
      });
      expect(await agent.call('guard_check', { condition: { command: 'true' } })).toMatchObject({ isError: true });
      const { events } = await agent.call('events', { pattern: 'lock:*' });
      expect(JSON.stringify(events)).toContain('lock:released');
      expect(await agent.call('members')).toMatchObject({ members: [], coordinator: null });
      await agent.call('acquire', { name, holder });
      const broken = { status: 'broken', broken: 1, isError: false };
      expect(await agent.call('break_lock', { name, reason: 'my user said so' })).toMatchObject(broken);
      await expect(agent.call('steal')).rejects.toThrow(/there is no tool "steal"/);
    } finally {
      await agent.close();
    }
  });
});
