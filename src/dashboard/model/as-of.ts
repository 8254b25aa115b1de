/**
 * Everything that the page knows has a revision of the store. Answers and events overtake each other on their way, so
 * each is compared with what is known: an older answer changes nothing, and a known event is left out.
 */

export interface AsOf {
  /** Events up to this revision are included already. */
  readonly revision: number;
  /** When the server was last asked about it; 0 if an event changed it since. */
  readonly readAt: number;
}

/** The revision in the id of an event, which is the revision and the place in it: `812.0`. */
export function revisionOf(id: string): number {
  return Number(id.split('.', 1)[0]) || 0;
}

/** Compares two events: below 0 if `one` came first. */
export function inOrder(one: string, other: string): number {
  const place = (id: string): number => Number(id.slice(id.indexOf('.') + 1)) || 0;
  return revisionOf(one) - revisionOf(other) || place(one) - place(other);
}

/** Whether an answer is older than what events have told since. */
export function isOutdated(answer: Pick<AsOf, 'revision'>, known: Pick<AsOf, 'revision'> | undefined): boolean {
  return known !== undefined && known.revision > answer.revision;
}

/**
 * Whether what is known includes this event. `read` is the revision at which everything was read; what was not there
 * then is new.
 */
export function isKnown(known: AsOf | undefined, revision: number, read: number): boolean {
  if (known === undefined) return revision <= read;
  // Several events of one revision come one by one.
  return known.readAt === 0 ? revision < known.revision : revision <= known.revision;
}

/** What was read as of `revision`, except what events have told since. */
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
 * Removes entries that are `isSpare`, the oldest first, so that a page that stays open does not grow. Returns whether
 * there were more than `most`.
 */
export function bound<T extends AsOf>(all: Map<string, T>, most: number, isSpare: (one: T) => boolean): boolean {
  if (all.size <= most) return false;
  const spare = [...all].filter(([, one]) => isSpare(one)).sort(([, one], [, other]) => one.revision - other.revision);
  // Removes some more than needed, so that this is not done for every event.
  for (const [id] of spare.slice(0, all.size - Math.floor(most * 0.9))) all.delete(id);
  return true;
}
