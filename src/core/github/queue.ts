/**
 * The queue of an issue, for those who use it: one ref for each waiter, ordered by priority and then by the server's date of
 * its first commit. It is advisory. The lock's ref alone decides; a worker that does not look at the queue passes it.
 *
 *     refs/signalbox/queue/issue-N/HOLD ──▶ commit {worker_id, priority, holds, …}
 *
 * A ticket that was not renewed for the lock's timeout counts for nothing, and the next worker that acquires the lock removes it.
 */
import type { Line, Refusal } from './acquire.ts';
import { ask, askAll, type Procedure } from './question.ts';
import { FORMAT } from './record.ts';

/** A priority in a word. */
export type PriorityWord = 'high' | 'medium' | 'low';

export interface Ticket {
  /** The name of the acquisition; part of the ref's name. */
  readonly hold: string;
  readonly workerId: string;
  readonly priority: number;
  readonly timeoutMs: number;
  /** Issues that this worker holds meanwhile: for deadlocks. */
  readonly holds: readonly number[];
}

/** A worker that stands in line. */
export interface QueueEntry {
  /** Who waits. */
  readonly workerId: string;
  /** Higher goes first. */
  readonly priority: number;
  /** Since when it waits. */
  readonly sinceMs: number;
  /** Whether it has not been renewed in time. */
  readonly isExpired: boolean;
}

interface Waiting extends QueueEntry {
  readonly ref: string;
  readonly sha: string;
  readonly issue: number;
  readonly holds: readonly number[];
  readonly ageMs: number;
}

const TICKETS = 'refs/signalbox/queue/';
const WORDS: Readonly<Record<PriorityWord, number>> = { high: 10, medium: 0, low: -10 };

/** Words and numbers; undefined is medium. */
export function priorityOf(priority: PriorityWord | number | undefined): number {
  if (priority === undefined) return WORDS.medium;
  return typeof priority === 'number' ? priority : WORDS[priority];
}

export function isPriority(value: unknown): value is PriorityWord | number {
  if (typeof value === 'number') return Number.isFinite(value) && Math.abs(value) <= 100;
  return typeof value === 'string' && Object.hasOwn(WORDS, value);
}

/** Who waits for an issue, first to last. */
export function* queueOf(issue: number): Procedure<readonly QueueEntry[]> {
  const all = yield* tickets(`${TICKETS}issue-${issue}/`);
  return all.map(({ workerId, priority, sinceMs, isExpired }) => ({ workerId, priority, sinceMs, isExpired }));
}

/** A place in line for one acquisition. */
export function inQueue(ticket: Ticket): Line {
  const own = new Map<number, { sha: string; sinceMs: number }>();
  let expired: readonly Waiting[] = [];
  const refOf = (issue: number): string => `${TICKETS}issue-${issue}/${ticket.hold}`;

  function* enter(issue: number): Procedure<void> {
    if (own.has(issue)) return;
    const commit = yield* ask({ ask: 'make-commit', message: messageOf(ticket), parents: [] });
    if (commit.kind !== 'ok') return;
    const made = yield* ask({ ask: 'make-ref', ref: refOf(issue), sha: commit.value.sha });
    // Without an answer the ticket may exist all the same; `leave` removes it.
    if (made.kind === 'ok' || made.kind === 'unknown')
      own.set(issue, { sha: commit.value.sha, sinceMs: commit.value.dateMs });
  }

  function* refresh(issue: number, mine: Waiting): Procedure<void> {
    if (mine.ageMs < ticket.timeoutMs / 2) return;
    const commit = yield* ask({ ask: 'make-commit', message: messageOf(ticket, mine.sinceMs), parents: [mine.sha] });
    if (commit.kind === 'ok') yield* ask({ ask: 'move-ref', ref: refOf(issue), sha: commit.value.sha });
  }

  function* mayGo(issue: number, isFree: boolean): Procedure<Refusal | undefined> {
    const all = yield* tickets(TICKETS);
    expired = all.filter((one) => one.issue === issue && one.isExpired);
    const live = all.filter(({ isExpired }) => !isExpired);
    const line = live.filter((one) => one.issue === issue);
    const mine = line.find(({ ref }) => ref === refOf(issue));
    const place =
      mine === undefined ? line.filter(({ priority }) => priority >= ticket.priority).length : line.indexOf(mine);
    if (isFree && place === 0) return undefined;
    if (mine === undefined) yield* enter(issue);
    else yield* refresh(issue, mine);
    const cycle = mine === undefined ? undefined : cycleThrough(mine, live);
    if (cycle !== undefined && victimOf(cycle) === mine)
      return { kind: 'deadlock', issue, cycle: cycle.map((one) => `${one.workerId} waits for #${one.issue}`) };
    if (!isFree) return undefined;
    return { kind: 'queued-behind', issue, ahead: line.slice(0, place).map(({ workerId }) => workerId) };
  }

  function* leave(acquired: boolean): Procedure<void> {
    const refs = [...own.keys()].map(refOf);
    if (acquired) refs.push(...expired.map(({ ref }) => ref));
    yield* askAll([...new Set(refs)].map((ref) => ({ ask: 'delete-ref' as const, ref })));
  }

  return { mayGo, leave };
}

