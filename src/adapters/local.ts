/** The adapters to this machine. Creating them does not inspect anything yet. */
import { LONGEST_MS } from '../core/index.ts';
import type { Adapters, Issues } from './adapters.ts';
import { type CommandsOptions, realCommands } from './commands.ts';
import { realFiles } from './files.ts';
import { realGit } from './git.ts';
import { chosenIssues } from './issues/choice.ts';
import type { GitHubIssuesOptions } from './issues/github.ts';
import { checkLimit } from './limit.ts';
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
  const { commandTimeoutMs, commandGraceMs, outputLimitBytes } = options;
  checkLimits(options);
  const commands: CommandsOptions = {
    ...{ root, env },
    ...(commandTimeoutMs !== undefined && { timeoutMs: commandTimeoutMs }),
    ...(commandGraceMs !== undefined && { graceMs: commandGraceMs }),
    ...(outputLimitBytes !== undefined && { outputLimitBytes }),
  };
  return {
    git: realGit({ root, env, ...(gitTimeoutMs !== undefined && { timeoutMs: gitTimeoutMs }) }),
    files: realFiles({ root, ...(fileLimitBytes !== undefined && { limitBytes: fileLimitBytes }) }),
    commands: realCommands(commands),
    sessions: realSessions({ env, ...(tmuxSocketName !== undefined && { socketName: tmuxSocketName }) }),
    issues: chosenIssues(issues, { root, env, ...(github !== undefined && { github }) }),
  };
}

function checkLimits({
  commandTimeoutMs,
  commandGraceMs,
  gitTimeoutMs,
  outputLimitBytes,
  fileLimitBytes,
}: LocalAdaptersOptions): void {
  checkLimit('commandTimeoutMs', commandTimeoutMs ?? 1, 1, LONGEST_MS);
  checkLimit('commandGraceMs', commandGraceMs ?? 0, 0, LONGEST_MS);
  checkLimit('gitTimeoutMs', gitTimeoutMs ?? 1, 1, LONGEST_MS);
  checkLimit('outputLimitBytes', outputLimitBytes ?? 16, 16);
  checkLimit('fileLimitBytes', fileLimitBytes ?? 0, 0);
}
