/** Which requests join the queue by a decision, and which leave it. */
import { NONE } from '../../core/index.ts';
import type { Ticket } from './pending-command.ts';

export interface Moved {
  readonly arriving: readonly Ticket[];
  readonly leaving: readonly Ticket[];
}

const UNMOVED: Moved = { arriving: NONE, leaving: NONE };

/** Both lists are in order of arrival, and a request that stays is the same object in both. */
export function difference(before: readonly Ticket[], after: readonly Ticket[]): Moved {
  if (before === after) return UNMOVED;
  const leaving: Ticket[] = [];
  let place = 0;
  for (const request of before) {
    if (after[place] === request) place++;
    else leaving.push(request);
  }
  return { arriving: after.slice(place), leaving };
}
