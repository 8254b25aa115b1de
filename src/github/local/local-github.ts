/**
 * A GitHub in this process: one repository, with GitHub's rules, limits and faults on demand. State is in memory. `handle`
 * answers a request synchronously without a network; `serve.ts` puts it on a socket.
 */
import { createHash } from 'node:crypto';
import { systemClock } from '../../clock.ts';
import { asObject } from '../octokit-answers.ts';
import { Account, type Cost, DOCUMENTED, type Limits, type Peaks } from './limits.ts';
import { inSeconds, LocalRepository, type Permission } from './repository.ts';
import { LocalRoutes, refusal, type Reply, textOf } from './routes.ts';

export interface LocalRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

export interface LocalResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if there is none. */
  readonly body?: unknown;
}

const NO_CONDITIONS = 'Conditional request headers are not allowed in unsafe requests unless supported by the endpoint';
const TOO_FAST = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';

/** What goes wrong with a request. */
export type FaultKind =
  /** Answers 502 and does nothing. */
  | 'broken-before'
  /** Carries out the request and gives no answer. */
  | 'dropped-after'
  /** Answers 422 and does nothing. */
  | 'refused'
  /** Answers 422 although it carried out the request. */
  | 'refused-after'
  /** Answers with the ref as it was before its last change. */
  | 'old-read'
  | 'secondary-limit'
  | 'limit-reached';

/** A request that goes wrong. */
export interface Fault {
  /** How it goes wrong. */
  readonly kind: FaultKind;
  /** Which requests it hits, as `METHOD /path`. All of them by default. */
  readonly match?: string;
  /** How many of them. Default 1. */
  readonly times?: number;
}

/** One request and its answer. */
export interface Exchange {
  /** The request. */
  readonly request: LocalRequest;
  /** The answer. */
  readonly response: LocalResponse;
}

/** How the local GitHub behaves. */
export interface LocalGitHubOptions {
  /** `owner/name`. */
  readonly repository?: string;
  /** Tokens, and whose they are. Without it every token is the owner's. */
  readonly tokens?: Readonly<Record<string, string>>;
  /** The clock; by default the system's. */
  readonly now?: () => number;
  /** How many requests it allows. */
  readonly limits?: Partial<Limits>;
  /** Whether commits count as content; GitHub does not say. */
  readonly commitsAreContent?: boolean;
  /** Whether it has GraphQL. */
  readonly hasGraphql?: boolean;
  /** The URL of the API as clients see it. */
  readonly url?: string;
  /** Called with each request and its answer. */
  readonly onExchange?: (exchange: Exchange) => void;
}

/** A GitHub on this machine, for tests. */
export class LocalGitHub {
  /** Its issues, comments and refs. */
  readonly repository = new LocalRepository();
  /** The name of the repository. */
  readonly name: string;
  /** The requests that go wrong. */
  readonly faults: (Fault & { left: number })[] = [];
  /** Its URL, with which the addresses in its answers begin. */
  url: string;
  readonly #options: LocalGitHubOptions;
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;
  readonly #routes: LocalRoutes;

