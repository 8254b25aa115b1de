/** The runs around this process, whose holds do not count in its guards. */
import { asTold, type OuterHolds, outerHolds } from '../../runtime/processes/environment.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';

/** `url`: of the store. A run that has ended left its names in our environment; its holds are gone, so it does not count. */
export function ownHolders(box: Signalbox, url: string, env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  return holdersOf(box, outerHolds(env, url));
}

export async function holdersOf(box: Signalbox, outer: OuterHolds): Promise<readonly string[]> {
  if (Object.keys(outer).length === 0) return [];
  const held = await box.children.stillHeld(asTold(outer));
  return [...new Set(held.map(({ grant }) => grant.holder))];
}
