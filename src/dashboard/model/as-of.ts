/**
 * Everything that the page knows is as of a revision of the store. Answers and events overtake each other on their way, so
 * each is compared with what is known: an answer that is older changes nothing, and an event that is known is left out.
 */

export interface AsOf {
  /** Events up to this revision are in it already. */
  readonly revision: number;
  /** When the server was last asked for it; 0 if events told of it since. */
  readonly readAt: number;
}

/** An event has the revision and the place in it for an id: `812.0`. */
export function revisionOf(id: string): number {
  return Number(id.split('.', 1)[0]) || 0;
}

/** Which of two events came first; below 0 if it is the one. */
export function inOrder(one: string, other: string): number {
  const place = (id: string): number => Number(id.slice(id.indexOf('.') + 1)) || 0;
  return revisionOf(one) - revisionOf(other) || place(one) - place(other);
}

/** Whether an answer is older than what events have told since. */
export function isOutdated(answer: Pick<AsOf, 'revision'>, known: Pick<AsOf, 'revision'> | undefined): boolean {
  return known !== undefined && known.revision > answer.revision;
}

/** Whether what is known has this event in it. `read`: as of when everything was read; what was not there then is new. */
export function isKnown(known: AsOf | undefined, revision: number, read: number): boolean {
  if (known === undefined) return revision <= read;
  // Several events of one revision come one by one.
  return known.readAt === 0 ? revision < known.revision : revision <= known.revision;
}

/** What was read as of `revision`, but for what events have told since. */
export function merged<T extends AsOf>(
  known: ReadonlyMap<string, T>,
  read: ReadonlyMap<string, T>,
  revision: number,
): Map<string, T> {
  const found = new Map(read);
  for (const [id, one] of known) if (isOutdated({ revision }, one)) found.set(id, one);
  return found;
}

/**
 * Leaves out those that `isSpare`, the oldest first, until there are `most`: a page that stays open does not grow. Returns
 * whether there were too many.
 */
export function bound<T extends AsOf>(all: Map<string, T>, most: number, isSpare: (one: T) => boolean): boolean {
  if (all.size <= most) return false;
  const spare = [...all].filter(([, one]) => isSpare(one)).sort(([, one], [, other]) => one.revision - other.revision);
  // Some more than needed, so that this is not done for every event.
  for (const [id] of spare.slice(0, all.size - Math.floor(most * 0.9))) all.delete(id);
  return true;
}
