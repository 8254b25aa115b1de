/**
 * Release: what people see is tidied up while the hold still stands; the ref comes last.
 *
 *     past the deadline ──▶ already lost, and nothing is written
 *     unassign, completion comment, `released` commit ─▶ swap ──won──▶ released
 *                                                          ├──lost──▶ already lost
 *                                                          └──unknown──▶ unknown: it ends with its timeout
 */
import type { Held } from './acquire.ts';
import { completionComment } from './projection.ts';
import { type Answer, ask, type Instant, isPast, later, type Procedure, type Question } from './question.ts';
import { lockRef, messageOf } from './record.ts';
import { swap } from './swap.ts';

export interface ReleaseSettings {
  readonly nonce: string;
  readonly at: Instant;
  /** How the work ended, in a word or two. */
  readonly outcome: string;
  readonly iso: string;
}

export type Released =
  | { readonly kind: 'released' }
  | { readonly kind: 'already-lost' }
  /** It may have been released; if not, the lock ends with its timeout. */
  | { readonly kind: 'unknown'; readonly message: string };

/** A tidy ending may take this long after the deadline: the ref itself refuses what comes too late. */
const PATIENCE_MS = 30_000;

export function* release(held: Held, { nonce, at, outcome, iso }: ReleaseSettings): Procedure<Released> {
  const { issue, unsure, deadline } = held;
  if (isPast(deadline, at)) return { kind: 'already-lost' };
  let tip = held.tip;
  if (unsure !== undefined) {
    const read = yield* ask({ ask: 'ref', ref: lockRef(issue) });
    if (read.kind === 'ok' && read.value.sha !== held.tip && read.value.sha !== unsure.tip)
      return { kind: 'already-lost' };
    if (isPast(deadline, read.at)) return { kind: 'already-lost' };
    if (read.kind === 'ok') tip = read.value.sha;
  }
  const record = {
    ...held.record,
    state: 'released' as const,
    seq: held.record.seq + (unsure === undefined ? 1 : 2),
    nonce,
  };
  const heldMs = at.monotonicMs - held.since.monotonicMs;
  const shown = { ...record, lock: iso === '' ? record.lock : { ...record.lock, heartbeat_last: iso } };
  const message = messageOf(new Map([[issue, shown]]));
  const projection: readonly Question[] = [
    ...(record.login === null ? [] : [{ ask: 'unassign' as const, issue, login: record.login }]),
    { ask: 'comment', issue, body: completionComment(record, { heldMs, outcome, ref: lockRef(issue) }) },
  ];
  const [first] = yield [{ ask: 'make-commit', message, parents: [tip] }, ...projection];
  let commit = first as Answer<{ readonly sha: string }>;
  if (commit.kind === 'unknown') commit = yield* ask({ ask: 'make-commit', message, parents: [tip] });
  if (commit.kind !== 'ok') return { kind: 'unknown', message: commit.message };
  const patience = later(commit.at, PATIENCE_MS);
  const ref = lockRef(issue);
  let swapped = yield* swap([{ ref, from: tip, to: commit.value.sha, before: held.before }], patience);
  const isOwnRenewal = swapped.kind === 'lost' && tip !== unsure?.tip && swapped.tips[0] === unsure?.tip;
  if (isOwnRenewal && unsure !== undefined) {
    // The read above was of an old copy: the renewal had landed.
    const again = yield* ask({ ask: 'make-commit', message, parents: [unsure.tip] });
    if (again.kind !== 'ok') return { kind: 'unknown', message: again.message };
    swapped = yield* swap([{ ref, from: unsure.tip, to: again.value.sha, before: [...held.before, tip] }], patience);
  }
  switch (swapped.kind) {
    case 'won':
      return { kind: 'released' };
    case 'lost':
      return { kind: 'already-lost' };
    case 'unknown':
    case 'denied':
    case 'limited':
      return { kind: 'unknown', message: swapped.message };
    case 'unsupported':
      return { kind: 'unknown', message: 'GitHub knows no refs' };
  }
}
