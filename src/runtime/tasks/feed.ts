/** The one watch on tasks of a process, shared by all its listeners, and the events that its changes mean. */
import { BACKOFF_OWNER, type Event, type ToldEvent, unpublished } from '../../core/index.ts';
import type { Change, Changes, Revision } from '../../store/index.ts';
import { follow, startsOnce } from '../../store/follow.ts';
import type { Runtime } from '../runtime.ts';
import { begun } from '../subscription.ts';
import { ALL_TASKS, partOf, taskResource, type TaskPart } from './keys.ts';
import { withPart } from './reading.ts';

export interface FeedListener {
  /** Gets every change once, in order. Must not throw and must not wait. */
  changes(changes: Changes): void;
  /** The store has compacted its history, and changes were missed. Answers the revision that the listener has caught up to. */
  resync(): Promise<Revision>;
}

export class TaskFeed {
  readonly #runtime: Runtime;
  readonly #listeners = new Set<FeedListener>();
  readonly #following = startsOnce(() => this.#follow());
  #resyncing: Promise<Revision> | undefined;
  /** The listeners have every change up to this revision. */
  delivered: Revision = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Resolves once the store has confirmed the watch: the listener gets every change after that. */
  async listen(listener: FeedListener): Promise<void> {
    // A resync skips changes up to a revision that only the listeners it began with have caught up to.
    while (this.#resyncing !== undefined) await this.#resyncing.catch(() => undefined);
    this.#listeners.add(listener);
    await begun(this.#following, () => void this.#listeners.delete(listener));
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
        resync: () => (this.#resyncing = this.#resync()),
      },
      stopped,
    );
  }

  async #resync(): Promise<Revision> {
    try {
      const caughtUp = await Promise.all([...this.#listeners].map((listener) => listener.resync()));
      this.delivered = Math.min(...caughtUp);
      return this.delivered;
    } finally {
      this.#resyncing = undefined;
    }
  }
}

type Changed = Partial<Record<TaskPart, Change>>;

/** The number of owners to remember, so that an event can name the owner that a task has lost. */
const MOST_OWNERS = 10_000;

/**
 * Reads events off the changes of the keys of tasks. Signalbox writes its events into the bookkeeping; workers without
 * signalbox write only the three plain keys, and these show what they did.
 */
export class TaskEvents {
  readonly #owners = new Map<string, string>();

  /** `now`: when the change arrived; workers that are not signalbox do not write when they did it. */
  *of({ changes }: Changes, now: number): Iterable<ToldEvent> {
    const tasks = new Map<string, Changed>();
    for (const change of changes) {
      const found = partOf(change.kind === 'put' ? change.pair.key : change.key);
      if (found !== undefined) tasks.set(found.id, { ...tasks.get(found.id), [found.part]: change });
    }
    for (const [id, changed] of tasks) {
      for (const event of this.#eventsOf(id, changed, now)) yield { ...event, resource: taskResource(id) };
      this.#remember(id, changed.owner);
    }
  }

  #eventsOf(id: string, changed: Changed, now: number): readonly Event[] {
    const { owner, signalbox } = changed;
    if (signalbox?.kind !== 'put') return this.#derived(id, changed, now);
    const { bookkeeping } = withPart(unpublished(id), signalbox.pair);
    // The token is the create revision of the owner key, which the writer could not know.
    const token = owner?.kind === 'put' ? { token: owner.pair.createRevision } : {};
    return (bookkeeping?.entry.events ?? []).map((event) =>
      event.type === 'task:requeued' ? event : { ...token, ...event },
    );
  }

  #derived(id: string, { data, owner, status }: Changed, at: number): readonly Event[] {
    const word = status?.kind === 'put' ? status.pair.value.text : undefined;
    const holder = (owner?.kind === 'put' ? owner.pair.value.text : undefined) || (this.#owners.get(id) ?? '');
    const token = owner?.kind === 'put' ? { token: owner.pair.createRevision } : {};
    const events: Event[] = [];
    if (data?.kind === 'put' && data.pair.version === 1) events.push({ type: 'task:published', at, holder: '' });
    if (word === 'complete') return [...events, { type: 'task:completed', at, holder, ...token }];
    if (word === 'failed') return [...events, { type: 'task:failed', at, holder, ...token }];
    if (owner?.kind === 'put' && owner.pair.value.text !== '') {
      const isNew = owner.pair.version === 1 || this.#owners.get(id) !== owner.pair.value.text;
      return isNew ? [...events, { type: 'task:claimed', at, holder, ...token }] : events;
    }
    // If only the owner went, its lease ended: the process that repairs the task reports that it is pending again.
    const isFreed = owner !== undefined && word === 'pending' && data?.kind !== 'delete';
    return isFreed ? [...events, { type: 'task:released', at, holder }] : events;
  }

  #remember(id: string, owner: Change | undefined): void {
    if (owner === undefined) return;
    const name = owner.kind === 'put' ? owner.pair.value.text : '';
    if (name !== '' && name !== BACKOFF_OWNER) this.#owners.set(id, name);
    // Kept when the lease ends: the process that repairs the task is not its owner.
    if (this.#owners.size <= MOST_OWNERS) return;
    for (const oldest of this.#owners.keys()) {
      this.#owners.delete(oldest);
      return;
    }
  }
}
