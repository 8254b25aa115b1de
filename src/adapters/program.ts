/** Runs a program such as `git`, `tmux` or `gh`, and returns its output. It never uses a shell. */
import { type ChildProcess, spawn } from 'node:child_process';
import { systemClock } from '../clock.ts';
import { Failure } from '../failure.ts';
import { offspringOf, randomHex, remainsOf, signalRemains } from '../host/index.ts';

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  /** Not needed if `signal` sets a limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** A program that prints more is ended, which is an error unless `isCutShort` is set. */
  readonly outputLimitBytes?: number;
  /** The beginning of the output is enough: the answer says that the rest was cut off. */
  readonly isCutShort?: boolean;
  /** Receives each piece of the output, which is then not kept. */
  readonly onOutput?: (chunk: Buffer) => void;
}

export interface Printed {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The program was ended because it printed more than the limit. */
  readonly isCut?: true;
}

const OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024;

/** Throws if the program is not installed, takes too long, prints too much, is killed, or if `signal` aborts. */
export function printedBy(program: string, args: readonly string[], options: ProgramOptions): Promise<Printed> {
  const { cwd, env, timeoutMs, signal, outputLimitBytes = OUTPUT_LIMIT_BYTES, isCutShort = false, onOutput } = options;
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'], ...(cwd && { cwd }) });
    const [out, err] = [new Kept(), new Kept()];
    const texts = (): Pick<Printed, 'stdout' | 'stderr'> => ({ stdout: out.text, stderr: err.text });

    /** Settles once; the first result counts. */
    const settle = (answer: () => void): void => {
      timer?.cancel();
      signal?.removeEventListener('abort', aborted);
      answer();
    };
    const stop = (answer: () => void): void => {
      kill(child);
      settle(answer);
    };
    const tooMuch = (): void => {
      if (isCutShort) stop(() => resolve({ exitCode: 0, ...texts(), isCut: true }));
      else stop(() => reject(failure(`${program} printed too much`)));
    };
    const aborted = (): void => stop(() => reject(signal?.reason as Error));
    const timer =
      timeoutMs === undefined
        ? undefined
        : systemClock.timer(timeoutMs, () =>
            stop(() => reject(failure(`${program} took longer than ${timeoutMs} ms`))),
          );
    signal?.addEventListener('abort', aborted, { once: true });

    child.stdout.on('data', (chunk: Buffer) => {
      if (onOutput !== undefined) onOutput(chunk);
      else if (out.add(chunk) > outputLimitBytes) tooMuch();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (err.add(chunk) > outputLimitBytes) stop(() => reject(failure(`${program} printed too much`)));
    });
    child.once('error', (error) => settle(() => reject(asFailure(program, error))));
    child.once('close', (code, by) =>
      settle(() => {
        if (code === null) reject(failure(`${program} was ended by ${by ?? 'a signal'}`));
        else resolve({ exitCode: code, ...texts() });
      }),
    );
  });
}

class Kept {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  /** Returns how many bytes have arrived. */
  add(chunk: Buffer): number {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    return this.#length;
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}

/** Uses KILL, because a hanging program may ignore anything else, and ends its children too, which share its pipes. */
function kill(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const offspring = offspringOf(child.pid, false, randomHex(8));
  signalRemains(offspring, remainsOf(offspring, true), 'SIGKILL');
  child.kill('SIGKILL');
}

function asFailure(program: string, error: NodeJS.ErrnoException): Failure {
  if (error.code === 'ENOENT')
    return failure(`there is no ${program} on this machine (looked for it on the PATH)`, error);
  return failure(`${program} cannot be started: ${error.message}`, error);
}

function failure(message: string, cause?: unknown): Failure {
  return new Failure('unavailable', message, { cause });
}
