/** One store, and several processes on it, all in this one and under one clock. */
import { type OpenOptions, open, type Signalbox } from 'signalbox';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedOptions, openEmbedded, openMemory, type Store } from 'signalbox/store';
import { onTestFinished } from 'vitest';
import { deferredStore } from './deferred-store.ts';
import { Link } from './link.ts';
import { settled } from './outcome.ts';
import { ProcessClock } from './process-clock.ts';
import { TestClock } from '../../src/testing/test-clock.ts';

/** The memory engine itself, the same as a store elsewhere would be, and the embedded one: for `describe.each`. */
export const transports = [
  { transport: 'a store that answers at once', atOnce: true },
  { transport: 'a store that answers later', atOnce: false },
  { transport: 'the embedded engine', atOnce: 'embedded' },
] as const;

type Transport = (typeof transports)[number]['atOnce'];

/**
 * So long that everything that comes back by itself comes back many times; the slowest, a poll, each minute. In a file every
 * process looks twenty times a second, and an hour of that takes as long as hundreds of other tests.
 */
export const quietMs = (transport: Transport): number => (transport === 'embedded' ? 10 : 60) * 60_000;

/** What a session's lease is unless said otherwise, and when its process gives it up for lost. */
export const TTL_MS = 15_000;
export const DEADLINE_MS = TTL_MS * 0.9;

async function openTemporary(options: EmbeddedOptions): Promise<Store> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-fleet-'));
  const store = await openEmbedded(directory, options);
  onTestFinished(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });
  return store;
}

export interface Process {
  readonly box: Signalbox;
  readonly link: Link;
  readonly clock: ProcessClock;
  /** `kill -9`: nothing more happens in it, and nothing of it reaches the store. */
  crash(): void;
}

export class Fleet {
  readonly clock = new TestClock();
  readonly store: Store;
  readonly #atOnce: boolean;

  constructor(transport: Transport, options: { readonly historyLimit?: number } = {}) {
    this.#atOnce = transport === true;
    const settings = { clock: this.clock, ...options };
    this.store = transport === 'embedded' ? deferredStore(openTemporary(settings)) : openMemory(settings);
  }

  async start(name: string, options: OpenOptions = {}): Promise<Process> {
    const link = new Link(this.store, this.#atOnce);
    const clock = new ProcessClock(this.clock);
    let sessions = 0;
    const newId = (): string => `${name}${++sessions}`;
    const box = await open(link, { clock, newId, about: name, ...options });
    return {
      box,
      link,
      clock,
      crash() {
        clock.die();
        link.cutOff('silent');
      },
    };
  }

  /** Processes that have a session already, and know of each other. */
  async startAll(...names: readonly string[]): Promise<Process[]> {
    const processes: Process[] = [];
    for (const name of names) processes.push(await this.start(name));
    // Nothing is written by this but the session: nobody has named a capacity.
    for (const { box } of processes) await box.semaphore('unused').tryAcquire();
    await settled();
    return processes;
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  async revision(): Promise<number> {
    return (await this.store.health()).revision;
  }
}
