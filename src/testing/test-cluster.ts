/**
 * Real processes that join one store, for tests: start, pause, kill, restart and cut them off, and read what each of them saw.
 * `stop` leaves nothing behind.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Failure, shown } from '../failure.ts';
import { TcpWay } from './tcp-way.ts';

/** The shape of a cluster. */
export interface TestClusterOptions {
  /** How many processes there are. */
  readonly processes: number;
  /** How many assets each of them registers: member `m01` has `m01/1`, `m01/2` and so on. */
  readonly assetsEach?: number;
  /** The URL of a store that several processes can open: `file:` or `etcd://`. */
  readonly store: string;
  /** How long the others wait for a process that vanished. By default 15 s. */
  readonly sessionTtlMs?: number;
  /** Words before `node`, such as `ip netns exec NAME`; gets the index of the process, from 0. */
  readonly prefix?: (place: number) => readonly string[];
}

/** A view that one of the processes reported. */
export interface SeenView {
  /** The kind of report. */
  readonly kind: 'view';
  /** The version of the view. */
  readonly version: number;
  /** The ids of its members, in order. */
  readonly ids: readonly string[];
  /** The first of them, if there is any. */
  readonly coordinator: string | null;
  /** The members that joined since the previous view. */
  readonly joined: readonly string[];
  /** The members that left since the previous view. */
  readonly left: readonly string[];
  /** `member:asset`. */
  readonly assets: readonly string[];
  /** Whether views may have been skipped before this one. */
  readonly isResync: boolean;
}

/** A report of a process to the test. */
export type ClusterReport =
  | SeenView
  | {
      readonly kind: 'ready';
      readonly version: number;
      readonly ids: readonly string[];
      readonly coordinator: string | null;
    }
  | { readonly kind: 'done'; readonly do: string; readonly outcome: string }
  | { readonly kind: 'failed'; readonly do: string; readonly why: string }
  /** Its membership ended without `leave`. */
  | { readonly kind: 'lost' }
  /** `at` is a time on the monotonic clock, which the processes of one machine share. */
  | { readonly kind: 'leads' | 'stops'; readonly name: string; readonly epoch: number; readonly at: number };

/** A request of the test to a process. */
export type ClusterOrder = { readonly do: 'join' | 'leave' } | { readonly do: 'lead'; readonly name: string };

/** Real processes on one store. `start` them, and `stop` them at the end of the test. */
export class TestCluster implements AsyncDisposable {
  /** In the order of their ids: `m1`, `m2` and so on, with leading zeros where there are ten or more. */
  readonly processes: readonly ClusterProcess[];

  /** Starts nothing yet. Throws if processes cannot share the store. */
  constructor(options: TestClusterOptions) {
    const { processes, assetsEach = 0, store } = options;
    if (!/^(file:|etcds?:)/.test(store)) {
      throw new Failure('invalid', `the store is ${shown(store)}; several processes need a file: or an etcd:// store`);
    }
    const width = String(processes).length;
    this.processes = Array.from({ length: processes }, (_, place) => {
      const id = `m${String(place + 1).padStart(width, '0')}`;
      const assets = Array.from({ length: assetsEach }, (_, n) => `${id}/${n + 1}`);
      return new ClusterProcess(id, assets, options, options.prefix?.(place) ?? []);
    });
  }

  /** Starts all processes and waits until all have joined. */
  async start(): Promise<this> {
    await Promise.all(this.processes.map((process) => process.start()));
    await Promise.all(this.processes.map((process) => process.join()));
    return this;
  }

  /** Resolves once every process that runs sees exactly these members. */
  async agreed(ids: readonly string[]): Promise<void> {
    const wanted = [...ids].sort().join();
    const running = this.processes.filter(({ isRunning }) => isRunning);
    await Promise.all(running.map((process) => process.until(() => process.members.join() === wanted)));
  }

  /** Kills the processes that still run. */
  async stop(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.kill()));
    await Promise.all(this.processes.map((process) => process.heal(true)));
  }

  /** The same as `stop`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** One process of a cluster. */
export class ClusterProcess {
  /** The id that it joins as. */
  readonly id: string;
  /** The assets that it registers when it joins. */
  readonly assets: readonly string[];
  /** All its reports, over all its starts. */
  readonly reports: ClusterReport[] = [];
  readonly #options: TestClusterOptions;
  readonly #prefix: readonly string[];
  readonly #listeners = new Set<() => void>();
  #child: ChildProcess | undefined;
  #ways: readonly TcpWay[] = [];
  #isPaused = false;
  /** The index of the first report of the current start. */
  #since = 0;

  /** @internal */
  constructor(id: string, assets: readonly string[], options: TestClusterOptions, prefix: readonly string[]) {
    this.id = id;
    this.assets = assets;
    this.#options = options;
    this.#prefix = prefix;
  }

