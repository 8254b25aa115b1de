/** What a write means for the requests and holds of other processes, one letter each. */
import type { Sender } from './commit.ts';
import type { Draft } from './draft.ts';
import { type Letter, processOf } from './layout.ts';
import type { Coordinated } from './machines.ts';

export function lettersOf(resource: string, draft: Draft<Coordinated>, sender: Sender): ReadonlyMap<string, Letter> {
  const letters = new Map<string, Letter>();
  const letterTo = (process: string): Letter => letters.get(process) ?? { answers: [], losses: [] };
  // Our own are told directly.
  const reachable = (process: string): boolean => process !== sender.id;
  for (const answer of draft.answers) {
    const process = processOf(answer.id);
    if (!reachable(process)) continue;
    const letter = letterTo(process);
    letters.set(process, { ...letter, answers: [...letter.answers, { resource, ...answer }] });
  }
  for (const { hold, why, by, reason } of draft.losses) {
    const process = processOf(hold.id);
    if (!reachable(process)) continue;
    const told = {
      id: hold.id,
      token: hold.token,
      why,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    };
    const letter = letterTo(process);
    letters.set(process, { ...letter, losses: [...letter.losses, told] });
  }
  return letters;
}
