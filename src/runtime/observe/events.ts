/**
 * Delivers events to subscribers: who did what. An event is stored in the record that its write made, so this reads the
 * events out of the records that it watches, and gives them to each subscriber in order.
 *
 * A handler never runs on the path of the watch (see `SubscriberQueue`). A subscriber whose queue overflows gets `resync`:
 * it has missed events, and should read the state itself. Nothing is lost silently.
 */
import { type Event, type Hold, matches, type ToldEvent, isRecord } from '../../core/index.ts';
import { leasesOf } from '../../core/hold.ts';
import type { Change, Changes, KeyRange, KeyValue, Revision } from '../../store/index.ts';
import { Failure, shown } from '../../failure.ts';
import { follow, startsOnce } from '../../store/follow.ts';
import { sharesOneClock } from '../session/session.ts';
import {
  type RecordDocument,
  RECORDS,
  resourceOfRecord,
  resourceOfState,
  resourceOfTicket,
  STATES,
  TICKETS,
  checked,
  type Fields,
  ticketIn,
} from '../layout.ts';
import { afterPrefix } from '../../store/index.ts';
import type { EventHandler, SignalboxEvent } from './event-types.ts';
import { memberLeft } from '../members/records.ts';
import { refuseUnlessFunction } from '../options.ts';
import type { RuntimeObserver, Runtime } from '../runtime.ts';
import { malformedBy } from '../stored.ts';
import { SubscriberQueue } from '../subscriber-queue.ts';
import { begun, type Subscription } from '../subscription.ts';
import { type FeedListener, TaskEvents, type TaskFeed } from '../tasks/feed.ts';
import { ALL_TASKS } from '../tasks/keys.ts';

/** For the runtime itself: an event with the holds of its resource after the write. */
export interface RecordEvent extends ToldEvent {
  readonly held?: Held;
}

/** The leases that keep the holds of a resource, by a record of this revision. */
export type Held = { readonly leases: readonly string[]; readonly revision: Revision };

/** For the runtime itself: runs on the path of the watch, so it must not throw and must not wait. */
export interface RevisionListener {
  /** The events of one revision, in order. Those of tasks come separately. */
  told(events: readonly RecordEvent[]): void;
  /** Events were missed. */
  missed(): void;
}

/** Tasks have keys outside of signalbox's own, so they need a second watch. */
export type EventSource = 'records' | 'tasks';

/** Where each source has its keys. Tickets, records and states are neighbours: one watch delivers them in one order. */
export const SOURCE_RANGES: Readonly<Record<EventSource, KeyRange>> = {
  records: { key: TICKETS, end: afterPrefix(STATES) },
  tasks: ALL_TASKS,
};

/** Reads the events off the changes of a source; `now`: when they arrived. */
export function eventReader(source: EventSource): (changes: Changes, now: number) => readonly RecordEvent[] {
  if (source === 'records') return ({ changes }, now) => changes.flatMap((change) => readableEvents(change, now));
  const tasks = new TaskEvents();
  return (changes, now) => [...tasks.of(changes, now)];
}

const PATTERN = /^(\*|resync|(lock|semaphore|task|pipeline|member|coordinator|topology|guard|witness):(\*|[a-z]+))$/;

export class Events implements FeedListener, RuntimeObserver {
  readonly #runtime: Runtime;
  readonly #subscribers = new Set<Subscriber>();
  readonly #followRecords = startsOnce(() => this.#follow());
  readonly #feed: TaskFeed;
  readonly #eventsOf = { records: eventReader('records'), tasks: eventReader('tasks') };
  readonly #listeners: Readonly<Record<EventSource, Set<RevisionListener>>> = { records: new Set(), tasks: new Set() };

