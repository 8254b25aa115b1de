/**
 * A GitHub for tests, on the loopback: issues, milestones and search of one repository, with pages, ETags, limits and
 * refusals.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Answers, type KeptIssue, type KeptMilestone, PARAMETERS } from './answers.ts';

export interface Asked {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** Filled in when it was answered. */
  status: number;
}

/** Instead of the answer; `undefined` cuts the line. */
export type Fault =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  | undefined;

export interface GitHubState {
  readonly repository?: string;
  /** Whoever has no such token sees nothing. */
  readonly token?: string;
}

export class FakeGitHub {
  readonly repository: string;
  readonly asked: Asked[] = [];
  /** Of the limit; an answer that nothing has changed costs nothing. */
  remaining = 5000;
  /** One for each of the next requests. */
  readonly faults: Fault[] = [];
  /** What the search says of itself. */
  search: { readonly isPart?: boolean; readonly total?: number } = {};
  /** Issues that were deleted, or moved to another address. */
  readonly gone = new Set<number>();
  readonly moved = new Map<number, string>();
  hasIssues = true;
  formerName: string | undefined;
  /** Put in front of the address of the next page. */
  nextOrigin: string | undefined;
  readonly #issues = new Map<number, KeptIssue>();
  readonly #milestones: KeptMilestone[] = [];
  readonly #token: string | undefined;
  readonly #server: Server;

