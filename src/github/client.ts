/** What the lock protocol needs of GitHub. `LockManager` takes any implementation: Octokit's, or a fake one. */
import type { CommentSeen, CommitSeen, IssueSeen, RefMove, RefSeen, Reply } from '../core/github/index.ts';

/** No method throws: what went wrong is in the reply. None sends a request twice. */
export interface GitHubClient {
  /** One issue. */
  getIssue(issue: number): Promise<Reply<IssueSeen>>;
  /** Assigns an issue to an account, if GitHub allows it. */
  assignIssue(issue: number, login: string): Promise<Reply<{ readonly assignees: readonly string[] }>>;
  /** Takes an account from the assignees. */
  unassignIssue(issue: number, login: string): Promise<Reply<null>>;
  /** Writes a comment. */
  addComment(issue: number, body: string): Promise<Reply<{ readonly id: number }>>;
  /** Replaces the text of a comment. */
  editComment(id: number, body: string): Promise<Reply<null>>;
  /** The newest hundred are enough. */
  listComments(issue: number): Promise<Reply<readonly CommentSeen[]>>;

  /** Where a ref is. */
  getRef(ref: string): Promise<Reply<RefSeen>>;
  /** Asked again, an unchanged answer costs nothing (ETag). */
  listRefs(prefix: string): Promise<Reply<readonly RefSeen[]>>;
  /** Refused if it exists. */
  createRef(ref: string, sha: string): Promise<Reply<null>>;
  /** Refused unless `sha` descends from where the ref is. Never forced. */
  updateRef(ref: string, sha: string): Promise<Reply<null>>;
  /** Deletes a ref. */
  deleteRef(ref: string): Promise<Reply<null>>;
  /** All moves or none, each from where it is expected. `missing` where GitHub has no GraphQL. */
  updateRefs(moves: readonly RefMove[]): Promise<Reply<null>>;

  /** One commit. */
  getCommit(sha: string): Promise<Reply<CommitSeen>>;
  /** With the empty tree. The server sets the date. */
  createCommit(
    message: string,
    parents: readonly string[],
  ): Promise<Reply<{ readonly sha: string; readonly dateMs: number }>>;
  /** Refs with the commits they point at, by one request. `missing` where GitHub has no GraphQL. */
  listTips(prefix: string): Promise<Reply<readonly Tip[]>>;

  /** Open issues with an assignee. Asked again, an unchanged answer costs nothing. */
  listAssigned(): Promise<Reply<readonly AssignedIssue[]>>;
  /** The account of the token; null if it belongs to an app. */
  getLogin(): Promise<Reply<string | null>>;
  /** Whether the account may administrate the repository. */
  isAdmin(): Promise<Reply<boolean>>;

  /** As GitHub last said. */
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
