/**
 * A GitHub in this process: one repository, with GitHub's rules, limits and faults on demand. State is in memory.
 * `handle` answers a request at once and knows no network; `serve.ts` puts it on a socket.
 */
import { createHash } from 'node:crypto';
import { systemClock } from '../../clock.ts';
import type { RefMove } from '../../core/github/index.ts';
import { Answers } from './answers.ts';
import { Account, type Cost, DOCUMENTED, type Limits, type Peaks } from './limits.ts';
import { inSeconds, type LocalIssue, LocalRepository, type Permission, type RefOutcome } from './repository.ts';

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
  /** Undefined where there is none. */
  readonly body?: unknown;
}

/** What goes wrong with a request. */
export type FaultKind =
  /** 502, and nothing was done. */
  | 'broken-before'
  /** It was done, and no answer comes. */
  | 'dropped-after'
  /** 422, and nothing was done. */
  | 'refused'
  /** 422 although it was done. */
  | 'refused-after'
  /** The ref as it was before its last change. */
  | 'old-read'
  | 'secondary-limit'
  | 'limit-reached';

export interface Fault {
  readonly kind: FaultKind;
  /** Which requests it hits, as `METHOD /path`. All of them by default. */
  readonly match?: string;
  /** How many of them. Default 1. */
  readonly times?: number;
}

export interface Exchange {
  readonly request: LocalRequest;
  readonly response: LocalResponse;
}

export interface LocalGitHubOptions {
  /** `owner/name`. */
  readonly repository?: string;
  /** Tokens, and whose they are. Without it every token is the owner's. */
  readonly tokens?: Readonly<Record<string, string>>;
  readonly now?: () => number;
  readonly limits?: Partial<Limits>;
  /** GitHub does not say whether they count. */
  readonly commitsAreContent?: boolean;
  readonly hasGraphql?: boolean;
  /** Of the API, as it is seen from outside. */
  readonly url?: string;
  readonly onExchange?: (exchange: Exchange) => void;
}

interface Call {
  readonly login: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
  readonly isOld: boolean;
}

type Reply = { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> };
type Route = (call: Call, ...parts: readonly string[]) => Reply;

const NULL_OID = '0'.repeat(40);
const NOT_FOUND: Reply = { status: 404, body: trouble('Not Found', 404) };

export class LocalGitHub {
  readonly repository = new LocalRepository();
  readonly name: string;
  readonly faults: (Fault & { left: number })[] = [];
  /** Where it is reached; the addresses in its answers begin with it. */
  url: string;
  readonly #options: LocalGitHubOptions;
  readonly #accounts = new Map<string, Account>();
  readonly #now: () => number;
  readonly #routes: readonly (readonly [string, RegExp, Route])[];

  constructor(options: LocalGitHubOptions = {}) {
    this.#options = options;
    this.name = options.repository ?? 'local/repository';
    this.url = options.url ?? 'http://localhost';
    this.#now = options.now ?? (() => systemClock.now());
    for (const login of Object.values(options.tokens ?? {})) this.repository.collaborators.set(login, 'write');
    if (options.tokens === undefined) this.repository.collaborators.set(this.#owner, 'admin');
    this.#routes = this.#makeRoutes();
  }

  get #owner(): string {
    return this.name.split('/')[0] ?? 'local';
  }

  allow(login: string, permission: Permission): void {
    this.repository.collaborators.set(login, permission);
  }

  /** Something will go wrong. */
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

  peaks(token: string): Peaks {
    return this.account(token).peaks;
  }

