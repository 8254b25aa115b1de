/** Explains the loss of a hold that lasted as long as the rules of its lock or semaphore allow. */
import { systemClock, timeLimit, whenAborted } from '../../clock.ts';
import { spoken } from '../../core/index.ts';
import type { HoldLost } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { resourceArgument } from '../arguments.ts';

/** The command has lost its hold: a store that does not answer must not keep it from its message. */
const MOST_MS = 1_000;
/** The limit began a little before the command. */
const SOONER_MS = 1_000;

/** `since`: when the command was about to begin. Undefined if no limit ended the hold. */
export async function limitTold(
  box: Pick<Signalbox, 'survey'>,
  { resource, why }: Pick<HoldLost, 'resource' | 'why'>,
  since: number,
): Promise<string | undefined> {
  const heldMs = systemClock.monotonic() - since;
  const of = /^(?:lock|semaphore)\//.test(resource) ? resourceArgument(resource) : undefined;
  if (why !== 'expired' || of?.kind === undefined) return undefined;
  const late = timeLimit(MOST_MS);
  const looked = box.survey({ resource: of, leases: false }).catch(() => undefined);
  const survey = await Promise.race([looked, whenAborted(late.signal).then(() => undefined)]);
  late.cancel();
  const [one] = [...(survey?.locks ?? []), ...(survey?.semaphores ?? [])];
  const { maxHoldMs } = one?.limits ?? {};
  if (maxHoldMs === undefined || heldMs + SOONER_MS < maxHoldMs) return undefined;
  return `${resource}: the hold was lost: it was held for the --max-hold of ${spoken(maxHoldMs)} that is set for all holders`;
}
