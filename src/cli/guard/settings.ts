/** What all guard commands can be told. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Adapters } from '../../adapters/adapters.ts';
import { shown } from '../../failure.ts';
import { durationArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { variable, type Variables } from '../pipeline/arguments.ts';

export interface GuardFlags {
  readonly expression?: string;
  readonly root?: string;
  readonly issues?: string;
  readonly commandTimeout?: number;
  readonly env?: Variables;
}

export function addGuardOptions(command: Command): Command {
  return command
    .argument('[file]', 'YAML or JSON with a condition or a guard; - is stdin')
    .option('-e, --expression <text>', 'the condition itself, such as "lockFree: main"')
    .option('--root <dir>', 'where files, git and commands are looked at (default: here)')
    .option('--issues <tracker>', 'path of a JSON tracker, or github:OWNER/NAME')
    .option('--env <name=value>', 'what ${NAME} in it stands for; its commands have it too (repeatable)', variable)
    .option('--command-timeout <duration>', 'so long may a command take (default: 60s)', durationArgument);
}

export async function adaptersFor({ root = '.', issues, commandTimeout, env = {} }: GuardFlags): Promise<Adapters> {
  const directory = resolve(root);
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new CliExit(EXIT.usage, `--root ${shown(root)} is no directory`);
  }
  const { localAdapters } = await import('../../adapters/index.ts');
  return localAdapters({
    root: directory,
    env: { ...process.env, ...env },
    ...(issues !== undefined && { issues }),
    ...(commandTimeout !== undefined && { commandTimeoutMs: commandTimeout }),
  });
}
