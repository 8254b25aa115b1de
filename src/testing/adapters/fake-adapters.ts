/** All adapters as fakes: nothing changes unless the test says so. */
import type { Adapters } from '../../adapters/index.ts';
import { FakeCommands } from './fake-commands.ts';
import { FakeFiles } from './fake-files.ts';
import { FakeGit, type FakeGitState } from './fake-git.ts';
import { type FakeIssue, FakeIssues } from './fake-issues.ts';
import { FakeSessions } from './fake-sessions.ts';

/** The initial state of the adapters. */
export interface FakeWorld {
  /** Branches and worktrees. */
  readonly git?: FakeGitState;
  /** Texts by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Names of terminal sessions that are alive. */
  readonly sessions?: readonly string[];
  /** Issues. */
  readonly issues?: readonly FakeIssue[];
}

/** Adapters whose state a test sets. */
export interface FakeAdapters extends Adapters {
  /** Branches and worktrees. */
  readonly git: FakeGit;
  /** Files and their text. */
  readonly files: FakeFiles;
  /** Commands and how they end. */
  readonly commands: FakeCommands;
  /** Terminal sessions. */
  readonly sessions: FakeSessions;
  /** Issues. */
  readonly issues: FakeIssues;
}

/** Makes adapters for a test. */
export function fakeAdapters({ git, files, sessions, issues }: FakeWorld = {}): FakeAdapters {
  return {
    git: new FakeGit(git),
    files: new FakeFiles(files),
    commands: new FakeCommands(),
    sessions: new FakeSessions(sessions),
    issues: new FakeIssues(issues),
  };
}
