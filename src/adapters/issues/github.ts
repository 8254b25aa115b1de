/**
 * Reads GitHub Issues. A closed issue is done. An open issue has the status that its labels say, `blocked` before
 * `in-progress`; without such a label, it is to do.
 *
 * GitHub applies the filter as far as it can; the result is filtered again here.
 */
import type { IssueFields, IssueSearch } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { Issues } from '../adapters.ts';
import { GitHubClient, type GitHubOptions, type Page } from './github-client.ts';
import { issueIn, listIn, objectIn, sameInAnyCase } from './github-issue.ts';
import { hasFields, isSearch, type Matchable } from './matching.ts';

/** Which repository, and how to reach it. */
export interface GitHubIssuesOptions extends GitHubOptions {
  /** `OWNER/NAME` */
  readonly repository: string;
  /** An open issue with this label is blocked. Default `blocked`. */
  readonly blockedLabel?: string;
  /** An open issue with this label is in progress. Default `in-progress`. */
  readonly inProgressLabel?: string;
  /** The most issues that one question may read; more is an error. Default 5,000. */
  readonly mostIssues?: number;
}

const PER_PAGE = 100;
const MOST_ISSUES = 5_000;
const MOST_IDS = 100;
/** GitHub's search finds more, but returns only this many. */
const MOST_FOUND = 1_000;

