/** Fake commands, which never run. */
import type { CommandResult, Commands } from '../../adapters/index.ts';
import type { CommandLine } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { Fake } from './fake.ts';

/** How a command ends. */
export type FakeRun = (signal?: AbortSignal) => Partial<CommandResult> | Promise<Partial<CommandResult>>;

/** Commands that a test answers. */
export class FakeCommands extends Fake implements Commands {
  readonly #programs = new Map<string, FakeRun>();

  /** Sets the result of exactly this command: its exit code, perhaps its output, or a function that returns or throws. */
  set(cmd: CommandLine, result: number | Partial<CommandResult> | FakeRun): void {
    const run =
      typeof result === 'function' ? result : () => (typeof result === 'number' ? { exitCode: result } : result);
    this.#programs.set(keyOf(cmd), run);
  }

  /** Runs a command; one that was not set cannot be started. */
  run(cmd: CommandLine, signal?: AbortSignal): Promise<CommandResult> {
    return this.answer(['run', cmd], signal, async () => {
      const first = typeof cmd === 'string' ? cmd : (cmd[0] ?? '');
      if (first.trim() === '') throw new Failure('invalid', `${shown(cmd)} is no command`);
      const program = this.#programs.get(keyOf(cmd));
      if (program === undefined) throw new Failure('unavailable', `${shown(first)} cannot be started: nobody set it`);
      return { exitCode: 0, output: '', ...(await program(signal)) };
    });
  }
}

function keyOf(cmd: CommandLine): string {
  return JSON.stringify(cmd);
}
