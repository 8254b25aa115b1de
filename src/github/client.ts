/** What the lock protocol needs of GitHub. `LockManager` takes any implementation: Octokit's, or a fake one. */
import type { CommentSeen, CommitSeen, IssueSeen, RefMove, RefSeen, Reply } from '../core/github/index.ts';

/** No method throws: what went wrong is in the reply. None sends a request twice. */
export interface GitHubClient {
  getIssue(issue: number): Promise<Reply<IssueSeen>>;
  assignIssue(issue: number, login: string): Promise<Reply<{ readonly assignees: readonly string[] }>>;
  unassignIssue(issue: number, login: string): Promise<Reply<null>>;
  addComment(issue: number, body: string): Promise<Reply<{ readonly id: number }>>;
  editComment(id: number, body: string): Promise<Reply<null>>;
  /** The newest hundred are enough. */
  listComments(issue: number): Promise<Reply<readonly CommentSeen[]>>;

  getRef(ref: string): Promise<Reply<RefSeen>>;
  /** Asked again, an unchanged answer costs nothing (ETag). */
  listRefs(prefix: string): Promise<Reply<readonly RefSeen[]>>;
  /** Refused if it exists. */
  createRef(ref: string, sha: string): Promise<Reply<null>>;
  /** Refused unless `sha` descends from where the ref is. Never forced. */
  updateRef(ref: string, sha: string): Promise<Reply<null>>;
  deleteRef(ref: string): Promise<Reply<null>>;
  /** All moves or none, each from where it is expected. `missing` where GitHub has no GraphQL. */
  updateRefs(moves: readonly RefMove[]): Promise<Reply<null>>;

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
  isAdmin(): Promise<Reply<boolean>>;

  /** As GitHub last said. */
  readonly remaining?: number;
  readonly resetMs?: number;
}

export interface Tip extends RefSeen {
  readonly message: string;
  readonly dateMs: number;
}

export interface AssignedIssue {
  readonly issue: number;
  readonly title: string;
  readonly assignees: readonly string[];
}
