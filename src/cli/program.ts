/** The frame of the command line: finds the command, adds the options that all commands have, and reports errors. */
import { type Argument, type Command as Commander, Help, Option } from 'commander';
import { Command } from './command.ts';
import { type CommandEntry, COMMANDS } from './commands.ts';
import { redacted } from '../core/redacted.ts';
import { CliExit } from './exit-code.ts';
import { fitted } from './help-width.ts';
import { refuseContradictions, refuseSwallowedOptions, refuseWrongValues } from './option-values.ts';
import { complain, printText, screen } from './output.ts';
import { report } from './report.ts';
import { refuseUnshared } from './shared-store.ts';
import { unknownCommand, usageProblem } from './usage.ts';
import { VERSION } from './version.ts';

/** The group of the options that every command has, accepted before its name and after it. */
const EVERYWHERE = 'Everywhere:';

const EXAMPLES = `
Examples:
  signalbox run --lock main-branch -- git push     one push at a time
  signalbox run --sem builds=2/8 -- make -j2       takes two of eight slots
  signalbox who                                    who holds what, and who waits
  TOKEN=$(signalbox lock acquire staging --holder agent:7 --ttl 5m)

The store is --store, else SIGNALBOX_URL, else the etcd of IF_ETCD_HOST and IF_ETCD_PORT, else the default
place: in a git repository its common directory, so that all worktrees share it; elsewhere your state
directory. SIGNALBOX_LOG=debug logs on stderr what happens in the store.

Exit codes: 0 done · 1 a negative answer · 64 usage · 65 integrity · 69 store unreachable
            75 not acquired · 76 lost while running · 77 not the owner, or refused`;

/** Runs one command line, and leaves its exit code in `process.exitCode`. */
export async function runCommandLine(given: readonly string[]): Promise<void> {
  hidePasswords(given);
  const args = withoutVainHelp(helpAsOption(given));
  let acting: Commander | undefined;
  try {
    const program = newProgram().hook('preAction', (_, command) => void (acting = command));
    const wanted = COMMANDS.find(({ name }) => name === wantedName(args));
    // The others are for the help, and for a mistake before the name of the command.
    const needed = wanted !== undefined && isNamedFirst(args) ? [wanted] : COMMANDS;
    for (const entry of needed) await addCommand(program, entry, entry === wanted);
    refuseUnknownHelp(program, given[0] === 'help' ? given.slice(1) : wordsBeforeHelp(args));
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const told = acting === undefined ? error : (await import('./advice.ts')).advised(error, acting);
    process.exitCode = report(told, wantsJson(args));
  }
}

/** Hides a password that was typed on the command line from `ps`. */
function hidePasswords(args: readonly string[]): void {
  const safe = args.map(redacted);
  // `run` reads arguments that are not UTF-8 again, from the memory where the title is written.
  if (safe.some((arg, place) => arg !== args[place]) && !args.some((arg) => arg.includes('\uFFFD')))
    process.title = ['signalbox', ...safe].join(' ');
}

/** `help lock acquire` is `lock acquire --help`. */
export function helpAsOption(args: readonly string[]): readonly string[] {
  const [first, ...words] = args;
  if (first !== 'help') return args;
  const isKnown = words.length === 0 || COMMANDS.some(({ name }) => name === words[0]);
  return isKnown ? [...words, '--help'] : words;
}

/** `lsit --help`: commander would print the help of everything, and say nothing about the mistake. */
function withoutVainHelp(args: readonly string[]): readonly string[] {
  const name = wantedName(args);
  if (name === undefined || COMMANDS.some((one) => one.name === name)) return args;
  const at = args.indexOf(name);
  return args.filter((arg, place) => place < at || !isHelp(arg));
}

/** The names in `lock acquire --help`; none, if no help is asked for. */
function wordsBeforeHelp(args: readonly string[]): readonly string[] {
  const first = args.findIndex((arg) => arg.startsWith('-'));
  return first >= 0 && isHelp(args[first]) ? args.slice(0, first) : [];
}

function isHelp(arg: string | undefined): boolean {
  return arg === '--help' || arg === '-h';
}

