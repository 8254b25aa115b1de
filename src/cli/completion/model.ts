/** What can be typed where, read off the commands themselves: so that no completion lags behind them. */
import type { Command, Option } from 'commander';
import { eventNames } from '../../core/index.ts';
import { EVENT_KINDS } from '../../runtime/observe/event-kinds.ts';

/** What is offered for an argument or for the value of an option. */
export type Source =
  | { readonly from: 'words'; readonly words: readonly string[] }
  /** Names in the store, which this command lists. */
  | { readonly from: 'names'; readonly of: 'lock' | 'sem' | 'task' | 'pipeline' }
  /** `programs`: another program, with its own completion. */
  | { readonly from: 'files' | 'directories' | 'programs' | 'nothing' };

export interface CompletedOption {
  readonly flags: readonly string[];
  readonly summary: string;
  /** Undefined if it takes no value. */
  readonly value: Source | undefined;
}

export interface Node {
  /** `/lock/acquire`; empty for signalbox itself. */
  readonly at: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletedOption[];
  readonly argument: Source;
}

export function nodesOf(command: Command, at = ''): readonly Node[] {
  const node: Node = {
    at,
    commands: command.commands.map((inner) => ({ name: inner.name(), summary: inner.description() })),
    options: command.createHelp().visibleOptions(command).map(completed),
    argument: argumentOf(command, at),
  };
  return [node, ...command.commands.flatMap((inner) => nodesOf(inner, `${at}/${inner.name()}`))];
}

function completed(option: Option): CompletedOption {
  const flags = [option.short, option.long].filter((flag) => flag !== undefined);
  const takesValue = option.required || option.optional;
  return { flags, summary: option.description, value: takesValue ? valueOf(option) : undefined };
}

const VALUES: Readonly<Record<string, Source>> = {
  '--guard': { from: 'files' },
  '--lock': { from: 'names', of: 'lock' },
  '--sem': { from: 'names', of: 'sem' },
  '--depends-on': { from: 'names', of: 'task' },
  '--dir': { from: 'directories' },
  '--runbook': { from: 'files' },
  '--key': { from: 'files' },
  '--anchor': { from: 'files' },
  '--from': { from: 'files' },
  '--on-lost': { from: 'words', words: ['term', 'kill', 'warn'] },
};

function valueOf({ long, argChoices }: Option): Source {
  if (argChoices !== undefined) return { from: 'words', words: argChoices };
  return VALUES[long ?? ''] ?? { from: 'nothing' };
}

const PATTERNS = ['*', ...EVENT_KINDS.map((kind) => `${kind}:*`), ...eventNames];

function argumentOf(command: Command, at: string): Source {
  const [argument] = command.registeredArguments;
  if (argument?.argChoices !== undefined) return { from: 'words', words: argument.argChoices };
  // What to run comes after the id and two dashes.
  if (at === '/task/run') return { from: 'names', of: 'task' };
  switch (argument?.name() ?? '') {
    case 'dir':
      return { from: 'directories' };
    case 'file':
      return { from: 'files' };
    case 'command':
      return { from: 'programs' };
    case 'pattern':
      return { from: 'words', words: PATTERNS };
    case 'id':
      // The id of a new one cannot be looked up.
      if (at === '/task/publish') return { from: 'nothing' };
      return { from: 'names', of: at.startsWith('/pipeline') ? 'pipeline' : 'task' };
    case 'name':
      return { from: 'names', of: at.startsWith('/lock') ? 'lock' : 'sem' };
    default:
      return { from: 'nothing' };
  }
}

/** All flags that take a value, of all commands: the word after such a flag is not a command. */
export function valueFlags(nodes: readonly Node[]): ReadonlyMap<string, Source> {
  const found = nodes.flatMap(({ options }) =>
    options.flatMap(({ flags, value }) => (value === undefined ? [] : flags.map((flag) => [flag, value] as const))),
  );
  return new Map(found);
}

/** In single quotes, for any of the shells. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
