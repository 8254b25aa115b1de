export type { Adapters, CommandResult, Commands, Files, Git, Issues, Sessions } from './adapters.ts';
export { type Anchor, anchorAt, type AnchorOptions } from './anchors.ts';
export { type CommandsOptions, realCommands } from './commands.ts';
export { type FilesOptions, realFiles } from './files.ts';
export { type GitOptions, realGit } from './git.ts';
export { githubIssues, type GitHubIssuesOptions } from './issues/github.ts';
export {
  type AddOutcome,
  type IssueChanges,
  type NewIssue,
  openTracker,
  type Tracker,
  type UpdateOutcome,
} from './issues/local.ts';
export type { TrackedIssue } from './issues/tracker-file.ts';
export { localAdapters, type LocalAdaptersOptions } from './local.ts';
export { realSessions, type SessionsOptions } from './sessions.ts';
