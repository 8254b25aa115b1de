/**
 * Finds the revision up to which etcd has compacted its history. etcd does not report it, but refuses to read at an
 * earlier revision, so we search for it, trying many revisions at a time. Whether revision 1 itself is compacted cannot
 * be told, but nothing is lost with it.
 */
import { Failure } from '../../failure.ts';
import type { Revision } from '../contract.ts';

/** How many revisions are read at once: enough for a search in few rounds, few enough to be cheap. */
const WIDTH = 16;

export class CompactedRevision {
  readonly #read: (revision: Revision, signal?: AbortSignal) => Promise<unknown>;
  #known: Revision = 1;

  constructor(read: (revision: Revision, signal?: AbortSignal) => Promise<unknown>) {
    this.#read = read;
  }

  /** Most often it has not changed, and one read confirms that. */
  async find(current: Revision, signal?: AbortSignal): Promise<Revision> {
    if (!(await this.#isReadable(this.#known, signal))) this.#known = await this.#search(this.#known, current, signal);
    return this.#known === 1 ? 0 : this.#known;
  }

  /** The first revision that can be read, above one that cannot. */
  async #search(refused: Revision, current: Revision, signal?: AbortSignal): Promise<Revision> {
    let [low, high] = [refused, current];
    while (high - low > 1) {
      const step = Math.max(1, Math.ceil((high - low) / (WIDTH + 1)));
      const asked: Revision[] = [];
      for (let revision = low + step; revision < high; revision += step) asked.push(revision);
      const readable = await Promise.all(asked.map((revision) => this.#isReadable(revision, signal)));
      const first = readable.indexOf(true);
      if (first !== 0) low = asked[(first < 0 ? asked.length : first) - 1] ?? low;
      if (first >= 0) high = asked[first] ?? high;
    }
    return high;
  }

  async #isReadable(revision: Revision, signal?: AbortSignal): Promise<boolean> {
    try {
      await this.#read(revision, signal);
      return true;
    } catch (error) {
      if (Failure.is(error, 'compacted')) return false;
      throw error;
    }
  }
}
