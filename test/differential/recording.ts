/** What a watch delivers, written down as it comes, until it is over. */
import type { Change, KeyRange, Revision, Store, Watch } from 'signalbox/store';
import { Failure } from '../../src/failure.ts';

export interface Delivered {
  readonly revision: Revision;
  readonly changes: readonly unknown[];
}

export class Recording {
  readonly since: Revision;
  readonly delivered: Delivered[] = [];
  /** Why it is over, if it is. */
  over: string | undefined;
  readonly #abort: AbortController;
  readonly #onNews = new Set<() => void>();

  private constructor(watch: Watch, abort: AbortController, told: (change: Change) => unknown) {
    this.since = watch.since;
    this.#abort = abort;
    void this.#record(watch, told);
  }

  static async start(
    store: Store,
    range: KeyRange,
    since: Revision | 'now',
    told: (change: Change) => unknown,
  ): Promise<Recording> {
    const abort = new AbortController();
    return new Recording(await store.watch(range, since, abort.signal), abort, told);
  }

  /** Whether it has delivered something of this revision, or is over: waits for that, but not for ever. */
  async reached(revision: Revision, patienceMs: number): Promise<boolean> {
    const isSo = (): boolean => this.over !== undefined || (this.delivered.at(-1)?.revision ?? 0) >= revision;
    if (isSo()) return true;
    return new Promise((resolve) => {
      const answer = (is: boolean): void => {
        clearTimeout(timer);
        this.#onNews.delete(look);
        resolve(is);
      };
      const look = (): void => (isSo() ? answer(true) : undefined);
      const timer = setTimeout(answer, patienceMs, false);
      this.#onNews.add(look);
    });
  }

  stop(): void {
    this.#abort.abort();
  }

  async #record(watch: Watch, told: (change: Change) => unknown): Promise<void> {
    try {
      for await (const { revision, changes } of watch) {
        this.delivered.push({ revision, changes: changes.map(told) });
        this.#tellNews();
      }
      this.over = 'ended';
    } catch (error) {
      this.over = error instanceof Failure ? error.code : String(error);
    }
    this.#tellNews();
  }

  #tellNews(): void {
    for (const look of this.#onNews) look();
  }
}