  constructor(runtime: Runtime, feed: TaskFeed) {
    this.#runtime = runtime;
    this.#feed = feed;
    runtime.store.over?.addEventListener('abort', () => this.#allMissed(), { once: true });
  }

  localEvents(resource: string, events: readonly Event[]): void {
    for (const event of events) this.#tell({ ...event, resource } as unknown as SignalboxEvent);
  }

  /** Resolves once the store has confirmed the watch: the handler gets every event after that. */
  async subscribe(pattern: string, handler: EventHandler): Promise<Subscription> {
    this.#runtime.refuseIfClosed();
    refuseUnlessFunction('the handler', handler);
    if (typeof pattern !== 'string' || !PATTERN.test(pattern)) {
      throw new Failure(
        'invalid',
        `the pattern is ${shown(pattern)}; expected "*", a kind such as "lock:*", or a type such as "lock:released"`,
      );
    }
    const subscriber = new Subscriber(pattern, handler);
    this.#subscribers.add(subscriber);
    const unsubscribe = (): void => {
      subscriber.stop();
      this.#subscribers.delete(subscriber);
    };
    return begun(async () => {
      if (!pattern.startsWith('task:')) await this.#followRecords();
      // The second watch is only for subscribers that ask for tasks.
      if (pattern === '*' || pattern === 'resync' || pattern.startsWith('task:')) await this.#feed.listen(this);
    }, unsubscribe);
  }

  /** For the runtime itself. Resolves once the store has confirmed the watch. */
  async listen(source: EventSource, listener: RevisionListener): Promise<Subscription> {
    this.#runtime.refuseIfClosed();
    const listeners = this.#listeners[source];
    listeners.add(listener);
    const begin = (): Promise<unknown> => (source === 'records' ? this.#followRecords() : this.#feed.listen(this));
    return begun(begin, () => void listeners.delete(listener));
  }

  #follow(): Promise<unknown> {
    const { store, clock, stopped } = this.#runtime;
    return follow(
      store,
      clock,
      SOURCE_RANGES.records,
      {
        changes: (changes) => this.#tellAll('records', changes),
        resync: () => this.#missed('records', (subscriber) => !subscriber.pattern.startsWith('task:')),
      },
      stopped,
    );
  }

  /** Changes of tasks, from the feed. */
  changes(changes: Changes): void {
    this.#tellAll('tasks', changes);
  }

  resync(): Promise<Revision> {
    return this.#missed('tasks', ({ pattern }) => /^(task:|\*|resync)/.test(pattern));
  }

  async #missed(source: EventSource, concerns: (subscriber: Subscriber) => boolean): Promise<Revision> {
    const { revision } = await this.#runtime.store.health(this.#runtime.stopped);
    this.#runtime.measures.resynced(source);
    for (const subscriber of this.#subscribers) if (concerns(subscriber)) subscriber.missed(this.#runtime.clock.now());
    for (const listener of this.#listeners[source]) listener.missed();
    return revision;
  }

  /** The store is over: a subscriber that reads the state now gets the reason. */
  #allMissed(): void {
    for (const subscriber of this.#subscribers) subscriber.missed(this.#runtime.clock.now());
    for (const listeners of Object.values(this.#listeners)) for (const listener of listeners) listener.missed();
  }

  #tellAll(source: EventSource, changes: Changes): void {
    const { revision } = changes;
    const events = this.#eventsOf[source](changes, this.#runtime.clock.now());
    if (events.length === 0) return;
    measureLag(this.#runtime, revision, events[0]?.at ?? 0);
    for (const listener of this.#listeners[source]) listener.told(events);
    for (const event of publicEvents(revision, events)) this.#tell(event);
  }

  #tell(event: SignalboxEvent): void {
    for (const subscriber of this.#subscribers) subscriber.tell(event);
  }
}

/** The events with ids, and without what only the runtime uses. */
export function publicEvents(revision: Revision, events: readonly RecordEvent[]): readonly SignalboxEvent[] {
  return events.map(({ isNew: _isNew, held: _held, ...event }, index) => {
    return { ...(event as SignalboxEvent), id: `${revision}.${index}` };
  });
}

/** A key that cannot be read has no events, and must not hide those of the other keys of its revision. */
function readableEvents(change: Change, now: number): readonly RecordEvent[] {
  try {
    return [...eventsOf(change, now)];
  } catch (error) {
    malformedBy(change.kind === 'put' ? change.pair.key : change.key, error);
    return [];
  }
}

function* eventsOf(change: Change, now: number): Iterable<RecordEvent> {
  if (change.kind === 'delete') {
    const left = memberLeft(change.key, now);
    if (left !== undefined) yield left;
    return;
  }
  const { pair } = change;
  const { key } = pair;
  if (key.startsWith(TICKETS)) {
    if (pair.version === 1) yield queued(pair);
    return;
  }
  const isRecord = key.startsWith(RECORDS);
  const resource = isRecord ? resourceOfRecord(key) : resourceOfState(key);
  const { record, events = [] } = checked<RecordDocument<unknown>>(pair, documentProblem);
  const more = { ...(pair.version === 1 && { isNew: true as const }), ...(isRecord && { held: heldIn(record, pair) }) };
  for (const event of events) yield { ...event, ...reasonOf(event, record), resource, ...more };
}

/** An event about a grant says why, as its hold does; the write that made the event also made the hold. */
function reasonOf({ token, reason }: Event, record: unknown): { readonly reason?: string } {
  if (token === undefined || reason !== undefined) return {};
  const { holds = [] } = record as { readonly holds?: readonly Hold[] };
  const why = holds.find((hold) => hold.token === token)?.reason;
  return why === undefined ? {} : { reason: why };
}

function documentProblem({ record, events = [] }: Fields): string | undefined {
  if (!isRecord(record)) return `its record is ${shown(record)}`;
  const { holds = [] } = record;
  if (!Array.isArray(holds) || !holds.every(isRecord)) return `its holds are ${shown(holds)}`;
  const areEvents =
    Array.isArray(events) && events.every((event) => isRecord(event) && typeof event['type'] === 'string');
  return areEvents ? undefined : `its events are ${shown(events)}`;
}

/** `record`: that of a lock or a semaphore. */
export function heldIn(record: unknown, { modRevision }: KeyValue): Held {
  const { holds = [] } = record as { readonly holds?: readonly Hold[] };
  return { leases: leasesOf(holds), revision: modRevision };
}

/** A new ticket is itself the event that a request waits. */
function queued(pair: KeyValue): ToldEvent {
  const { request, at } = ticketIn<{ holder: string; priority: number; reason?: string }>(pair);
  const resource = resourceOfTicket(pair.key);
  const type = `${resource.slice(0, resource.indexOf('/'))}:queued`;
  const { holder, priority, reason } = request;
  return { type, at, holder, priority, ...(reason !== undefined && { reason }), resource };
}

/** One subscriber. After an overflow it gets `resync`, whatever its pattern: it must know that it has missed something. */
class Subscriber {
  readonly pattern: string;
  readonly #queue: SubscriberQueue<SignalboxEvent>;

  constructor(pattern: string, handler: EventHandler) {
    this.pattern = pattern;
    this.#queue = new SubscriberQueue(handler, ([dropped]) => [resyncAt(dropped?.at ?? 0)]);
  }

  tell(event: SignalboxEvent): void {
    if (matches(this.pattern, event.type)) this.#queue.add(event);
  }

  missed(at: number): void {
    this.#queue.restart([resyncAt(at)]);
  }

  stop(): void {
    this.#queue.stop();
  }
}

function resyncAt(at: number): SignalboxEvent {
  return { type: 'resync', resource: '*', holder: '', at };
}

/** Measures how late an event is: on one machine by the time in the event; across machines only for writes of this process. */
export function measureLag({ measures, clock, store }: Runtime, revision: Revision, at: number): void {
  if (sharesOneClock(store)) return measures.took('watchLag', clock.now() - at);
  measures.arrived('watchLag', revision, clock.monotonic());
}
