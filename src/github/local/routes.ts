/** Answers each request that signalbox makes, by GitHub's own rules. */
import type { RefMove } from '../../core/github/index.ts';
import { Answers } from './answers.ts';
import type { LocalIssue, LocalRepository, RefOutcome } from './repository.ts';

export interface Call {
  readonly login: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  readonly nowMs: number;
  readonly isOld: boolean;
}

export type Reply = {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};
type Route = (call: Call, ...parts: readonly string[]) => Reply;

const NULL_OID = '0'.repeat(40);
const NOT_FOUND: Reply = { status: 404, body: trouble('Not Found', 404) };

export interface RouteSettings {
  readonly repository: LocalRepository;
  /** `owner/name`. */
  readonly name: string;
  /** The URL of the API, once it is served. */
  readonly url: () => string;
  readonly hasGraphql: boolean;
}

export class LocalRoutes {
  readonly #settings: RouteSettings;
  readonly #routes: readonly (readonly [string, RegExp, Route])[];

  constructor(settings: RouteSettings) {
    this.#settings = settings;
    this.#routes = this.#makeRoutes();
  }

  #answers(): Answers {
    return new Answers(this.#settings.url(), this.#settings.name);
  }

  /** `line` is `METHOD /path`. */
  answer(line: string, call: Call): Reply {
    for (const [method, pattern, route] of this.#routes) {
      const found = line.startsWith(`${method} `) ? pattern.exec(line.slice(method.length + 1)) : null;
      if (found !== null) return route(call, ...found.slice(1));
    }
    return NOT_FOUND;
  }

  #makeRoutes(): readonly (readonly [string, RegExp, Route])[] {
    const { repository, name, hasGraphql } = this.#settings;
    const own = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const at = (rest: string): RegExp => new RegExp(`^/repos/${own}${rest}$`, 'i');
    const answers = (): Answers => this.#answers();
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
      ['POST', /^\/graphql$/, (call) => (hasGraphql ? this.#graphql(call, mayWrite(call)) : NOT_FOUND)],
    ];
  }

  /** Answers two operations, which it recognises by their fields. */
  #graphql({ body, nowMs }: Call, mayWrite: boolean): Reply {
    const { repository } = this.#settings;
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
      const outcome = repository.moveRefs(moves, nowMs);
      return outcome === 'done'
        ? { status: 200, body: { data: { updateRefs: { clientMutationId: null } } } }
        : failed('UNPROCESSABLE', REFUSALS[outcome]);
    }
    const prefix = textOf(variables['prefix']);
    const names = [...repository.refs.keys()].filter((ref) => ref.startsWith(prefix)).toSorted();
    const from = Number(variables['after'] ?? 0);
    const page = names.slice(from, from + 100);
    const answers = this.#answers();
    const pageInfo = { hasNextPage: from + 100 < names.length, endCursor: String(from + 100) };
    return {
      status: 200,
      body: {
        data: {
          repository: {
            id: 'R_1',
            refs: { nodes: page.map((ref) => answers.node(ref, prefix, repository)), pageInfo },
          },
        },
      },
    };
  }

  #listed(query: URLSearchParams): readonly LocalIssue[] {
    const state = query.get('state') ?? 'open';
    const assignee = query.get('assignee');
    return [...this.#settings.repository.issues.values()]
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
    return { status: 200, body, headers: { link: `<${this.#settings.url()}/next?page=${page + 1}>; rel="next"` } };
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

export function trouble(message: string, status: number): object {
  return { message, documentation_url: 'https://docs.github.com/rest', status: String(status) };
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

function byName([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return one < other ? -1 : 1;
}
