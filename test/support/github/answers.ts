/**
 * GitHub's answers. Their types are made from GitHub's own description of its API, so that one that lacks a field, or has
 * one of another kind, does not compile.
 */
import type { components, operations } from '@octokit/openapi-types';

type Schemas = components['schemas'];
type Found = operations['search/issues-and-pull-requests']['responses'][200]['content']['application/json'];

export interface KeptIssue {
  readonly number: number;
  readonly title: string;
  readonly isClosed: boolean;
  readonly labels: readonly string[];
  readonly assignees: readonly string[];
  /** The title. */
  readonly milestone: string | null;
  readonly isPull: boolean;
}

export interface KeptMilestone {
  readonly number: number;
  readonly title: string;
  readonly isClosed: boolean;
}

/** What may be asked, of what our adapter asks; something else would be passed over by GitHub without a word. */
export const PARAMETERS: {
  readonly issues: readonly (keyof NonNullable<operations['issues/list-for-repo']['parameters']['query']>)[];
  readonly milestones: readonly (keyof NonNullable<operations['issues/list-milestones']['parameters']['query']>)[];
  readonly search: readonly (keyof NonNullable<operations['search/issues-and-pull-requests']['parameters']['query']>)[];
} = {
  issues: ['state', 'labels', 'assignee', 'milestone', 'sort', 'direction', 'per_page', 'page'],
  milestones: ['state', 'per_page', 'page'],
  search: ['q', 'per_page', 'page'],
};

const SOME_TIME = '2024-05-01T12:00:00Z';

/** `api`: the address of the API; `repository`: OWNER/NAME. */
export class Answers {
  readonly #api: string;
  readonly #repository: string;

  constructor(api: string, repository: string) {
    this.#api = api;
    this.#repository = repository;
  }

  issue(
    issue: KeptIssue,
    milestone: KeptMilestone | undefined,
  ): Schemas['issue'] & Schemas['issue-search-result-item'] {
    const url = `${this.#api}/repos/${this.#repository}/issues/${issue.number}`;
    const [assignee] = issue.assignees;
    return {
      ...{ id: 1000 + issue.number, node_id: `I_${issue.number}`, number: issue.number, title: issue.title },
      ...{
        url,
        repository_url: `${this.#api}/repos/${this.#repository}`,
        html_url: `https://github.com/i/${issue.number}`,
      },
      ...{ labels_url: `${url}/labels{/name}`, comments_url: `${url}/comments`, events_url: `${url}/events` },
      state: issue.isClosed ? 'closed' : 'open',
      state_reason: issue.isClosed ? ('completed' as const) : null,
      body: '',
      user: this.user('ana'),
      labels: issue.labels.map((name) => this.#label(name)),
      assignee: assignee === undefined ? null : this.user(assignee),
      assignees: issue.assignees.map((login) => this.user(login)),
      milestone: milestone === undefined ? null : this.milestone(milestone),
      ...{ locked: false, comments: 0, score: 1, author_association: 'MEMBER' as const },
      ...{ created_at: SOME_TIME, updated_at: SOME_TIME, closed_at: issue.isClosed ? SOME_TIME : null },
      ...(issue.isPull && {
        pull_request: { url, html_url: url, diff_url: url, patch_url: url, merged_at: null },
      }),
    };
  }

  repository(hasIssues: boolean): Pick<Schemas['full-repository'], 'full_name' | 'has_issues'> {
    return { full_name: this.#repository, has_issues: hasIssues };
  }

  milestone({ number, title, isClosed }: KeptMilestone): Schemas['milestone'] {
    const url = `${this.#api}/repos/${this.#repository}/milestones/${number}`;
    return {
      ...{ id: 2000 + number, node_id: `MI_${number}`, number, title, url, html_url: url, labels_url: `${url}/labels` },
      state: isClosed ? ('closed' as const) : ('open' as const),
      ...{ description: null, creator: this.user('ana'), open_issues: 0, closed_issues: 0 },
      ...{ created_at: SOME_TIME, updated_at: SOME_TIME, closed_at: isClosed ? SOME_TIME : null, due_on: null },
    };
  }

  found(total: number, isPart: boolean, items: readonly ReturnType<Answers['issue']>[]): Found {
    return {
      total_count: total,
      incomplete_results: isPart,
      search_type: 'lexical',
      items: [...items],
    };
  }

  #label(name: string): Schemas['label'] {
    const url = `${this.#api}/repos/${this.#repository}/labels/${encodeURIComponent(name)}`;
    return { id: 7, node_id: 'LA_7', url, name, description: null, color: 'ededed', default: false };
  }

  user(login: string): Schemas['simple-user'] {
    const url = `${this.#api}/users/${login}`;
    return {
      ...{
        login,
        id: 9,
        node_id: 'U_9',
        avatar_url: url,
        gravatar_id: '',
        url,
        html_url: url,
        type: 'User',
        site_admin: false,
      },
      ...{ followers_url: `${url}/followers`, following_url: `${url}/following{/other_user}` },
      ...{ gists_url: `${url}/gists{/gist_id}`, starred_url: `${url}/starred{/owner}{/repo}` },
      ...{ subscriptions_url: `${url}/subscriptions`, organizations_url: `${url}/orgs`, repos_url: `${url}/repos` },
      ...{ events_url: `${url}/events{/privacy}`, received_events_url: `${url}/received_events` },
    };
  }
}