/** In order. A list may be old or cut short: then the order is wrong for a while, but never the lock. */
function* tickets(prefix: string): Procedure<readonly Waiting[]> {
  const refs = yield* ask({ ask: 'refs', prefix });
  if (refs.kind !== 'ok') return [];
  const commits = yield* askAll(refs.value.map(({ sha }) => ({ ask: 'commit' as const, sha })));
  const found = refs.value.flatMap(({ ref, sha }, place): readonly Waiting[] => {
    const commit = commits[place];
    const issue = Number(/\/issue-([1-9]\d{0,9})\//.exec(ref)?.[1]);
    const body = commit?.kind === 'ok' ? ticketIn(commit.value.message) : undefined;
    if (commit?.kind !== 'ok' || body === undefined || !Number.isSafeInteger(issue)) return [];
    const { timeoutMs, sinceMs = commit.value.dateMs, ...rest } = body;
    const ageMs = (refs.date?.ms ?? commit.value.dateMs) - commit.value.dateMs;
    return [{ ref, sha, issue, ...rest, sinceMs, ageMs, isExpired: ageMs > timeoutMs }];
  });
  return found.sort(
    (one, other) => other.priority - one.priority || one.sinceMs - other.sinceMs || (one.ref < other.ref ? -1 : 1),
  );
}

/** Goes from each waiter to the holder that it waits for, if that holder waits as well. */
function cycleThrough(start: Waiting, all: readonly Waiting[]): readonly Waiting[] | undefined {
  const path = [start];
  for (;;) {
    const last = path.at(-1) as Waiting;
    const next = all.find(({ workerId, holds }) => workerId !== last.workerId && holds.includes(last.issue));
    if (next === undefined) return undefined;
    if (next.workerId === start.workerId) return path;
    if (path.includes(next)) return undefined;
    path.push(next);
  }
}

/** The waiter with the lowest priority, and of several the youngest. All processes choose the same one. */
function victimOf(cycle: readonly Waiting[]): Waiting | undefined {
  return [...cycle].sort(
    (one, other) => one.priority - other.priority || other.sinceMs - one.sinceMs || (one.ref < other.ref ? 1 : -1),
  )[0];
}

function messageOf({ hold, workerId, priority, timeoutMs, holds }: Ticket, sinceMs?: number): string {
  const since = sinceMs === undefined ? {} : { since_ms: sinceMs };
  return JSON.stringify({
    v: FORMAT,
    ticket: hold,
    worker_id: workerId,
    priority,
    timeout_ms: timeoutMs,
    holds,
    ...since,
  });
}

interface TicketRead {
  readonly workerId: string;
  readonly priority: number;
  readonly timeoutMs: number;
  readonly holds: readonly number[];
  readonly sinceMs?: number;
}

function ticketIn(message: string): TicketRead | undefined {
  try {
    const body = JSON.parse(message) as Readonly<Record<string, unknown>>;
    const { v, worker_id, priority, timeout_ms, holds, since_ms } = body;
    const isSound =
      v === FORMAT &&
      typeof worker_id === 'string' &&
      typeof priority === 'number' &&
      typeof timeout_ms === 'number' &&
      Array.isArray(holds);
    if (!isSound) return undefined;
    const since = typeof since_ms === 'number' ? { sinceMs: since_ms } : {};
    return { workerId: worker_id, priority, timeoutMs: timeout_ms, holds: holds as readonly number[], ...since };
  } catch {
    return undefined;
  }
}
