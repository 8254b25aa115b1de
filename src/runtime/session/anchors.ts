/**
 * Follows the anchors in the store, to know which leases are alive. This may lag behind the store, so no decision rests on it
 * alone: a write that reclaims a hold compares that the anchor is gone. An unknown lease counts as alive until it is looked up.
 */
import type { Steps } from '../../core/index.ts';
import type { Changes, KeyValue, Revision } from '../../store/index.ts';
import { ANCHORS } from '../layout.ts';

/** How many ended leases are remembered; an older one counts as unknown, and is looked up again. */
const MOST_GONE = 10_000;

export class Anchors {
  /** The living leases, each with the revision at which it was made. */
  readonly #alive = new Map<string, Revision>();
  readonly #gone = new Set<string>();
  /** All changes up to this revision are included. */
  #asOf: Revision = 0;
  readonly #onGone: () => void;

  /** Calls `onGone` after leases have ended, when `isGone` says so. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  isGone(lease: string): boolean {
    return this.#gone.has(lease);
  }

  isKnown(lease: string): boolean {
    return this.#alive.has(lease) || this.#gone.has(lease);
  }

  /** How many leases are known to be alive. */
  get size(): number {
    return this.#alive.size;
  }

  /** Adds a lease that this process made. */
  add(lease: string, revision: Revision): void {
    this.#alive.set(lease, revision);
  }

  /**
   * Takes a list of all anchors, read at `revision`, or from then on page by page: a lease that had ended before its page was
   * read does not come back. Changes that were followed later win. There may be an anchor for each hold, so it yields after
   * each.
   */
  *list(pairs: readonly KeyValue[], revision: Revision): Steps<void> {
    const listed = new Map<string, Revision>();
    for (const pair of pairs) {
      yield;
      listed.set(leaseOf(pair.key), pair.createRevision);
    }
    let gone = false;
    for (const [lease, since] of this.#alive) {
      yield;
      // A lease that was made after the list was read is not in it.
      if (!listed.has(lease) && since <= revision) gone = this.#ended(lease) || gone;
    }
    for (const [lease, since] of listed) {
      yield;
      if (revision >= this.#asOf || !this.#gone.has(lease)) this.#came(lease, since);
    }
    this.#asOf = Math.max(this.#asOf, revision);
    if (gone) this.#onGone();
  }

  changes({ revision, changes }: Changes): void {
    if (revision <= this.#asOf) return;
    this.#asOf = revision;
    let gone = false;
    for (const change of changes) {
      if (change.kind === 'put') this.#came(leaseOf(change.pair.key), change.pair.createRevision);
      else gone = this.#ended(leaseOf(change.key)) || gone;
    }
    if (gone) this.#onGone();
  }

  /** Takes one anchor, read at `revision`. For a known lease, changes that were followed later than that win. */
  saw(lease: string, wasAlive: boolean, revision: Revision): void {
    if (this.isKnown(lease) && this.#asOf > revision) return;
    if (wasAlive) this.#came(lease, this.#alive.get(lease) ?? revision);
    else if (this.#ended(lease)) this.#onGone();
  }

  /** Of all anchors, only the maintainer's comes back after it has gone. */
  #came(lease: string, since: Revision): void {
    this.#alive.set(lease, since);
    this.#gone.delete(lease);
  }

  /** Whether the lease was known to be alive until now. */
  #ended(lease: string): boolean {
    const wasAlive = this.#alive.delete(lease);
    this.#remember(lease);
    return wasAlive;
  }

  #remember(lease: string): void {
    this.#gone.add(lease);
    if (this.#gone.size <= MOST_GONE) return;
    for (const oldest of this.#gone) {
      this.#gone.delete(oldest);
      return;
    }
  }
}

function leaseOf(key: string): string {
  return key.slice(ANCHORS.length);
}
