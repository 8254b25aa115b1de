/**
 * One watch of the bus: delivers every change in order, across broken connections. Where changes were missed, because the
 * store has compacted them or the handler fell too far behind, the handler gets `RESYNC` and then the difference.
 */
import type { Clock } from '../../clock.ts';
import { type Changes, type KeyRange, type KeyValue, readPages, type Revision, type Store } from '../../store/index.ts';
import { follow } from '../../store/follow.ts';
import { SubscriberQueue } from '../subscriber-queue.ts';
import { keyOf } from './keys.ts';

/** A change of a key that is watched. */
export type BusEvent =
  | { readonly type: 'PUT'; readonly key: string; readonly value: string; readonly revision: Revision }
  | { readonly type: 'DELETE'; readonly key: string; readonly value: null; readonly revision: Revision }
  /** Changes were missed. What is different now comes next, as puts and deletions; `key` is the prefix. */
  | { readonly type: 'RESYNC'; readonly key: string; readonly value: null; readonly revision: Revision };

/** Called for each change, in order. */
export type BusHandler = (event: BusEvent) => void | Promise<void>;

const PAGE = 1000;
/** The wait before the store is read again, after it did not answer. */
const RETRY_MS = 200;

/** All keys, read page by page. `first`: the revision of the first page; later changes may be missing from it. */
interface Listed {
  readonly pairs: KeyValue[];
  readonly first: Revision;
}

export class Watcher {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #range: KeyRange & { readonly end: string };
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  readonly #queue: SubscriberQueue<BusEvent>;
  /** What the handler knows: the keys that exist, and the revision of each. */
  readonly #known = new Map<string, Revision>();
  /** The list that was read last includes every change up to this revision. */
  #asOf: Revision = 0;
  /** Changes were missed, and the handler has not come to the difference yet. */
  #isBehind = false;

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
    this.#signal = AbortSignal.any([stopped, this.#over.signal]);
    this.#queue = new SubscriberQueue(
      (event) => (!this.#signal.aborted && this.#isNews(event) ? handler(event) : undefined),
      () => this.#resync(),
    );
  }

  /** Resolves once the handler will get every change after that. */
  async start(): Promise<void> {
    const follower = {
      changes: (changes: Changes) => this.#changes(changes),
      resync: async () => {
        const { revision } = await this.#store.health(this.#signal);
        this.#queue.restart(this.#resync());
        return revision;
      },
    };
    // Changes wait in the queue until the list is read: only then is it known which of them the handler needs.
    let ready = (): void => undefined;
    this.#queue.restart(nothingUntil(new Promise<void>((resolve) => (ready = resolve))));
    await follow(this.#store, this.#clock, this.#range, follower, this.#signal);
    const { pairs, first } = await this.#list();
    for (const { key, modRevision } of pairs) this.#known.set(keyOf(key), modRevision);
    this.#asOf = first;
    ready();
  }

  stop(): void {
    this.#over.abort();
    this.#queue.stop();
  }

  #changes({ changes, revision }: Changes): void {
    if (revision <= this.#asOf || this.#isBehind) return;
    this.#queue.add(
      ...changes.map((change): BusEvent =>
        change.kind === 'put'
          ? { type: 'PUT', key: keyOf(change.pair.key), value: change.pair.value.text, revision }
          : { type: 'DELETE', key: keyOf(change.key), value: null, revision },
      ),
    );
  }

  /** Until the handler comes to the difference, changes are dropped: the list that is read then includes them. */
  #resync(): AsyncIterable<BusEvent> {
    this.#isBehind = true;
    return this.#difference();
  }

  async *#difference(): AsyncIterable<BusEvent> {
    // Changes are queued again from here on: they may be newer than the list.
    this.#isBehind = false;
    const listed = await this.#listPersistently();
    if (listed === undefined) return;
    const { pairs, first } = listed;
    this.#asOf = Math.max(this.#asOf, first);
    yield { type: 'RESYNC', key: keyOf(this.#range.key), value: null, revision: first };
    const there = new Set(pairs.map(({ key }) => keyOf(key)));
    for (const key of [...this.#known.keys()]) {
      if (!there.has(key)) yield { type: 'DELETE', key, value: null, revision: first };
    }
    for (const { key, value, modRevision } of pairs.sort((a, b) => a.modRevision - b.modRevision)) {
      yield { type: 'PUT', key: keyOf(key), value: value.text, revision: modRevision };
    }
  }

  /** Whether the handler does not know it yet; from now on it does. */
  #isNews({ type, key, revision }: BusEvent): boolean {
    if (type === 'RESYNC') return true;
    const known = this.#known.get(key);
    if (type === 'PUT') {
      if ((known ?? 0) >= revision) return false;
      this.#known.set(key, revision);
      return true;
    }
    if (known === undefined || known > revision) return false;
    return this.#known.delete(key);
  }

  /** Reads again until the store answers. Undefined if the watch is over. */
  async #listPersistently(): Promise<Listed | undefined> {
    while (!this.#signal.aborted) {
      try {
        return await this.#list();
      } catch {
        await new Promise<void>((resolve) => void this.#clock.timer(RETRY_MS, resolve));
      }
    }
    return undefined;
  }

  async #list(): Promise<Listed> {
    const pairs: KeyValue[] = [];
    let first: Revision | undefined;
    for await (const page of readPages(this.#store, this.#range, PAGE, this.#signal)) {
      first ??= page.revision;
      pairs.push(...page.pairs);
    }
    return { pairs, first: first ?? 0 };
  }
}

/** Holds a queue back until `ready`. */
async function* nothingUntil(ready: Promise<void>): AsyncIterable<never> {
  await ready;
}