  /** The id of the process; undefined while it does not run. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether it runs, and is not paused. */
  get isRunning(): boolean {
    return this.#child !== undefined && !this.#isPaused;
  }

  /** The views of the current start, in the order in which the process saw them. */
  get views(): readonly SeenView[] {
    return this.reports.slice(this.#since).filter((report): report is SeenView => report.kind === 'view');
  }

  /** The members in its last view. */
  get members(): readonly string[] {
    const last = this.reports
      .slice(this.#since)
      .findLast((report) => report.kind === 'view' || report.kind === 'ready');
    return last !== undefined && 'ids' in last ? last.ids : [];
  }

  /** Resolves when it follows the members. It has not joined yet. */
  async start(): Promise<void> {
    const { sessionTtlMs = 15_000 } = this.#options;
    this.#since = this.reports.length;
    const [command = process.execPath, ...words] = [...this.#prefix, process.execPath];
    const args = [await this.#store(), this.id, this.assets.join(), String(sessionTtlMs)];
    const child = fork(programPath(), args, {
      execPath: command,
      execArgv: [...words],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child = child;
    child.on('message', (report: ClusterReport) => this.#hear(report));
    child.once('exit', () => {
      if (this.#child === child) this.#child = undefined;
      this.#wake();
    });
    await this.said((report) => report.kind === 'ready');
  }

  /** Resolves with the outcome: `joined`, or why not. */
  join(): Promise<string> {
    return this.#order({ do: 'join' });
  }

  /** Leaves cleanly. Resolves with the outcome. */
  leave(): Promise<string> {
    return this.#order({ do: 'leave' });
  }

  /** Becomes a candidate for `lead(name)`, and reports `leads` and `stops`. */
  lead(name: string): void {
    this.#child?.send({ do: 'lead', name } satisfies ClusterOrder);
  }

  /** Sends SIGSTOP: the process stands still, and its lease ends. */
  pause(): void {
    this.#isPaused = true;
    this.#child?.kill('SIGSTOP');
  }

  /** Sends SIGCONT: the process goes on. */
  resume(): void {
    this.#isPaused = false;
    this.#child?.kill('SIGCONT');
  }

  /** Sends SIGKILL. Resolves when the process is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#isPaused = false;
    if (child === undefined) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  /** Kills it and starts it again. It has not joined yet. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Cuts the process off from etcd in both directions without breaking a connection. */
  partition(): void {
    if (this.#ways.length === 0) throw new Failure('invalid', 'a file: store has no network that could be cut');
    for (const way of this.#ways) way.stall();
  }

  /** Ends the partition. With `forGood` it also closes the ways. */
  async heal(forGood = false): Promise<void> {
    for (const way of this.#ways) way.goOn();
    if (forGood) await Promise.all(this.#ways.map((way) => way.close()));
  }

  /** Resolves with the first matching report of the current start. */
  async said(fits: (report: ClusterReport) => boolean): Promise<ClusterReport> {
    let found: ClusterReport | undefined;
    await this.until(() => (found = this.reports.slice(this.#since).find(fits)) !== undefined);
    return found as ClusterReport;
  }

  /** Resolves when `isSo` returns true; calls it after every report. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (this.#child === undefined) throw new Error(`${this.id} ended; it last said ${shown(this.reports.at(-1))}`);
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
  }

  async #order(order: ClusterOrder): Promise<string> {
    const from = this.reports.length;
    this.#child?.send(order);
    let answer: ClusterReport | undefined;
    await this.until(() => {
      answer = this.reports.slice(from).find((report) => 'do' in report && report.do === order.do);
      return answer !== undefined;
    });
    if (answer?.kind === 'done') return answer.outcome;
    throw new Error(`${this.id}: ${order.do}: ${shown(answer)}`);
  }

  /**
   * On etcd, every process has its own way to the server, which `partition` cuts. In a network namespace, the namespace cuts it
   * instead.
   */
  async #store(): Promise<string> {
    const { store } = this.#options;
    if (store.startsWith('file:') || this.#prefix.length > 0) return store;
    const [, scheme = '', hosts = '', rest = ''] = /^(etcds?:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/.exec(store) ?? [];
    if (this.#ways.length === 0) this.#ways = await Promise.all(hosts.split(',').map((host) => TcpWay.to(host)));
    return `${scheme}${this.#ways.map(({ port }) => `127.0.0.1:${port}`).join(',')}${rest}`;
  }

  #hear(report: ClusterReport): void {
    this.reports.push(report);
    this.#wake();
  }

  #wake(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

/** Finds the script beside this file in the package, wherever this file is loaded from. */
function programPath(): string {
  return join(dirname(createRequire(import.meta.url).resolve('signalbox/testing')), 'cluster-member.js');
}
