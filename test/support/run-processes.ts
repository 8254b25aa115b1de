/** Real processes of `signalbox run`, on a store of their own; what they print is what tests wait for. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open, type OpenOptions, type Signalbox } from 'signalbox';
import { build } from '../../scripts/ensure.mjs';
import { readStat } from '../../src/host/index.ts';
import { inFile, type NewStore } from './stores.ts';

export const ENTRY = fileURLToPath(new URL('../../dist/bin/signalbox.cjs', import.meta.url));

let isBuilt = false;

/** To be called before anything is started. Whether it is up to date takes reading the whole source, so once is enough. */
export function built(): void {
  if (!isBuilt && build() !== 0) throw new Error('the package could not be built');
  isBuilt = true;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Place {
  readonly directory = mkdtempSync(join(tmpdir(), 'signalbox-run-'));
  readonly url: string;
  readonly #started: Started[] = [];
  readonly #boxes: Signalbox[] = [];

  constructor(newStore: NewStore = inFile) {
    this.url = newStore(this.directory);
  }

  /** `signalbox run ARGS`, with nothing on stdin unless something is given. */
  run(args: readonly string[], options: { readonly stdin?: string; readonly env?: NodeJS.ProcessEnv } = {}): Started {
    return this.start(process.execPath, [ENTRY, 'run', ...args], options);
  }

  /** Any program, with the store of this place. */
  start(
    program: string,
    args: readonly string[],
    { stdin, env = {} }: { readonly stdin?: string; readonly env?: NodeJS.ProcessEnv } = {},
  ): Started {
    const child = spawn(program, args, {
      cwd: this.directory,
      stdio: 'pipe',
      // Without the terminal that somebody may have started the tests from.
      detached: true,
      env: { ...withoutRun(process.env), SIGNALBOX_URL: this.url, NODE: process.execPath, ENTRY, ...env },
    });
    // A command that ends without reading its input closes the pipe; the tests look at what it printed, not at that.
    child.stdin.on('error', () => undefined);
    if (stdin !== undefined) child.stdin.end(stdin);
    const started = new Started(child);
    this.#started.push(started);
    return started;
  }

  /** This process as another user of the store. */
  async open(options: OpenOptions = {}): Promise<Signalbox> {
    const box = await open(this.url, options);
    this.#boxes.push(box);
    return box;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : '';
  }

  /** Ends whatever a failed test has left. */
  async leave(): Promise<void> {
    for (const started of this.#started) started.end();
    for (const box of this.#boxes) await box.close().catch(() => undefined);
    await Promise.all(this.#started.map(({ exited }) => exited));
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

export class Started {
  readonly pid: number;
  /** When the process itself has ended; others may still have its stdout. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** When nobody has its stdout and stderr any more either. */
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  /** With their start times: a number may be another process's by the end of the test. */
  readonly #others = new Map<number, string | undefined>();
  #stdout = '';
  #stderr = '';
  readonly #listeners = new Set<() => void>();
  #isEnded = false;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid as number;
    child.stdout?.on('data', (data: Buffer) => this.#heard((this.#stdout += data.toString())));
    child.stderr?.on('data', (data: Buffer) => this.#heard((this.#stderr += data.toString())));
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    this.ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.#isEnded = true;
        this.#heard('');
        // How long it waits depends on the machine, and so does whether it says so: `prints` looks for it.
        const stderr = this.#stderr.replace(/^signalbox: (?:waiting|checking) .*\n/gm, '');
        resolve({ code, signal, stdout: this.#stdout, stderr });
      });
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves with what matched, as soon as it has been printed; fails if it never will be. */
  async prints(what: RegExp, where: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    for (;;) {
      const found = what.exec(this[where]);
      if (found !== null) return found;
      if (this.#isEnded) throw new Error(`it ended without printing ${String(what)}:\n${this.#stdout}${this.#stderr}`);
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
  }

  /** `pid 123`, as a test's command prints it: ended with the test, whatever happens. */
  async pidOf(name = 'pid'): Promise<number> {
    const [, pid] = await this.prints(new RegExp(`^${name} (\\d+)$`, 'm'));
    this.#others.set(Number(pid), readStat(Number(pid))?.start);
    return Number(pid);
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Whoever reads its stdin finds the end of it. */
  endInput(): void {
    this.#child.stdin?.end();
  }

  kill(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  end(): void {
    this.#child.stdin?.destroy();
    const own = this.#child.exitCode === null && this.#child.signalCode === null ? [this.pid] : [];
    const others = [...this.#others].filter(([pid, start]) => start !== undefined && readStat(pid)?.start === start);
    for (const pid of [...own, ...others.map(([pid]) => pid)]) {
      for (const signal of ['SIGKILL', 'SIGCONT'] as const) {
        try {
          process.kill(pid, signal);
        } catch {
          // It has gone.
        }
      }
    }
  }

  #heard(_: string): void {
    for (const listener of [...this.#listeners]) {
      this.#listeners.delete(listener);
      listener();
    }
  }
}

export function exitCodeFor(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !/^\) [ZX] /.test(stat.slice(stat.lastIndexOf(')')));
  } catch {
    return false;
  }
}

/** The tests themselves may be run by a `run`. */
function withoutRun(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SIGNALBOX_')));
}
