// What the other tests on a real etcd stand on.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { EtcdCluster } from '../support/etcd/cluster.ts';
import { Proxy } from '../support/etcd/proxy.ts';
import { startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

describe.skipIf(isMissing('etcd'))('an etcd of a test', () => {
  it.concurrent('has after a restart what it had before', async () => {
    const server = await startEtcd();
    const ask = async (path: string, question: object): Promise<unknown> => {
      const body = JSON.stringify(question);
      return (await fetch(`http://127.0.0.1:${server.port}/v3/${path}`, { method: 'POST', body })).json();
    };
    await ask('kv/put', { key: btoa('a'), value: btoa('1') });
    await server.restart();
    expect(await ask('kv/range', { key: btoa('a') })).toMatchObject({ kvs: [{ value: btoa('1') }] });
    await server.stop();
  });

  it.concurrent('that is a cluster has another leader once the first was killed', async () => {
    const cluster = await EtcdCluster.start();
    try {
      const first = await cluster.leader();
      await first.kill();
      const second = await cluster.leader(first);
      expect(second).not.toBe(first);
      await first.start();
      const third = await cluster.moveLeadership();
      expect(third).not.toBe(second);
      third.pause();
      expect(await cluster.leader(third)).not.toBe(third);
      third.resume();
    } finally {
      await cluster.stop();
    }
  });
});

describe('a way that can be disturbed', () => {
  it('keeps what is sent while it is stalled, and breaks when it is cut', async () => {
    const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    const proxy = await Proxy.start((echo.address() as { port: number }).port);
    const socket = connect(proxy.port, '127.0.0.1').setEncoding('utf8');
    const heard: string[] = [];
    socket.on('data', (text: string) => void heard.push(text)).on('error', () => undefined);
    socket.write('one');
    await once(socket, 'data');
    proxy.stall('answers');
    socket.write('two');
    const passed = once(socket, 'data');
    expect(heard).toEqual(['one']);
    proxy.goOn();
    await passed;
    expect(heard).toEqual(['one', 'two']);
    const broken = once(socket, 'close');
    proxy.cut();
    await broken;
    expect(proxy.connections).toBe(0);
    await proxy.stop();
    echo.close();
  });
});