/** `help lock acqire`, `lock acqire --help`: commander would print the help of `lock` and say nothing about the mistake. */
function refuseUnknownHelp(program: Command, [name, ...words]: readonly string[]): void {
  let command: Commander | undefined = program.commands.find((one) => one.name() === name);
  for (const word of words) {
    if (command === undefined || word.startsWith('-') || command.commands.length === 0) return;
    const inner = command.commands.find((one) => one.name() === word);
    if (inner === undefined) throw unknownCommand(command, word);
    command = inner;
  }
}

/** All commands with all their options, for completion and tests. */
export async function wholeProgram(): Promise<Command> {
  const program = newProgram();
  for (const entry of COMMANDS) await addCommand(program, entry, true);
  return program;
}

function newProgram(): Command {
  const program = new Command('signalbox')
    .description('Keeps workers, CI jobs and coding agents from stepping on each other.')
    // Options after a command's name belong to that command, so that it can pass them on to another program.
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES)
    .hook('preAction', (_, command) => refuseUnshared(command));
  frame(program);
  return program;
}

async function addCommand(program: Command, { name, summary, load }: CommandEntry, isWanted: boolean): Promise<void> {
  const command = program.command(name).description(summary);
  if (isWanted) (await load()).define(command);
  frameAll(command);
}

function frameAll(command: Command): void {
  frame(command);
  for (const inner of command.commands) frameAll(inner as Command);
}

function frame(command: Command): void {
  command
    .addOption(everywhere('--store <url>', 'which store: file:DIR, etcd://HOST:PORT, or http://HOST:PORT of a server'))
    .addOption(everywhere('--json', 'print JSON, for programs'))
    .version(VERSION, '--version', 'print the version')
    .addHelpOption(everywhere('-h, --help', 'print this help'))
    .configureHelp({ subcommandTerm: termOf, optionDescription: purposeOf })
    .helpCommand(false)
    .showSuggestionAfterError(false)
    .configureOutput({
      outputError: () => undefined,
      writeOut: (text) => printText(fitted(text, helpWidth())),
      // Only help, where no command was named; a program gets an object instead.
      writeErr: (text) => command.isJson || complain(fitted(text.trimEnd(), helpWidth())),
      getOutHasColors: () => false,
    })
    .exitOverride((error) => {
      // For an exit code of 0, commander has printed help or the version; everything else is a mistake in the call.
      throw error.exitCode === 0 ? new CliExit(0, '') : usageProblem(command, error);
    });
  command.options.find(({ long }) => long === '--version')?.helpGroup(EVERYWHERE);
  refuseWrongValues(command);
  refuseSwallowedOptions(command);
  refuseContradictions(command);
}

function everywhere(flags: string, purpose: string): Option {
  return new Option(flags, purpose).helpGroup(EVERYWHERE);
}

/** Without a terminal the same as commander's. Some terminals say that they have no columns at all. */
function helpWidth(): number {
  return screen().columns || 80;
}

/** The command's name and arguments, without the `[options]` that every command has. */
function termOf(command: Commander): string {
  return [command.name(), ...command.registeredArguments.map(humanReadable)].join(' ');
}

/** Leaves out the default of a list option, which is an empty list. */
function purposeOf(option: Option): string {
  return Array.isArray(option.defaultValue) ? option.description : new Help().optionDescription(option);
}

function humanReadable(argument: Argument): string {
  const name = argument.name() + (argument.variadic ? '...' : '');
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** The first word that is neither a global option nor the value of one. */
function wantedName(args: readonly string[]): string | undefined {
  for (let place = 0; place < args.length; place++) {
    const arg = args[place] as string;
    if (arg === '--store') place += 1;
    else if (!arg.startsWith('-')) return arg;
  }
  return undefined;
}

/** Whether nothing is before the command's name but the options that every command has. */
function isNamedFirst(args: readonly string[]): boolean {
  const [first = ''] = args;
  if (first === '--json' || first.startsWith('--store=')) return isNamedFirst(args.slice(1));
  if (first === '--store') return isNamedFirst(args.slice(2));
  return !first.startsWith('-');
}

/** Looks for `--json` before the command is known, so that even a mistake in the call is reported as JSON. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}
