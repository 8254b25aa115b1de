/** One process of etcd, on ports and in a directory that stay the same however often it is started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../ports.ts';

const HOST = '127.0.0.1';
const PATIENCE_MS = 120_000;

export interface Ports {
  readonly client: number;
  readonly peer: number;
}

export class Member {
  readonly name: string;
  readonly port: number;
  readonly peer: string;
  /** With all that it keeps. */
  readonly directory: string;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #said = '';
  readonly #killAtExit = (): void => void this.#child?.kill('SIGKILL');

  private constructor(name: string, { client, peer }: Ports, directory: string, flags: readonly string[]) {
    this.name = name;
    this.port = client;
    this.peer = peerUrl(peer);
    this.directory = directory;
    this.#flags = flags;
    process.once('exit', this.#killAtExit);
  }

  /** Not started yet: the members of a cluster have to be started together. */
  static async prepare(name: string, ports: Ports, flags: readonly string[]): Promise<Member> {
    return new Member(name, ports, await mkdtemp(join(tmpdir(), 'signalbox-etcd-')), flags);
  }

  /** On the data that it left, if it has been here before. Resolves once it answers. */
  async start(...more: readonly string[]): Promise<void> {
    const [client, peer] = [this.url, this.peer];
    this.#said = '';
    const child = spawn(
      'etcd',
      [
        ...['--name', this.name, '--data-dir', this.directory, '--unsafe-no-fsync', '--log-level', 'warn'],
        ...['--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
        ...this.#flags,
        ...more,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#said = (this.#said + text).slice(-4000)));
    await this.#ready(child);
  }

  get url(): string {
    return `http://${HOST}:${this.port}`;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && !hasEnded(this.#child);
  }

  /** `kill -9`; resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || hasEnded(child) || child.pid === undefined) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  /** It stands still once this returns: its connections stay open, and nothing is answered. */
  pause(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    this.#child?.kill('SIGSTOP');
    // Each of its threads stops when it comes to it, on a busy machine a little later.
    for (const deadline = performance.now() + PATIENCE_MS; performance.now() < deadline && !standsStill(pid);) continue;
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** For good, with all that it kept. */
  async stop(): Promise<void> {
    process.off('exit', this.#killAtExit);
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }

  /** Asks through the gateway for JSON that every etcd has. */
  async ask(path: string, question: object = {}, withinMs = PATIENCE_MS): Promise<unknown> {
    const answer = await fetch(`${this.url}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(question),
      signal: AbortSignal.timeout(withinMs),
    });
    return answer.json();
  }

  async #ready(child: ChildProcess): Promise<void> {
    let failed: Error | undefined;
    child.once('error', (error) => (failed = error));
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      if (failed !== undefined) throw failed;
      if (hasEnded(child)) throw new Error(`etcd ended with ${child.exitCode ?? child.signalCode}:\n${this.#said}`);
      const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(1000) }).catch(() => undefined);
      if (answer?.ok === true) return;
      await sleep(20);
    }
    throw new Error(`etcd was not ready in ${PATIENCE_MS} ms:\n${this.#said}`);
  }
}

export function peerUrl(port: number): string {
  return `http://${HOST}:${port}`;
}

/** Somebody else may take a port between the moment it was found free and the moment etcd wants it. */
const ATTEMPTS = 5;

export async function onFreePorts<T>(members: number, start: (ports: readonly Ports[]) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await portsFor(members));
    } catch (error) {
      if (attempt === ATTEMPTS || !String(error).includes('address already in use')) throw error;
    }
  }
}

async function portsFor(members: number): Promise<Ports[]> {
  const ports = await freePorts(2 * members, HOST);
  return Array.from({ length: members }, (_, i) => ({ client: ports[2 * i] ?? 0, peer: ports[2 * i + 1] ?? 0 }));
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Where there is no /proc, one has to take it on trust. */
function standsStill(pid: number): boolean {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.every((thread) => /\) [TtZX] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')));
  } catch {
    return true;
  }
}
