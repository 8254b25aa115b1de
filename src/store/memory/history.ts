/**
 * The changes of the last revisions, for watches that start in the past or fall behind. It is bounded: the oldest revision
 * makes room for the newest, and a watch that still needed it fails with `compacted`.
 */
import type { Change, Revision } from '../contract.ts';

/** What one revision changed: most often one key, which then needs no list around it. */
export type Changed = Change | readonly Change[];

export class History {
  readonly #limit: number;
  /** A ring: the changes of one revision each. */
  readonly #slots: (Changed | undefined)[] = [];
  #revision: Revision;
  #compacted: Revision = 0;

  constructor(limit: number, revision: Revision) {
    this.#limit = limit;
    this.#revision = revision;
  }

  /** The last revision that was appended. */
  get revision(): Revision {
    return this.#revision;
  }

  /** Revisions up to this one are forgotten. */
  get compacted(): Revision {
    return this.#compacted;
  }

  append(changed: Changed): Revision {
    const revision = ++this.#revision;
    this.#slots[revision % this.#limit] = changed;
    if (revision - this.#compacted > this.#limit) this.#compacted = revision - this.#limit;
    return revision;
  }

  compact(upTo: Revision): void {
    for (let revision = this.#compacted + 1; revision <= upTo; revision++)
      this.#slots[revision % this.#limit] = undefined;
    this.#compacted = upTo;
  }

  /** The first revision from `from` on that changed a wanted key. `from` must not be forgotten. */
  find(from: Revision, isWanted: (key: string) => boolean): Revision | undefined {
    for (let revision = from; revision <= this.#revision; revision++)
      if (this.at(revision, isWanted) !== undefined) return revision;
    return undefined;
  }

  /** The wanted changes of this revision. */
  at(revision: Revision, isWanted: (key: string) => boolean): readonly Change[] | undefined {
    const changed = this.#slots[revision % this.#limit];
    return changed === undefined ? undefined : select(changed, isWanted);
  }
}

/** The wanted changes; `undefined` if there are none. */
export function select(changed: Changed, isWanted: (key: string) => boolean): readonly Change[] | undefined {
  if (!isSeveral(changed)) return isWanted(keyOf(changed)) ? [changed] : undefined;
  const wanted = changed.filter((change) => isWanted(keyOf(change)));
  return wanted.length === 0 ? undefined : wanted;
}

function isSeveral(changed: Changed): changed is readonly Change[] {
  return Array.isArray(changed);
}

function keyOf(change: Change): string {
  return change.kind === 'put' ? change.pair.key : change.key;
}
