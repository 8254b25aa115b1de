/** The requests to GitHub that the lock protocol needs. `LockManager` takes any implementation: Octokit's, or a fake one. */
import type { CommentSeen, CommitSeen, IssueSeen, RefMove, RefSeen, Reply } from '../core/github/index.ts';

/** No method throws, because the reply says what went wrong. No method sends a request twice. */
export interface GitHubClient {
  /** One issue. */
  getIssue(issue: number): Promise<Reply<IssueSeen>>;
  /** Assigns an issue to an account, if GitHub allows it. */
  assignIssue(issue: number, login: string): Promise<Reply<{ readonly assignees: readonly string[] }>>;
  /** Removes an account from the assignees. */
  unassignIssue(issue: number, login: string): Promise<Reply<null>>;
  /** Writes a comment. */
  addComment(issue: number, body: string): Promise<Reply<{ readonly id: number }>>;
  /** Replaces the text of a comment. */
  editComment(id: number, body: string): Promise<Reply<null>>;
  /** Reads the comments; the newest hundred are enough. */
  listComments(issue: number): Promise<Reply<readonly CommentSeen[]>>;

  /** Where a ref is. */
  getRef(ref: string): Promise<Reply<RefSeen>>;
  /** Reads refs; a repeat costs nothing while the answer is unchanged (ETag). */
  listRefs(prefix: string): Promise<Reply<readonly RefSeen[]>>;
  /** Makes a ref; refused if it exists. */
  createRef(ref: string, sha: string): Promise<Reply<null>>;
  /** Moves a ref, never by force; refused unless `sha` descends from the ref's commit. */
  updateRef(ref: string, sha: string): Promise<Reply<null>>;
  /** Deletes a ref. */
  deleteRef(ref: string): Promise<Reply<null>>;
  /** Moves all refs or none, each from its expected commit. `missing` if GitHub has no GraphQL. */
  updateRefs(moves: readonly RefMove[]): Promise<Reply<null>>;

  /** One commit. */
  getCommit(sha: string): Promise<Reply<CommitSeen>>;
  /** Makes a commit with the empty tree. The server sets the date. */
  createCommit(
    message: string,
    parents: readonly string[],
  ): Promise<Reply<{ readonly sha: string; readonly dateMs: number }>>;
  /** Reads refs with the commits they point at, in one request. `missing` if GitHub has no GraphQL. */
  listTips(prefix: string): Promise<Reply<readonly Tip[]>>;

  /** Open issues with an assignee; a repeat costs nothing while the answer is unchanged. */
  listAssigned(): Promise<Reply<readonly AssignedIssue[]>>;
  /** The account of the token; null if it belongs to an app. */
  getLogin(): Promise<Reply<string | null>>;
  /** Whether the account is an administrator of the repository. */
  isAdmin(): Promise<Reply<boolean>>;

  /** How many requests are left, according to GitHub's last answer. */
  readonly remaining?: number;
  /** When GitHub allows more requests. */
  readonly resetMs?: number;
}

/** A ref with the commit that it points at. */
export interface Tip extends RefSeen {
  /** The message of the commit. */
  readonly message: string;
  /** The date of the commit. */
  readonly dateMs: number;
}

/** An open issue with an assignee. */
export interface AssignedIssue {
  /** Its number. */
  readonly issue: number;
  /** Its title. */
  readonly title: string;
  /** The accounts that it is assigned to. */
  readonly assignees: readonly string[];
}
