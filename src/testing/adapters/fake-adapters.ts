/** All adapters as fakes: a world that holds still, and changes when the test says so. */
import type { Adapters } from '../../adapters/index.ts';
import { FakeCommands } from './fake-commands.ts';
import { FakeFiles } from './fake-files.ts';
import { FakeGit, type FakeGitState } from './fake-git.ts';
import { type FakeIssue, FakeIssues } from './fake-issues.ts';
import { FakeSessions } from './fake-sessions.ts';

export interface FakeWorld {
  readonly git?: FakeGitState;
  /** Texts by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly sessions?: readonly string[];
  readonly issues?: readonly FakeIssue[];
}

export interface FakeAdapters extends Adapters {
  readonly git: FakeGit;
  readonly files: FakeFiles;
  readonly commands: FakeCommands;
  readonly sessions: FakeSessions;
  readonly issues: FakeIssues;
}

export function fakeAdapters({ git, files, sessions, issues }: FakeWorld = {}): FakeAdapters {
  return {
    git: new FakeGit(git),
    files: new FakeFiles(files),
    commands: new FakeCommands(),
    sessions: new FakeSessions(sessions),
    issues: new FakeIssues(issues),
  };
}
