/**
 * Events in the order of the store, from any revision on that it still remembers, a whole revision at a time. Tasks have keys
 * of their own, and so a watch of their own: each of the two sources has its own order.
 */
import type { Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import type { SignalboxEvent } from './event-types.ts';
import { eventReader, type EventSource, measureLag, publicEvents, SOURCE_RANGES } from './events.ts';

export const EVENT_SOURCES: readonly EventSource[] = ['records', 'tasks'];

/** Runs on the path of the watch: it must neither throw nor wait. */
export interface EventLogListener {
  /** The events of one revision, in order; there is at least one. */
  told(revision: Revision, events: readonly SignalboxEvent[]): void;
  /** The store has forgotten what came after the last revision; what follows came after `revision`. */
  missed(revision: Revision): void;
}

/** The events of a store, in order and from a revision on. */
export class EventLog {
  readonly #runtime: Runtime;

  /** @internal */
  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Delivers every event after `since`, until the signal aborts. Resolves with the revision after which none is missed. */
  follow(
    source: EventSource,
    since: Revision | 'now',
    listener: EventLogListener,
    signal: AbortSignal,
  ): Promise<Revision> {
    const { store, clock, stopped } = this.#runtime;
    this.#runtime.refuseIfClosed();
    const eventsOf = eventReader(source);
    const over = AbortSignal.any([signal, stopped]);
    return follow(
      store,
      clock,
      SOURCE_RANGES[source],
      {
        changes: (changes) => {
          const now = clock.now();
          const events = eventsOf(changes, now);
          if (events.length === 0) return;
          // Events from history are not measured: they are late because the caller asked late.
          if (since === 'now') measureLag(this.#runtime, changes.revision, events[0]?.at ?? now);
          listener.told(changes.revision, publicEvents(changes.revision, events));
        },
        resync: async () => {
          const { revision } = await store.health(over);
          listener.missed(revision);
          return revision;
        },
      },
      over,
      undefined,
      since,
    );
  }
}
