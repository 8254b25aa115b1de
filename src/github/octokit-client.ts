/** Reaches GitHub's REST and GraphQL APIs through Octokit, which it loads with the first request. */
import type { Octokit } from '@octokit/core';
import { baseOf } from '../adapters/issues/github-client.ts';
import { proxiedFetch } from '../adapters/issues/proxied-fetch.ts';
import { findToken } from '../adapters/issues/github-token.ts';
import { timeLimit } from '../clock.ts';
import type { CommentSeen, CommitSeen, IssueSeen, RefMove, RefSeen, Reply } from '../core/github/index.ts';
import { Failure, shown } from '../failure.ts';
import type { AssignedIssue, GitHubClient, Tip } from './client.ts';
import {
  asObject,
  committedMs,
  dateIn,
  done,
  type Headers,
  listIn,
  loginsIn,
  refIn,
  type Response,
  short,
  textIn,
  troubleOf,
  valued,
  valuedList,
  waitIn,
} from './octokit-answers.ts';

/** Which repository, and how to reach it. */
export interface OctokitClientOptions {
  /** `owner/name`. Default: GITHUB_REPO, else GITHUB_REPOSITORY, which GitHub Actions sets. */
  readonly githubRepo?: string;
  /** Default: GITHUB_TOKEN, GH_TOKEN, else what `gh auth token` prints. */
  readonly token?: string;
  /** The URL of the REST API; `https://HOST/api/v3` for GitHub Enterprise. Default: GITHUB_API_URL, else GitHub itself. */
  readonly baseUrl?: string;
  /** The timeout of each request. Default 30 s. */
  readonly requestTimeoutMs?: number;
  /** Replaces Node's `fetch`: for a proxy, or a test. */
  readonly fetch?: typeof globalThis.fetch;
  /** The environment to read `GITHUB_REPO` and the like from. */
  readonly env?: NodeJS.ProcessEnv;
}

const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const NULL_OID = '0'.repeat(40);
const TIMEOUT_MS = 30_000;
const PAGE = 100;
const MOST_PAGES = 20;

const TIPS = `query ($owner: String!, $name: String!, $prefix: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    id
    refs(refPrefix: $prefix, first: 100, after: $after) {
      nodes { name target { oid ... on Commit { message committedDate } } }
      pageInfo { hasNextPage endCursor }
    }
  }
}`;
const MOVE = `mutation ($input: UpdateRefsInput!) {
  updateRefs(input: $input) { clientMutationId }
}`;

/** The queries, exported so that tests can check them against GitHub's schema. */
export const GRAPHQL: readonly string[] = [TIPS, MOVE];

type Parameters = Readonly<Record<string, unknown>>;

/** A client of GitHub's REST and GraphQL APIs. */
export class OctokitClient implements GitHubClient {
  /** `owner/name`. */
  readonly repository: string;
  /** How many requests are left, according to GitHub's last answer. */
  remaining?: number;
  /** When GitHub allows more requests. */
  resetMs?: number;
  readonly #owner: string;
  readonly #repo: string;
  readonly #base: URL;
  readonly #options: OctokitClientOptions;
  readonly #env: NodeJS.ProcessEnv;
  /** Cached lists with their ETags. */
  readonly #known = new Map<string, { readonly etag: string; readonly data: unknown }>();
  #octokit: Promise<Octokit> | undefined;
  #fetch: Promise<typeof globalThis.fetch | undefined> | undefined;
  #login: string | null | undefined;
  #repositoryId: string | undefined;

  /** Sends no request yet. */
  constructor(options: OctokitClientOptions = {}) {
    this.#options = options;
    this.#env = options.env ?? process.env;
    this.repository = options.githubRepo ?? this.#env['GITHUB_REPO'] ?? this.#env['GITHUB_REPOSITORY'] ?? '';
    const [owner = '', repo = '', ...more] = this.repository.split('/');
    const isName = (part: string): boolean => /^[\w.-]{1,100}$/.test(part) && part !== '.' && part !== '..';
    if (!isName(owner) || !isName(repo) || more.length > 0)
      throw new Failure(
        'invalid',
        `the repository is ${shown(this.repository)}; expected owner/name, as githubRepo or in GITHUB_REPO`,
      );
    this.#owner = owner;
    this.#repo = repo;
    this.#base = baseOf(options.baseUrl ?? (this.#env['GITHUB_API_URL'] || 'https://api.github.com'));
  }

