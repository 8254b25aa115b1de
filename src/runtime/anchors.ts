/**
 * Which leases are alive: the anchors in the store, followed. Knowledge may lag, so nothing is decided by it alone;
 * a write that takes over compares that the anchor is gone.
 */
import type { Changes, KeyValue, Revision } from '../store/index.ts';
import { ANCHORS } from './layout.ts';

export class Anchors {
  readonly #alive = new Map<string, Revision>();
  /** Everything up to this revision has been taken in. */
  #asOf: Revision = 0;
  readonly #onGone: () => void;

  /** `onGone` is told whenever a lease may have ended, after the fact is known here. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  isGone(lease: string): boolean {
    return !this.#alive.has(lease);
  }

  /** The oldest session that is alive; whoever lives has seen at least this revision. */
  get oldest(): Revision {
    return Math.min(...this.#alive.values());
  }

  /** We made it ourselves. */
  add(lease: string, revision: Revision): void {
    this.#alive.set(lease, revision);
  }

  /** A list of all anchors, read at `revision`. */
  list(pairs: readonly KeyValue[], revision: Revision): void {
    if (revision < this.#asOf) return;
    const before = [...this.#alive.keys()];
    this.#alive.clear();
    for (const pair of pairs) this.#alive.set(leaseOf(pair.key), pair.createRevision);
    this.#asOf = revision;
    if (before.some((lease) => !this.#alive.has(lease))) this.#onGone();
  }

  changes({ revision, changes }: Changes): void {
    if (revision <= this.#asOf) return;
    this.#asOf = revision;
    let gone = false;
    for (const change of changes) {
      if (change.kind === 'put') this.#alive.set(leaseOf(change.pair.key), change.pair.createRevision);
      else gone = this.#alive.delete(leaseOf(change.key)) || gone;
    }
    if (gone) this.#onGone();
  }

  /** One anchor, read at `revision`. What was followed further than that knows better. */
  saw(lease: string, isAlive: boolean, revision: Revision): void {
    if (this.#asOf > revision) return;
    if (isAlive) this.#alive.set(lease, this.#alive.get(lease) ?? revision);
    else if (this.#alive.delete(lease)) this.#onGone();
  }
}

function leaseOf(key: string): string {
  return key.slice(ANCHORS.length);
}
