/** Reports mistakes in the call, in one form: what is wrong, what is expected, where to read more. */
import type { Command, CommanderError } from 'commander';
import { nearest } from '../core/nearest.ts';
import { shown } from '../failure.ts';
import { CliExit, EXIT } from './exit-code.ts';

/** `expected`: the lines between what is wrong and where to read more. */
export function usageError(command: Command, what: string, ...expected: readonly string[]): CliExit {
  return new CliExit(EXIT.usage, [what, ...expected, `see: ${pathOf(command)} --help`].join('\n  '));
}

/** Says in our words what commander found. */
export function usageProblem(command: Command, { code, message }: CommanderError): CliExit {
  const usage = `usage: ${pathOf(command)} ${command.usage()}`;
  // commander quotes what the mistake is about, and says nothing else that its code does not say.
  const about = /'([^]*)'/.exec(message)?.[1] ?? '';
  switch (code) {
    case 'commander.help':
      // For people, commander has printed the help.
      if (!isJson(command)) return new CliExit(EXIT.usage, '');
      return usageError(command, 'no command is named', accepted(commandsOf(command)));
    case 'commander.unknownCommand':
      return unknownCommand(command, about);
    case 'commander.unknownOption':
      return unknownOption(command, about);
    case 'commander.missingArgument':
      return usageError(command, `${argumentIn(command.usage(), about)} is missing`, usage);
    case 'commander.excessArguments':
      return usageError(
        command,
        `unexpected argument ${shown(command.args[command.registeredArguments.length])}`,
        usage,
      );
    case 'commander.missingMandatoryOptionValue':
      return usageError(command, `${longIn(about)} is missing`, `use: ${about}`);
    case 'commander.optionMissingArgument':
      return usageError(command, `${longIn(about)} needs ${valueIn(about)}`);
    case 'commander.conflictingOption':
      return contradiction(command, ...about.split(/'[^']*'/).map(longIn));
    default:
      return usageError(command, message.replace(/^error: /, ''), usage);
  }
}

export function isJson(command: Command): boolean {
  return command.optsWithGlobals<{ readonly json?: boolean }>().json === true;
}

/** `subject`: the option or argument as the help names it; `why` goes on after a semicolon. */
export function wrongValue(command: Command, subject: string, value: string, why: string): CliExit {
  return usageError(command, `${subject} is ${shown(value)}; ${why}`);
}

export function contradiction(command: Command, ...options: readonly string[]): CliExit {
  return usageError(command, `${options.join(' and ')} contradict each other`);
}

export function unknownCommand(command: Command, word: string): CliExit {
  const names = commandsOf(command);
  return usageError(command, `unknown command ${shown(word)}${hint(meantBy(word, names))}`, accepted(names));
}

/** Leaves out the value in `--option=value`: it may be a secret. */
function unknownOption(command: Command, flag: string): CliExit {
  const [option = ''] = flag.split('=');
  const visible = command.createHelp().visibleOptions(command);
  const names = visible.map(({ long, short }) => long ?? short ?? '');
  const what = /^--?[\w-]+$/.test(option) ? option : shown(option);
  return usageError(command, `unknown option ${what}${hint(meantBy(option, names))}`, accepted(names));
}

function commandsOf(command: Command): readonly string[] {
  return command.commands.map((inner) => inner.name());
}

function accepted(names: readonly string[]): string {
  return `expected: ${names.join(', ')}`;
}

function hint(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

/** Words that people know from other tools, where their spelling is not similar to ours. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  ...{ semaphore: 'sem', semaphores: 'sem', exec: 'run', ls: 'who', list: 'who', ps: 'who', log: 'events' },
  ...{ '--timeout': '--wait', '--name': '--lock', '--lease': '--ttl', '--owner': '--holder', '--worker': '--holder' },
  ...{ '--message': '--reason', '--slots': '--weight', '--limit': '--capacity', '--concurrency': '--jobs' },
};

function meantBy(word: string, names: readonly string[]): string | undefined {
  const other = Object.hasOwn(OTHER_WORDS, word) ? OTHER_WORDS[word] : undefined;
  if (other !== undefined && names.includes(other)) return other;
  // `lokc`: two letters changed places.
  return nearest(word, names) ?? names.find((name) => sorted(name) === sorted(word));
}

function sorted(word: string): string {
  return [...word].sort().join('');
}

/** As the usage line writes it: `<name>`, or `COMMAND` where the line is our own. */
function argumentIn(usage: string, name: string): string {
  return usage.includes(`<${name}`) ? `<${name}>` : name.toUpperCase();
}

/** `--ttl` of `--ttl <duration>`, `--count` of `-n, --count <number>`. */
export function longIn(flags: string): string {
  return /--[\w-]+/.exec(flags)?.[0] ?? flags;
}

/** `a duration` of `--ttl <duration>`. */
export function valueIn(flags: string): string {
  const what = /[<[](\w+)/.exec(flags)?.[1] ?? 'value';
  return `${/^[aeio]/.test(what) ? 'an' : 'a'} ${what}`;
}

/** `signalbox lock acquire`. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
