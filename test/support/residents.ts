/**
 * Processes that run one command line after the other (resident.cjs): a command that only looks or writes costs a tenth there
 * of what it costs to start Node for it. Not for commands that start others, serve, or are ended by a signal.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('resident.cjs', import.meta.url));

/** Commands that have a process of their own in every test: they start others, or live until a signal ends them. */
const ALONE: readonly (readonly string[])[] = [
  ['run'],
  ['serve'],
  ['mcp'],
  ['top'],
  ['lead'],
  ['doctor'],
  ['agents', 'hook'],
  ['guard', 'wait'],
  ['github'],
  ['completion'],
  ['task', 'run'],
  ['task', 'work'],
  ['pipeline', 'run'],
  ['pipeline', 'drive'],
  ['pipeline', 'resume'],
  ['members', 'join'],
  ['members', 'watch'],
];

export interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Whether another command's process can run it. Settings that Node reads at its start are for a new one. */
export function isForResident(args: readonly string[], env: Readonly<NodeJS.ProcessEnv> = {}): boolean {
  if (args.includes('--') || Object.keys(env).some((name) => name.startsWith('NODE_'))) return false;
  return !ALONE.some((words) => words.every((word, place) => args[place] === word));
}

const idle: Resident[] = [];

/** Several at a time have a process each. */
export async function runInResident(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<Answer> {
  for (;;) {
    const left = idle.pop();
    const resident = left ?? new Resident();
    const answer = await resident.run(args, env, cwd);
    if (resident.isThere) idle.push(resident);
    if (answer !== undefined) return answer;
    // One that ended before the command began was ended by what an earlier command left behind: not this command's fault.
    if (left === undefined) throw new Error('a process for commands ended before its first command began');
  }
}

/** As if what a command left behind had ended them. */
export function killIdle(): void {
  for (const resident of idle) resident.kill();
}

class Resident {
  readonly #mark = `[${randomUUID()}] `;
  readonly #child: ChildProcess;
  #printed = { stdout: '', stderr: '' };
  #heard: () => void = () => undefined;
  #ended: number | undefined;

  constructor() {
    this.#child = fork(PROGRAM, [this.#mark], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], execArgv: [] });
    for (const stream of ['stdout', 'stderr'] as const) {
      this.#child[stream]?.setEncoding('utf8').on('data', (text: string) => {
        this.#printed[stream] += text;
        this.#heard();
      });
    }
    this.#child.on('close', (code) => {
      this.#ended = code ?? 128;
      this.#heard();
    });
  }

  get isThere(): boolean {
    return this.#ended === undefined;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Undefined if the process ended before the command began. */
  async run(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<Answer | undefined> {
    this.#printed = { stdout: '', stderr: '' };
    this.#keepsAlive(true);
    const over = new Promise<void>((done) => {
      this.#heard = () => {
        if (!this.isThere || this.#answer() !== undefined) done();
      };
    });
    // A process that has ended cannot be sent anything; that it has is heard of when its output closes.
    if (this.isThere) this.#child.send({ args, env, cwd }, () => undefined);
    this.#heard();
    await over;
    this.#keepsAlive(false);
    return this.#answer();
  }

  /** Undefined before the command has begun, and while it runs. One that ends its process, as `process.exit` does, leaves no mark. */
  #answer(): Answer | undefined {
    const [, stdout, code] = this.#printed.stdout.split(this.#mark);
    const [stderr = '', end] = this.#printed.stderr.split(this.#mark);
    if (stdout === undefined) return undefined;
    if (code?.endsWith('\n') === true && end?.endsWith('\n') === true) return { code: Number(code), stdout, stderr };
    return this.#ended === undefined ? undefined : { code: this.#ended, stdout, stderr };
  }

  /** One that is idle must not keep the tests from ending. */
  #keepsAlive(isBusy: boolean): void {
    const parts = [this.#child, this.#child.channel, this.#child.stdout, this.#child.stderr];
    for (const part of parts as ({ ref(): void; unref(): void } | null | undefined)[]) {
      if (isBusy) part?.ref();
      else part?.unref();
    }
  }
}
