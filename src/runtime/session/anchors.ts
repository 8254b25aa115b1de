/**
 * Which leases are alive: the anchors in the store, followed. Knowledge may lag, so nothing is decided by it alone;
 * a write that takes over compares that the anchor is gone. A lease of which nothing is known counts as alive until
 * it has been looked up.
 */
import type { Changes, KeyValue, Revision } from '../../store/index.ts';
import { ANCHORS } from '../layout.ts';

/** So many of those that ended are remembered; who asks for an older one has it looked up again. */
const MOST_GONE = 10_000;

export class Anchors {
  /** With the revision at which each came to be. */
  readonly #alive = new Map<string, Revision>();
  readonly #gone = new Set<string>();
  /** Everything up to this revision has been taken in. */
  #asOf: Revision = 0;
  readonly #onGone: () => void;

  /** `onGone` is told whenever a lease may have ended, after the fact is known here. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  isGone(lease: string): boolean {
    return this.#gone.has(lease);
  }

  isKnown(lease: string): boolean {
    return this.#alive.has(lease) || this.#gone.has(lease);
  }

  /** How many are known to be alive. */
  get size(): number {
    return this.#alive.size;
  }

  /** We made it ourselves. */
  add(lease: string, revision: Revision): void {
    this.#alive.set(lease, revision);
  }

  /** A list of all anchors, read at `revision`. What was followed further than that knows better. */
  list(pairs: readonly KeyValue[], revision: Revision): void {
    const isNews = revision >= this.#asOf;
    const listed = new Map(pairs.map((pair) => [leaseOf(pair.key), pair.createRevision]));
    let gone = false;
    for (const [lease, since] of this.#alive) {
      // Those that came since are not in it.
      if (!listed.has(lease) && since <= revision) gone = this.#ended(lease) || gone;
    }
    for (const [lease, since] of listed) if (isNews || !this.#gone.has(lease)) this.#came(lease, since);
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

  /** One anchor, read at `revision`. What was followed further than that knows better, if it knows anything. */
  saw(lease: string, wasAlive: boolean, revision: Revision): void {
    if (this.isKnown(lease) && this.#asOf > revision) return;
    if (wasAlive) this.#came(lease, this.#alive.get(lease) ?? revision);
    else if (this.#ended(lease)) this.#onGone();
  }

  /** Of all anchors only the maintainer's comes back after it has gone. */
  #came(lease: string, since: Revision): void {
    this.#alive.set(lease, since);
    this.#gone.delete(lease);
  }

  /** Whether that was news. */
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
