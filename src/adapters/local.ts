/** The adapters to this machine. Creating them does not inspect anything yet. */
import { given } from '../core/given.ts';
import { LONGEST_MS } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import type { Adapters, Issues } from './adapters.ts';
import { realCommands } from './commands.ts';
import { realFiles } from './files.ts';
import { realGit } from './git.ts';
import { chosenIssues } from './issues/choice.ts';
import type { GitHubIssuesOptions } from './issues/github.ts';
import { realSessions } from './sessions.ts';

/** Where to look, and within which limits. */
export interface LocalAdaptersOptions {
  /** The repository to inspect; files and commands stay inside it. */
  readonly root: string;
  /**
   * The path of a local tracker, relative to the root, or `github:OWNER/NAME`. By default, the value of
   * `SIGNALBOX_ISSUES`, or `.signalbox/issues.json` under the root.
   */
  readonly issues?: string | Issues;
  /** How to reach GitHub, if the issues are there. */
  readonly github?: Omit<GitHubIssuesOptions, 'repository'>;
  /** Default 60 s. */
  readonly commandTimeoutMs?: number;
  /** The time between TERM and KILL. Default 2 s. */
  readonly commandGraceMs?: number;
  /** How much of a command's output is kept. Default 64 KiB. */
  readonly outputLimitBytes?: number;
  /** Time limit of one inspection, for all calls of git together. Default 30 s. */
  readonly gitTimeoutMs?: number;
  /** Larger files are not read. Default 1 MiB. */
  readonly fileLimitBytes?: number;
  /** The tmux server, as for `tmux -L`. */
  readonly tmuxSocketName?: string;
  /** Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

/** The adapters of this machine: git, files, commands, tmux and issues. */
export function localAdapters(options: LocalAdaptersOptions): Adapters {
  const { root, env = process.env, issues, github, fileLimitBytes, gitTimeoutMs, tmuxSocketName } = options;
  const { commandTimeoutMs, commandGraceMs: graceMs, outputLimitBytes } = options;
  for (const [name, least, most] of LIMITS) checkLimit(name, options[name] ?? least, least, most);
  return {
    git: realGit({ root, env, ...given({ timeoutMs: gitTimeoutMs }) }),
    files: realFiles({ root, ...given({ limitBytes: fileLimitBytes }) }),
    commands: realCommands({ root, env, ...given({ timeoutMs: commandTimeoutMs, graceMs, outputLimitBytes }) }),
    sessions: realSessions({ env, ...given({ socketName: tmuxSocketName }) }),
    issues: chosenIssues(issues, { root, env, ...given({ github }) }),
  };
}

const LIMITS = [
  ['commandTimeoutMs', 1, LONGEST_MS],
  ['commandGraceMs', 0, LONGEST_MS],
  ['gitTimeoutMs', 1, LONGEST_MS],
  ['outputLimitBytes', 16],
  ['fileLimitBytes', 0],
] as const;

function checkLimit(name: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new Failure('invalid', `${name} is ${shown(value)}: a whole number from ${least} to ${most} was expected`);
}
