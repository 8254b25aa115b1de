/**
 * Acquires the locks of one or several issues, all or none.
 *
 *     read issues and refs ─▶ judge ──conflict──▶ pause 1, 2, 4, 8, 16 s ─▶ read again … refused
 *                               └──free, stale, forced──▶ commit ─▶ swap ──won──▶ project ─▶ held
 *                                                                    └──lost, unknown──▶ read again
 */
import {
  type Answer,
  ask,
  askAll,
  type Instant,
  isPast,
  type IssueSeen,
  later,
  pause,
  type Procedure,
  type Question,
} from './question.ts';
import { markOf, metadataComment, takenOverComment } from './projection.ts';
import { isStale, lockRef, type LockRecord, marginMs, messageOf, recordIn, type TaskInfo } from './record.ts';
import type { Strategy } from '../strategy.ts';
import { swap, type Swapped } from './swap.ts';

export interface AcquireSettings {
  readonly maxRetries: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly timeoutMs: number;
}

export interface AcquireRequest {
  readonly issues: readonly number[];
  /** A name that no other acquisition has. Each try adds its number, because two tries may both land, one after the other. */
  readonly hold: string;
  readonly workerId: string;
  readonly nodeId: string;
  readonly taskInfo: TaskInfo;
  readonly strategy: Strategy;
  readonly reason?: string;
  /** The account of the token; null if no account can be assigned. */
  readonly login: string | null;
}

/** What a holder knows of its hold. */
export interface Held {
  readonly issue: number;
  readonly tip: string;
  readonly record: LockRecord;
  /** Tips that the ref had before, newest last; a few are enough to recognise an old read. */
  readonly before: readonly string[];
  /** The holder stops believing in its hold at this moment, whatever happens. */
  readonly deadline: Instant;
  readonly since: Instant;
  /** When the metadata comment was last written. */
  readonly commentAt: Instant;
  /** A renewal whose outcome is not known. The ref is read before anything else is written. */
  readonly unsure?: { readonly tip: string; readonly record: LockRecord; readonly deadline: Instant };
}

export type Refusal =
  | { readonly kind: 'already-locked'; readonly issue: number; readonly by: LockRecord; readonly isStale: boolean }
  | { readonly kind: 'assigned'; readonly issue: number; readonly assignees: readonly string[] }
  /** The last conflict of all tries. */
  | { readonly kind: 'retries-exhausted'; readonly tries: number; readonly last: Refusal }
  | { readonly kind: 'race-lost'; readonly issues: readonly number[] }
  | { readonly kind: 'queued-behind'; readonly issue: number; readonly ahead: readonly string[] }
  | { readonly kind: 'deadlock'; readonly issue: number; readonly cycle: readonly string[] }
  | { readonly kind: 'rate-limited'; readonly waitMs: number; readonly message: string }
  | { readonly kind: 'unauthorised'; readonly message: string }
  | { readonly kind: 'issue-closed'; readonly issue: number }
  | { readonly kind: 'issue-missing'; readonly issue: number }
  /** The ref points at something that signalbox did not write. */
  | { readonly kind: 'foreign-ref'; readonly issue: number; readonly sha: string }
  /** GitHub cannot move several refs at once: the caller acquires them one by one. */
  | { readonly kind: 'not-together' }
  | { readonly kind: 'unreachable'; readonly message: string };

