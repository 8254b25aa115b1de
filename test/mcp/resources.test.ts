// Clients that follow a lock hear of its changes, whichever process made them.

import { afterEach, describe, expect, it } from 'vitest';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Stage, WAYS } from './stage.ts';

let stage: Stage;
afterEach(() => stage.close());

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

  it.each(['signalbox://locks/%00', 'signalbox://locks/%E0%A4%A', 'signalbox://elsewhere', 'file:///etc/passwd'])(
    'that reads %s gets an error and nothing else',
    async (uri) => {
      stage = new Stage('stdio');
      const { client } = await stage.agent('2025-11-25');
      await expect(client.readResource({ uri })).rejects.toThrow(/MCP error/);
    },
  );
});
