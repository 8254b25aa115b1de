/**
 * Heartbeat: moves the refs of all locks of one process on by one commit.
 *
 *     past the deadline ──▶ lost, and nothing is written
 *     unsure from before ──▶ read the ref first
 *     commit ─▶ swap ──won──▶ new deadline ─▶ the metadata comment, if it is due
 *                 ├──lost──▶ lost
 *                 └──unknown──▶ unsure: the old deadline stays
 */
import { type Held, KNOWN_TIPS } from './acquire.ts';
import { metadataComment } from './projection.ts';
import { ask, askAll, type Instant, isPast, later, type Procedure } from './question.ts';
import { lockRef, type LockRecord, marginMs, messageOf } from './record.ts';
import { swap } from './swap.ts';

export interface RenewSettings {
  /** A name that no other commit has. */
  readonly nonce: string;
  readonly at: Instant;
  /** Undefined: leave the comments alone. */
  readonly commentEveryMs?: number;
  /** Whether GitHub moves several refs at once. */
  readonly together: boolean;
  /** The server's time, for people. */
  readonly iso: string;
  /** Lengthens or shortens the timeout, from this renewal on. */
  readonly timeoutMs?: number;
  /** A branch that moves with the lock, or not at all. */
  readonly along?: { readonly ref: string; readonly from: string | null; readonly to: string };
}

export type Lost = 'expired' | 'taken';

export type Renewed = {
  readonly issue: number;
} &
  /** `isAlong`: the branch that was to move with it has moved, also if the answer came too late to keep the lock. */
  (
    | { readonly kind: 'renewed'; readonly held: Held; readonly isAlong?: boolean }
    /**
     * The old deadline stays. `waitMs`: how long GitHub wants to be left alone. `elsewhere`: the commit of the branch that was
     * to move along. `isDenied`: GitHub will not do it, however often it is asked.
     */
    | {
        readonly kind: 'unsure';
        readonly held: Held;
        readonly message: string;
        readonly waitMs?: number;
        readonly elsewhere?: string | null;
        readonly isDenied?: boolean;
      }
    | { readonly kind: 'lost'; readonly why: Lost; readonly isAlong?: boolean }
    /** GitHub cannot move several refs at once; nothing was written. */
    | { readonly kind: 'apart'; readonly held: Held }
  );

export function* renew(holds: readonly Held[], settings: RenewSettings): Procedure<readonly Renewed[]> {
  const expired = holds.filter(({ deadline }) => isPast(deadline, settings.at));
  const known = yield* certain(holds.filter((held) => !expired.includes(held)));
  const alive = known.flatMap((one) => (one.kind === 'renewed' ? [one.held] : []));
  const groups = settings.together ? [alive] : alive.map((held) => [held]);
  const moved: Renewed[] = [];
  for (const [place, group] of groups.entries()) moved.push(...(yield* move(group, settings, place)));
  const renewed = yield* refreshComments(moved, settings);
  return [
    ...expired.map(({ issue }) => ({ kind: 'lost' as const, issue, why: 'expired' as const })),
    ...known.filter(({ kind }) => kind !== 'renewed'),
    ...renewed,
  ];
}

/** Finds out what became of renewals whose answers were lost. Here `renewed` only means that nothing is unsure. */
function* certain(holds: readonly Held[]): Procedure<readonly Renewed[]> {
  const doubtful = holds.filter(({ unsure }) => unsure !== undefined);
  const answers = yield* askAll(doubtful.map(({ issue }) => ({ ask: 'ref' as const, ref: lockRef(issue) })));
  return holds.map((held): Renewed => {
    const { issue, unsure, tip, before } = held;
    if (unsure === undefined) return { kind: 'renewed', issue, held };
    const answer = answers[doubtful.indexOf(held)];
    if (answer?.kind !== 'ok') {
      const waitMs = answer?.kind === 'limited' ? { waitMs: answer.waitMs } : {};
      return { kind: 'unsure', issue, held, message: 'GitHub does not answer', ...waitMs };
    }
    const { sha } = answer.value;
    if (sha === unsure.tip && !isPast(unsure.deadline, answer.at))
      return { kind: 'renewed', issue, held: advanced(held, unsure) };
    if (isPast(held.deadline, answer.at)) return { kind: 'lost', issue, why: 'expired' };
    // The read may come from an old copy, so `unsure` stays set.
    if (sha === tip) return { kind: 'renewed', issue, held };
    if (before.includes(sha)) return { kind: 'unsure', issue, held, message: 'the ref was read from an old copy' };
    return { kind: 'lost', issue, why: 'taken' };
  });
}

function advanced(held: Held, to: NonNullable<Held['unsure']>): Held {
  const { unsure: _, ...rest } = held;
  return { ...rest, ...to, before: [...held.before, held.tip].slice(-KNOWN_TIPS) };
}

