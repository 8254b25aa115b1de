/** Refuses to release by hand what a process holds for itself, such as a run. */
import type { ReleaseClaim } from './holding.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { SurveyedHold } from '../runtime/observe/survey/index.ts';
import type { ResourceArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';

/**
 * Inside a run, SIGNALBOX_HOLDER names the run. Without this check, a script that acquires and releases the run's own lock
 * by hand would take it from the run in the middle of its command.
 */
export async function refuseAttached(box: Signalbox, of: ResourceArgument, claim: ReleaseClaim): Promise<void> {
  if (!(await isAttached(box, of, claim))) return;
  const whose = claim.holder.startsWith('run:') ? 'a run' : 'a process';
  const message = `${of.kind}/${of.name}: held by ${whose}, which releases it itself when it ends`;
  throw new CliExit(EXIT.notPermitted, message, { outcome: 'attached' });
}

/** Whether the hold depends on the session of a living process, and not on a lease of its own. */
export async function isAttached(box: Signalbox, of: ResourceArgument, claim: ReleaseClaim): Promise<boolean> {
  const { locks, semaphores } = await box.survey({ resource: of, leases: false });
  const holds: readonly SurveyedHold[] = [...locks, ...semaphores].flatMap((one): readonly SurveyedHold[] => one.holds);
  const isMeant = ({ holder, token }: SurveyedHold): boolean =>
    holder === claim.holder && (claim.token === undefined || token === claim.token);
  return holds.some((hold) => isMeant(hold) && hold.isAttached && !hold.isStale);
}
