/** The options of all guard commands. */
import type { Command } from '../command.ts';
import type { Adapters } from '../../adapters/adapters.ts';
import { given } from '../arguments.ts';
import { directoryOf } from '../directory.ts';
import { variable, type Variables } from '../pipeline/arguments.ts';

export interface GuardFlags {
  readonly expression?: string;
  readonly root?: string;
  readonly issues?: string;
  readonly commandTimeout?: number;
  readonly env?: Variables;
}

export function addGuardOptions(command: Command): Command {
  const asked = command
    .argument('[file]', 'YAML or JSON with a condition or a guard; - is stdin')
    .option('-e, --expression <text>', 'the condition itself, such as "lockFree: main"')
    .option('--root <dir>', 'the directory for files, git and commands (default: here)');
  return addInputOptions(asked);
}

/** The options that `run --guard` has too. */
export function addInputOptions(command: Command): Command {
  return command
    .option('--issues <tracker>', 'the issue tracker: path of a JSON file, or github:OWNER/NAME')
    .option('--env <name=value>', 'the value of ${NAME} in the guard and in its commands (repeatable)', variable)
    .duration('--command-timeout', 'time limit of a command (default: 60s)');
}

/** `around`: the environment of commands. */
export async function adaptersFor(
  { root = '.', issues, commandTimeout, env = {} }: GuardFlags,
  around: NodeJS.ProcessEnv = process.env,
): Promise<Adapters> {
  const directory = directoryOf('--root', root);
  const { localAdapters } = await import('../../adapters/index.ts');
  const more = given({ issues, commandTimeoutMs: commandTimeout });
  return localAdapters({ root: directory, env: { ...around, ...env }, ...more });
}
