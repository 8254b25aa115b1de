/**
 * A child that exists, with its pid and its group, but runs nothing until it is let go, so that a note about it can be
 * written first. If this process dies before that, the child exits without having run anything.
 *
 *     a program (see `gate.ts`) waits at a descriptor ── let go: closes it and becomes the command
 *                                                    └─ the end: exits
 */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { gateFor } from './gate.ts';
import { type Offspring, offspringOf } from './offspring.ts';
import type { Text } from './original-bytes.ts';

/** One digit only: shells need not know descriptors of more than one digit. */
const GATES = [3, 4, 5, 6, 7, 8, 9];

/** How the child ended. */
export type Ended = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** The child did not start: too many arguments, a missing directory, or no room for another process. */
export class NotStarted extends Error {
  constructor(command: string, cause: unknown) {
    super(`${command}: cannot be started: ${(cause as Error).message}`, { cause });
    this.name = 'NotStarted';
  }
}

export interface GateOptions {
  /** Whether the child gets a session of its own, without our terminal. */
  readonly leads: boolean;
  /** See `Offspring`. */
  readonly mark: string;
  /** Descriptors beyond stderr that the child gets. */
  readonly given?: readonly number[];
  /** By default our own. */
  readonly cwd?: string;
  /** Whether the child gets no input and we read what it prints; otherwise it has our streams. */
  readonly isCaptured?: boolean;
  /** The descriptor that the child reads from. We then read its stdout, and it has our stderr. */
  readonly stdin?: number;
}

export class GatedChild {
  readonly pid: number;
  readonly leads: boolean;
  readonly offspring: Offspring;
  readonly ended: Promise<Ended>;
  /** The child's stdout and stderr, if they are captured. They may stay open after it has ended. */
  readonly output: readonly Readable[];
  /** Whether the child has ended, but some process of it could not be ended. */
  isLeft = false;
  readonly #gate: Writable;
  readonly #go: Text;
  #isLetGo = false;
  #hasEnded = false;

  private constructor(child: ChildProcess, pid: number, leads: boolean, mark: string, gate: Writable, go: Text) {
    this.pid = pid;
    this.leads = leads;
    this.offspring = offspringOf(pid, leads, mark);
    this.#gate = gate;
    this.#go = go;
    this.output = [child.stdout, child.stderr].filter((stream) => stream !== null);
    // The child may be killed while it still waits.
    this.#gate.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#hasEnded = true;
        resolve(signal === null ? { code: code ?? 0 } : { signal });
      });
    });
  }

  static async start(
    program: Text,
    argv: readonly [Text, ...Text[]],
    env: NodeJS.ProcessEnv,
    { leads, mark, given = [], cwd, isCaptured = false, stdin }: GateOptions,
  ): Promise<GatedChild> {
    // If all descriptors are taken, the command loses one of them.
    const gate = GATES.find((number) => !given.includes(number)) ?? 3;
    const stdio: StdioOptions = Array.from({ length: Math.max(gate, ...given) + 1 }, (_, number) => {
      if (number === gate) return 'pipe';
      if (isCaptured && number <= 2) return number === 0 ? 'ignore' : 'pipe';
      if (stdin !== undefined && number <= 1) return number === 0 ? stdin : 'pipe';
      // Beyond stderr, 'ignore' closes the descriptor.
      return number <= 2 || given.includes(number) ? number : 'ignore';
    });
    try {
      const { file, args, argv0, env: own, go } = gateFor({ program, argv, env }, gate);
      const child = spawn(file, args, { stdio, argv0, detached: leads, env: own, ...(cwd !== undefined && { cwd }) });
      await once(child, 'spawn');
      return new GatedChild(child, child.pid as number, leads, mark, child.stdio[gate as 3] as Writable, go);
    } catch (error) {
      throw new NotStarted(String(argv[0]), error);
    }
  }

  /** Once true, the child's pid may belong to another process. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  letGo(): void {
    this.#isLetGo = true;
    this.#gate.end(this.#go);
  }

  /** Ends the child if it has not been let go; otherwise does nothing. */
  async abandon(): Promise<void> {
    if (this.#isLetGo) return;
    this.#gate.destroy();
    await this.ended;
  }
}

/** The exit code that a shell would report. */
export function exitCodeOf(ended: Ended): number {
  return 'code' in ended ? ended.code : 128 + (constants.signals[ended.signal] ?? 0);
}
