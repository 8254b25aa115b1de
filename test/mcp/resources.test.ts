// Clients that follow a lock hear of its changes, whichever process made them.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Failure, type Signalbox } from 'signalbox';
import { type Agent, posted } from './agents.ts';
import { Stage, WAYS } from './stage.ts';

let stage: Stage;
afterEach(() => stage.close());

type On = Signalbox['on'];
type Handler = Parameters<On>[1];

/** Takes the place of `on` in every signalbox that the stage opens from now on. */
function replaceOn(other: (pattern: Parameters<On>[0], handler: Handler, on: On) => ReturnType<On>): void {
  const open = stage.box.bind(stage);
  vi.spyOn(stage, 'box').mockImplementation(async () => {
    const box = await open();
    const on = box.on.bind(box) as On;
    vi.spyOn(box, 'on').mockImplementation(((pattern, handler) => other(pattern, handler as Handler, on)) as On);
    return box;
  });
}

/** Answers a function that tells every subscriber that events were missed. */
function resyncing(): () => void {
  const handlers: Handler[] = [];
  replaceOn((pattern, handler, on) => {
    handlers.push(handler);
    return on(pattern, handler);
  });
  return () => {
    for (const handler of handlers) void handler({ type: 'resync', resource: '*', holder: '', at: 0 });
  };
}

/** The store does not confirm the first watch. */
function awayAtFirst(): void {
  let isAway = true;
  replaceOn((pattern, handler, on) => {
    if (!isAway) return on(pattern, handler);
    isAway = false;
    return Promise.reject(new Failure('unavailable', 'the store does not answer'));
  });
}

function heardBy({ client }: Agent): string[] {
  const heard: string[] = [];
  const hear = ({ params: { uri } }: { readonly params: { readonly uri: string } }): void => void heard.push(uri);
  if (client instanceof ModernClient) client.setNotificationHandler('notifications/resources/updated', hear);
  else client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear);
  return heard;
}

function listenTo({ client }: Agent, ...resourceSubscriptions: string[]): Promise<{ close(): Promise<void> }> {
  if (!(client instanceof ModernClient)) throw new Error('it should be the new client');
  return client.listen({ resourceSubscriptions });
}

describe.each(WAYS)('a client over %s', (way) => {
  it('that listens to a lock hears of each of its changes, and of no other lock', async () => {
    stage = new Stage(way);
    const { client } = await stage.agent('2026-07-28');
    if (!(client instanceof ModernClient)) throw new Error('it should be the new client');
    const heard: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => void heard.push(uri));
    const listening = await client.listen({ resourceSubscriptions: ['signalbox://locks/a%20b', 'signalbox://board'] });
    await stage.turns();
    const box = await stage.box();
    await box.lock('other').tryAcquire();
    await box.lock('a b').tryAcquire({ holder: 'x' });
    await expect.poll(() => heard).toContain('signalbox://locks/a%20b');
    expect(heard).toContain('signalbox://board');
    expect(heard).not.toContain('signalbox://locks/other');
    const { contents } = await client.readResource({ uri: 'signalbox://locks/a%20b' });
    expect(JSON.stringify(contents)).toContain('x');
    await listening.close();
  });

  it('that listens to a lock has to read it again after events were missed, and nothing else', async () => {
    stage = new Stage(way);
    const resync = resyncing();
    const [agent, other] = [await stage.agent(), await stage.agent()];
    const [heard, heardByOther] = [heardBy(agent), heardBy(other)];
    const listening = [
      await listenTo(agent, 'signalbox://locks/main'),
      await listenTo(agent, 'signalbox://semaphores/ci'),
      await listenTo(other, 'signalbox://board'),
    ];
    await stage.turns();
    heard.length = heardByOther.length = 0;
    resync();
    await expect
      .poll(() => [...new Set(heard)].toSorted())
      .toEqual(['signalbox://locks/main', 'signalbox://semaphores/ci']);
    await expect.poll(() => [...new Set(heardByOther)]).toEqual(['signalbox://board']);
    for (const one of listening) await one.close();
  });
});

describe('a client whose store is away when it begins to listen', () => {
  it('over stdio hears that it has to read again as soon as the store answers', async () => {
    stage = new Stage('stdio');
    awayAtFirst();
    const agent = await stage.agent();
    const heard = heardBy(agent);
    const listening = await listenTo(agent, 'signalbox://locks/main');
    await stage.pass(2);
    await expect.poll(() => heard).toEqual(['signalbox://locks/main']);
    await listening.close();
  });

  it('over HTTP is refused, and may try again', async () => {
    stage = new Stage('http');
    awayAtFirst();
    const agent = await stage.agent();
    const heard = heardBy(agent);
    await expect(listenTo(agent, 'signalbox://locks/main')).rejects.toThrow('the store does not answer');
    const listening = await listenTo(agent, 'signalbox://locks/main');
    await (await stage.box()).lock('main').tryAcquire();
    await expect.poll(() => heard).toEqual(['signalbox://locks/main']);
    await listening.close();
  });

  it('is refused over stdio if it is an older one, and may try again', async () => {
    stage = new Stage('stdio');
    awayAtFirst();
    const agent = await stage.agent('2025-11-25');
    const heard = heardBy(agent);
    const uri = 'signalbox://locks/main';
    await expect(agent.client.subscribeResource({ uri })).rejects.toThrow('the store does not answer');
    await agent.client.subscribeResource({ uri });
    await (await stage.box()).lock('main').tryAcquire();
    await expect.poll(() => heard).toEqual([uri]);
  });
});

describe('a subscription over HTTP', () => {
  it('that names more resources than the server would look through at each event is refused', async () => {
    stage = new Stage('http');
    const resourceSubscriptions = Array.from({ length: 1_001 }, (_, n) => `signalbox://locks/${n}`);
    const server = await stage.server();
    const answer = await posted(server, 'subscriptions/listen', { notifications: { resourceSubscriptions } });
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid-input' }]);
  });
});

describe('an older client over stdio', () => {
  it('that subscribes to a lock hears of its changes until it unsubscribes', async () => {
    stage = new Stage('stdio');
    const { client } = await stage.agent('2025-11-25');
    if (client instanceof ModernClient) throw new Error('it should be the old client');
    const heard: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params: { uri } }) => void heard.push(uri));
    const uri = 'signalbox://semaphores/ci';
    await client.subscribeResource({ uri });
    const box = await stage.box();
    const hold = await box.semaphore('ci', { capacity: 1 }).acquire();
    await expect.poll(() => heard).toEqual([uri]);
    await client.unsubscribeResource({ uri });
    await hold.release();
    await box.lock('x').tryAcquire();
    await stage.turns();
    expect(heard).toEqual([uri]);
  });

  it('that subscribes to a lock has to read it again after events were missed', async () => {
    stage = new Stage('stdio');
    const resync = resyncing();
    const agent = await stage.agent('2025-11-25');
    const heard = heardBy(agent);
    for (const name of ['main', 'other']) await agent.client.subscribeResource({ uri: `signalbox://locks/${name}` });
    await agent.client.unsubscribeResource({ uri: 'signalbox://locks/other' });
    resync();
    await expect.poll(() => heard).toEqual(['signalbox://locks/main']);
  });

  it.each(['signalbox://locks/%00', 'signalbox://locks/%E0%A4%A', 'signalbox://elsewhere', 'file:///etc/passwd'])(
    'that reads %s gets an error and nothing else',
    async (uri) => {
      stage = new Stage('stdio');
      const { client } = await stage.agent('2025-11-25');
      await expect(client.readResource({ uri })).rejects.toThrow(/MCP error/);
    },
  );
});
