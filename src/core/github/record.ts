/**
 * The record of a lock: the JSON in the message of the commit that the lock's ref points at.
 *
 *     no ref ──acquire──▶ held (epoch 1, seq 0) ──heartbeat──▶ held (epoch 1, seq 1) ──release──▶ released
 *                            ▲                                    │ steal, force                    │
 *                            └─────────── epoch + 1, seq 0 ◀──────┴─────────── acquire ◀────────────┘
 *
 * The epoch is the fencing token: it grows with every acquisition. A commit that renews several locks at once has a
 * record for each of them.
 */
import { isCount, isRecord, objectIn } from '../shape.ts';

/** What is known of the work on an issue. */
export interface TaskInfo {
  /** How hard it is. */
  readonly complexity?: string;
  /** How long it may take. */
  readonly estimated_duration?: string;
  /** What kind of task it is. */
  readonly task_type?: string;
  /** How urgent it is. */
  readonly priority?: string | number;
}

/** What people and other programs get to see. */
export interface LockMetadata {
  /** Who holds it. */
  readonly worker_id: string;
  /** The machine or the runner. */
  readonly node_id: string;
  /** Since when; ISO 8601. */
  readonly claimed_at: string;
  /** When it was last renewed; ISO 8601. */
  readonly heartbeat_last: string;
  /** What the worker does. */
  readonly task_info: TaskInfo;
}

export interface LockRecord {
  readonly state: 'held' | 'released';
  readonly epoch: number;
  readonly seq: number;
  /** Identifies this acquisition: one worker may make several. */
  readonly hold: string;
  /** Makes the commit unique: if two workers pushed the same commit, both would win. */
  readonly nonce: string;
  /** Counted from the commit's date. A worker that steals the lock goes by the holder's timeout, not by its own. */
  readonly timeout_ms: number;
  /** The account that was assigned. Null if the token belongs to none. */
  readonly login: string | null;
  /** The metadata comment, once it is known. */
  readonly comment_id: number | null;
  /** Why it was forced. */
  readonly reason?: string;
  readonly lock: LockMetadata;
}

export const FORMAT = 1;
export const LOCKS = 'refs/signalbox/locks/';

/** Added to the timeout before a lock counts as stale: for dates in whole seconds, and clocks of different speed. */
export const GRACE_MS = 5_000;

export function lockRef(issue: number): string {
  return `${LOCKS}issue-${issue}`;
}

/** The number in a ref of ours. */
export function issueOfRef(ref: string): number | undefined {
  const digits = /^refs\/signalbox\/locks\/issue-([1-9]\d{0,9})$/.exec(ref)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The holder gives up this long before the timeout. */
export function marginMs(timeoutMs: number): number {
  return Math.min(10_000, timeoutMs / 10);
}

export function messageOf(records: ReadonlyMap<number, LockRecord>): string {
  const [only, ...more] = [...records];
  if (only !== undefined && more.length === 0) return JSON.stringify({ v: FORMAT, issue: only[0], ...only[1] });
  return JSON.stringify({ v: FORMAT, issues: Object.fromEntries(records) });
}

/** Undefined if the commit is none of ours, or of a format that this version does not know. */
export function recordIn(message: string, issue: number): LockRecord | undefined {
  const body = objectIn(message);
  if (body?.['v'] !== FORMAT) return undefined;
  if (body['issue'] === issue) return checked(body);
  const many = body['issues'];
  return isRecord(many) && Object.hasOwn(many, String(issue)) ? checked(many[String(issue)]) : undefined;
}

export function isStale(record: LockRecord, committedMs: number, serverMs: number): boolean {
  return record.state === 'held' && serverMs - committedMs > record.timeout_ms + GRACE_MS;
}

function checked(value: unknown): LockRecord | undefined {
  if (!isRecord(value)) return undefined;
  const { state, epoch, seq, hold, nonce, timeout_ms, login, comment_id, reason, lock } = value;
  const isSound =
    (state === 'held' || state === 'released') &&
    isCount(epoch) &&
    epoch > 0 &&
    isCount(seq) &&
    isText(hold) &&
    isText(nonce) &&
    isCount(timeout_ms) &&
    (login === null || isText(login)) &&
    (comment_id === null || isCount(comment_id)) &&
    (reason === undefined || isText(reason)) &&
    isRecord(lock) &&
    ['worker_id', 'node_id', 'claimed_at', 'heartbeat_last'].every((key) => isText(lock[key])) &&
    isRecord(lock['task_info']);
  if (!isSound) return undefined;
  const { worker_id, node_id, claimed_at, heartbeat_last, task_info } = lock as unknown as LockMetadata;
  const metadata = { worker_id, node_id, claimed_at, heartbeat_last, task_info };
  const rest = reason === undefined ? {} : { reason };
  return { state, epoch, seq, hold, nonce, timeout_ms, login, comment_id, ...rest, lock: metadata };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