  /** One issue. */
  async getIssue(issue: number): Promise<Reply<IssueSeen>> {
    const reply = await this.#ask(`GET /issues/${issue}`);
    return valued(reply, (data) => ({ isOpen: data['state'] === 'open', assignees: loginsIn(data) }));
  }

  /** Assigns an issue to an account, if GitHub allows it. */
  async assignIssue(issue: number, login: string): Promise<Reply<{ readonly assignees: readonly string[] }>> {
    const reply = await this.#write(`POST /issues/${issue}/assignees`, { assignees: [login] });
    return valued(reply, (data) => ({ assignees: loginsIn(data) }));
  }

  /** Removes an account from the assignees. */
  async unassignIssue(issue: number, login: string): Promise<Reply<null>> {
    return done(await this.#write(`DELETE /issues/${issue}/assignees`, { assignees: [login] }));
  }

  /** Writes a comment. */
  async addComment(issue: number, body: string): Promise<Reply<{ readonly id: number }>> {
    const reply = await this.#write(`POST /issues/${issue}/comments`, { body });
    return valued(reply, (data) => ({ id: Number(data['id']) }));
  }

  /** Replaces the text of a comment. */
  async editComment(id: number, body: string): Promise<Reply<null>> {
    return done(await this.#write(`PATCH /issues/comments/${id}`, { body }));
  }

  /** The newest hundred comments. */
  async listComments(issue: number): Promise<Reply<readonly CommentSeen[]>> {
    const reply = await this.#pages(`GET /issues/${issue}/comments`);
    return valuedList(reply, (data) => ({ id: Number(data['id']), body: textIn(data, 'body') }));
  }

  /** Where a ref is. */
  async getRef(ref: string): Promise<Reply<RefSeen>> {
    const reply = await this.#ask('GET /git/ref/{+ref}', { ref: short(ref) });
    return valued(reply, refIn);
  }

  /** Reads no pages, because GitHub returns all of them at once. */
  async listRefs(prefix: string): Promise<Reply<readonly RefSeen[]>> {
    const route = 'GET /git/matching-refs/{+ref}';
    const reply = await this.#ask(route, { ref: short(prefix).replace(/\/$/, '') }, true);
    if (reply.kind !== 'ok') return reply;
    // Without the slash at its end, the prefix may match other refs too.
    return {
      ...reply,
      value: listIn(reply.value)
        .map(refIn)
        .filter(({ ref }) => ref.startsWith(prefix)),
    };
  }

  /** Makes a ref; GitHub refuses if it exists. */
  async createRef(ref: string, sha: string): Promise<Reply<null>> {
    return done(await this.#write('POST /git/refs', { ref, sha }));
  }

  /** Moves a ref forward, never by force. */
  async updateRef(ref: string, sha: string): Promise<Reply<null>> {
    return done(await this.#write('PATCH /git/refs/{+ref}', { ref: short(ref), sha, force: false }));
  }

  /** Deletes a ref. */
  async deleteRef(ref: string): Promise<Reply<null>> {
    return done(await this.#write('DELETE /git/refs/{+ref}', { ref: short(ref) }));
  }

  /** Moves several refs, or none. */
  async updateRefs(moves: readonly RefMove[]): Promise<Reply<null>> {
    if (this.#repositoryId === undefined) {
      const found = await this.listTips('refs/signalbox/none/');
      if (found.kind !== 'ok') return found;
    }
    const refUpdates = moves.map(({ ref, from, to }) => ({
      name: ref,
      beforeOid: from ?? NULL_OID,
      afterOid: to ?? NULL_OID,
      force: false,
    }));
    return done(await this.#graphql(MOVE, { input: { repositoryId: this.#repositoryId, refUpdates } }));
  }

  /** One commit. */
  async getCommit(sha: string): Promise<Reply<CommitSeen>> {
    const reply = await this.#ask('GET /git/commits/{sha}', { sha });
    return valued(reply, (data) => ({
      sha: textIn(data, 'sha'),
      message: textIn(data, 'message'),
      parents: listIn(data['parents']).map((parent) => textIn(parent, 'sha')),
      dateMs: committedMs(data),
    }));
  }

  /** Makes a commit with the empty tree. */
  async createCommit(
    message: string,
    parents: readonly string[],
  ): Promise<Reply<{ readonly sha: string; readonly dateMs: number }>> {
    const reply = await this.#write('POST /git/commits', { message, tree: EMPTY_TREE, parents });
    return valued(reply, (data) => ({ sha: textIn(data, 'sha'), dateMs: committedMs(data) }));
  }

  /** Reads refs with the commits that they point at. */
  async listTips(prefix: string): Promise<Reply<readonly Tip[]>> {
    const tips: Tip[] = [];
    let after: string | null = null;
    for (;;) {
      const reply: Reply<unknown> = await this.#graphql(TIPS, { owner: this.#owner, name: this.#repo, prefix, after });
      if (reply.kind !== 'ok') return reply;
      const { id, refs } = asObject(asObject(reply.value)['repository']);
      if (typeof id === 'string') this.#repositoryId = id;
      const { nodes, pageInfo } = asObject(refs);
      for (const node of listIn(nodes)) {
        const target = asObject(node['target']);
        const [ref, sha] = [prefix + textIn(node, 'name'), textIn(target, 'oid')];
        const dateMs = Date.parse(textIn(target, 'committedDate'));
        tips.push({ ref, sha, message: textIn(target, 'message'), dateMs });
      }
      if (asObject(pageInfo)['hasNextPage'] !== true) return { ...reply, value: tips };
      after = textIn(asObject(pageInfo), 'endCursor');
    }
  }

  /** Open issues with an assignee. */
  async listAssigned(): Promise<Reply<readonly AssignedIssue[]>> {
    const reply = await this.#pages('GET /issues', { state: 'open', assignee: '*' });
    return valuedList(reply, (data) => ({
      issue: Number(data['number']),
      title: textIn(data, 'title'),
      assignees: loginsIn(data),
    }));
  }

  /** The account of the token; null if it belongs to an app. */
  async getLogin(): Promise<Reply<string | null>> {
    if (this.#login !== undefined) return { kind: 'ok', value: this.#login };
    const reply = await this.#ask('GET /user');
    // The token of a workflow or of an app has no account that could be assigned.
    if (reply.kind === 'denied') return { kind: 'ok', value: (this.#login = null) };
    const found = valued(reply, (data) => textIn(data, 'login'));
    if (found.kind === 'ok') this.#login = found.value;
    return found;
  }

  /** Whether the account is an administrator of the repository. */
  async isAdmin(): Promise<Reply<boolean>> {
    const login = await this.getLogin();
    if (login.kind !== 'ok') return login;
    if (login.value === null) return { kind: 'ok', value: false };
    const reply = await this.#ask('GET /collaborators/{username}/permission', { username: login.value });
    if (reply.kind === 'denied' || reply.kind === 'missing') return { ...reply, kind: 'ok', value: false };
    return valued(reply, (data) => data['permission'] === 'admin');
  }

  /** Explains a 404 to a write: GitHub gives it if the repository does not exist, and also if the token may not see it. */
  async #write(route: string, parameters: Parameters): Promise<Reply<unknown>> {
    const reply = await this.#ask(route, parameters);
    if (reply.kind !== 'missing') return reply;
    return {
      ...reply,
      kind: 'denied',
      message: `${this.repository} does not exist, or this token may not write to it (contents:write and issues:write)`,
    };
  }

  async #pages(route: string, parameters: Parameters = {}): Promise<Reply<readonly unknown[]>> {
    const all: unknown[] = [];
    for (let page = 1; ; page++) {
      const reply = await this.#ask(route, { ...parameters, per_page: PAGE, page }, true);
      if (reply.kind !== 'ok') return reply;
      const items = Array.isArray(reply.value) ? (reply.value as readonly unknown[]) : [];
      all.push(...items);
      if (items.length < PAGE || page === MOST_PAGES) return { ...reply, value: all };
    }
  }

  /** `route` is a path of the repository, or `/user`. */
  async #ask(route: string, parameters: Parameters = {}, isKept = false): Promise<Reply<unknown>> {
    const key = `${route} ${JSON.stringify(parameters)}`;
    const known = isKept ? this.#known.get(key) : undefined;
    const headers = known === undefined ? {} : { 'if-none-match': known.etag };
    const whole = route.endsWith(' /user') ? route : route.replace(' ', ` /repos/${this.repository}`);
    const answer = await this.#send((octokit, request) => octokit.request(whole, { ...parameters, headers, request }));
    if ('trouble' in answer) return answer.trouble;
    const date = dateIn(answer.headers);
    if (answer.status === 304 && known !== undefined) return { kind: 'ok', value: known.data, ...date };
    const { etag } = answer.headers;
    if (isKept && typeof etag === 'string') this.#known.set(key, { etag, data: answer.data });
    return { kind: 'ok', value: answer.data, ...date };
  }

  async #graphql(query: string, variables: Parameters): Promise<Reply<unknown>> {
    const url = `${this.#base.pathname.replace(/\/$/, '').replace(/\/v3$/, '')}/graphql`;
    const answer = await this.#send((octokit, request) =>
      octokit.request(`POST ${new URL(url, this.#base).href}`, { query, variables, request }),
    );
    if ('trouble' in answer) return answer.trouble;
    const { data, errors } = asObject(answer.data);
    const date = dateIn(answer.headers);
    const [error] = listIn(errors);
    if (error === undefined) return { kind: 'ok', value: data, ...date };
    const message = textIn(error, 'message');
    switch (error['type']) {
      case 'RATE_LIMITED':
        return { kind: 'limited', waitMs: waitIn(answer.headers, date.date?.ms), message, ...date };
      case 'FORBIDDEN':
      case 'INSUFFICIENT_SCOPES':
        return { kind: 'denied', message, ...date };
      default:
        return { kind: 'refused', status: 200, message, ...date };
    }
  }

  async #send(
    call: (octokit: Octokit, request: object) => Promise<Response>,
  ): Promise<Response | { readonly trouble: Exclude<Reply<never>, { kind: 'ok' }> }> {
    const limit = timeLimit(this.#options.requestTimeoutMs ?? TIMEOUT_MS);
    try {
      const octokit = await (this.#octokit ??= this.#load());
      const fetch = await (this.#fetch ??= this.#findFetch());
      const response = await call(octokit, { signal: limit.signal, ...(fetch !== undefined && { fetch }) });
      this.#note(response.headers);
      return response;
    } catch (error) {
      if (Failure.is(error)) {
        this.#octokit = this.#fetch = undefined;
        return { trouble: { kind: 'denied', message: error.message } };
      }
      const { response } = error as { readonly response?: Response };
      if (response !== undefined) this.#note(response.headers);
      if (response?.status === 304) return response;
      return { trouble: troubleOf(error as Error, response) };
    } finally {
      limit.cancel();
    }
  }

  #note(headers: Headers): void {
    const remaining = Number(headers['x-ratelimit-remaining']);
    const reset = Number(headers['x-ratelimit-reset']);
    if (headers['x-ratelimit-resource'] === 'graphql' || !Number.isFinite(remaining)) return;
    this.remaining = remaining;
    this.resetMs = reset * 1000;
  }

  async #findFetch(): Promise<typeof globalThis.fetch | undefined> {
    return this.#options.fetch ?? (await proxiedFetch(this.#base, this.#env));
  }

  async #load(): Promise<Octokit> {
    const token = await findToken(this.#options.token, this.#base, this.#env);
    if (token === undefined)
      throw new Failure('forbidden', 'no token for GitHub is set: set GITHUB_TOKEN, or log in with `gh auth login`');
    const { Octokit: Client } = await import('./octokit.ts');
    const silent = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    return new Client({
      auth: token,
      baseUrl: this.#base.href.replace(/\/$/, ''),
      userAgent: 'signalbox',
      log: silent,
    });
  }
}

function quiet(): void {
  // Octokit's own log is not needed: the reply has everything.
}
