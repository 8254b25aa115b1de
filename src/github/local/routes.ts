/** Answers each request that signalbox makes, by GitHub's own rules. */
import type { RefMove } from '../../core/github/index.ts';
import { asObject } from '../octokit-answers.ts';
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
const NOT_FOUND = refusal(404, 'Not Found');

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
  readonly #routes: readonly (readonly [RegExp, Route])[];

  constructor(settings: RouteSettings) {
    this.#settings = settings;
    this.#routes = this.#makeRoutes();
  }

  #answers(): Answers {
    return new Answers(this.#settings.url(), this.#settings.name);
  }

  /** `line` is `METHOD /path`. */
  answer(line: string, call: Call): Reply {
    for (const [pattern, route] of this.#routes) {
      const found = pattern.exec(line);
      if (found !== null) return route(call, ...found.slice(1));
    }
    return NOT_FOUND;
  }

  #makeRoutes(): readonly (readonly [RegExp, Route])[] {
    const { repository, name, hasGraphql } = this.#settings;
    const answers = (): Answers => this.#answers();
    const mayWrite = ({ login }: Call): boolean =>
      ['admin', 'write'].includes(repository.collaborators.get(login) ?? '');
    const writing =
      (route: Route): Route =>
      (call, ...parts) =>
        mayWrite(call) ? route(call, ...parts) : refusal(403, 'Resource not accessible by personal access token');
    const shown = (issue: LocalIssue, status = 200): Reply => {
      return { status, body: answers().issue(issue, repository.commentsOf(issue.number).length) };
    };
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
        : refusal(422, REFUSALS[outcome]);
    };
    const routes: Readonly<Record<string, Route>> = {
      'GET /collaborators/([^/]+)/permission': (_, login = '') => {
        return { status: 200, body: answers().permission(login, repository.collaborators.get(login) ?? 'none') };
      },
      'GET /issues': ({ query }) =>
        this.#paged(
          this.#listed(query).map((issue) => shown(issue).body),
          query,
        ),
      'POST /issues': writing(({ body, nowMs }) => {
        const number = Math.max(0, ...repository.issues.keys()) + 1;
        return shown(repository.addIssue(number, textOf(body['title']), nowMs), 201);
      }),
      'GET /issues/(\\d+)': ofIssue((issue) => shown(issue)),
      'PATCH /issues/(\\d+)': writing(
        ofIssue((issue, { body, nowMs }) => {
          if (body['state'] !== undefined) issue.isOpen = body['state'] === 'open';
          issue.updatedMs = nowMs;
          return shown(issue);
        }),
      ),
      'POST /issues/(\\d+)/assignees': writing(
        ofIssue((issue, { body, nowMs }) => {
          repository.assign(issue, textsOf(body['assignees']), nowMs);
          return shown(issue, 201);
        }),
      ),
      'DELETE /issues/(\\d+)/assignees': writing(
        ofIssue((issue, { body, nowMs }) => {
          repository.unassign(issue, textsOf(body['assignees']), nowMs);
          return shown(issue);
        }),
      ),
      'GET /issues/(\\d+)/comments': ofIssue(({ number }, { query }) => {
        const comments = repository.commentsOf(number).map((one) => answers().comment(one));
        return this.#paged(comments, query);
      }),
      'POST /issues/(\\d+)/comments': ofIssue(({ number }, { login, body, nowMs }) => {
        const comment = repository.comment(number, login, textOf(body['body']), nowMs);
        return comment === undefined
          ? refusal(403, 'Commenting is disabled on issues with more than 2500 comments')
          : { status: 201, body: answers().comment(comment) };
      }),
      'PATCH /issues/comments/(\\d+)': writing(({ body, nowMs }, id) => {
        const comment = repository.comments.get(Number(id));
        if (comment === undefined) return NOT_FOUND;
        Object.assign(comment, { body: textOf(body['body']), updatedMs: nowMs });
        return { status: 200, body: answers().comment(comment) };
      }),
      'GET /git/ref/(.+)': ({ isOld }, path) => {
        const ref = `refs/${path}`;
        const sha = repository.refBefore(ref, isOld ? 1 : 0);
        return sha === null ? NOT_FOUND : { status: 200, body: answers().ref(ref, sha) };
      },
      'GET /git/matching-refs/(.*)': (_, path) => {
        const found = [...repository.refs].filter(([ref]) => ref.startsWith(`refs/${path}`)).toSorted(byName);
        return { status: 200, body: found.map(([ref, sha]) => answers().ref(ref, sha)) };
      },
      'POST /git/refs': writing(({ body, nowMs }) => {
        const ref = textOf(body['ref']);
        if (!/^refs\/[^/]+\/./.test(ref))
          return refusal(422, 'Reference name must start with "refs" and have at least two slashes.');
        return moved(repository.makeRef(ref, textOf(body['sha']), nowMs), ref, 201);
      }),
      'PATCH /git/refs/(.+)': writing(({ body, nowMs }, path) => {
        const ref = `refs/${path}`;
        return moved(repository.moveRef(ref, textOf(body['sha']), nowMs, body['force'] === true), ref, 200);
      }),
      'DELETE /git/refs/(.+)': writing(({ nowMs }, path) =>
        repository.deleteRef(`refs/${path}`, nowMs) === 'done'
          ? { status: 204 }
          : refusal(422, 'Reference does not exist'),
      ),
      'POST /git/commits': writing(({ body, nowMs }) => {
        const commit = repository.makeCommit(textOf(body['message']), textsOf(body['parents']), nowMs);
        return commit === undefined
          ? refusal(422, 'Parent does not exist')
          : { status: 201, body: answers().commit(commit) };
      }),
      'GET /git/commits/([0-9a-f]+)': (_, sha = '') => {
        const commit = repository.commits.get(sha);
        return commit === undefined ? NOT_FOUND : { status: 200, body: answers().commit(commit) };
      },
    };
    const own = ` /repos/${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}/`;
    return [
      [/^GET \/user$/, ({ login }) => ({ status: 200, body: answers().ownUser(login) })],
      [/^POST \/graphql$/, (call) => (hasGraphql ? this.#graphql(call, mayWrite(call)) : NOT_FOUND)],
      ...Object.entries(routes).map(
        ([line, route]) => [new RegExp(`^${line.replace(' /', () => own)}$`, 'i'), route] as const,
      ),
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

  #paged(all: readonly unknown[], query: URLSearchParams): Reply {
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

export function refusal(status: number, message: string, headers: Reply['headers'] = {}): Reply {
  const body = { message, documentation_url: 'https://docs.github.com/rest', status: String(status) };
  return { status, headers, body };
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
