/** `signalbox agents …`: what coding agents need to share a repository. */
import { type Command, InvalidArgumentError } from './command.ts';
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { nameProblem } from '../core/index.ts';
import { type Client, CLIENTS, DEFAULT_TERMS, type HookedClient, shellWord, type Terms } from './agents/content.ts';
import type { Change } from './agents/init.ts';
import { PROTECTED } from './agents/judge.ts';
import { NAMES } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { findProgram } from './run/program.ts';
import { complain, print, printable, printJson, say } from './output.ts';

const EXAMPLES = `
Examples:
  signalbox agents init              writes AGENTS.md, the MCP configuration and the hooks of this repository
  signalbox agents init --dry-run    says what it would write
  signalbox agents init --for codex`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ init, hook });
}

interface InitFlags {
  readonly dir?: string;
  readonly for: readonly Client[];
  readonly lock: string;
  readonly command: string;
  readonly print?: true;
  readonly dryRun?: true;
}

function init(command: Command): void {
  const clients = (value: string, before: readonly Client[]): readonly Client[] => {
    const client = CLIENTS.find((one) => one === value);
    if (client === undefined) throw new InvalidArgumentError(`expected ${CLIENTS.join(', ')}`);
    return [...before, client];
  };
  command
    .about(`teach coding agents to take turns in this repository

Examples:
  signalbox agents init
  signalbox agents init --dry-run --json | jq '.files[] | select(.change != "unchanged")'
  signalbox agents init --for claude-code --lock merge
  signalbox agents init --command 'npx --no signalbox'      if the repository has it among its npm packages

Writes a block into AGENTS.md, the MCP server into .mcp.json, .codex/config.toml and .cursor/mcp.json, and the hooks
into .claude/settings.json and .codex/hooks.json. The rest of these files stays as it is; running it again changes
nothing. Exit code 1: a file was left as it is, because it cannot be read, or leads out of the repository; the report
says why. Exit code 64: there is no repository around the current directory, and --dir names no directory.`)
    .option('--dir <dir>', 'the repository (default: the one around the current directory)')
    .option(
      '--for <client>',
      `only for this client: ${CLIENTS.join(', ')} (repeatable)`,
      clients,
      [] as readonly Client[],
    )
    .option('--lock <name>', 'the lock that a push to main needs', lockName, DEFAULT_TERMS.lock)
    .option(
      '--command <command>',
      'how the clients start signalbox, if not by its name on the PATH',
      DEFAULT_TERMS.command,
    )
    .option('--print', 'print what would be in each file, and write nothing')
    .option('--dry-run', 'report what would be done, and write nothing')
    .action(async (flags: InitFlags) => {
      const { plan } = await import('./agents/init.ts');
      const { rootOf } = await import('./agents/place.ts');
      const root = rootOf(flags.dir);
      const { lock, command: program } = flags;
      const changes = plan(root, { lock, command: program }, flags.for.length === 0 ? CLIENTS : flags.for);
      if (flags.print) return printFiles(command, root, changes);
      if (!flags.dryRun) for (const { write } of changes) write?.();
      reportChanges(command, root, changes, flags);
    });
}

function lockName(text: string): string {
  if (nameProblem(text) !== undefined) throw new InvalidArgumentError(`expected ${NAMES}`);
  return text;
}

type Planned = Change & { readonly text?: string };

function printFiles(command: Command, root: string, changes: readonly Planned[]): void {
  const shown = changes.map(({ path, change, why, text }) => ({ path, change, why, text }));
  if (command.isJson) return printJson({ root, isDryRun: true, files: shown });
  for (const { path, change, why, text } of shown) {
    print(`==> ${path} <==`);
    print(text?.trimEnd() ?? printable(`(${change}: ${why ?? ''})`));
    print('');
  }
}

/** What was done to a file; and what would be, with --dry-run. */
const DONE: Readonly<Record<Change['change'], readonly [string, string]>> = {
  created: ['wrote', 'would write'],
  changed: ['added to', 'would add to'],
  unchanged: ['has it', 'has it'],
  left: ['LEFT', 'would leave'],
  refused: ['REFUSED', 'would refuse'],
};

