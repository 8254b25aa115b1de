/**
 * Runs the commands of guards. Each runs in a session of its own, so that everything it started can be found and ended: when
 * it has exited, when its time is over, and when the caller aborts. A process that moves to another session by itself means
 * to stay, and is left alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { systemClock } from '../clock.ts';
import type { CommandLine } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import {
  end,
  type Ended,
  exitCodeOf,
  isTooLarge,
  KeptOutput,
  MARK,
  offspringOf,
  randomHex,
  tooLargeTold,
} from '../host/index.ts';
import type { CommandResult, Commands } from './adapters.ts';

export interface CommandsOptions {
  /** Where commands run. */
  readonly root: string;
  /** Default 60 s. */
  readonly timeoutMs?: number;
  /** The time between TERM and KILL. Default 2 s. */
  readonly graceMs?: number;
  /** How much of the output is kept. Default 64 KiB. */
  readonly outputLimitBytes?: number;
  /** Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

const DEFAULTS = { timeoutMs: 60_000, graceMs: 2_000, outputLimitBytes: 64 * 1024 };
/** A process that waits for a broken disk cannot be killed. */
const GIVE_UP_MS = 5_000;
/** How long to wait for the rest of the output while a process that stays holds the pipes. */
const REST_MS = 500;

export function realCommands(options: CommandsOptions): Commands {
  const { root, timeoutMs, graceMs, outputLimitBytes, env = process.env } = { ...DEFAULTS, ...options };
  return {
    async run(cmd, signal) {
      const [program, ...args] = programOf(cmd);
      signal?.throwIfAborted();
      await checkDirectory(root);
      const mark = randomHex(8);
      const around = env[MARK];
      const child = await start(program, args, root, { ...env, [MARK]: around ? `${around}.${mark}` : mark });
      const offspring = offspringOf(child.pid as number, true, mark);
      const output = new KeptOutput(Math.floor(outputLimitBytes / 2), Math.ceil(outputLimitBytes / 2));
      for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => output.add(chunk));
      const closed = new Promise((resolve) => child.once('close', resolve));
      const reason = await over(child, timeoutMs, signal);
      await end(offspring, { graceMs, isOwn: true, giveUpMs: GIVE_UP_MS });
      await within(REST_MS, closed);
      child.stdout?.destroy();
      child.stderr?.destroy();
      if (reason === 'late') throw late(cmd, timeoutMs, output.text);
      if (reason === 'aborted') throw signal?.reason;
      return { exitCode: exitCodeOf(reason), output: output.text } satisfies CommandResult;
    },
  };
}

function programOf(cmd: CommandLine): readonly [string, ...string[]] {
  const parts = typeof cmd === 'string' ? [cmd] : cmd;
  const [program = '', ...args] = parts;
  if (program.trim() === '') throw new Failure('invalid', `${shown(cmd)} is not a command`);
  if (parts.some((part) => part.includes('\0'))) throw new Failure('invalid', `${shown(cmd)}: a NUL cannot be passed`);
  if (typeof cmd !== 'string') return [program, ...args];
  // Sends both streams into one pipe, so that the output keeps its order.
  return ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', '/bin/sh', '-c', cmd];
}

async function start(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<ChildProcess> {
  try {
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    await once(child, 'spawn');
    return child;
  } catch (cause) {
    if (isTooLarge(cause))
      throw new Failure('unavailable', `${shown(program)} cannot be started: ${tooLargeTold(env, args)}`, { cause });
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = { ENOENT: 'there is no such program', EACCES: 'permission denied' }[code ?? ''] ?? message;
    throw new Failure('unavailable', `${shown(program)} cannot be started: ${why}`, { cause });
  }
}

/** How the command ended, or why it must be ended. */
function over(child: ChildProcess, timeoutMs: number, signal?: AbortSignal): Promise<Ended | 'late' | 'aborted'> {
  return new Promise((resolve) => {
    const done = (reason: Ended | 'late' | 'aborted'): void => {
      timer.cancel();
      signal?.removeEventListener('abort', aborted);
      resolve(reason);
    };
    const aborted = (): void => done('aborted');
    const timer = systemClock.timer(timeoutMs, () => done('late'));
    child.once('exit', (code, by) => done(by === null ? { code: code ?? 0 } : { signal: by }));
    signal?.addEventListener('abort', aborted);
    if (signal?.aborted === true) aborted();
  });
}

function late(cmd: CommandLine, timeoutMs: number, output: string): Failure {
  const last = output.trimEnd().split('\n').at(-1) ?? '';
  const words = last === '' ? 'it had printed nothing' : `it had printed last: ${shown(last)}`;
  return new Failure('unavailable', `${shown(cmd)} took longer than ${timeoutMs} ms and was ended; ${words}`);
}

/** Checks the directory: without this, Node would report the program as missing. */
async function checkDirectory(path: string): Promise<void> {
  const found = await stat(path).catch((error: Error) => error);
  if (!(found instanceof Error) && found.isDirectory()) return;
  const why = found instanceof Error ? found.message : 'it is not a directory';
  throw new Failure('unavailable', `no command can run in ${path}: ${why}`);
}

async function within(ms: number, event: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const time = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([event, time]).finally(() => clearTimeout(timer));
}
