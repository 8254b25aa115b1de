/** Why a lock was not acquired or released: a kind for programs, a sentence for people. */
import type { LockMetadata, Refusal } from '../core/github/index.ts';

/** Why a lock was not acquired, for programs. */
export type LockReason =
  | { readonly kind: 'already-locked'; readonly issue: number; readonly by: LockMetadata; readonly isStale: boolean }
  | { readonly kind: 'assigned'; readonly issue: number; readonly assignees: readonly string[] }
  | { readonly kind: 'retries-exhausted'; readonly tries: number; readonly last: LockReason }
  | { readonly kind: 'race-lost'; readonly issues: readonly number[] }
  | { readonly kind: 'queued-behind'; readonly issue: number; readonly ahead: readonly string[] }
  | { readonly kind: 'deadlock'; readonly issue: number; readonly cycle: readonly string[] }
  /** `until` is when it is worth trying again. */
  | { readonly kind: 'rate-limited'; readonly until: string; readonly message: string }
  | { readonly kind: 'unauthorised'; readonly message: string }
  | { readonly kind: 'not-owner'; readonly issue: number; readonly by: string | null }
  | { readonly kind: 'issue-closed'; readonly issue: number }
  | { readonly kind: 'issue-missing'; readonly issue: number }
  | { readonly kind: 'foreign-ref'; readonly issue: number; readonly sha: string }
  | { readonly kind: 'unreachable'; readonly message: string }
  | { readonly kind: 'aborted' };

export function reasonOf(refusal: Refusal, nowMs: number): LockReason {
  if (refusal.kind === 'already-locked') return { ...refusal, by: refusal.by.lock };
  if (refusal.kind === 'retries-exhausted') return { ...refusal, last: reasonOf(refusal.last, nowMs) };
  if (refusal.kind === 'rate-limited') {
    const { waitMs, ...rest } = refusal;
    return { ...rest, until: new Date(nowMs + waitMs).toISOString() };
  }
  if (refusal.kind !== 'not-together') return refusal;
  return { kind: 'unreachable', message: 'GitHub cannot move several refs at once' };
}

export function textOf(reason: LockReason): string {
  switch (reason.kind) {
    case 'already-locked': {
      const stale = reason.isStale ? '; it has not been renewed in time, and STEAL_STALE would take it' : '';
      return `issue #${reason.issue} is already locked by ${reason.by.worker_id} on ${reason.by.node_id} since ${reason.by.claimed_at}${stale}`;
    }
    case 'assigned':
      return `issue #${reason.issue} is assigned to ${reason.assignees.join(', ')} by hand, which counts as already locked`;
    case 'retries-exhausted':
      return `${textOf(reason.last)}; gave up after ${reason.tries} tries`;
    case 'race-lost':
      return `${reason.issues.map((issue) => `issue #${issue}`).join(', ')}: already locked by another worker, which was a moment faster`;
    case 'queued-behind':
      return `issue #${reason.issue}: others are ahead in the queue: ${reason.ahead.join(', ')}`;
    case 'deadlock':
      return `issue #${reason.issue}: waiting for it would be a deadlock: ${reason.cycle.join(' → ')}`;
    case 'rate-limited':
      return `rate limit: ${reason.message}; try again at ${reason.until}`;
    case 'unauthorised':
      return `not authorised: ${reason.message}`;
    case 'not-owner':
      return reason.by === null
        ? `issue #${reason.issue}: not the owner; no worker holds the lock any more`
        : `issue #${reason.issue}: not the owner; ${reason.by} holds the lock`;
    case 'issue-closed':
      return `issue #${reason.issue} is closed`;
    case 'issue-missing':
      return `there is no issue #${reason.issue}`;
    case 'foreign-ref':
      return `issue #${reason.issue}: refs/signalbox/locks/issue-${reason.issue} points at ${reason.sha}, which signalbox did not write; nothing was changed`;
    case 'unreachable':
      return `GitHub cannot be reached: ${reason.message}`;
    case 'aborted':
      return 'given up by the caller';
  }
}
