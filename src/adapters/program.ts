/** Runs a program of the system for what it prints: `git`, `tmux`, `gh`. Never a shell. */
import { execFile } from 'node:child_process';
import { systemClock } from '../clock.ts';
import { Failure } from '../failure.ts';

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** A program that prints more is ended, and that is an error. */
  readonly outputLimitBytes?: number;
}

export interface Printed {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024;

/** Throws if it is not installed, takes too long, prints too much, is killed, or if `signal` aborts. */
export function printedBy(program: string, args: readonly string[], options: ProgramOptions): Promise<Printed> {
  const { cwd, env, timeoutMs, signal, outputLimitBytes = OUTPUT_LIMIT_BYTES } = options;
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    let isLate = false;
    const child = execFile(
      program,
      args,
      { encoding: 'utf8', maxBuffer: outputLimitBytes, killSignal: 'SIGKILL', env, signal, ...(cwd && { cwd }) },
      (error, stdout, stderr) => {
        timer.cancel();
        if (error === null) resolve({ exitCode: 0, stdout, stderr });
        else if (signal?.aborted === true) reject(signal.reason as Error);
        else if (isLate) reject(failure(`${program} took longer than ${timeoutMs} ms`));
        else if (typeof error.code === 'number') resolve({ exitCode: error.code, stdout, stderr });
        else reject(asFailure(program, error));
      },
    );
    // Nobody types anything, and a program that asks has to be told so at once.
    child.stdin?.end();
    const timer = systemClock.timer(timeoutMs, () => {
      isLate = true;
      child.kill('SIGKILL');
      // What it started may have its pipes still.
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
  });
}

function asFailure(program: string, error: Error & { readonly code?: unknown; readonly signal?: unknown }): Failure {
  if (error.code === 'ENOENT')
    return failure(`there is no ${program} on this machine (looked for it on the PATH)`, error);
  if (error.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return failure(`${program} printed too much`, error);
  if (typeof error.signal === 'string') return failure(`${program} was ended by ${error.signal}`, error);
  return failure(`${program} cannot be started: ${error.message}`, error);
}

function failure(message: string, cause?: unknown): Failure {
  return new Failure('unavailable', message, { cause });
}
