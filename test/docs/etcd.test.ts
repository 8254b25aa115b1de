// docs/etcd.md: what it prints for those who run etcd is run, on one of the test's own.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../house/sources.ts';
import { CLI, type Ended, startProgram } from '../support/cli.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { onFreePorts, peerUrl, type Ports } from '../support/etcd/member.ts';
import { isMissing } from '../support/programs.ts';
import { built } from '../support/run-processes.ts';
import { blocksOf } from './blocks.ts';

const page = 'docs/etcd.md';
const blocks = blocksOf(page, readFileSync(join(root, page), 'utf8')).filter(({ language }) => language === 'sh');

/** The one that begins like this. */
function block(beginning: string): string {
  const found = blocks.filter(({ code }) => code.startsWith(beginning));
  if (found.length !== 1) throw new Error(`${page} has ${found.length} blocks that begin with ${beginning}`);
  return found[0]?.code ?? '';
}

describe.skipIf(isMissing('etcd') || isMissing('etcdctl'))(page, () => {
  let server: EtcdServer;
  let directory: string;
  beforeAll(async () => {
    built();
    directory = mkdtempSync(join(tmpdir(), 'signalbox-etcd-page-'));
    // With the flags of the page: it starts, so they are good.
    const [, ...flags] = block('etcd --auto').trim().split(/[ =]/);
    // Cheap passwords: on a busy machine one would take longer than a command waits for its answer.
    server = await startEtcd({ flags: [...flags, '--bcrypt-cost', '4'] });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const run = (script: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> => {
    const address = `127.0.0.1:${server.port}`;
    const here = script.replaceAll(/10\.0\.0\.\d:2379(,10\.0\.0\.\d:2379)*|127\.0\.0\.1:2379/g, address);
    const program = `set -e; signalbox() { "${process.execPath}" "${CLI}" "$@"; }\n${here}`;
    const all = { ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: address, ...env };
    return startProgram('bash', ['-c', program], { cwd: directory, env: all }).ended;
  };

  it('opens a store by its URL', async () => {
    const script = block('export SIGNALBOX_URL=etcd').replace('./release.sh', 'echo released');
    const { code, stdout } = await run(script);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok +etcd +etcd 3\./m);
    expect(stdout).toMatch(/^released$/m);
  });

  it('starts one to try things on', async () => {
    const here = mkdtempSync(join(tmpdir(), 'signalbox-local-etcd-'));
    const { stdout } = await onFreePorts(1, ([ports]) => {
      const { client, peer } = ports as Ports;
      // Another one may run on this machine, so it gets ports of its own; it ends with the script.
      const flags = `--listen-peer-urls ${peerUrl(peer)} --initial-advertise-peer-urls ${peerUrl(peer)} --initial-cluster default=${peerUrl(peer)}`;
      const script = block('etcd --data-dir')
        .replaceAll('127.0.0.1:2379', `127.0.0.1:${client}`)
        .replace('etcd --data-dir', `etcd ${flags} --data-dir`);
      const signalbox = `signalbox() { "${process.execPath}" "${CLI}" "$@"; }`;
      return startProgram('bash', ['-c', `${signalbox}\ntrap 'kill %1; wait' EXIT\n${script}`], { cwd: here }).ended;
    });
    expect(stdout).toBe('it works\n');
    rmSync(here, { recursive: true, force: true });
  });

  it('makes room in a database that is full', async () => {
    const { code, stderr } = await run(block('etcdctl compact'));
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('rror') });
  });

  it('lets a role in that may use what it names, and nobody else', async () => {
    expect(await run(block('etcdctl role add') + block('(umask 077'))).toMatchObject({ code: 0 });
    const asked = block("export SIGNALBOX_URL='etcd://fleet@");
    expect(await run(asked)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) });
    const secret = readFileSync(join(directory, 'fleet.password'), 'utf8').trim();
    const refused = async (url: string): Promise<Ended> => run(asked.replace(/etcd:[^']*/, url));
    const encoded = encodeURIComponent(secret);
    for (const stranger of [
      '127.0.0.1:2379',
      'signalbox:wrong@127.0.0.1:2379',
      `fleet:${encoded}@127.0.0.1:2379/other`,
    ]) {
      const { code, stderr } = await refused(`etcd://${stranger}`);
      expect({ stranger, code }).toEqual({ stranger, code: 77 });
      expect(stderr).not.toContain(encoded);
    }
    const who = await run('signalbox who --store etcd://fleet@127.0.0.1:2379', { SIGNALBOX_ETCD_PASSWORD: secret });
    expect(who).toMatchObject({ code: 0, stdout: expect.stringContaining('me') });
  });
});