/** The issues of a repository on GitHub. */
export function githubIssues(options: GitHubIssuesOptions): Issues {
  const { repository, blockedLabel = 'blocked', inProgressLabel = 'in-progress', mostIssues = MOST_ISSUES } = options;
  checkRepository(repository);
  const client = new GitHubClient(repository, options);
  const base = `/repos/${repository}`;
  const read = (item: unknown): Matchable | undefined =>
    issueIn(item, { blocked: blockedLabel, inProgress: inProgressLabel });
  const trouble = (what: string): Failure => new Failure('unavailable', `GitHub, ${repository}: ${what}`);

  async function* pages(address: string, signal?: AbortSignal): AsyncGenerator<unknown> {
    const mostPages = Math.ceil(mostIssues / PER_PAGE);
    for (let next: string | undefined = address, count = 0; next !== undefined; count++) {
      if (count === mostPages)
        throw trouble(`more than ${mostIssues} to look through; ask for fewer (labels, milestone, status)`);
      const page: Page = await client.get(next, signal, undefined, isOpenEnded);
      yield page.body;
      next = page.next;
    }
  }

  /** The current name of the repository. GitHub knows its former names too, but not everywhere. */
  async function fullName(signal?: AbortSignal): Promise<string> {
    const { full_name: name, has_issues: hasIssues } = objectIn((await client.get(client.address(base), signal)).body);
    if (hasIssues === false) throw new Failure('not-found', `GitHub, ${repository}: its issues are switched off`);
    return typeof name === 'string' ? name : repository;
  }

  async function numbered(id: string, signal?: AbortSignal): Promise<Matchable | undefined> {
    const nothing = async (): Promise<Page> => {
      // Tell a missing issue from a repository that we may not see.
      await fullName(signal);
      return { body: null };
    };
    const { body } = await client.get(client.address(`${base}/issues/${numberOf(id)}`), signal, nothing);
    const issue = body === null ? undefined : read(body);
    // An issue that was moved to another repository has another number there.
    return issue === undefined ? undefined : { ...issue, id };
  }

  async function having(fields: IssueFields, signal?: AbortSignal): Promise<readonly Matchable[]> {
    const all = fields.ids === undefined ? await listed(fields, signal) : await eachOf(fields.ids.map(String), signal);
    const { assignee, ...others } = fields;
    return all.filter((issue) => hasFields(issue, others, sameInAnyCase) && isAssignedTo(issue, assignee));
  }

  async function eachOf(ids: readonly string[], signal?: AbortSignal): Promise<readonly Matchable[]> {
    if (ids.length > MOST_IDS)
      throw new Failure('invalid', `${ids.length} ids at once are too many: at most ${MOST_IDS}`);
    ids.forEach(numberOf);
    const all: Matchable[] = [];
    for (const id of ids) {
      const issue = await numbered(id, signal);
      if (issue !== undefined) all.push(issue);
    }
    return all;
  }

  async function listed(fields: IssueFields, signal?: AbortSignal): Promise<readonly Matchable[]> {
    const { status, milestone, assignee, labels = [] } = fields;
    const ofStatus = status === 'blocked' ? [blockedLabel] : status === 'in-progress' ? [inProgressLabel] : [];
    // A comma would separate two labels.
    const sent = [...labels, ...ofStatus].filter((label) => !label.includes(','));
    const query = {
      state: status === undefined ? 'all' : status === 'done' ? 'closed' : 'open',
      // The oldest first: issues created meanwhile come at the end, and do not shift others to a page that was read before.
      ...{ sort: 'created', direction: 'asc', per_page: String(PER_PAGE) },
      ...(assignee !== undefined && { assignee }),
      ...(milestone !== undefined && { milestone: await milestoneNumber(milestone, signal) }),
      ...(sent.length > 0 && { labels: sent.join(',') }),
    };
    const all: unknown[] = [];
    for await (const body of pages(client.address(`${base}/issues`, query), signal)) all.push(...listIn(body));
    return all.map(read).filter((issue) => issue !== undefined);
  }

  async function milestoneNumber(title: string, signal?: AbortSignal): Promise<string> {
    const address = client.address(`${base}/milestones`, { state: 'all', per_page: String(PER_PAGE) });
    for await (const body of pages(address, signal)) {
      const milestone = listIn(body).find((each) => each['title'] === title);
      if (milestone !== undefined) return String(milestone['number']);
    }
    // An empty answer would be taken for "nothing is left to do".
    throw new Failure('not-found', `GitHub, ${repository}: there is no milestone ${shown(title)}`);
  }

  async function searched({ query }: IssueSearch, signal?: AbortSignal): Promise<readonly Matchable[]> {
    const all: Record<string, unknown>[] = [];
    const name = await fullName(signal);
    // Our part comes first: an open quote, or a NOT at the end of the caller's query, would swallow it, and then find nothing.
    const q = `repo:${name} is:issue ${query}`;
    for await (const body of pages(client.address('/search/issues', { q, per_page: String(PER_PAGE) }), signal)) {
      const { total_count: total, incomplete_results: isPart, items } = objectIn(body);
      if (isPart === true) throw trouble(`it did not get through with searching for ${shown(query)}; ask for less`);
      if (Number(total) > MOST_FOUND) {
        throw trouble(`${Number(total)} issues match ${shown(query)}, and it gives out ${MOST_FOUND}; ask for less`);
      }
      all.push(...listIn(items));
    }
    // A query may name further repositories.
    const end = `/repos/${name}`.toLowerCase();
    const own = all.filter((item) => String(item['repository_url']).toLowerCase().endsWith(end));
    return own.map(read).filter((issue) => issue !== undefined);
  }

  return {
    async issues(filter, signal) {
      const found = isSearch(filter) ? await searched(filter, signal) : await having(filter, signal);
      // An issue that moves from one page to the next between two reads comes twice.
      return [...new Map(found.map(({ id, status }) => [id, { id, status }])).values()];
    },

    async issue(id, signal) {
      const issue = await numbered(id, signal);
      return issue === undefined ? null : { status: issue.status };
    },
  };
}

/**
 * Whether a page is the last and full. New issues then start another page and leave this one unchanged, so "not
 * changed" would not show them.
 */
function isOpenEnded({ body, next }: Page): boolean {
  const { items = body } = objectIn(body);
  return next === undefined && Array.isArray(items) && items.length >= PER_PAGE;
}

function checkRepository(name: string): void {
  if (/^[\w.-]+\/[\w.-]+$/.test(name) && !name.split('/').some((part) => /^\.\.?$/.test(part))) return;
  throw new Failure('invalid', `${shown(name)} is not a GitHub repository: expected OWNER/NAME`);
}

/** To GitHub `*` means any assignee and `none` no assignee. */
function isAssignedTo({ assignees }: Matchable, assignee: string | undefined): boolean {
  if (assignee === undefined) return true;
  if (assignee === '*' || assignee === 'none')
    return assignee === 'none' ? assignees.length === 0 : assignees.length > 0;
  return assignees.some((own) => sameInAnyCase(own, assignee));
}

function numberOf(id: string): string {
  if (/^[1-9]\d{0,14}$/.test(id)) return id;
  throw new Failure('invalid', `${shown(id)} is not a GitHub issue: expected a number`);
}