function reportChanges(
  command: Command,
  root: string,
  changes: readonly Planned[],
  { dryRun, command: program }: InitFlags,
): void {
  const isDryRun = dryRun === true;
  const wanting = changes.filter(({ change }) => change === 'left' || change === 'refused');
  if (wanting.length > 0) process.exitCode = EXIT.no;
  if (command.isJson) {
    const files = changes.map(({ path, what, change, why }) => ({ path, what, change, why: why ?? null }));
    return printJson({ root, isDryRun, files });
  }
  print(printable(`${root}:`));
  for (const { path, what, change, why } of changes) {
    print(
      printable(`  ${DONE[change][isDryRun ? 1 : 0].padEnd(isDryRun ? 12 : 8)}  ${path.padEnd(21)}  ${why ?? what}`),
    );
  }
  if (isDryRun) return;
  const [first = ''] = program.split(' ');
  if (!isOnPath(first)) {
    for (const line of notFound(first)) complain(printable(line));
  }
  if (changes.some(({ path, change }) => path.startsWith('.codex/') && change !== 'unchanged')) {
    print('Codex runs the hooks of a repository only once you trust them: type /hooks in Codex.');
  }
  print('Commit these files, and every agent that starts here from now on takes turns. Who holds what: signalbox who');
}

/** The package may be a clone that is nowhere to be downloaded, so the advice names the files that run now. */
function notFound(program: string): readonly string[] {
  const entry = realpathSync(process.argv[1] ?? '.');
  const started = `${process.execPath} ${entry}`;
  // A client splits the command at its spaces.
  const isPlain = started.split(' ').length === 2;
  return [
    `signalbox: ${program} is not on the PATH, where the clients look for it, so these files do not work here yet. Use one of`,
    ...(program === DEFAULT_TERMS.command ? [`  npm install --global ${shellWord(resolve(entry, '../../..'))}`] : []),
    ...(isPlain ? [`  ${started} agents init --command ${shellWord(started)}`] : []),
  ];
}

function isOnPath(program: string): boolean {
  try {
    findProgram(program, process.env);
    return true;
  } catch {
    return false;
  }
}

interface HookFlags {
  readonly lock: string;
  readonly command: string;
  readonly branch: readonly string[];
}

function hook(command: Command): void {
  const clients: readonly HookedClient[] = ['claude-code', 'codex'];
  command
    .about(`the program of the hooks: reads what a client sends on stdin, and answers it

Examples:
  signalbox agents hook claude-code < payload.json
  signalbox agents hook codex --lock merge --branch main --branch release

Clients call it; "agents init" writes it into their settings. Before a tool runs it refuses a git push to main without
the lock; at the start of a session it tells the agent its name, and at the end it releases what was taken under it.
The lock is that of the repository in which git would push: cd and git -C in the command count.
It lets everything else through and prints nothing. Exit code 0 always; a refusal is in the JSON on stdout.`)
    .argument('<client>', clients.join(' or '), (text: string) => {
      if (!clients.includes(text as HookedClient)) throw new InvalidArgumentError(`expected ${clients.join(' or ')}`);
      return text;
    })
    .option('--lock <name>', 'the lock that a push needs', lockName, DEFAULT_TERMS.lock)
    .option('--command <command>', 'how agents start signalbox, for the advice', DEFAULT_TERMS.command)
    .list('--branch <name>', `a branch that needs it (default: ${PROTECTED.join(', ')}; repeatable)`)
    .action(async (client: string, { lock, command: program, branch }: HookFlags) => {
      const { answerHook } = await import('./agents/hook.ts');
      const terms: Terms = { lock, command: program };
      const branches = branch.length === 0 ? PROTECTED : branch;
      try {
        await answerHook({ ...terms, client: client as HookedClient, branches });
      } catch (error) {
        // A hook that fails must not keep its agent from working; the client shows this to its user.
        say((error as Error).message);
      }
    });
}
