/** An etcd of the test's own: on free ports of this machine, in a temporary directory, gone when it is stopped. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface EtcdServer {
  readonly port: number;
  stop(): Promise<void>;
}

const PACKAGES = { etcd: 'etcd-server', etcdctl: 'etcd-client' } as const;

/** Says so if the command is not here, and what to install. Where everything must be tested, that is a failure. */
export function isMissing(command: keyof typeof PACKAGES): boolean {
  if (spawnSync(command, ['--help'], { stdio: 'ignore' }).error === undefined) return false;
  const reason = `there is no ${command} here (Debian package ${PACKAGES[command]})`;
  if (process.env['CI'] === 'true') throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  return true;
}

/** Somebody else may take a port between the moment it was found free and the moment etcd wants it. */
const ATTEMPTS = 5;

export async function startEtcd(): Promise<EtcdServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce();
    } catch (error) {
      if (attempt === ATTEMPTS || !String(error).includes('address already in use')) throw error;
    }
  }
}

async function startOnce(): Promise<EtcdServer> {
  const [port, peerPort] = await freePorts();
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-etcd-'));
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  const child = spawn(
    'etcd',
    [
      ...['--data-dir', directory, '--unsafe-no-fsync', '--log-level', 'warn'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
      // Alone it has nobody to wait for, so let it elect itself soon.
      ...['--heartbeat-interval', '20', '--election-timeout', '200'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-4000)));
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const stop = async (): Promise<void> => {
    process.off('exit', killAtExit);
    await ended(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await ready(child, client, () => said);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

async function ready(child: ChildProcess, address: string, said: () => string): Promise<void> {
  let failed: Error | undefined;
  child.once('error', (error) => (failed = error));
  const deadline = performance.now() + 30_000;
  while (performance.now() < deadline) {
    if (failed !== undefined) throw failed;
    if (child.exitCode !== null) throw new Error(`etcd ended with ${child.exitCode}:\n${said()}`);
    const answer = await fetch(`${address}/health`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(20);
  }
  throw new Error(`etcd was not ready in 30 s:\n${said()}`);
}

async function freePorts(): Promise<[number, number]> {
  // Both at once, or the second could be the first again.
  const servers = [createServer(), createServer()];
  const ports = await Promise.all(
    servers.map(async (server) => {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : 0;
    }),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports as [number, number];
}
