/** Makes the bodies of the local GitHub's answers, with every field that GitHub's API description requires. */
import {
  EMPTY_TREE,
  type LocalComment,
  type LocalCommit,
  type LocalIssue,
  type LocalRepository,
  type Permission,
} from './repository.ts';

export class Answers {
  readonly #api: string;
  readonly #name: string;

  constructor(api: string, name: string) {
    this.#api = api;
    this.#name = name;
  }

  get #repo(): string {
    return `${this.#api}/repos/${this.#name}`;
  }

  user(login: string): object {
    const url = `${this.#api}/users/${login}`;
    return {
      ...{ login, id: idOf(login), node_id: `U_${idOf(login)}`, avatar_url: `${url}/avatar`, gravatar_id: '', url },
      ...{ html_url: url, followers_url: `${url}/followers`, following_url: `${url}/following{/other_user}` },
      ...{ gists_url: `${url}/gists{/gist_id}`, starred_url: `${url}/starred{/owner}{/repo}` },
      ...{ subscriptions_url: `${url}/subscriptions`, organizations_url: `${url}/orgs`, repos_url: `${url}/repos` },
      ...{ events_url: `${url}/events{/privacy}`, received_events_url: `${url}/received_events` },
      ...{ type: 'User', site_admin: false },
    };
  }

  ownUser(login: string): object {
    return {
      ...this.user(login),
      ...{ name: null, company: null, blog: null, location: null, email: null, hireable: null, bio: null },
      ...{ public_repos: 1, public_gists: 0, followers: 0, following: 0, created_at: dated(0), updated_at: dated(0) },
    };
  }

  permission(login: string, permission: Permission | 'none'): object {
    const has = (...those: readonly string[]): boolean => those.includes(permission);
    const permissions = {
      ...{ pull: has('read', 'write', 'admin'), triage: has('write', 'admin'), push: has('write', 'admin') },
      ...{ maintain: has('admin'), admin: has('admin') },
    };
    return { permission, role_name: permission, user: { ...this.user(login), role_name: permission, permissions } };
  }

  issue({ number, title, isOpen, assignees, updatedMs }: LocalIssue, comments: number): object {
    const url = `${this.#repo}/issues/${number}`;
    const [first] = assignees;
    return {
      ...{ id: 5000 + number, node_id: `I_${number}`, url, repository_url: this.#repo, html_url: url },
      ...{ labels_url: `${url}/labels{/name}`, comments_url: `${url}/comments`, events_url: `${url}/events` },
      ...{ number, title, state: isOpen ? 'open' : 'closed', state_reason: null, locked: false, comments, body: null },
      ...{ user: this.user('owner'), labels: [], milestone: null, author_association: 'OWNER' },
      ...{ assignee: first === undefined ? null : this.user(first), assignees: assignees.map((one) => this.user(one)) },
      ...{ created_at: dated(0), updated_at: dated(updatedMs), closed_at: isOpen ? null : dated(updatedMs) },
    };
  }

  comment({ id, issue, author, body, createdMs, updatedMs }: LocalComment): object {
    const url = `${this.#repo}/issues/comments/${id}`;
    return {
      ...{ id, node_id: `IC_${id}`, url, html_url: url, issue_url: `${this.#repo}/issues/${issue}`, body },
      ...{ user: this.user(author), author_association: 'COLLABORATOR', performed_via_github_app: null },
      ...{ created_at: dated(createdMs), updated_at: dated(updatedMs) },
    };
  }

  ref(ref: string, sha: string): object {
    const object = { type: 'commit', sha, url: `${this.#repo}/git/commits/${sha}` };
    return { ref, node_id: `REF_${sha}`, url: `${this.#repo}/git/${ref}`, object };
  }

  commit({ sha, message, parents, dateMs }: LocalCommit): object {
    const url = `${this.#repo}/git/commits/${sha}`;
    const person = { name: 'Local', email: 'local@example.com', date: dated(dateMs) };
    return {
      ...{ sha, node_id: `C_${sha}`, url, html_url: url, author: person, committer: person, message },
      tree: { sha: EMPTY_TREE, url: `${this.#repo}/git/trees/${EMPTY_TREE}` },
      parents: parents.map((one) => ({
        sha: one,
        url: `${this.#repo}/git/commits/${one}`,
        html_url: `${this.#repo}/git/commits/${one}`,
      })),
      verification: { verified: false, reason: 'unsigned', signature: null, payload: null, verified_at: null },
    };
  }

  /** As GraphQL shows it. */
  node(ref: string, prefix: string, { commits, refs }: LocalRepository): object {
    const commit = commits.get(refs.get(ref) ?? '');
    const target = { oid: commit?.sha, message: commit?.message, committedDate: dated(commit?.dateMs ?? 0) };
    return { name: ref.slice(prefix.length), target };
  }
}

export function dated(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

function idOf(login: string): number {
  return [...login].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_000, 7);
}