  /** Undefined: no answer comes. */
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
    if (token === undefined || login === undefined)
      return finish({ status: 401, body: trouble('Bad credentials', 401) });
    if (request.headers['if-match'] !== undefined)
      return finish({
        status: 400,
        body: trouble(
          'Conditional request headers are not allowed in unsafe requests unless supported by the endpoint',
          400,
        ),
      });
    const cost = this.#costOf(line, asObject(request.body));
    const fault = this.#faultFor(line);
    if (fault === 'limit-reached') this.account(token).exhaust(cost.resource, nowMs);
    const account = this.account(token);
    const isRead = request.method === 'GET';
    const call = { login, query: url.searchParams, body: asObject(request.body), nowMs, isOld: fault === 'old-read' };
    // Whether it has changed is known only once it is made; a conditional answer without news costs nothing.
    const early = isRead && request.headers['if-none-match'] !== undefined ? this.#route(line, call) : undefined;
    if (early !== undefined && etagOf(early) === request.headers['if-none-match'])
      return finish({ ...early, status: 304 });
    const verdict =
      fault === 'secondary-limit' ? { kind: 'secondary' as const, retryAfterSeconds: 60 } : account.spend(cost, nowMs);
    if (verdict.kind === 'primary')
      return finish(
        { status: 403, body: trouble(`API rate limit exceeded for user ID ${login}.`, 403) },
        cost.resource,
      );
    if (verdict.kind === 'secondary') {
      const headers = { 'retry-after': String(verdict.retryAfterSeconds) };
      return finish(
        {
          status: 403,
          headers,
          body: trouble(
            'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
            403,
          ),
        },
        cost.resource,
      );
    }
    if (fault === 'broken-before') return finish({ status: 502, body: { message: 'Server Error' } });
    if (fault === 'refused') return finish({ status: 422, body: trouble('Reference cannot be updated', 422) });
    const reply = early ?? this.#route(line, call);
    if (fault === 'dropped-after') return undefined;
    if (fault === 'refused-after') return finish({ status: 422, body: trouble('Reference already exists', 422) });
    return finish(reply, cost.resource);
  }

  #faultFor(line: string): FaultKind | undefined {
    const fault = this.faults.find(({ left, match }) => left > 0 && (match === undefined || line.includes(match)));
    if (fault === undefined) return undefined;
    fault.left -= 1;
    return fault.kind;
  }

  /** A read is one point, a write five; a query is a read although it is sent by POST. */
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

  #route(line: string, call: Call): Reply {
    for (const [method, pattern, route] of this.#routes) {
      const found = line.startsWith(`${method} `) ? pattern.exec(line.slice(method.length + 1)) : null;
      if (found !== null) return route(call, ...found.slice(1));
    }
    return NOT_FOUND;
  }

  #makeRoutes(): readonly (readonly [string, RegExp, Route])[] {
    const { repository } = this;
    const own = this.name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const at = (rest: string): RegExp => new RegExp(`^/repos/${own}${rest}$`, 'i');
    const answers = (): Answers => new Answers(this.url, this.name);
    const mayWrite = ({ login }: Call): boolean =>
      ['admin', 'write'].includes(repository.collaborators.get(login) ?? '');
    const writing =
      (route: Route): Route =>
      (call, ...parts) =>
        mayWrite(call)
          ? route(call, ...parts)
          : { status: 403, body: trouble('Resource not accessible by personal access token', 403) };
    const shown = (issue: LocalIssue): object => answers().issue(issue, repository.commentsOf(issue.number).length);
    const ofIssue =
      (route: (issue: LocalIssue, call: Call) => Reply): Route =>
      (call, number) => {
        const issue = repository.issues.get(Number(number));
        return issue === undefined ? NOT_FOUND : route(issue, call);
      };
    const moved = (outcome: RefOutcome, ref: string, status: number): Reply => {
      const sha = repository.refs.get(ref);
      return outcome === 'done' && sha !== undefined
        ? { status, body: answers().ref(ref, sha) }
        : { status: 422, body: trouble(REFUSALS[outcome], 422) };
    };
    return [
      ['GET', /^\/user$/, ({ login }) => ({ status: 200, body: answers().ownUser(login) })],
      [
        'GET',
        at('/collaborators/([^/]+)/permission'),
        (_, login = '') => ({
          status: 200,
          body: answers().permission(login, repository.collaborators.get(login) ?? 'none'),
        }),
      ],
      ['GET', at('/issues'), ({ query }) => this.#paged(this.#listed(query).map(shown), query)],
      [
        'POST',
        at('/issues'),
        writing(({ body, nowMs }) => ({
          status: 201,
          body: shown(repository.addIssue(Math.max(0, ...repository.issues.keys()) + 1, textOf(body['title']), nowMs)),
        })),
      ],
      ['GET', at('/issues/(\\d+)'), ofIssue((issue) => ({ status: 200, body: shown(issue) }))],
      [
        'PATCH',
        at('/issues/(\\d+)'),
        writing(
          ofIssue((issue, { body, nowMs }) => {
            if (body['state'] !== undefined) issue.isOpen = body['state'] === 'open';
            issue.updatedMs = nowMs;
            return { status: 200, body: shown(issue) };
          }),
        ),
      ],
      [
        'POST',
        at('/issues/(\\d+)/assignees'),
        writing(
          ofIssue((issue, { body, nowMs }) => {
            repository.assign(issue, textsOf(body['assignees']), nowMs);
            return { status: 201, body: shown(issue) };
          }),
        ),
      ],
      [
        'DELETE',
        at('/issues/(\\d+)/assignees'),
        writing(
          ofIssue((issue, { body, nowMs }) => {
            repository.unassign(issue, textsOf(body['assignees']), nowMs);
            return { status: 200, body: shown(issue) };
          }),
        ),
      ],
      [
        'GET',
        at('/issues/(\\d+)/comments'),
        ofIssue(({ number }, { query }) =>
          this.#paged(
            repository.commentsOf(number).map((one) => answers().comment(one)),
            query,
          ),
        ),
      ],
      [
        'POST',
        at('/issues/(\\d+)/comments'),
        ofIssue(({ number }, { login, body, nowMs }) => {
          const comment = repository.comment(number, login, textOf(body['body']), nowMs);
          return comment === undefined
            ? { status: 403, body: trouble('Commenting is disabled on issues with more than 2500 comments', 403) }
            : { status: 201, body: answers().comment(comment) };
        }),
      ],
      [
        'PATCH',
        at('/issues/comments/(\\d+)'),
        writing(({ body, nowMs }, id) => {
          const comment = repository.comments.get(Number(id));
          if (comment === undefined) return NOT_FOUND;
          Object.assign(comment, { body: textOf(body['body']), updatedMs: nowMs });
          return { status: 200, body: answers().comment(comment) };
        }),
      ],
      [
        'GET',
        at('/git/ref/(.+)'),
        ({ isOld }, name) => {
          const ref = `refs/${name}`;
          const sha = repository.refBefore(ref, isOld ? 1 : 0);
          return sha === null ? NOT_FOUND : { status: 200, body: answers().ref(ref, sha) };
        },
      ],
      [
        'GET',
        at('/git/matching-refs/(.*)'),
        (_, name) => {
          const found = [...repository.refs].filter(([ref]) => ref.startsWith(`refs/${name}`)).toSorted(byName);
          return { status: 200, body: found.map(([ref, sha]) => answers().ref(ref, sha)) };
        },
      ],
      [
        'POST',
        at('/git/refs'),
        writing(({ body, nowMs }) => {
          const ref = textOf(body['ref']);
          if (!/^refs\/[^/]+\/./.test(ref))
            return {
              status: 422,
              body: trouble('Reference name must start with "refs" and have at least two slashes.', 422),
            };
          return moved(repository.makeRef(ref, textOf(body['sha']), nowMs), ref, 201);
        }),
      ],
      [
        'PATCH',
        at('/git/refs/(.+)'),
        writing(({ body, nowMs }, name) =>
          moved(
            repository.moveRef(`refs/${name}`, textOf(body['sha']), nowMs, body['force'] === true),
            `refs/${name}`,
            200,
          ),
        ),
      ],
      [
        'DELETE',
        at('/git/refs/(.+)'),
        writing(({ nowMs }, name) =>
          repository.deleteRef(`refs/${name}`, nowMs) === 'done'
            ? { status: 204 }
            : { status: 422, body: trouble('Reference does not exist', 422) },
        ),
      ],
      [
        'POST',
        at('/git/commits'),
        writing(({ body, nowMs }) => {
          const commit = repository.makeCommit(textOf(body['message']), textsOf(body['parents']), nowMs);
          return commit === undefined
            ? { status: 422, body: trouble('Parent does not exist', 422) }
            : { status: 201, body: answers().commit(commit) };
        }),
      ],
      [
        'GET',
        at('/git/commits/([0-9a-f]+)'),
        (_, sha = '') => {
          const commit = repository.commits.get(sha);
          return commit === undefined ? NOT_FOUND : { status: 200, body: answers().commit(commit) };
        },
      ],
      [
        'POST',
        /^\/graphql$/,
        (call) => (this.#options.hasGraphql === false ? NOT_FOUND : this.#graphql(call, mayWrite(call))),
      ],
    ];
  }

  /** Two operations, known by what they ask for. */
  #graphql({ body, nowMs }: Call, mayWrite: boolean): Reply {
    const variables = asObject(body['variables']);
    const failed = (type: string, message: string): Reply => ({
      status: 200,
      body: { data: null, errors: [{ type, message }] },
    });
    if (textOf(body['query']).includes('updateRefs')) {
      if (!mayWrite) return failed('FORBIDDEN', 'Resource not accessible');
      const updates = asObject(variables['input'])['refUpdates'] as readonly Record<string, unknown>[];
      const oid = (value: unknown): string | null => (value === NULL_OID ? null : textOf(value));
      const moves: readonly RefMove[] = updates.map((one) => ({
        ref: textOf(one['name']),
        from: oid(one['beforeOid']),
        to: oid(one['afterOid']),
      }));
      const outcome = this.repository.moveRefs(moves, nowMs);
      return outcome === 'done'
        ? { status: 200, body: { data: { updateRefs: { clientMutationId: null } } } }
        : failed('UNPROCESSABLE', REFUSALS[outcome]);
    }
    const prefix = textOf(variables['prefix']);
    const names = [...this.repository.refs.keys()].filter((ref) => ref.startsWith(prefix)).toSorted();
    const from = Number(variables['after'] ?? 0);
    const page = names.slice(from, from + 100);
    const answers = new Answers(this.url, this.name);
    const pageInfo = { hasNextPage: from + 100 < names.length, endCursor: String(from + 100) };
    return {
      status: 200,
      body: {
        data: {
          repository: {
            id: 'R_1',
            refs: { nodes: page.map((ref) => answers.node(ref, prefix, this.repository)), pageInfo },
          },
        },
      },
    };
  }

  #listed(query: URLSearchParams): readonly LocalIssue[] {
    const state = query.get('state') ?? 'open';
    const assignee = query.get('assignee');
    return [...this.repository.issues.values()]
      .filter(({ isOpen }) => state === 'all' || isOpen === (state === 'open'))
      .filter(
        ({ assignees }) =>
          assignee === null || (assignee === '*' ? assignees.length > 0 : assignees.includes(assignee)),
      )
      .toSorted((one, other) => other.number - one.number);
  }

  #paged(all: readonly object[], query: URLSearchParams): Reply {
    const size = Math.min(100, Number(query.get('per_page') ?? 30));
    const page = Number(query.get('page') ?? 1);
    const body = all.slice((page - 1) * size, page * size);
    if (all.length <= page * size) return { status: 200, body };
    return { status: 200, body, headers: { link: `<${this.url}/next?page=${page + 1}>; rel="next"` } };
  }
}

const REFUSALS: Readonly<Record<RefOutcome, string>> = {
  done: '',
  exists: 'Reference already exists',
  missing: 'Reference does not exist',
  'not-fast-forward': 'Update is not a fast forward',
  'no-object': 'Object does not exist',
  mismatch: 'A ref is not where it was expected to be',
};

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

function trouble(message: string, status: number): object {
  return { message, documentation_url: 'https://docs.github.com/rest', status: String(status) };
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

function byName([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return one < other ? -1 : 1;
}
