/** Locks on GitHub Issues, as the server last saw them. They are not in the store: no event tells of them. */
import { items, numberIn, numberOrNull, object, textIn, textOrNull, timeIn } from './read.ts';

export type GitHubLock = Readonly<ReturnType<typeof lockIn>>;
export type GitHubLocks = Readonly<ReturnType<typeof gitHubIn>>;

function lockIn(value: unknown) {
  const json = object(value);
  const said = object(object(json['metadata'])['lock']);
  const task = Object.entries(object(said['task_info'])).flatMap(([what, is]) =>
    typeof is === 'string' || typeof is === 'number' ? [[what.replaceAll('_', ' '), String(is)] as const] : [],
  );
  return {
    issue: numberIn(json['issue']),
    title: textOrNull(json['title']),
    worker: textIn(said['worker_id']),
    /** The machine or the runner. */
    node: textIn(said['node_id']),
    /** The account that is assigned. */
    login: textOrNull(json['assignee']),
    since: timeIn(said['claimed_at']),
    renewedAt: timeIn(said['heartbeat_last']),
    token: numberIn(json['token']),
    isStale: json['isStale'] === true,
    /** What the worker says about its task: names and values. */
    task,
  };
}

/** Reads the answer of `GET /v1/github/locks`. */
export function gitHubIn(value: unknown) {
  const json = object(value);
  return {
    /** `owner/name`; null if the server follows no repository. */
    repository: textOrNull(json['repository']),
    /** When GitHub was asked. */
    asOf: numberOrNull(json['asOf']),
    /** Why the server could not ask GitHub since. */
    trouble: textOrNull(json['trouble']),
    /** How often the server asks GitHub. */
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
