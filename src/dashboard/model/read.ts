/** Reads the server's answers. Anything missing or odd becomes something harmless, so that the page can show the rest. */
import type { Counts, Kind, PipelineState, Resource, Role, State, TaskStatus, Trouble } from './types.ts';

export type Json = Readonly<Record<string, unknown>>;

export function object(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function items(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

function eachIn<T>(value: unknown, read: (one: unknown) => T): readonly T[] {
  return items(value).map(read);
}

export function textIn(value: unknown, otherwise = ''): string {
  return typeof value === 'string' ? value : otherwise;
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

export function numberIn(value: unknown, otherwise = 0): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}

export function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function textsIn(value: unknown): readonly string[] {
  return items(value).filter((one): one is string => typeof one === 'string');
}

/** The first of the words stands for a value that is none of them. */
export function wordIn<T extends string>(value: unknown, words: readonly T[]): T {
  return words.find((word) => word === value) ?? (words[0] as T);
}

export function timeIn(value: unknown): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN;
  return Number.isFinite(ms) ? ms : null;
}

function sessionIn(value: unknown) {
  if (typeof value !== 'object' || value === null) return null;
  const { host, pid, user, directory } = object(value);
  return {
    ...{ host: textOrNull(host), pid: numberOrNull(pid) },
    ...{ user: textOrNull(user), directory: textOrNull(directory) },
  };
}

function modeIn(value: unknown): 'exclusive' | 'shared' {
  return value === 'shared' ? 'shared' : 'exclusive';
}

export function holdIn(value: unknown, readAt: number) {
  const json = object(value);
  const ttlMs = numberOrNull(json['ttlMs']);
  const remainingMs = numberOrNull(json['remainingMs']);
  return {
    holder: textIn(json['holder']),
    token: numberIn(json['token']),
    acquiredAt: timeIn(json['acquiredAt']) ?? readAt,
    mode: modeIn(json['mode']),
    weight: numberIn(json['weight'], 1),
    slots: items(json['slots']).filter((slot) => typeof slot === 'number') as readonly number[],
    isStale: json['isStale'] === true,
    isAttached: json['isAttached'] === true,
    health: textIn(json['health'], 'renewed'),
    /** The ttl of the lease, the time that was left, and when that was read. Null if it is not known. */
    lease: ttlMs === null || remainingMs === null ? null : { ttlMs, remainingMs, readAt },
    maxHoldMs: numberOrNull(json['maxHoldMs']),
    reason: textOrNull(json['reason']),
    metadata: json['metadata'] ?? null,
    session: sessionIn(json['session'] ?? json['takenBy']),
  };
}

export function waiterIn(value: unknown, readAt: number) {
  const json = object(value);
  return {
    holder: textIn(json['holder']),
    priority: numberIn(json['priority']),
    since: timeIn(json['since']) ?? readAt,
    mode: modeIn(json['mode']),
    weight: numberIn(json['weight'], 1),
    reason: textOrNull(json['reason']),
    waitsFor: textsIn(json['waitsFor']),
  };
}

/** Who drained a semaphore, when and why; null if it is not drained. */
function drainIn(value: unknown, readAt: number) {
  if (typeof value !== 'object' || value === null) return null;
  const { by, at, reason, revision } = object(value);
  return { by: textIn(by), at: timeIn(at) ?? readAt, reason: textIn(reason), revision: numberIn(revision) };
}

export function resourceIn(kind: Kind, value: unknown, revision: number, readAt: number) {
  const json = object(value);
  const name = textIn(json['name']);
  return {
    kind,
    name,
    /** `lock/main`. */
    resource: `${kind}/${name}`,
    /** Events up to this revision are included. */
    revision: numberIn(json['revision'], revision),
    /** When the server was last asked about it; 0 if an event changed it since. */
    readAt,
    token: numberIn(json['token']),
    onStale: (json['onStale'] === 'alert' ? 'alert' : 'reclaim') as 'alert' | 'reclaim',
    maxHoldMs: numberOrNull(json['maxHoldMs']),
    ttlMs: numberOrNull(json['ttlMs']),
    holds: eachIn(json['holds'], (hold) => holdIn(hold, readAt)),
    /** In the order of service. */
    waiting: eachIn(json['waiting'], (waiter) => waiterIn(waiter, readAt)),
    /** The capacity of a semaphore; 0 for a lock. */
    capacity: numberIn(json['capacity']),
    /** Whether a semaphore is drained: it grants nothing new until an administrator undoes the drain. */
    isDrained: json['isDrained'] === true,
    /** Its revision is 0 if only an event told of the drain. */
    drained: drainIn(json['drained'], readAt),
  };
}

/** The locks and semaphores of any answer that has some. `revision` applies to those that do not name their own. */
export function resourcesIn(value: unknown, revision: number, readAt: number): readonly Resource[] {
  const { locks, semaphores } = object(value);
  return [
    ...items(locks).map((one) => resourceIn('lock', one, revision, readAt)),
    ...items(semaphores).map((one) => resourceIn('semaphore', one, revision, readAt)),
  ];
}

const STATUSES: readonly TaskStatus[] = ['pending', 'running', 'complete', 'failed'];

export function taskIn(value: unknown, revision: number, readAt: number) {
  const json = object(value);
  return {
    ...{ id: textIn(json['task']), revision: numberIn(json['revision'], revision), readAt },
    status: wordIn(json['status'], STATUSES),
    capabilities: textsIn(json['capabilities']),
    priority: numberIn(json['priority']),
    dependsOn: textsIn(json['dependsOn']),
    blockedBy: textsIn(json['blockedBy']),
    owner: textOrNull(json['owner']),
    token: numberOrNull(json['token']),
    attempts: numberIn(json['attempts']),
    failures: numberIn(json['failures']),
    losses: numberIn(json['losses']),
    retries: numberIn(json['retries']),
    retryAt: timeIn(json['retryAt']),
    reason: textOrNull(json['reason']),
    publishedAt: timeIn(json['publishedAt']),
    publishedBy: textOrNull(json['publishedBy']),
    claimedAt: timeIn(json['claimedAt']),
    endedAt: timeIn(json['endedAt']),
  };
}

export function phaseIn(value: unknown) {
  const json = object(value);
  return {
    name: textIn(json['name'], textIn(json['phase'])),
    state: textIn(json['state'], textIn(json['status'], 'pending')),
    attempt: numberIn(json['runs']),
    startedAt: timeIn(json['startedAt']),
    endedAt: timeIn(json['endedAt']),
  };
}

/** Every guard has reasons of its own; a wait for holds names the holds, and any other wait says why. */
function reasonsIn(blocked: Json): readonly string[] {
  const ofGuards = items(blocked['guards']).flatMap((guard) => textsIn(object(guard)['reasons']));
  const why = textOrNull(blocked['why']);
  return [...ofGuards, ...textsIn(blocked['resources']), ...(why === null ? [] : [why])];
}

export const STATES: readonly PipelineState[] = ['pending', 'running', 'blocked', 'done', 'failed', 'cancelled'];

export function pipelineIn(value: unknown, revision = 0, readAt = 0) {
  const json = object(value);
  const blocked = json['blocked'] === null || json['blocked'] === undefined ? null : object(json['blocked']);
  const driver = json['driver'] === null ? null : object(json['driver']);
  return {
    ...{ id: textIn(json['pipeline']), revision: numberIn(json['revision'], revision), readAt },
    name: textIn(json['name']),
    state: wordIn(json['state'], STATES),
    phase: textOrNull(json['phase']),
    phases: eachIn(json['phases'], phaseIn),
    blocked:
      blocked === null
        ? null
        : {
            on: textIn(blocked['on'], 'guard'),
            reasons: reasonsIn(blocked),
            since: timeIn(blocked['since']),
            question: numberOrNull(blocked['question']),
          },
    driver: driver === null ? null : textOrNull(driver['holder'] ?? driver['by'] ?? driver['id']),
    isDriven: json['isDriven'] === true,
    startedBy: textIn(json['startedBy']),
    startedAt: timeIn(json['startedAt']),
    endedAt: timeIn(json['endedAt']),
    isCancelling: json['cancel'] !== null && json['cancel'] !== undefined,
    reason: textOrNull(json['reason']),
  };
}

export function memberIn(value: unknown) {
  const json = object(value);
  const assets = items(json['assets']).map((asset) =>
    typeof asset === 'string' ? asset : textIn(object(asset)['id'], textIn(object(asset)['name'])),
  );
  return {
    id: textIn(json['id']),
    metadata: json['metadata'] ?? null,
    incarnation: String(json['incarnation'] ?? ''),
    joinedAt: timeIn(json['joinedAt']),
    weight: numberIn(json['weight'], 1),
    assets,
  };
}

const TROUBLES: readonly Trouble['kind'][] = ['unreadable', 'damaged', 'filling'];

function troubleIn(value: unknown): Trouble {
  const json = object(value);
  return {
    kind: wordIn(json['kind'], TROUBLES),
    ...{ key: textIn(json['key']), subject: textIn(json['subject']), says: textIn(json['says']) },
    ...{ command: textIn(json['command'], 'signalbox doctor'), at: numberOrNull(json['at']) ?? undefined },
  };
}

function countsIn(value: unknown): Counts {
  const json = object(value);
  const of = (name: TaskStatus): number => numberIn(json[name]);
  return { pending: of('pending'), running: of('running'), complete: of('complete'), failed: of('failed') };
}

/** Each may do what the ones before it may do. */
export const ROLES: readonly Role[] = ['viewer', 'worker', 'administrator'];

/** Reads the answer of `GET /v1/board` as the state to which events are then applied. */
export function boardIn(value: unknown): State {
  const json = object(value);
  const readAt = timeIn(json['at']) ?? 0;
  const revision = numberIn(json['revision']);
  const since = numberIn(json['since']);
  const store = object(json['store']);
  const token = object(json['token']);
  return {
    revision,
    ...{ snapshotRevision: revision, workRevision: since, membersRevision: since },
    store: { engine: textIn(store['engine']), name: textIn(store['name']) },
    token: {
      name: textIn(token['name']),
      role: wordIn(token['role'], ROLES),
      holders: Array.isArray(token['holders']) ? textsIn(token['holders']) : null,
    },
    allowsCommands: json['allowsCommands'] === true,
    resources: new Map(resourcesIn(json, revision, readAt).map((one) => [one.resource, one])),
    tasks: new Map(items(json['tasks']).map((one) => [textIn(object(one)['task']), taskIn(one, since, readAt)])),
    counts: countsIn(json['counts']),
    pipelines: new Map(
      items(json['pipelines']).map((one) => [textIn(object(one)['pipeline']), pipelineIn(one, since, readAt)]),
    ),
    members: new Map(items(json['members']).map((one) => [textIn(object(one)['id']), memberIn(one)])),
    coordinator: textOrNull(json['coordinator']),
    troubles: items(json['troubles']).map(troubleIn),
    deadlocks: [],
    entries: [],
    waits: [],
    slices: [],
    countedFrom: readAt,
    denials: undefined,
    unread: new Set(),
  };
}
