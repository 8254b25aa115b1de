/** The command line as its users run it: the built file, in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { root } from '../house/sources.ts';
import { isForResident, runInResident } from './residents.ts';
import { inFile, type NewStore } from './stores.ts';

const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin?: { signalbox: string } };

/** What `signalbox` is once it is installed. */
export const CLI = resolve(root, bin?.signalbox ?? 'dist/cli/main.js');

export interface CliOptions {
  /** Added to the environment; undefined takes away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly input?: string;
}

export interface Ended {
  /** 128 and the signal's number if a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One that runs. */
export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves as soon as stdout contains the text. */
  printed(text: string): Promise<void>;
  /** The same of stderr. */
  complained(text: string): Promise<void>;
}

export async function signalbox(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  return start(args, options).ended;
}

/**
 * The same, in a process that runs one command after the other, where the command allows it: for tests of what it prints and
 * does to the store.
 */
export async function inResident(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  const { env = {}, cwd = process.cwd(), input } = options;
  if (input !== undefined || !isForResident(args, env)) return signalbox(args, options);
  return runInResident(args, { ...inherited(), ...env }, cwd);
}

export function start(args: readonly string[], options: CliOptions = {}): Started {
  return startProgram(process.execPath, [CLI, ...args], options);
}

export function startProgram(program: string, args: readonly string[], options: CliOptions = {}): Started {
  const { env = {}, cwd, input = '' } = options;
  const child = spawn(program, args, { cwd, env: { ...inherited(), ...env } });
  let stdout = '';
  let stderr = '';
  let isClosed = false;
  let listeners: (() => void)[] = [];
  const heard = (): void => {
    const all = listeners;
    listeners = [];
    for (const listener of all) listener();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    heard();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    heard();
  });
  child.stdin.on('error', () => undefined).end(input);
  const ended = new Promise<Ended>((done, failed) => {
    child.on('error', failed);
    child.on('close', (code, signal) => {
      isClosed = true;
      done({ code: code ?? 128 + (signal === 'SIGKILL' ? 9 : 15), stdout, stderr });
      heard();
    });
  });
  const until = async (has: () => boolean, text: string): Promise<void> => {
    while (!has()) {
      // Not as soon as it has ended: what it printed last may still be on its way.
      if (isClosed) throw new Error(`it ended without printing ${text}:\n${stdout}${stderr}`);
      await new Promise<void>((wake) => listeners.push(wake));
    }
  };
  return {
    child,
    ended,
    printed: (text) => until(() => stdout.includes(text), text),
    complained: (text) => until(() => stderr.includes(text), text),
  };
}

function inherited(): NodeJS.ProcessEnv {
  const none = undefined;
  return { ...process.env, SIGNALBOX_URL: none, SIGNALBOX_HOLDER: none, NO_COLOR: none, SIGNALBOX_LOG: none };
}

/** A store of its own for one test, gone with it. */
export class Scratch {
  readonly dir = mkdtempSync(join(tmpdir(), 'signalbox-cli-'));
  readonly store: string;
  #isUsed = false;

  constructor(newStore: NewStore = inFile) {
    this.store = newStore(this.dir);
  }

  path(...names: readonly string[]): string {
    return join(this.dir, ...names);
  }

  /**
   * Runs a command on this store. The first one is a process of its own, so that what it leaves has to outlive it; those
   * after it share one where they can.
   */
  run(...args: readonly string[]): Promise<Ended> {
    if (this.#isUsed) return inResident(args, this.#options);
    this.#isUsed = true;
    return signalbox(args, this.#options);
  }

  start(...args: readonly string[]): Started {
    return start(args, this.#options);
  }

  /** What it prints as JSON; fails if it did not end well. */
  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.run(...args, '--json');
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  remove(): void {
    // What a test has left running may write there at this moment.
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10 });
  }

  get #options(): CliOptions {
    return { env: { SIGNALBOX_URL: this.store }, cwd: this.dir };
  }
}