  private constructor(server: Server, { repository = 'acme/rocket', token }: GitHubState) {
    this.#server = server;
    this.repository = repository;
    this.#token = token;
    server.on('request', (request, response) => this.#answer(request, response));
  }

  static async start(state: GitHubState = {}): Promise<FakeGitHub> {
    const server = createServer();
    const github = new FakeGitHub(server, state);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return github;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  addMilestone(title: string, isClosed = false): void {
    if (!this.#milestones.some((each) => each.title === title)) {
      this.#milestones.push({ number: this.#milestones.length + 1, title, isClosed });
    }
  }

  set(issue: Partial<KeptIssue> & { readonly number: number }): void {
    const fresh = { title: '', isClosed: false, labels: [], assignees: [], milestone: null, isPull: false };
    this.#issues.set(issue.number, { ...fresh, ...this.#issues.get(issue.number), ...issue });
    if (typeof issue.milestone === 'string') this.addMilestone(issue.milestone);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', this.url);
    const asked: Asked = { path: pathname, query: searchParams, headers: request.headers, status: 0 };
    this.asked.push(asked);
    const reply = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
      asked.status = status;
      const isSame = status === 304;
      if (!isSame) this.remaining--;
      response.writeHead(status, {
        ...(!isSame && { 'content-type': 'application/json; charset=utf-8' }),
        ...this.#limits(),
        ...headers,
      });
      response.end(isSame ? undefined : JSON.stringify(body));
    };
    if (this.faults.length > 0) {
      const fault = this.faults.shift();
      if (fault === undefined) request.socket.destroy();
      else reply(fault.status, fault.body ?? { message: 'A fault' }, fault.headers);
      return;
    }
    if (this.remaining <= 0) return reply(403, { message: 'API rate limit exceeded for 127.0.0.1.' });
    if (
      this.#token !== undefined &&
      request.headers.authorization !== undefined &&
      request.headers.authorization !== `Bearer ${this.#token}`
    ) {
      return reply(401, { message: 'Bad credentials', documentation_url: 'https://docs.github.com/rest' });
    }
    if (this.#token !== undefined && request.headers.authorization === undefined)
      return reply(404, { message: 'Not Found' });
    this.#route(pathname, searchParams, request, reply);
  }

  #limits(): Readonly<Record<string, string>> {
    return { 'x-ratelimit-remaining': String(Math.max(0, this.remaining)), 'x-ratelimit-reset': '4102444800' };
  }

  #route(path: string, query: URLSearchParams, request: IncomingMessage, reply: Reply): void {
    const answers = new Answers(this.url, this.repository);
    const shownIssue = (issue: KeptIssue) =>
      answers.issue(
        issue,
        this.#milestones.find(({ title }) => title === issue.milestone),
      );
    const ok = (body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
      const etag = `W/"${createHash('sha256').update(JSON.stringify(body)).digest('hex')}"`;
      reply(request.headers['if-none-match'] === etag ? 304 : 200, body, { ...headers, etag });
    };
    const base = `/repos/${this.repository}`;
    const isList = path === `${base}/issues` || path === `${base}/milestones` || path === '/search/issues';
    const kind = path === '/search/issues' ? 'search' : path.endsWith('/milestones') ? 'milestones' : 'issues';
    const unknown = [...query.keys()].filter((name) => !isList || !PARAMETERS[kind].some((known) => known === name));
    if (unknown.length > 0) return reply(400, { message: `GitHub knows no parameter ${unknown.join(', ')} here` });
    if (path === base) return ok(answers.repository(this.hasIssues));
    if (path === `/repos/${this.formerName}`) return reply(301, {}, { location: `${this.url}${base}` });
    if (!this.hasIssues && path.startsWith(base)) return reply(410, { message: 'Issues are disabled for this repo' });
    if (path === `${base}/issues`) return this.#pages(path, query, this.#listed(query).map(shownIssue), ok);
    if (path === `${base}/milestones`)
      return this.#pages(
        path,
        query,
        this.#milestones.map((each) => answers.milestone(each)),
        ok,
      );
    if (path === '/search/issues') {
      const all = this.#searched(query.get('q') ?? '').map(shownIssue);
      const { isPart = false, total = all.length } = this.search;
      return this.#pages(path, query, all, (items, headers) => ok(answers.found(total, isPart, items), headers));
    }
    const number = Number(new RegExp(`^${base}/issues/(\\d+)$`).exec(path)?.[1]);
    const issue = this.#issues.get(number);
    const place = this.moved.get(number);
    if (place !== undefined) return reply(301, { message: 'Moved Permanently', url: place }, { location: place });
    if (this.gone.has(number)) return reply(410, { message: 'This issue was deleted' });
    if (issue === undefined)
      return reply(404, { message: 'Not Found', documentation_url: 'https://docs.github.com/rest', status: '404' });
    ok(shownIssue(issue));
  }

  #listed(query: URLSearchParams): readonly KeptIssue[] {
    const { state = 'open', labels = '', assignee, milestone } = Object.fromEntries(query);
    const wanted = labels.split(',').filter((label) => label !== '');
    const title = this.#milestones.find(({ number }) => String(number) === milestone)?.title;
    const all = [...this.#issues.values()].toSorted((one, other) => other.number - one.number);
    const meant = all.filter(
      (issue) =>
        (state === 'all' || issue.isClosed === (state === 'closed')) &&
        wanted.every((label) => issue.labels.some((own) => own.toLowerCase() === label.toLowerCase())) &&
        (assignee === undefined || isFor(issue, assignee)) &&
        (milestone === undefined || issue.milestone === title),
    );
    return query.get('direction') === 'asc' ? meant.toReversed() : meant;
  }

  /** Words of the title and of labels, and the two qualifiers that are always there. */
  #searched(q: string): readonly KeptIssue[] {
    const words = q.toLowerCase().split(/\s+/);
    const isIssue = words.includes('is:issue');
    const plain = words.filter((word) => !word.includes(':'));
    if (!words.includes(`repo:${this.repository.toLowerCase()}`)) return [];
    return [...this.#issues.values()].filter(
      ({ title, labels, isPull }) =>
        !(isIssue && isPull) && plain.every((word) => [title, ...labels].join(' ').toLowerCase().includes(word)),
    );
  }

  #pages<Item>(
    path: string,
    query: URLSearchParams,
    all: readonly Item[],
    ok: (items: readonly Item[], headers: Record<string, string>) => void,
  ): void {
    const size = Math.min(100, Number(query.get('per_page') ?? 30));
    const page = Number(query.get('page') ?? 1);
    const hasMore = all.length > page * size;
    const next = new URL(path, this.nextOrigin ?? this.url);
    next.search = new URLSearchParams({ ...Object.fromEntries(query), page: String(page + 1) }).toString();
    const link = `<${this.url}/first>; rel="first", <${next.href}>; rel="next", <${this.url}/last>; rel="last"`;
    ok(all.slice((page - 1) * size, page * size), hasMore ? { link } : {});
  }
}

type Reply = (status: number, body: unknown, headers?: Readonly<Record<string, string>>) => void;

function isFor({ assignees }: KeptIssue, assignee: string): boolean {
  if (assignee === 'none' || assignee === '*') return assignees.length > 0 === (assignee === '*');
  return assignees.some((own) => own.toLowerCase() === assignee.toLowerCase());
}
