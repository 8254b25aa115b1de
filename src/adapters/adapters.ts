/**
 * What guards look at besides the store: git, files, commands, tmux sessions, issues. Each is a small interface, so that a
 * test can put a fake in its place (`signalbox/testing`).
 *
 * Each returns what it found, in the shapes of `InputValues`, or throws. An adapter that could not find out never guesses;
 * the guard treats its error as missing input.
 */
import type { CommandLine, InputValues, IssueFields, IssueSearch } from '../core/index.ts';

/** Looks at a git repository. */
export interface Git {
  /** Whether there is such a branch. */
  branch(name: string, signal?: AbortSignal): Promise<InputValues['branch']>;
  /** Every worktree that has the branch checked out or is detached at its tip; null if there is no such branch. */
  worktrees(branch: string, signal?: AbortSignal): Promise<InputValues['worktrees']>;
  /** The worktree that a directory lies in; null if there is no such directory. */
  worktree(path: string, signal?: AbortSignal): Promise<InputValues['worktree']>;
  /** Whether everything of `branch` is in `into`. */
  merged(branch: string, into: string, signal?: AbortSignal): Promise<InputValues['branchMerged']>;
}

/** Paths are relative to a root, and never lead out of it. */
export interface Files {
  /** Whether there is such a file. */
  file(path: string, signal?: AbortSignal): Promise<InputValues['file']>;
  /** The text of a file; null if there is none. */
  text(path: string, signal?: AbortSignal): Promise<InputValues['fileText']>;
}

/** Runs commands of guards. */
export interface Commands {
  /** Runs the command to its end, and then ends everything it started; also after a timeout or when `signal` aborts. */
  run(cmd: CommandLine, signal?: AbortSignal): Promise<CommandResult>;
}

/** How a command ended. */
export interface CommandResult {
  /** 128+n if signal n ended it. */
  readonly exitCode: number;
  /** What it printed, stdout and stderr in the order they came; only the beginning and the end of long output. */
  readonly output: string;
}

/** Looks at terminal sessions. */
export interface Sessions {
  /** Whether a session of this name is alive. */
  session(name: string, signal?: AbortSignal): Promise<InputValues['session']>;
}

/** Looks at issues. */
export interface Issues {
  /** The issues that the filter matches. */
  issues(filter: IssueFields | IssueSearch, signal?: AbortSignal): Promise<InputValues['issues']>;
  /** One issue; null if there is none. */
  issue(id: string, signal?: AbortSignal): Promise<InputValues['issue']>;
}

/** What guards look at outside the store. */
export interface Adapters {
  /** Branches and worktrees. */
  readonly git: Git;
  /** Files and their text. */
  readonly files: Files;
  /** Commands that answer by their exit code. */
  readonly commands: Commands;
  /** Terminal sessions, such as those of tmux. */
  readonly sessions: Sessions;
  /** Issues of a tracker. */
  readonly issues: Issues;
}