/** One commit for all of them, whose parents are the old tips. */
function* move(holds: readonly Held[], settings: RenewSettings, place: number): Procedure<readonly Renewed[]> {
  if (holds.length === 0) return [];
  const nonce = `${settings.nonce}.${place}`;
  const records = new Map(holds.map(({ issue, record }) => [issue, nextRecord(record, settings, nonce)]));
  const parents = [...new Set(holds.map(({ tip }) => tip))];
  const commit = yield* ask({ ask: 'make-commit', message: messageOf(records), parents });
  if (commit.kind !== 'ok') {
    const waitMs = commit.kind === 'limited' ? { waitMs: commit.waitMs } : {};
    return holds.map((held) => ({ kind: 'unsure', issue: held.issue, held, message: commit.message, ...waitMs }));
  }
  const { sha } = commit.value;
  const next = (held: Held): NonNullable<Held['unsure']> => {
    const record = records.get(held.issue) as LockRecord;
    return { tip: sha, record, deadline: later(commit.sent, record.timeout_ms - marginMs(record.timeout_ms)) };
  };
  const late = holds.find(({ deadline }) => isPast(deadline, commit.at));
  if (late !== undefined) {
    return holds.map((held) =>
      isPast(held.deadline, commit.at)
        ? { kind: 'lost', issue: held.issue, why: 'expired' }
        : { kind: 'unsure', issue: held.issue, held, message: 'this process was stopped for a while' },
    );
  }
  const giveUp = holds
    .map(({ deadline }) => deadline)
    .reduce((one, other) => (one.monotonicMs < other.monotonicMs ? one : other));
  const { along } = settings;
  const swapped = yield* swap(
    [
      ...holds.map(({ issue, tip, before }) => ({ ref: lockRef(issue), from: tip, to: sha, before })),
      ...(along === undefined ? [] : [along]),
    ],
    giveUp,
  );
  return holds.map((held, index): Renewed => {
    const { issue } = held;
    switch (swapped.kind) {
      case 'won': {
        const after = next(held);
        const moved = along === undefined ? {} : { isAlong: true };
        if (isPast(after.deadline, swapped.at)) return { kind: 'lost', issue, why: 'expired', ...moved };
        return { kind: 'renewed', issue, held: advanced(held, after), ...moved };
      }
      case 'lost': {
        const tip = swapped.tips[index];
        const { unsure } = held;
        if (unsure?.tip === tip && unsure !== undefined && !isPast(unsure.deadline, swapped.at))
          return { kind: 'renewed', issue, held: advanced(held, unsure) };
        // If this ref is where it was, the swap failed because another ref has moved.
        const isUntouched = tip === held.tip || (tip !== null && tip !== undefined && held.before.includes(tip));
        if (isUntouched && along !== undefined) {
          const elsewhere = swapped.tips[holds.length] ?? null;
          return { kind: 'unsure', issue, held, message: `${along.ref} is at another commit`, elsewhere };
        }
        if (isUntouched && holds.length > 1)
          return { kind: 'unsure', issue, held, message: 'another lock of this process was taken' };
        // The branch is where it was to go: our move landed, and only then was the lock taken.
        const hasMoved = along !== undefined && swapped.tips[holds.length] === along.to;
        return { kind: 'lost', issue, why: 'taken', ...(hasMoved && { isAlong: true }) };
      }
      case 'unsupported':
        return { kind: 'apart', issue, held };
      case 'denied':
      case 'limited':
        return {
          kind: 'unsure',
          issue,
          held,
          message: swapped.message,
          ...(swapped.kind === 'limited' ? { waitMs: swapped.waitMs } : { isDenied: true }),
        };
      case 'unknown':
        return { kind: 'unsure', issue, held: { ...held, unsure: next(held) }, message: swapped.message };
    }
  });
}

function nextRecord(record: LockRecord, { iso, timeoutMs }: RenewSettings, nonce: string): LockRecord {
  const lock = iso === '' ? record.lock : { ...record.lock, heartbeat_last: iso };
  return { ...record, seq: record.seq + 1, nonce, timeout_ms: timeoutMs ?? record.timeout_ms, lock };
}

function* refreshComments(all: readonly Renewed[], { commentEveryMs }: RenewSettings): Procedure<readonly Renewed[]> {
  if (commentEveryMs === undefined) return all;
  const due = all.flatMap((one) => {
    if (one.kind !== 'renewed' || one.held.record.comment_id === null) return [];
    const { commentAt, record, deadline } = one.held;
    const now = later(deadline, marginMs(record.timeout_ms) - record.timeout_ms);
    return isPast(later(commentAt, commentEveryMs), now) ? [{ held: one.held, now }] : [];
  });
  const answers = yield* askAll(
    due.map(({ held: { record } }) => ({
      ask: 'edit-comment' as const,
      id: record.comment_id as number,
      body: metadataComment(record),
    })),
  );
  return all.map((one) => {
    const place = due.findIndex(({ held }) => one.kind === 'renewed' && held === one.held);
    const edited = due[place];
    // Tried counts as done: a comment that cannot be written must not cost a request at each heartbeat.
    if (one.kind !== 'renewed' || edited === undefined || answers[place] === undefined) return one;
    return { ...one, held: { ...one.held, commentAt: edited.now } };
  });
}