export type Acquired = {
  /** Whether another holder was met on the way. */
  readonly metConflict: boolean;
} & (
  | {
      readonly kind: 'held';
      readonly holds: readonly Held[];
      readonly tookOver: readonly LockRecord[];
      /** The issues that GitHub assigned. */
      readonly assigned: readonly number[];
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
);

/** The queue, if it is used: asked before a free lock is taken. */
export interface Line {
  /** Undefined if the worker may go ahead. */
  mayGo(issue: number, isFree: boolean): Procedure<Refusal | undefined>;
  /** Called when the acquisition has ended, however it ended. */
  leave(acquired: boolean): Procedure<void>;
}

interface Found {
  readonly issue: number;
  readonly tip: string | null;
  readonly record?: LockRecord;
}

interface Attempt {
  readonly sha: string;
  readonly holds: readonly Held[];
  readonly found: readonly Found[];
}

/** Kept small: it only serves to recognise an old read. */
export const KNOWN_TIPS = 8;

export function* acquire(request: AcquireRequest, settings: AcquireSettings, line?: Line): Procedure<Acquired> {
  const outcome = yield* tries(request, settings, line);
  if (line !== undefined) yield* line.leave(outcome.kind === 'held');
  return outcome;
}

function* tries(request: AcquireRequest, settings: AcquireSettings, line: Line | undefined): Procedure<Acquired> {
  let metConflict = false;
  let attempt: Attempt | undefined;
  for (let tried = 0; ; tried++) {
    const found = yield* read(request, attempt);
    let refusal: Refusal;
    if ('refusal' in found) ({ refusal } = found);
    else if ('won' in found) return yield* project(request, found.won, metConflict);
    else {
      const conflict = yield* judge(request, found, line);
      if (conflict === undefined) {
        const taken = yield* take(request, settings, found, tried);
        if ('attempt' in taken) ({ attempt } = taken);
        if ('won' in taken) return yield* project(request, taken.won, metConflict);
        ({ refusal } = taken);
      } else refusal = conflict;
    }
    metConflict ||= CONFLICTS.includes(refusal.kind);
    const isSoon = refusal.kind === 'rate-limited' && refusal.waitMs <= settings.maxBackoffMs ? refusal : undefined;
    if (isSoon !== undefined && tried < settings.maxRetries && request.strategy !== 'fail-fast') {
      yield* pause(isSoon.waitMs);
      continue;
    }
    if (!RETRIED.includes(refusal.kind)) return { kind: 'refused', refusal, metConflict };
    const isConflict = CONFLICTS.includes(refusal.kind);
    if (request.strategy === 'fail-fast' && isConflict) return { kind: 'refused', refusal, metConflict };
    if (tried >= settings.maxRetries) {
      const last: Refusal =
        isConflict && tried > 0 ? { kind: 'retries-exhausted', tries: tried + 1, last: refusal } : refusal;
      return { kind: 'refused', refusal: last, metConflict };
    }
    yield* pause(Math.min(settings.maxBackoffMs, settings.initialBackoffMs * 2 ** tried), true);
  }
}

/** Another worker is in the way. */
const CONFLICTS: readonly Refusal['kind'][] = ['already-locked', 'assigned', 'race-lost', 'queued-behind'];
/** Conditions that may change after a while. */
const RETRIED: readonly Refusal['kind'][] = [...CONFLICTS, 'unreachable'];

interface Read {
  readonly all: readonly Found[];
  readonly issues: readonly IssueSeen[];
  readonly stale: readonly boolean[];
  /** The server's time. */
  readonly iso: string;
}

function* read(
  { issues }: AcquireRequest,
  attempt: Attempt | undefined,
): Procedure<Read | { readonly refusal: Refusal } | { readonly won: Attempt }> {
  const answers = yield* askAll([
    ...issues.map((issue) => ({ ask: 'issue' as const, issue })),
    ...issues.map((issue) => ({ ask: 'ref' as const, ref: lockRef(issue) })),
  ]);
  const seen: IssueSeen[] = [];
  const tips: (string | null)[] = [];
  for (const [place, issue] of issues.entries()) {
    const shown = answers[place] as Answer<IssueSeen>;
    const ref = answers[issues.length + place] as Answer<{ readonly sha: string }>;
    if (shown.kind === 'missing') return { refusal: { kind: 'issue-missing', issue } };
    for (const answer of [shown, ref])
      if (answer.kind !== 'ok' && answer.kind !== 'missing') return { refusal: silenceOf(answer) };
    if (shown.kind === 'ok') seen.push(shown.value);
    tips.push(ref.kind === 'ok' ? ref.value.sha : null);
  }
  const { at, date } = answers.at(-1) as Answer<unknown>;
  // An earlier swap whose answer was lost has landed.
  if (
    attempt !== undefined &&
    tips.every((tip) => tip === attempt.sha) &&
    attempt.holds.every(({ deadline }) => !isPast(deadline, at))
  )
    return { won: attempt };
  const closed = issues.find((_, place) => seen[place]?.isOpen === false);
  if (closed !== undefined) return { refusal: { kind: 'issue-closed', issue: closed } };
  const commits = yield* askAll(tips.filter((tip) => tip !== null).map((sha) => ({ ask: 'commit' as const, sha })));
  const all: Found[] = [];
  const stale: boolean[] = [];
  for (const [place, issue] of issues.entries()) {
    const tip = tips[place] ?? null;
    if (tip === null) {
      all.push({ issue, tip });
      stale.push(false);
      continue;
    }
    const commit = commits.find((answer) => answer.kind === 'ok' && answer.value.sha === tip);
    if (commit?.kind !== 'ok') return { refusal: silenceOf(commits.find(({ kind }) => kind !== 'ok')) };
    const record = recordIn(commit.value.message, issue);
    if (record === undefined) return { refusal: { kind: 'foreign-ref', issue, sha: tip } };
    all.push({ issue, tip, record });
    // Both dates are the server's. The refs were read before the commits: an earlier date makes a lock look younger.
    stale.push(date !== undefined && isStale(record, commit.value.dateMs, date.ms));
  }
  return { all, issues: seen, stale, iso: date?.iso ?? '' };
}

/** Undefined if all of them may be taken. */
function* judge(
  request: AcquireRequest,
  { all, issues, stale }: Read,
  line: Line | undefined,
): Procedure<Refusal | undefined> {
  const { strategy, login } = request;
  if (strategy === 'force') {
    const answer = yield* ask({ ask: 'is-admin' });
    if (answer.kind !== 'ok') return silenceOf(answer);
    if (!answer.value)
      return { kind: 'unauthorised', message: 'only an administrator of the repository may force a lock' };
    return undefined;
  }
  for (const [place, { issue, record }] of all.entries()) {
    const isOld = stale[place] === true;
    const isTaken = record?.state === 'held' && !(isOld && strategy === 'steal-stale');
    if (isTaken) {
      // A place in line is kept while another worker holds the lock.
      const queued = yield* ahead(line, issue, false);
      return queued ?? { kind: 'already-locked', issue, by: record, isStale: isOld };
    }
    // These accounts belong to workers, not people: ours, and the account of the lock's last holder.
    const people = (issues[place]?.assignees ?? []).filter(
      (one) => !isSame(one, login) && !isSame(one, record?.login ?? null),
    );
    if (people.length > 0) return { kind: 'assigned', issue, assignees: people };
    const queued = yield* ahead(line, issue, true);
    if (queued !== undefined) return queued;
  }
  return undefined;
}

function* ahead(line: Line | undefined, issue: number, isFree: boolean): Procedure<Refusal | undefined> {
  return line === undefined ? undefined : yield* line.mayGo(issue, isFree);
}

/** GitHub compares logins without regard to case. */
function isSame(one: string, other: string | null): boolean {
  return one.toLowerCase() === other?.toLowerCase();
}

type Taken =
  | { readonly won: Attempt }
  | { readonly refusal: Refusal }
  | { readonly refusal: Refusal; readonly attempt: Attempt };

function* take(
  request: AcquireRequest,
  { timeoutMs }: AcquireSettings,
  { all: found, iso }: Read,
  tried: number,
): Procedure<Taken> {
  const records = new Map(found.map((one) => [one.issue, newRecord(request, one, timeoutMs, tried, iso)]));
  const parents = [...new Set(found.flatMap(({ tip }) => (tip === null ? [] : [tip])))];
  const commit = yield* ask({ ask: 'make-commit', message: messageOf(records), parents });
  if (commit.kind !== 'ok') return { refusal: silenceOf(commit) };
  // Counts from before the commit was sent: the others count from the commit's date, which is later.
  const deadline = later(commit.sent, timeoutMs - marginMs(timeoutMs));
  const { sha } = commit.value;
  const holds = found.map(({ issue, tip }) => ({
    issue,
    tip: sha,
    record: records.get(issue) as LockRecord,
    before: tip === null ? [] : [tip],
    deadline,
    since: commit.sent,
    commentAt: commit.sent,
  }));
  const attempt = { sha, holds, found };
  const swaps = found.map(({ issue, tip }) => ({ ref: lockRef(issue), from: tip, to: sha }));
  const swapped = yield* swap(swaps, deadline);
  if (swapped.kind === 'won' && !isPast(deadline, swapped.at)) return { won: attempt };
  return { refusal: refusalOf(swapped, found), attempt };
}

function newRecord(
  request: AcquireRequest,
  { record }: Found,
  timeoutMs: number,
  tried: number,
  iso: string,
): LockRecord {
  const { hold, workerId, nodeId, taskInfo, reason, login } = request;
  const lock = { worker_id: workerId, node_id: nodeId, claimed_at: iso, heartbeat_last: iso, task_info: taskInfo };
  return {
    ...{
      state: 'held' as const,
      epoch: (record?.epoch ?? 0) + 1,
      seq: 0,
      hold: `${hold}.${tried}`,
      nonce: `${hold}.${tried}`,
    },
    ...{ timeout_ms: timeoutMs, login, comment_id: null },
    ...(request.strategy === 'force' && reason !== undefined && { reason }),
    lock,
  };
}

function refusalOf(swapped: Swapped, found: readonly Found[]): Refusal {
  switch (swapped.kind) {
    case 'lost':
      return { kind: 'race-lost', issues: found.map(({ issue }) => issue) };
    case 'unsupported':
      return { kind: 'not-together' };
    case 'denied':
      return { kind: 'unauthorised', message: swapped.message };
    case 'limited':
      return { kind: 'rate-limited', waitMs: swapped.waitMs, message: swapped.message };
    case 'unknown':
      return { kind: 'unreachable', message: swapped.message };
    case 'won':
      return { kind: 'unreachable', message: 'the answer came after the lock had ended' };
  }
}

/** Shows the hold on the issues. The lock is held whether or not that works. */
function* project({ login }: AcquireRequest, { holds, found }: Attempt, metConflict: boolean): Procedure<Acquired> {
  const old = found.flatMap(({ issue, record }) => (record?.state === 'held' ? [{ issue, record }] : []));
  const lost = old.filter(({ record }) => record.comment_id === null);
  const lists = yield* askAll(lost.map(({ issue }) => ({ ask: 'comments' as const, issue })));
  const last = lists.at(-1)?.at;
  const tookOver = old.map(({ record }) => record);
  // Only a holder that believes in its hold writes what people see.
  if (last !== undefined && holds.some(({ deadline }) => isPast(deadline, last)))
    return { kind: 'held', holds, tookOver, assigned: [], metConflict };
  const commentOf = ({ issue, record }: (typeof old)[number]): number | undefined => {
    const list = lists[lost.findIndex((one) => one.issue === issue)];
    const marked =
      list?.kind === 'ok' ? list.value.findLast(({ body }) => body.includes(markOf(record.hold))) : undefined;
    return record.comment_id ?? marked?.id;
  };
  const questions: Question[] = holds.flatMap(({ issue, record }) => [
    { ask: 'comment' as const, issue, body: metadataComment(record) },
    ...(login === null ? [] : [{ ask: 'assign' as const, issue, login }]),
  ]);
  for (const one of old) {
    const [next] = holds.filter(({ issue }) => issue === one.issue);
    const id = commentOf(one);
    if (id !== undefined && next !== undefined)
      questions.push({ ask: 'edit-comment', id, body: takenOverComment(one.record, next.record) });
    const dead = one.record.login;
    if (dead !== null && !isSame(dead, login)) questions.push({ ask: 'unassign', issue: one.issue, login: dead });
  }
  const answers = yield questions;
  const numbered = holds.map((held) => {
    const answer = answers[questions.findIndex((one) => one.ask === 'comment' && one.issue === held.issue)];
    if (answer?.kind !== 'ok') return held;
    const { id } = answer.value as { readonly id: number };
    return { ...held, record: { ...held.record, comment_id: id } };
  });
  const assigned = questions.flatMap((question, place) => {
    const answer = answers[place];
    if (question.ask !== 'assign' || answer?.kind !== 'ok') return [];
    const { assignees } = answer.value as { readonly assignees: readonly string[] };
    return assignees.some((one) => isSame(one, login)) ? [question.issue] : [];
  });
  return { kind: 'held', holds: numbered, tookOver, assigned, metConflict };
}

/** Why no answer could be used. */
export function silenceOf(answer: Answer<unknown> | undefined): Refusal {
  if (answer?.kind === 'limited') return { kind: 'rate-limited', waitMs: answer.waitMs, message: answer.message };
  if (answer?.kind === 'denied') return { kind: 'unauthorised', message: answer.message };
  return { kind: 'unreachable', message: answer === undefined || answer.kind === 'ok' ? 'no answer' : answer.message };
}
