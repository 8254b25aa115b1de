/**
 * What happened to tasks, read off the changes of their keys. What signalbox writes carries its events in the bookkeeping; workers
 * that are not signalbox only write the three plain keys, and what they did shows in these.
 */
import type { Event } from '../../core/index.ts';
import type { Change, Changes } from '../../store/index.ts';
import { partOf, taskResource, type TaskPart } from './keys.ts';
import { withPart } from './reading.ts';
import { unpublished } from '../../core/index.ts';

type Changed = Partial<Record<TaskPart, Change>>;

/** Owners are remembered, so many, to say of whom a task was that is not any more. */
const MOST_OWNERS = 10_000;

export class TaskEvents {
  readonly #owners = new Map<string, string>();

  /** `now`: when it was heard of; others do not say when they did it. */
  *of({ changes }: Changes, now: number): Iterable<[Event, string]> {
    const tasks = new Map<string, Changed>();
    for (const change of changes) {
      const found = partOf(change.kind === 'put' ? change.pair.key : change.key);
      if (found !== undefined) tasks.set(found.id, { ...tasks.get(found.id), [found.part]: change });
    }
    for (const [id, changed] of tasks) {
      for (const event of this.#eventsOf(id, changed, now)) yield [event, taskResource(id)];
      this.#remember(id, changed.owner);
    }
  }

  #eventsOf(id: string, changed: Changed, now: number): readonly Event[] {
    const { owner, signalbox } = changed;
    if (signalbox?.kind !== 'put') return this.#derived(id, changed, now);
    const { bookkeeping } = withPart(unpublished(id), signalbox.pair);
    // The token is the revision at which the owner's key came to be: the writer could not know it.
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
    // The owner alone went: its lease ended, and whoever finds the task tells that it is pending again.
    const isFreed = owner !== undefined && word === 'pending' && data?.kind !== 'delete';
    return isFreed ? [...events, { type: 'task:released', at, holder }] : events;
  }

  #remember(id: string, owner: Change | undefined): void {
    if (owner === undefined) return;
    if (owner.kind === 'put' && owner.pair.value.text !== '') this.#owners.set(id, owner.pair.value.text);
    // Kept when its lease ends: the one who repairs the task is not the one who had it.
    if (this.#owners.size <= MOST_OWNERS) return;
    for (const oldest of this.#owners.keys()) {
      this.#owners.delete(oldest);
      return;
    }
  }
}
