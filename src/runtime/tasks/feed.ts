/** The one watch on tasks that a process has, for all who want to hear of them. */
import type { Changes, Revision } from '../../store/index.ts';
import { follow } from '../session/follow.ts';
import type { Runtime } from '../runtime.ts';
import { ALL_TASKS } from './keys.ts';

export interface FeedListener {
  /** Called with every change, in order, once. Must not throw and must not wait. */
  changes(changes: Changes): void;
  /** History was compacted, and something was missed. Answers the revision it has caught up to. */
  resync(): Promise<Revision>;
}

export class TaskFeed {
  readonly #runtime: Runtime;
  readonly #listeners = new Set<FeedListener>();
  #following: Promise<unknown> | undefined;
  /** Everything up to this revision has been told. */
  delivered: Revision = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Resolves once the store has confirmed the watch: whatever happens after that is told to the listener. */
  async listen(listener: FeedListener): Promise<void> {
    this.#listeners.add(listener);
    try {
      await (this.#following ??= this.#follow());
    } catch (error) {
      this.#following = undefined;
      this.#listeners.delete(listener);
      throw error;
    }
  }

  #follow(): Promise<unknown> {
    const { store, clock, stopped } = this.#runtime;
    return follow(
      store,
      clock,
      ALL_TASKS,
      {
        changes: (changes) => {
          this.delivered = changes.revision;
          for (const listener of this.#listeners) listener.changes(changes);
        },
        resync: async () => {
          const caughtUp = await Promise.all([...this.#listeners].map((listener) => listener.resync()));
          this.delivered = Math.min(...caughtUp);
          return this.delivered;
        },
      },
      stopped,
    );
  }
}
