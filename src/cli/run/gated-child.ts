/**
 * A child that is there, with its pid and its group, but runs nothing until it is let go; so it can be written down
 * first. If this process dies before that, it ends without having run anything.
 *
 *     /bin/sh waits for a line on a descriptor ── a line: closes it and becomes the command
 *                                             └─ the end: exits
 */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { type Offspring, offspringOf } from '../../host/index.ts';
import { CliExit } from '../exit-code.ts';

const NOT_STARTED = 126;
/** A shell need not know descriptors of more than one digit. */
const GATES = [3, 4, 5, 6, 7, 8, 9];

/** How the child ended. */
export type Ended = { readonly code: number } | { readonly signal: NodeJS.Signals };

export class GatedChild {
  readonly pid: number;
  readonly leads: boolean;
  readonly offspring: Offspring;
  readonly ended: Promise<Ended>;
  /** It has ended, but something of it could not be ended. */
  isLeft = false;
  readonly #gate: Writable;
  #isLetGo = false;
  #hasEnded = false;

  private constructor(child: ChildProcess, pid: number, leads: boolean, mark: string, gate: Writable) {
    this.pid = pid;
    this.leads = leads;
    this.offspring = offspringOf(pid, leads, mark);
    this.#gate = gate;
    // It may be killed while it still waits.
    this.#gate.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#hasEnded = true;
        resolve(signal === null ? { code: code ?? 0 } : { signal });
      });
    });
  }

  /**
   * `leads`: in a session of its own, and without our terminal. `mark`: see `Offspring`. `given`: descriptors beyond
   * stderr that it gets.
   */
  static async start(
    program: string,
    argv: readonly [string, ...string[]],
    env: NodeJS.ProcessEnv,
    leads: boolean,
    mark: string,
    given: readonly number[] = [],
  ): Promise<GatedChild> {
    // Where all are taken, the command has to do without one of them.
    const gate = GATES.find((number) => !given.includes(number)) ?? 3;
    const stdio: StdioOptions = Array.from({ length: Math.max(gate, ...given) + 1 }, (_, number) => {
      if (number === gate) return 'pipe';
      // Beyond stderr, what is ignored is closed.
      return number <= 2 || given.includes(number) ? number : 'ignore';
    });
    const waits = `read -r go <&${gate} || exit 125; exec ${gate}<&-; exec "$@"`;
    const command = commandThrough(program, argv, env);
    try {
      const child = spawn('/bin/sh', ['-c', waits, 'sh', ...command], {
        stdio,
        detached: leads,
        env,
      });
      await once(child, 'spawn');
      return new GatedChild(child, child.pid as number, leads, mark, child.stdio[gate as 3] as Writable);
    } catch (error) {
      // Too many arguments, or no room for another process.
      throw new CliExit(NOT_STARTED, `${argv[0]}: cannot be started: ${(error as Error).message}`);
    }
  }

  /** Its pid may be somebody else's by now. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  letGo(): void {
    this.#isLetGo = true;
    this.#gate.end('\n');
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

/**
 * A shell may drop variables whose names it could not have made itself, such as the functions that bash exports; `env`
 * sets them again; but not those that it would take for its own options. And a program whose name begins with a dash
 * would be taken for an option.
 */
export function commandThrough(
  program: string,
  [name, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
): readonly string[] {
  const odd = Object.entries(env).filter(([variable]) => !/^[A-Za-z_][A-Za-z0-9_]*$|^-/.test(variable));
  const command = [name.startsWith('-') ? program : name, ...args];
  return odd.length === 0 ? command : ['/usr/bin/env', ...odd.map(([key, value]) => `${key}=${value}`), ...command];
}
