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

/** A shell need not know descriptors of more than one digit. */
const GATES = [3, 4, 5, 6, 7, 8, 9];

/** How the child ended. */
export type Ended = { readonly code: number } | { readonly signal: NodeJS.Signals };

/** Too many arguments, a directory that is not there, or no room for another process. */
export class NotStarted extends Error {
  constructor(command: string, cause: unknown) {
    super(`${command}: cannot be started: ${(cause as Error).message}`, { cause });
    this.name = 'NotStarted';
  }
}

export interface GateOptions {
  /** In a session of its own, and without our terminal. */
  readonly leads: boolean;
  /** See `Offspring`. */
  readonly mark: string;
  /** Descriptors beyond stderr that it gets. */
  readonly given?: readonly number[];
  /** By default ours. */
  readonly cwd?: string;
  /** Nothing to read for it, and what it prints comes to us; otherwise it has our streams. */
  readonly isCaptured?: boolean;
  /** It reads from this descriptor, and what it prints to stdout comes to us. Its stderr is ours. */
  readonly stdin?: number;
}

export class GatedChild {
  readonly pid: number;
  readonly leads: boolean;
  readonly offspring: Offspring;
  readonly ended: Promise<Ended>;
  /** Its stdout and stderr, if they are captured. They may stay open for longer than it lives. */
  readonly output: readonly Readable[];
  /** It has ended, but something of it could not be ended. */
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
    // It may be killed while it still waits.
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
      // Beyond stderr, what is ignored is closed.
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

  /** Its pid may belong to another process by now. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  letGo(): void {
    this.#isLetGo = true;
    this.#gate.end(this.#go);
  }

  /** Ends it, if it has not been let go; otherwise does nothing. */
  async abandon(): Promise<void> {
    if (this.#isLetGo) return;
    this.#gate.destroy();
    await this.ended;
  }
}

/** As a shell tells it. */
export function exitCodeOf(ended: Ended): number {
  return 'code' in ended ? ended.code : 128 + (constants.signals[ended.signal] ?? 0);
}
