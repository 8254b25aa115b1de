// A real etcd over TLS, that wants to see a certificate: by the URL alone, as its users have it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signalbox } from '../support/cli.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { makeCertificates } from './certificates.ts';

describe.skipIf(isMissing('etcd'))('an etcd over TLS', () => {
  let server: EtcdServer;
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-tls-'));
  const file = (name: string): string => join(directory, name);
  beforeAll(async () => {
    const [good, foreign] = [await makeCertificates(), await makeCertificates()];
    const files = {
      'ca.pem': good.server.ca,
      'server.pem': good.server.cert,
      'server.key': good.server.key,
      'client.pem': good.client.cert,
      'client.key': good.client.key,
      'foreign-ca.pem': foreign.server.ca,
      'foreign.pem': foreign.client.cert,
      'foreign.key': foreign.client.key,
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(file(name), text);
    server = await startEtcd({ tls: { ca: file('ca.pem'), cert: file('server.pem'), key: file('server.key') } });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const url = (settings: string): string => `etcds://127.0.0.1:${server.securePort}?${settings}`;

  it('is used with the certificates that the URL names, wherever the command line is in', async () => {
    const named = url('ca=ca.pem&cert=client.pem&key=client.key');
    const args = ['run', '--store', named, '--lock', 'a', '--', 'sh', '-c', 'cd /; echo "$SIGNALBOX_URL"'];
    const { code, stdout, stderr } = await signalbox(args, { cwd: directory });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`ca=${file('ca.pem')}`);
    await using box = await open(stdout.trim());
    expect((await box.lock('a').acquire()).isValid).toBe(true);
  });

  it.each([
    ['whose authority is another', 'ca=foreign-ca.pem&cert=client.pem&key=client.key'],
    ['to which no certificate is shown', 'ca=ca.pem'],
    ['to which a foreign certificate is shown', 'ca=ca.pem&cert=foreign.pem&key=foreign.key'],
    ['that has another name', 'ca=ca.pem&cert=client.pem&key=client.key&server-name=example.org'],
  ])('%s is not used: 69, and what is wrong is told', async (_, settings) => {
    const { code, stdout, stderr } = await signalbox(['who', '--store', url(settings)], { cwd: directory });
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(stderr).toMatch(/certificate|altname|tls|ssl|alert/i);
    expect(stderr).toMatch(/(ca|cert and key|server-name) of the store's URL/);
    expect(stderr.trimEnd().split('\n'), 'on one line').toHaveLength(1);
  });

  it.each([
    ['ca=client.key', /ca is ".*client\.key", which contains no certificate/],
    ['ca=ca.pem&cert=client.key&key=client.key', /cert is ".*client\.key", which contains no certificate/],
    ['ca=ca.pem&cert=client.pem&key=client.pem', /key is ".*client\.pem", which contains no private key/],
  ])('is not even asked with files that are none: %s', async (settings, told) => {
    const { code, stderr } = await signalbox(['who', '--store', url(settings)], { cwd: directory });
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringMatching(told) as string });
  });

  it('is not mistaken for one without', async () => {
    const { code, stderr } = await signalbox(['who', '--store', `etcd://127.0.0.1:${server.securePort}`]);
    expect({ code, isTold: stderr.length > 0 }).toEqual({ code: 69, isTold: true });
  });
});
