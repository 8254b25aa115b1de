/**
 * A repository of the local GitHub: commits, refs, issues and comments, in memory, with GitHub's rules for each. Has no clock:
 * the caller passes the time of every change, which the server keeps in whole seconds.
 */
import { createHash } from 'node:crypto';
import type { RefMove } from '../../core/github/index.ts';

export type Permission = 'admin' | 'write' | 'read';

export interface LocalCommit {
  readonly sha: string;
  readonly message: string;
  readonly parents: readonly string[];
  readonly dateMs: number;
}

export interface LocalComment {
  readonly id: number;
  readonly issue: number;
  readonly author: string;
  readonly createdMs: number;
  body: string;
  updatedMs: number;
}

export interface LocalIssue {
  readonly number: number;
  title: string;
  isOpen: boolean;
  assignees: string[];
  updatedMs: number;
}

export interface RefChange {
  readonly ref: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly atMs: number;
}

export type RefOutcome = 'done' | 'exists' | 'missing' | 'not-fast-forward' | 'no-object' | 'mismatch';

export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const MOST_ASSIGNEES = 10;
export const MOST_COMMENTS = 2_500;

export class LocalRepository {
  readonly commits = new Map<string, LocalCommit>();
  readonly refs = new Map<string, string>();
  /** Every change of a ref, in order. */
  readonly changes: RefChange[] = [];
  readonly issues = new Map<number, LocalIssue>();
  readonly comments = new Map<number, LocalComment>();
  /** The permission of each account. GitHub assigns only these accounts. */
  readonly collaborators = new Map<string, Permission>();
  /** Settable, so that a test can reach the limit. */
  mostComments = MOST_COMMENTS;
  #lastComment = 1000;

  addIssue(number: number, title = `Issue ${number}`, atMs = 0): LocalIssue {
    const issue = { number, title, isOpen: true, assignees: [], updatedMs: atMs };
    this.issues.set(number, issue);
    return issue;
  }

  /** Undefined if a parent is not known. */
  makeCommit(message: string, parents: readonly string[], atMs: number): LocalCommit | undefined {
    if (parents.some((parent) => !this.commits.has(parent))) return undefined;
    const dateMs = inSeconds(atMs);
    const sha = createHash('sha1')
      .update(JSON.stringify([message, parents, dateMs]))
      .digest('hex');
    const commit = { sha, message, parents, dateMs };
    this.commits.set(sha, commit);
    return commit;
  }

  makeRef(ref: string, sha: string, atMs: number): RefOutcome {
    if (!this.commits.has(sha)) return 'no-object';
    if (this.refs.has(ref)) return 'exists';
    this.#put(ref, sha, atMs);
    return 'done';
  }

  moveRef(ref: string, sha: string, atMs: number, force = false): RefOutcome {
    const tip = this.refs.get(ref);
    if (tip === undefined) return 'missing';
    if (!this.commits.has(sha)) return 'no-object';
    if (!force && !this.isAncestor(tip, sha)) return 'not-fast-forward';
    this.#put(ref, sha, atMs);
    return 'done';
  }

  /** All or none. */
  moveRefs(moves: readonly RefMove[], atMs: number): RefOutcome {
    for (const { ref, from, to } of moves) {
      if ((this.refs.get(ref) ?? null) !== from) return 'mismatch';
      if (to !== null && !this.commits.has(to)) return 'no-object';
      if (from !== null && to !== null && !this.isAncestor(from, to)) return 'not-fast-forward';
    }
    for (const { ref, to } of moves) this.#put(ref, to, atMs);
    return 'done';
  }

  deleteRef(ref: string, atMs: number): RefOutcome {
    if (!this.refs.has(ref)) return 'missing';
    this.#put(ref, null, atMs);
    return 'done';
  }

  #put(ref: string, to: string | null, atMs: number): void {
    const from = this.refs.get(ref) ?? null;
    if (from === to) return;
    if (to === null) this.refs.delete(ref);
    else this.refs.set(ref, to);
    this.changes.push({ ref, from, to, atMs });
  }

  /** The value that a replica which lags behind would return. */
  refBefore(ref: string, changesAgo: number): string | null {
    if (changesAgo === 0) return this.refs.get(ref) ?? null;
    const own = this.changes.filter((change) => change.ref === ref);
    return own.at(-changesAgo)?.from ?? null;
  }

  isAncestor(ancestor: string, sha: string): boolean {
    const seen = new Set<string>();
    const open = [sha];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === ancestor) return true;
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(...(this.commits.get(next)?.parents ?? []));
    }
    return false;
  }

  /** Ignores accounts that may not be assigned, and those beyond ten, without an error. */
  assign(issue: LocalIssue, logins: readonly string[], atMs: number): void {
    for (const login of logins) {
      const known = [...this.collaborators.keys()].find((one) => one.toLowerCase() === login.toLowerCase());
      if (known === undefined || issue.assignees.includes(known) || issue.assignees.length >= MOST_ASSIGNEES) continue;
      issue.assignees.push(known);
      issue.updatedMs = atMs;
    }
  }

  unassign(issue: LocalIssue, logins: readonly string[], atMs: number): void {
    const gone = logins.map((login) => login.toLowerCase());
    issue.assignees = issue.assignees.filter((login) => !gone.includes(login.toLowerCase()));
    issue.updatedMs = atMs;
  }

  /** Undefined if the issue has as many comments as GitHub allows. */
  comment(issue: number, author: string, body: string, atMs: number): LocalComment | undefined {
    if (this.commentsOf(issue).length >= this.mostComments) return undefined;
    const made = { id: ++this.#lastComment, issue, author, body, createdMs: atMs, updatedMs: atMs };
    this.comments.set(made.id, made);
    return made;
  }

  commentsOf(issue: number): readonly LocalComment[] {
    return [...this.comments.values()].filter((comment) => comment.issue === issue);
  }
}

export function inSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
