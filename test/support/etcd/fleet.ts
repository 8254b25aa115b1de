/**
 * Several processes on one real etcd, in real time: some in this process, each with a way of its own to the server that
 * can be disturbed; some real ones. Everything goes with the test that started it.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Lock, type LockHold, type LockOptions, open, type OpenOptions, type Signalbox } from 'signalbox';
import { systemClock } from '../../../src/clock.ts';
import { ProcessClock } from '../process-clock.ts';
import { until } from '../until.ts';
import { Proxy } from './proxy.ts';
import { RemoteProcess } from './remote.ts';

/** Short enough to be waited for, and long enough that nobody loses it because the machine is busy. */
export const TTL_MS = 6000;

export interface EtcdProcess {
  readonly box: Signalbox;
  readonly clock: ProcessClock;
  /** Its way to the server. */
  readonly way: Proxy;
}

/** `onTestFinished` of the test itself: of tests that run side by side, nobody else knows which one is meant. */
export type AtEnd = (clearUp: () => void | Promise<void>) => void;

export class EtcdFleet {
  readonly #port: number;
  readonly #atEnd: AtEnd;
  #directory: string | undefined;

  constructor({ port }: { readonly port: number }, atEnd: AtEnd) {
    this.#port = port;
    this.#atEnd = atEnd;
  }

  /** Its session lives as long as usual, unless it is said that it is to be short. */
  async start(options: OpenOptions & { readonly isShort?: boolean } = {}): Promise<EtcdProcess> {
    const { isShort = false, ...rest } = options;
    const way = await Proxy.start(this.#port);
    const clock = new ProcessClock(systemClock);
    // Forty tests begin at once: the server may take its time to answer all of them.
    const terms = isShort ? { sessionTtlMs: TTL_MS, requestTimeoutMs: 2 * TTL_MS } : { requestTimeoutMs: 60_000 };
    const box = await open(urlOf(way.port), { clock, maintains: false, ...terms, ...rest });
    this.#atEnd(async () => {
      clock.goOn();
      way.goOn();
      await box.close().catch(() => undefined);
      await way.stop();
    });
    return { box, clock, way };
  }

  async startRemote(ttlMs = TTL_MS): Promise<RemoteProcess> {
    const remote = await RemoteProcess.start(urlOf(this.#port), ttlMs, this.#log);
    this.#atEnd(() => remote.kill());
    return remote;
  }

  /** The tokens that remote processes wrote while they held something, in the order in which they came. */
  get written(): readonly number[] {
    const lines = readFileSync(this.#log, 'utf8').trim().split('\n').map(Number);
    return lines.filter((token, i) => token !== lines[i - 1]);
  }

  get #log(): string {
    if (this.#directory === undefined) {
      const directory = mkdtempSync(join(tmpdir(), 'signalbox-fleet-'));
      this.#directory = directory;
      this.#atEnd(() => rmSync(directory, { recursive: true, force: true }));
    }
    return join(this.#directory, 'written');
  }
}

function urlOf(port: number): string {
  return `etcd://127.0.0.1:${port}`;
}

/** Asks, and resolves once it stands in the queue. */
export async function inQueue(
  lock: Lock,
  options: LockOptions & { signal?: AbortSignal; waitMs?: number } = {},
): Promise<{
  readonly granted: Promise<LockHold>;
}> {
  let granted: Promise<LockHold> | undefined;
  await new Promise<void>((resolve, reject) => {
    granted = lock.acquire({ ...options, onWaiting: () => resolve() });
    granted.then(() => reject(new Error('it did not have to wait')), reject);
  });
  return { granted: granted as Promise<LockHold> };
}

/** Resolves once these, and no others, wait for it. */
export async function untilWaiting(lock: Lock, ...holders: readonly string[]): Promise<void> {
  await until(async () => (await lock.inspect()).waiting.map(({ holder }) => holder).join() === holders.join());
}

/** Asks again and again, and resolves with the first answer that is as it should be. */
export async function eventually<T>(ask: () => T | Promise<T>, isIt: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await ask();
    if (isIt(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
