// A store that does not answer: the time that the user gave counts from the start, and Ctrl-C ends the attempt.

import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signalbox, start } from '../support/cli.ts';

describe('an etcd that accepts connections and never answers', () => {
  let silent: Server;
  let address: string;

  beforeAll(async () => {
    silent = createServer((socket) => socket.on('error', () => undefined));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  });
  afterAll(() => void silent.close());

  const store = (): { env: Record<string, string> } => ({
    env: { SIGNALBOX_URL: `etcd://me:secret@${address}` },
  });

  it.concurrent.each([
    ['run --lock a --wait 3s -- true'],
    ['lock acquire a --holder me --wait 3s'],
    ['lock upgrade a --holder me --token 1 --wait 3s'],
    ['sem acquire a --capacity 2 --holder me --wait 3s'],
    ['task run --wait 3s -- true'],
    ['task claim --holder me --wait 3s'],
  ])('ends %s when its time is up, and names the store without its password', async (command) => {
    const { code, stdout, stderr } = await signalbox(command.split(' '), store());
    expect([code, stdout, stderr]).toEqual([
      69,
      '',
      `signalbox: the store etcd://me@${address} could not be reached within 3 s; signalbox doctor says why\n`,
    ]);
  });

  it('ends guard wait at its --timeout, and says so as JSON too', async () => {
    const { code, stderr } = await signalbox(
      ['guard', 'wait', '-e', 'lockFree: a', '--timeout', '3s', '--json'],
      store(),
    );
    const { error } = JSON.parse(stderr) as { readonly error: { readonly code: string; readonly message: string } };
    expect([code, error.code]).toEqual([69, 'unavailable']);
    expect(error.message).toContain(`etcd://me@${address} could not be reached within 3 s`);
  });

  it('does not keep a command that Ctrl-C should end', async () => {
    for (const command of ['who', 'run --lock a -- true', 'members join me -- true']) {
      const connected = once(silent, 'connection');
      const started = start(command.split(' '), store());
      await connected;
      started.child.kill('SIGINT');
      const { code, stdout, stderr } = await started.ended;
      expect([command, code, stdout, stderr]).toEqual([command, 130, '', '']);
    }
  });
});
