/**
 * Whether all that a phase waits for is that locks are free which it will hold itself. Then it takes its place in their
 * queue: to be let in is to be told that they are free. Were it to wait for that without a place, all who do would be
 * woken whenever nobody is in the queue, one of them would get in, and those who are in the queue would always be first.
 */
import type { Guard, GuardOutcome } from '../guard/index.ts';
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
