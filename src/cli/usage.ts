/** A mistake in the call: what was wrong, what is expected, and where to read more. */
import type { Command, CommanderError } from 'commander';
import { nearest } from '../core/nearest.ts';
import { shown } from '../failure.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { withoutPassword } from '../store/index.ts';
import { pathOf } from './option-values.ts';

export function usageProblem(command: Command, error: CommanderError): CliExit {
  const path = pathOf(command);
  const help = `see: ${path} --help`;
  // No command was named, and commander has printed the help.
  if (error.code === 'commander.help') return new CliExit(EXIT.usage, '');
  const [what = '', ...hints] = withoutSecrets(error.message.replace(/^error: /, '')).split('\n');
  const near = hints.map((line) => ` ${line.replace('(Did', '(did')}`).join('');
  const hint = near === '' ? otherWordFor(command, /'([^']*)'/.exec(what)?.[1] ?? '') : near;
  return new CliExit(EXIT.usage, [what + hint, acceptedBy(command, error.code), help].join('\n  '));
}

/** Words that people know from other tools; commander finds only words with a similar spelling. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  ...{ semaphore: 'sem', semaphores: 'sem', exec: 'run', ls: 'who', list: 'who', ps: 'who', log: 'events' },
  ...{ '--timeout': '--wait', '--name': '--lock', '--lease': '--ttl', '--owner': '--holder', '--worker': '--holder' },
  ...{ '--message': '--reason', '--slots': '--weight', '--limit': '--capacity', '--concurrency': '--jobs' },
};

function otherWordFor(command: Command, word: string): string {
  const meant = Object.hasOwn(OTHER_WORDS, word) ? OTHER_WORDS[word] : undefined;
  const isThere =
    command.commands.some((inner) => inner.name() === meant) || command.options.some(({ long }) => long === meant);
  return meant !== undefined && isThere ? ` (did you mean ${meant}?)` : '';
}

/** In the words that commander has for it. */
export function unknownCommand(command: Command, word: string, names: readonly string[]): CliExit {
  const near = nearest(word, names);
  const what = `unknown command ${shown(word).replaceAll('"', "'")}${near === undefined ? '' : ` (did you mean ${near}?)`}`;
  return new CliExit(
    EXIT.usage,
    [what, `expected: ${names.join(', ')}`, `see: ${pathOf(command)} --help`].join('\n  '),
  );
}

/** Hides the value of an unknown option, and the password of a URL in place of a command. */
function withoutSecrets(message: string): string {
  return message.replace(/'([^]*)'/, (_, argument: string) => {
    const option = /^(--[^=]+)=/.exec(argument)?.[1];
    return `'${option ?? withoutPassword(argument)}'`;
  });
}

function acceptedBy(command: Command, code: string): string {
  if (code === 'commander.unknownCommand') {
    return `expected: ${command.commands.map((inner) => inner.name()).join(', ')}`;
  }
  if (code === 'commander.unknownOption') {
    const options = command.createHelp().visibleOptions(command);
    return `expected: ${options.map(({ long, short }) => long ?? short).join(', ')}`;
  }
  return `usage: ${pathOf(command)} ${command.usage()}`;
}
