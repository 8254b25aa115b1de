/** What the users of several processes believed to hold, and whether two of them believed what excludes each other. */

export interface Belief {
  readonly what: 'has' | 'uses' | 'left' | 'ended' | 'failed';
  /** On the monotonic clock of the machine, before it was looked whether the hold is valid. */
  readonly at: number;
  readonly believer: string;
  readonly resource: string;
  /** Of the hold. */
  readonly id: string;
  readonly isShared?: boolean;
  readonly slots?: readonly number[];
  /** Its user may hear of its end after the next was let in. */
  readonly hearsLate?: boolean;
}

/**
 * Every time at which two acted, or were still able to act, on holds that exclude each other. A hold that is valid at one time
 * was valid at every time before it: so whoever acts later on the same hold believed in it here.
 */
export function meetings(beliefs: readonly Belief[]): readonly string[] {
  const ended = new Set(beliefs.filter(({ what }) => what === 'ended').map(({ id }) => id));
  const counted = beliefs.filter(({ id, hearsLate }) => hearsLate !== true && !ended.has(id));
  const found: string[] = [];
  for (const [resource, all] of groupedBy(counted, ({ resource }) => resource)) {
    const believers = [...groupedBy(all, ({ believer }) => believer).values()];
    for (const use of all.filter(({ what }) => what === 'uses')) {
      for (const other of believers) {
        if (other[0]?.id === use.id || !believesIn(other, use)) continue;
        found.push(`${resource}: ${use.believer} and ${other[0]?.believer} at ${use.at}`);
      }
    }
  }
  return found;
}

/** Whether one of these, of one believer, stands before that use and another after it, and both exclude it. */
function believesIn(events: readonly Belief[], use: Belief): boolean {
  const before = events.filter(({ at }) => at <= use.at).at(-1);
  if (before === undefined || before.what === 'left' || !excludes(before, use)) return false;
  const after = events.find(({ at, what }) => at > use.at && what !== 'has');
  return after?.what === 'uses' && excludes(after, use);
}

function excludes(one: Belief, other: Belief): boolean {
  if (one.slots !== undefined && other.slots !== undefined) {
    const { slots } = other;
    return one.slots.some((slot) => slots.includes(slot));
  }
  return one.isShared !== true || other.isShared !== true;
}

function groupedBy(beliefs: readonly Belief[], key: (belief: Belief) => string): ReadonlyMap<string, Belief[]> {
  const groups = new Map<string, Belief[]>();
  for (const belief of beliefs.toSorted((one, other) => one.at - other.at)) {
    const group = groups.get(key(belief));
    if (group === undefined) groups.set(key(belief), [belief]);
    else group.push(belief);
  }
  return groups;
}