  /** Begins with an empty repository. */
  constructor(options: LocalGitHubOptions = {}) {
    this.#options = options;
    this.name = options.repository ?? 'local/repository';
    this.url = options.url ?? 'http://localhost';
    this.#now = options.now ?? (() => systemClock.now());
    for (const login of Object.values(options.tokens ?? {})) this.repository.collaborators.set(login, 'write');
    if (options.tokens === undefined) this.repository.collaborators.set(this.#owner, 'admin');
    this.#routes = new LocalRoutes({
      repository: this.repository,
      name: this.name,
      url: () => this.url,
      hasGraphql: options.hasGraphql !== false,
    });
  }

  get #owner(): string {
    return this.name.split('/')[0] ?? 'local';
  }

  /** Gives an account a permission. */
  allow(login: string, permission: Permission): void {
    this.repository.collaborators.set(login, permission);
  }

  /** Makes later requests go wrong. */
  fault(fault: Fault): void {
    this.faults.push({ ...fault, left: fault.times ?? 1 });
  }

  /** How much of its limits a token has used. */
  account(token: string): Account {
    const found = this.#accounts.get(token);
    if (found !== undefined) return found;
    const account = new Account({ ...DOCUMENTED, ...this.#options.limits });
    this.#accounts.set(token, account);
    return account;
  }

  /** The highest numbers so far. */
  peaks(token: string): Peaks {
    return this.account(token).peaks;
  }

  /** Answers a request; undefined means that no answer comes. */
  handle(request: LocalRequest): LocalResponse | undefined {
    const nowMs = this.#now();
    const url = new URL(request.path, 'http://local');
    const path = decodeURIComponent(url.pathname).replace(/^\/api\/v3(?=\/)|^\/api(?=\/graphql$)/, '');
    const line = `${request.method} ${path}`;
    const token = /^(?:token|bearer)\s+(\S+)$/i.exec(request.headers['authorization'] ?? '')?.[1];
    const { tokens } = this.#options;
    const login = token === undefined ? undefined : tokens === undefined ? this.#owner : tokens[token];
    const finish = (reply: Reply, resource: Cost['resource'] = 'core'): LocalResponse => {
      const limits = token === undefined ? {} : this.account(token).headers(resource, nowMs);
      const response = answered(request, reply, limits, nowMs);
      this.#options.onExchange?.({ request, response });
      return response;
    };
    if (token === undefined || login === undefined) return finish(refusal(401, 'Bad credentials'));
    if (request.headers['if-match'] !== undefined) return finish(refusal(400, NO_CONDITIONS));
    const cost = this.#costOf(line, asObject(request.body));
    const fault = this.#faultFor(line);
    if (fault === 'limit-reached') this.account(token).exhaust(cost.resource, nowMs);
    const account = this.account(token);
    const isRead = request.method === 'GET';
    const call = { login, query: url.searchParams, body: asObject(request.body), nowMs, isOld: fault === 'old-read' };
    // Only the finished answer shows whether it has changed; an unchanged conditional answer costs nothing.
    const early =
      isRead && request.headers['if-none-match'] !== undefined ? this.#routes.answer(line, call) : undefined;
    if (early !== undefined && etagOf(early) === request.headers['if-none-match'])
      return finish({ ...early, status: 304 });
    const verdict =
      fault === 'secondary-limit' ? { kind: 'secondary' as const, retryAfterSeconds: 60 } : account.spend(cost, nowMs);
    if (verdict.kind === 'primary')
      return finish(refusal(403, `API rate limit exceeded for user ID ${login}.`), cost.resource);
    if (verdict.kind === 'secondary') {
      const headers = { 'retry-after': String(verdict.retryAfterSeconds) };
      return finish(refusal(403, TOO_FAST, headers), cost.resource);
    }
    if (fault === 'broken-before') return finish({ status: 502, body: { message: 'Server Error' } });
    if (fault === 'refused') return finish(refusal(422, 'Reference cannot be updated'));
    const reply = early ?? this.#routes.answer(line, call);
    if (fault === 'dropped-after') return undefined;
    if (fault === 'refused-after') return finish(refusal(422, 'Reference already exists'));
    return finish(reply, cost.resource);
  }

  #faultFor(line: string): FaultKind | undefined {
    const fault = this.faults.find(({ left, match }) => left > 0 && (match === undefined || line.includes(match)));
    if (fault === undefined) return undefined;
    fault.left -= 1;
    return fault.kind;
  }

  /** A read costs one point, a write five; a query is a read although it uses POST. */
  #costOf(line: string, body: Readonly<Record<string, unknown>>): Cost {
    const isCommit =
      line.startsWith('POST') && line.endsWith('/git/commits') && this.#options.commitsAreContent === true;
    const isComment = /^(POST|PATCH) .*\/comments(\/\d+)?$/.test(line);
    const isIssue = /^POST .*\/issues$/.test(line);
    const isGraphql = line.endsWith('/graphql');
    const isRead = line.startsWith('GET') || (isGraphql && textOf(body['query']).startsWith('query'));
    const isContent = isCommit || isComment || isIssue;
    return { resource: isGraphql ? 'graphql' : 'core', points: isRead ? 1 : 5, isContent };
  }
}

function answered(
  request: LocalRequest,
  reply: Reply,
  limits: Readonly<Record<string, string>>,
  nowMs: number,
): LocalResponse {
  const date = new Date(inSeconds(nowMs)).toUTCString();
  const type =
    reply.body === undefined || reply.status === 304 ? {} : { 'content-type': 'application/json; charset=utf-8' };
  const etag =
    request.method === 'GET' && (reply.status === 200 || reply.status === 304) ? { etag: etagOf(reply) } : {};
  const headers = { date, ...type, ...etag, ...limits, ...reply.headers, 'x-github-request-id': 'local' };
  return { status: reply.status, headers, ...(reply.status !== 304 && { body: reply.body }) };
}

function etagOf({ body }: Reply): string {
  return `W/"${createHash('sha256')
    .update(JSON.stringify(body) ?? '')
    .digest('hex')}"`;
}
