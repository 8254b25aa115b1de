/**
 * One watch of the bus: every change in order, over broken connections. Where changes were missed, because history was
 * forgotten or the handler fell too far behind, it is told so and then the difference.
 */
import type { Clock } from '../../clock.ts';
import { type Changes, type KeyRange, type KeyValue, readPages, type Revision, type Store } from '../../store/index.ts';
import { follow } from '../session/follow.ts';
import { keyOf } from './keys.ts';

export type BusEvent =
  | { readonly type: 'PUT'; readonly key: string; readonly value: string; readonly revision: Revision }
  | { readonly type: 'DELETE'; readonly key: string; readonly value: null; readonly revision: Revision }
  /** Changes were missed. What is different now is told next, as puts and deletions; `key` is the prefix. */
  | { readonly type: 'RESYNC'; readonly key: string; readonly value: null; readonly revision: Revision };

export type BusHandler = (event: BusEvent) => void | Promise<void>;

const PAGE = 1000;
/** A handler that is further behind is told the difference, once it comes to it. */
export const LONGEST_QUEUE = 1000;

export class Watcher {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #range: KeyRange & { readonly end: string };
  readonly #handler: BusHandler;
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  /** What the handler knows: which keys there are, and of which revision. */
  readonly #told = new Map<string, Revision>();
  /** All up to this revision is in what it knows. */
  #asOf: Revision = 0;
  #queue: BusEvent[] = [];
  #missed = false;
  /** The list is not read yet. */
  #draining = true;

  constructor(
    store: Store,
    clock: Clock,
    range: KeyRange & { readonly end: string },
    handler: BusHandler,
    stopped: AbortSignal,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#range = range;
    this.#handler = handler;
    this.#signal = AbortSignal.any([stopped, this.#over.signal]);
  }

  /** Resolves once whatever happens after that will be told. */
  async start(): Promise<void> {
    const follower = {
      changes: (changes: Changes) => this.#changes(changes),
      resync: async () => {
        const { revision } = await this.#store.health(this.#signal);
        this.#missSome();
        return revision;
      },
    };
    await follow(this.#store, this.#clock, this.#range, follower, this.#signal);
    const { pairs, first } = await this.#list();
    for (const { key, modRevision } of pairs) this.#told.set(key, modRevision);
    this.#asOf = first;
    void this.#drain();
  }

  stop(): void {
    this.#over.abort();
    this.#queue = [];
  }

  #changes({ changes, revision }: Changes): void {
    if (revision <= this.#asOf || this.#missed) return;
    if (this.#queue.length + changes.length > LONGEST_QUEUE) return this.#missSome();
    for (const change of changes) {
      this.#queue.push(
        change.kind === 'put'
          ? { type: 'PUT', key: keyOf(change.pair.key), value: change.pair.value.text, revision }
          : { type: 'DELETE', key: keyOf(change.key), value: null, revision },
      );
    }
    this.#wake();
  }

  /** Nothing is kept until the handler has time for the difference. */
  #missSome(): void {
    this.#missed = true;
    this.#queue = [];
    this.#wake();
  }

  #wake(): void {
    if (this.#draining) return;
    this.#draining = true;
    queueMicrotask(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    while (!this.#signal.aborted) {
      const event = this.#queue.shift();
      if (event !== undefined) await this.#tell(event);
      else if (this.#missed) await this.#catchUp();
      else break;
    }
    this.#draining = false;
  }

  async #catchUp(): Promise<void> {
    // From here on changes are kept again: the list that is read now may be older than they are.
    this.#missed = false;
    let listed;
    try {
      listed = await this.#list();
    } catch {
      // The store is not there; once it is, the watch goes on, and so does this.
      this.#missed = true;
      return new Promise((resolve) => void this.#clock.timer(200, resolve));
    }
    const { pairs, first } = listed;
    await this.#call({ type: 'RESYNC', key: keyOf(this.#range.key), value: null, revision: first });
    const there = new Set(pairs.map(({ key }) => keyOf(key)));
    for (const key of [...this.#told.keys()].map(keyOf)) {
      if (!there.has(key)) await this.#tell({ type: 'DELETE', key, value: null, revision: first });
    }
    for (const { key, value, modRevision } of pairs.sort((a, b) => a.modRevision - b.modRevision)) {
      await this.#tell({ type: 'PUT', key: keyOf(key), value: value.text, revision: modRevision });
    }
    this.#asOf = Math.max(this.#asOf, first);
  }

  /** Unless it is known already. */
  async #tell(event: BusEvent): Promise<void> {
    const key = `/${event.key}`;
    const told = this.#told.get(key);
    if (event.type === 'PUT') {
      if ((told ?? 0) >= event.revision) return;
      this.#told.set(key, event.revision);
    } else {
      if (told === undefined || told > event.revision) return;
      this.#told.delete(key);
    }
    await this.#call(event);
  }

  async #call(event: BusEvent): Promise<void> {
    if (this.#signal.aborted) return;
    try {
      await this.#handler(event);
    } catch (error) {
      // A bug in a handler is its own: told the way an event listener's is, and the next event still comes.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  /** Page by page: `first` is the revision of the first one, after which changes may be missing in it. */
  async #list(): Promise<{ readonly pairs: KeyValue[]; readonly first: Revision }> {
    const pairs: KeyValue[] = [];
    let first: Revision | undefined;
    for await (const page of readPages(this.#store, this.#range, PAGE, this.#signal)) {
      first ??= page.revision;
      pairs.push(...page.pairs);
    }
    return { pairs, first: first ?? 0 };
  }
}
