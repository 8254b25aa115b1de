/** Locks on GitHub Issues, as the server last saw them. They are not in the store: no event tells of them. */
import { items, numberIn, object, textIn, timeIn } from './read.ts';

export interface GitHubLock {
  readonly issue: number;
  readonly title: string | null;
  readonly worker: string;
  /** The machine or the runner. */
  readonly node: string;
  /** The account that is assigned. */
  readonly login: string | null;
  readonly since: number | null;
  readonly renewedAt: number | null;
  readonly token: number;
  readonly isStale: boolean;
  /** What the worker says about its task: names and values. */
  readonly task: readonly (readonly [string, string])[];
}

export interface GitHubLocks {
  /** `owner/name`; null if the server follows no repository. */
  readonly repository: string | null;
  /** When GitHub was asked. */
  readonly asOf: number | null;
  /** Why the server could not ask GitHub since. */
  readonly trouble: string | null;
  /** How often the server asks GitHub. */
  readonly everyMs: number;
  readonly locks: readonly GitHubLock[];
}

function lockIn(value: unknown): GitHubLock {
  const json = object(value);
  const said = object(object(json['metadata'])['lock']);
  const task = Object.entries(object(said['task_info'])).flatMap(([what, is]) =>
    typeof is === 'string' || typeof is === 'number' ? [[what.replaceAll('_', ' '), String(is)] as const] : [],
  );
  return {
    issue: numberIn(json['issue']),
    title: typeof json['title'] === 'string' ? json['title'] : null,
    worker: textIn(said['worker_id']),
    node: textIn(said['node_id']),
    login: typeof json['assignee'] === 'string' ? json['assignee'] : null,
    since: timeIn(said['claimed_at']),
    renewedAt: timeIn(said['heartbeat_last']),
    token: numberIn(json['token']),
    isStale: json['isStale'] === true,
    task,
  };
}

/** Reads the answer of `GET /v1/github/locks`. */
export function gitHubIn(value: unknown): GitHubLocks {
  const json = object(value);
  return {
    repository: typeof json['repository'] === 'string' ? json['repository'] : null,
    asOf: typeof json['asOf'] === 'number' ? json['asOf'] : null,
    trouble: typeof json['trouble'] === 'string' ? json['trouble'] : null,
    everyMs: numberIn(json['everyMs'], 15_000),
    locks: items(json['locks']).map(lockIn),
  };
}

/** Applies the filters of the locks: only locked issues are known, so none is free and none has a queue. */
export function matchingIssues(
  { locks }: GitHubLocks,
  { text, is }: { readonly text: string; readonly is: string },
): readonly GitHubLock[] {
  if (is === 'free' || is === 'queue') return [];
  const wanted = text.trim().toLowerCase();
  const has = (value: string | null): boolean => value !== null && value.toLowerCase().includes(wanted);
  return locks.filter(
    ({ issue, title, worker, node, login, token, isStale }) =>
      (is !== 'lost' || isStale) &&
      (wanted === '' ||
        `#${issue}`.includes(wanted) ||
        String(token) === wanted ||
        [title, worker, node, login].some(has)),
  );
}
