/**
 * What guards look at besides the store: git, files, commands, tmux sessions, issues. Each is a small interface, so that a
 * test can put a fake in its place (`signalbox/testing`).
 *
 * Each returns what it found, in the shapes of `InputValues`, or throws. An adapter that could not find out never guesses;
 * the guard treats its error as missing input.
 */
import type { CommandLine, InputValues, IssueFields, IssueSearch } from '../core/index.ts';

export interface Git {
  branch(name: string, signal?: AbortSignal): Promise<InputValues['branch']>;
  /** Every worktree that has the branch checked out or is detached at its tip; null if there is no such branch. */
  worktrees(branch: string, signal?: AbortSignal): Promise<InputValues['worktrees']>;
  /** The worktree that a directory lies in; null if there is no such directory. */
  worktree(path: string, signal?: AbortSignal): Promise<InputValues['worktree']>;
  merged(branch: string, into: string, signal?: AbortSignal): Promise<InputValues['branchMerged']>;
}

/** Paths are relative to a root, and never lead out of it. */
export interface Files {
  file(path: string, signal?: AbortSignal): Promise<InputValues['file']>;
  text(path: string, signal?: AbortSignal): Promise<InputValues['fileText']>;
}

export interface Commands {
  /** Runs the command to its end, and then ends everything it started; also after a timeout or when `signal` aborts. */
  run(cmd: CommandLine, signal?: AbortSignal): Promise<CommandResult>;
}

export interface CommandResult {
  /** 128+n if signal n ended it. */
  readonly exitCode: number;
  /** What it printed, stdout and stderr as they came; of long output the beginning and the end. */
  readonly output: string;
}

export interface Sessions {
  session(name: string, signal?: AbortSignal): Promise<InputValues['session']>;
}

export interface Issues {
  issues(filter: IssueFields | IssueSearch, signal?: AbortSignal): Promise<InputValues['issues']>;
  issue(id: string, signal?: AbortSignal): Promise<InputValues['issue']>;
}

export interface Adapters {
  readonly git: Git;
  readonly files: Files;
  readonly commands: Commands;
  readonly sessions: Sessions;
  readonly issues: Issues;
}
