/**
 * Batches reads of the store: one transaction reads all keys that are asked for in one turn of the event loop, each once.
 * So any number of guards that one event wakes cost one read, and see one revision.
 *
 * A caller never joins a read that is under way: the store may have answered it before the event that woke the caller.
 */
import { type KeyValue, Operations, type Store } from '../../store/index.ts';

/** The number of operations in one transaction. */
const MOST_AT_ONCE = 128;

interface Wanted {
  readonly answer: Promise<KeyValue | undefined>;
  readonly resolve: (pair: KeyValue | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export class Reads {
  readonly #store: Store;
  readonly #stopped: AbortSignal;
  #wanted = new Map<string, Wanted>();

  constructor(store: Store, stopped: AbortSignal) {
    this.#store = store;
    this.#stopped = stopped;
  }

  /** Undefined if there is no such key. */
  read(key: string): Promise<KeyValue | undefined> {
    const there = this.#wanted.get(key);
    if (there !== undefined) return there.answer;
    if (this.#wanted.size === 0) setImmediate(() => this.#send());
    let resolve: Wanted['resolve'] = () => undefined;
    let reject: Wanted['reject'] = () => undefined;
    const answer = new Promise<KeyValue | undefined>((...settle) => ([resolve, reject] = settle));
    this.#wanted.set(key, { answer, resolve, reject });
    return answer;
  }

  #send(): void {
    const wanted = [...this.#wanted];
    this.#wanted = new Map();
    for (let from = 0; from < wanted.length; from += MOST_AT_ONCE) {
      void this.#readAll(wanted.slice(from, from + MOST_AT_ONCE));
    }
  }

  async #readAll(wanted: readonly (readonly [key: string, Wanted])[]): Promise<void> {
    try {
      const look = new Operations();
      const places = wanted.map(([key, { resolve }]) => ({ resolve, pair: look.read({ key }) }));
      const { results } = await this.#store.transaction(look.always(), this.#stopped);
      for (const { resolve, pair } of places) resolve(pair.in(results).pairs[0]);
    } catch (error) {
      for (const [, { reject }] of wanted) reject(error);
    }
  }
}
