/**
 * Whether a phase waits only for locks that it will hold itself. Then it takes a place in their queue, and the grant tells
 * it that they are free. Waiting without a place would wake all such pipelines whenever the queue is empty, let one of them
 * in, and let every queued request go first.
 */
import type { Guard, GuardOutcome } from '../guard/guard.ts';
import type { Phase } from './runbook.ts';

export function waitsForItsTurn({ pre, holds }: Phase, outcomes: readonly GuardOutcome[]): boolean {
  const own = new Set(holds.flatMap((hold) => ('lock' in hold && hold.mode !== 'shared' ? [hold.lock] : [])));
  const isOwn = ({ condition, onFailure = 'block' }: Guard): boolean =>
    onFailure === 'block' && 'lockFree' in condition && own.has(condition.lockFree);
  const passes = ({ id, onFailure }: Guard): boolean =>
    onFailure === 'warn' || outcomes.some((outcome) => outcome.guard === id && outcome.kind === 'passed');
  const fails = ({ id }: Guard): boolean =>
    outcomes.some((outcome) => outcome.guard === id && outcome.kind === 'failed');
  const open = pre.filter((guard) => !passes(guard));
  return open.length > 0 && open.every((guard) => isOwn(guard) && fails(guard));
}
