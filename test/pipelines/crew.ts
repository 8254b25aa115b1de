/** Real processes that drive one pipeline, and this one, which watches what they write and goes on after them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open, type Signalbox } from 'signalbox';
import { hasEnded, type PipelineRecord, type Runbook } from 'signalbox/core';
import { openEmbedded, openEtcdUrl, prefixed, type ReadResult, type Store } from 'signalbox/store';
import { expect } from 'vitest';
import type { DriveOutcome, ResumeOptions } from '../../src/runtime/pipelines/terms.ts';
import { inFile, type NewStore } from '../support/stores.ts';
import { functionsOf } from './programs/functions.mjs';
import { until } from './stage.ts';

const PROGRAM = fileURLToPath(new URL('programs/driver.mjs', import.meta.url));

/** What is told to end does so long before, also where the machine is busy. */
const GRACE_MS = 30_000;

export interface Order {
  readonly stopAt?: { readonly write: number; readonly when: 'before' | 'after' };
  readonly standsBy?: boolean;
}

interface Told {
  readonly stopped?: Order['stopAt'];
  readonly outcome?: DriveOutcome;
  readonly error?: string;
  readonly writes?: number;
}

export class Crew {
  readonly directory = mkdtempSync(join(tmpdir(), 'signalbox-crew-'));
  readonly url: string;
  readonly runbook: Runbook;
  /** Every state of the record, in order. */
  readonly history: PipelineRecord[] = [];
  readonly #drivers: ChildProcess[] = [];
  readonly #over = new AbortController();
  #box: Signalbox | undefined;
  #store: Store | undefined;

  private constructor(runbook: Runbook, newStore: NewStore) {
    this.url = newStore(this.directory);
    this.runbook = runbook;
  }

  static async of(runbook: Runbook, newStore: NewStore = inFile): Promise<Crew> {
    const crew = new Crew(runbook, newStore);
    await crew.#watch();
    return crew;
  }

  get box(): Signalbox {
    return this.#box as Signalbox;
  }

  async #watch(): Promise<void> {
    const { url } = this;
    this.#store = url.startsWith('file:')
      ? await openEmbedded(url.slice('file:'.length))
      : await openEtcdUrl(url, { requestTimeoutMs: 20_000 });
    this.#box = await open(url, { sessionTtlMs: 120_000, requestTimeoutMs: 20_000, maintenanceMs: 3_600_000 });
    const watch = await this.#store.watch(prefixed('s/pipeline/'), 'now', this.#over.signal);
    const listen = async (): Promise<void> => {
      for await (const { changes } of watch) {
        for (const change of changes) {
          if (change.kind === 'put') this.history.push((change.pair.value.json as { record: PipelineRecord }).record);
        }
      }
    };
    listen().catch(() => undefined);
  }

  /** One that drives it. Resolves with the process, and with what it tells last. */
  drive(order: Order = {}): { readonly driver: ChildProcess; readonly told: Promise<Told> } {
    const { url, directory, runbook } = this;
    const driver = fork(PROGRAM, [JSON.stringify({ url, directory, runbook, ...order })], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
      // What one that is killed leaves behind goes with the test.
      env: { ...process.env, TMPDIR: directory },
    });
    this.#drivers.push(driver);
    const told = new Promise<Told>((resolve) => {
      driver.once('message', (message) => resolve(message as Told));
      driver.once('exit', () => resolve({ error: 'it ended and said nothing' }));
    });
    return { driver, told };
  }

  get record(): PipelineRecord | undefined {
    return this.history.at(-1);
  }

  /** Told by the watch, which may be a moment behind. */
  get isOver(): boolean {
    return this.record !== undefined && hasEnded(this.record);
  }

  /** What the phases wrote down that they did. */
  get did(): readonly { readonly phase: string; readonly attempt: number; readonly token: number }[] {
    return this.linesOf('did').map((line) => {
      const [phase = '', attempt, token] = line.split(' ');
      return { phase, attempt: Number(attempt), token: Number(token) };
    });
  }

  linesOf(name: string): readonly string[] {
    const path = join(this.directory, name);
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  }

  resume(options: ResumeOptions = {}): Promise<DriveOutcome> {
    const functions = functionsOf(this.runbook, this.directory);
    return this.box.pipelines.resume('p', { functions, graceMs: GRACE_MS, standsBy: true, ...options });
  }

  /** Goes on with it here, as a person would who looks what was done when he is asked. Answers what he was asked. */
  async finish(): Promise<readonly string[]> {
    const asked: string[] = [];
    let decision: ResumeOptions['decision'];
    for (;;) {
      const outcome = await this.resume(decision === undefined ? {} : { decision });
      if (outcome.kind === 'missing') {
        // The first one died before it had written anything.
        const { runbook, directory } = this;
        const functions = functionsOf(runbook, directory);
        await this.box.pipelines.run({ runbook, functions }, { id: 'p', cwd: directory, graceMs: GRACE_MS });
        continue;
      }
      if (outcome.kind !== 'left') throw new TypeError(`it was not driven to an end, but ${outcome.kind}`);
      const { record } = outcome;
      if (record.blocked?.on !== 'person') return asked;
      asked.push(record.blocked.why);
      const { name } = record.phases[record.step.phase] as { name: string };
      const isDone = this.did.some(({ phase, attempt }) => phase === name && attempt === record.step.attempt);
      decision = isDone ? 'skip' : 'rerun';
    }
  }

  /** What holds whatever happened: one driver at a time, and nothing left of any of them. */
  async expectOrder(): Promise<void> {
    expect(this.record).toMatchObject({ state: 'done' });
    const drivers = this.history.map(({ driver, lastToken }) => driver?.token ?? lastToken);
    expect(drivers).toEqual(this.history.map(({ lastToken }) => lastToken));
    expect(drivers).toEqual(drivers.toSorted((one, other) => one - other));
    const tokens = this.did.map(({ token }) => token);
    expect(tokens).toEqual(tokens.toSorted((one, other) => one - other));
    for (const token of tokens) expect(drivers).toContain(token);
    await until(async () => (await this.#leftOver()).length === 0);
  }

  /** What the dead held is free for whoever wants it, and tidied up when nobody does. */
  async #leftOver(): Promise<readonly string[]> {
    await this.box.maintain();
    const success = ['r/', 'q/', 'c/'].map((prefix) => ({ do: 'read' as const, ...prefixed(prefix) }));
    const { results } = await (this.#store as Store).transaction({ compare: [], success, failure: [] });
    const [records = [], ...others] = (results as ReadResult[]).map(({ pairs }) => pairs);
    const isHeld = ({ value }: (typeof records)[number]): boolean =>
      (value.json as { record: { holds: unknown[] } }).record.holds.length > 0;
    return [...records.filter(isHeld), ...others.flat()].map(({ key }) => key);
  }

  async kill(driver: ChildProcess): Promise<void> {
    if (driver.exitCode !== null || driver.signalCode !== null) return;
    const gone = once(driver, 'exit');
    driver.kill('SIGKILL');
    await gone;
  }

  /** The process of a command, as it wrote it down. */
  async pidIn(name: string): Promise<number> {
    await until(() => this.linesOf(name).length > 0);
    return Number(this.linesOf(name).at(-1));
  }

  async leave(): Promise<void> {
    await Promise.all(this.#drivers.map((driver) => this.kill(driver)));
    this.#over.abort();
    await this.#box?.close();
    await this.#store?.close();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}
