/**
 * An etcd of the bench's own: on free ports of this machine, gone when it is stopped. It writes through to the disk, as
 * one that is relied on does; so the directory should be on a disk, which `ETCD_BENCH_DIR` may name.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** `undefined` if there is none to start. */
export async function startEtcd() {
  const [port, peerPort] = await freePorts(2);
  const directory = mkdtempSync(join(process.env.ETCD_BENCH_DIR ?? tmpdir(), 'signalbox-bench-etcd-'));
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const server = spawn(
    'etcd',
    [
      ...['--data-dir', directory, '--log-level', 'error', '--initial-cluster', `default=${peer}`],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ],
    { stdio: 'ignore' },
  );
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const killAtExit = () => {
    server.kill('SIGKILL');
    remove();
  };
  process.once('exit', killAtExit);
  if (!(await answers(server, client))) {
    process.off('exit', killAtExit);
    remove();
    return undefined;
  }
  return {
    port,
    endpoint: `127.0.0.1:${port}`,
    url: `etcd://127.0.0.1:${port}`,
    async stop() {
      process.off('exit', killAtExit);
      const gone = once(server, 'exit');
      server.kill('SIGKILL');
      await gone;
      remove();
    },
  };
}

async function answers(server, client) {
  let missing = false;
  server.once('error', () => (missing = true));
  for (;;) {
    if (missing) return false;
    if (server.exitCode !== null) throw new Error(`etcd ended with ${server.exitCode}`);
    const answer = await fetch(`${client}/health`).catch(() => undefined);
    if (answer?.ok) return true;
    await sleep(50);
  }
}

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
