/** Holds that a process keeps, such as those of a run: they are not given back by hand. */
import type { HoldClaim } from '../runtime/holds/resource.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { SurveyedHold } from '../runtime/observe/survey/index.ts';
import type { ResourceArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';

/**
 * Inside a run, SIGNALBOX_HOLDER is the run's own: without this, a script that takes and gives back by hand what the run
 * has would take it from the run, in the middle of its command.
 */
export async function refuseAttached(box: Signalbox, of: ResourceArgument, claim: HoldClaim): Promise<void> {
  if (!(await isAttached(box, of, claim))) return;
  const whose = claim.holder.startsWith('run:') ? 'a run' : 'a process';
  const message = `${of.kind}/${of.name}: held by ${whose}, which releases it itself`;
  throw new CliExit(EXIT.notOwner, message, { outcome: 'attached' });
}

/** Whether it rests on the session of a process that lives, and not on a lease of its own. */
export async function isAttached(box: Signalbox, of: ResourceArgument, claim: HoldClaim): Promise<boolean> {
  const { locks, semaphores } = await box.survey({ resource: of, leases: false });
  const holds: readonly SurveyedHold[] = [...locks, ...semaphores].flatMap((one): readonly SurveyedHold[] => one.holds);
  const hold = holds.find(({ holder, token }) => holder === claim.holder && token === claim.token);
  return hold !== undefined && hold.isAttached && !hold.isStale;
}
