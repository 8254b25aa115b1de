/**
 * Who did what, told to whoever wants to know. Events travel with the write that made them, inside its record; here
 * they are taken out of the followed records and given to each subscriber in order.
 *
 * A subscriber's handler never runs on the path of the watch: each has a queue of its own, so a slow one delays
 * nobody. A queue that overflows is emptied, and the subscriber is told `resync`: it has missed something, and
 * should look at the state itself. Nothing is lost silently.
 */
import { type Event, type Json, matches } from '../core/index.ts';
import type { Change, Changes, Revision } from '../store/index.ts';
import { Failure, shown } from '../failure.ts';
import { follow } from './follow.ts';
import {
  decode,
  type RecordDocument,
  RECORDS,
  resourceOfRecord,
  resourceOfTicket,
  type TicketDocument,
  TICKETS,
} from './layout.ts';
import { afterPrefix } from '../store/index.ts';
import { refuseUnlessFunction } from './options.ts';
import type { Runtime } from './runtime.ts';
import { TaskEvents } from './tasks/events.ts';
import type { FeedListener, TaskFeed } from './tasks/feed.ts';

export type LockEventType =
  `lock:${'acquired' | 'reclaimed' | 'denied' | 'queued' | 'released' | 'stale' | 'forced' | 'downgraded' | 'deadlock'}`;
export type SemaphoreEventType =
  `semaphore:${'acquired' | 'reclaimed' | 'denied' | 'queued' | 'released' | 'stale' | 'forced' | 'resized' | 'deadlock'}`;
export type TaskEventType = `task:${'published' | 'claimed' | 'released' | 'requeued' | 'completed' | 'failed'}`;
export type EventType = LockEventType | SemaphoreEventType | TaskEventType | 'resync';
export type EventPattern = EventType | 'lock:*' | 'semaphore:*' | 'task:*' | '*';

export interface SignalboxEvent {
  readonly type: EventType;
  /** `lock/main-branch`; for `resync`, which concerns everything, `*`. */
  readonly resource: string;
  readonly holder: string;
  /** When, by the clock of the process that did it. */
  readonly at: number;
  /** Revision and place in it: the same for everyone, and absent for what only this process saw (`denied`). */
  readonly id?: string;
  readonly [detail: string]: Json | undefined;
}

export type EventHandler = (event: SignalboxEvent) => void | Promise<void>;

export interface Subscription extends Disposable {
  unsubscribe(): void;
}

const LONGEST_QUEUE = 1000;
const PATTERN = /^(\*|resync|(lock|semaphore|task):(\*|[a-z]+))$/;

export class Events implements FeedListener {
  readonly #runtime: Runtime;
  readonly #subscribers = new Set<Subscriber>();
  #following: Promise<unknown> | undefined;
  readonly #feed: TaskFeed;
  readonly #taskEvents = new TaskEvents();

  constructor(runtime: Runtime, feed: TaskFeed) {
    this.#runtime = runtime;
    this.#feed = feed;
    runtime.onLocalEvents = (resource, events) => {
      for (const event of events) this.#tell(publicEvent(event, resource));
    };
  }

  /** Resolves once the store has confirmed it: whatever happens after that is told. */
  async subscribe(pattern: string, handler: EventHandler): Promise<Subscription> {
    this.#runtime.refuseIfClosed();
    refuseUnlessFunction('the handler', handler);
    if (typeof pattern !== 'string' || !PATTERN.test(pattern)) {
      throw new Failure(
        'invalid',
        `the pattern is ${shown(pattern)}; accepted is "*", "lock:*" or "lock:released", and so on`,
      );
    }
    const subscriber = new Subscriber(pattern, handler);
    this.#subscribers.add(subscriber);
    const unsubscribe = (): void => {
      subscriber.stop();
      this.#subscribers.delete(subscriber);
    };
    try {
      if (!pattern.startsWith('task:')) await this.#followRecords();
      // Tasks are elsewhere in the store: whoever does not ask for them does not have them watched.
      if (pattern === '*' || pattern === 'resync' || pattern.startsWith('task:')) await this.#feed.listen(this);
    } catch (error) {
      unsubscribe();
      throw error;
    }
    return { unsubscribe, [Symbol.dispose]: unsubscribe };
  }

  async #followRecords(): Promise<void> {
    try {
      await (this.#following ??= this.#follow());
    } catch (error) {
      this.#following = undefined;
      throw error;
    }
  }

  #follow(): Promise<unknown> {
    const { store, clock, stopped } = this.#runtime;
    // Records and tickets lie side by side: one watch, one order.
    return follow(
      store,
      clock,
      { key: TICKETS, end: afterPrefix(RECORDS) },
      {
        changes: ({ revision, changes }) =>
          this.#tellAll(
            revision,
            changes.flatMap((change) => [...eventsOf(change)]),
          ),
        resync: () => this.#missed((subscriber) => !subscriber.pattern.startsWith('task:')),
      },
      stopped,
    );
  }

  /** Of tasks. */
  changes(changes: Changes): void {
    this.#tellAll(changes.revision, [...this.#taskEvents.of(changes, this.#runtime.clock.now())]);
  }

  resync(): Promise<Revision> {
    return this.#missed(({ pattern }) => !/^(lock|semaphore):/.test(pattern));
  }

  async #missed(concerns: (subscriber: Subscriber) => boolean): Promise<Revision> {
    const { revision } = await this.#runtime.store.health(this.#runtime.stopped);
    for (const subscriber of this.#subscribers) if (concerns(subscriber)) subscriber.missed(this.#runtime.clock.now());
    return revision;
  }

  #tellAll(revision: Revision, events: readonly [Event, string][]): void {
    events.forEach(([event, resource], index) => {
      this.#tell({ ...publicEvent(event, resource), id: `${revision}.${index}` });
    });
  }

  #tell(event: SignalboxEvent): void {
    for (const subscriber of this.#subscribers) subscriber.tell(event);
  }
}

function* eventsOf(change: Change): Iterable<[Event, string]> {
  if (change.kind === 'delete') return;
  const { pair } = change;
  if (pair.key.startsWith(RECORDS)) {
    const resource = resourceOfRecord(pair.key);
    for (const event of decode<RecordDocument<unknown>>(pair).events ?? []) yield [event, resource];
  } else if (pair.version === 1) {
    const { request, at } = decode<TicketDocument<{ holder: string; priority: number }>>(pair);
    const resource = resourceOfTicket(pair.key);
    const type = `${resource.slice(0, resource.indexOf('/'))}:queued`;
    yield [{ type, at, holder: request.holder, priority: request.priority }, resource];
  }
}

function publicEvent(event: Event, resource: string): SignalboxEvent {
  return { ...event, type: event.type as EventType, resource };
}

class Subscriber {
  readonly pattern: string;
  readonly #handler: EventHandler;
  #queue: SignalboxEvent[] = [];
  #draining = false;
  #stopped = false;

  constructor(pattern: string, handler: EventHandler) {
    this.pattern = pattern;
    this.#handler = handler;
  }

  tell(event: SignalboxEvent): void {
    if (!matches(this.pattern, event.type)) return;
    if (this.#queue.length >= LONGEST_QUEUE) this.missed(event.at);
    else this.#add(event);
  }

  /** Whatever its pattern: it must know that it has missed something. */
  missed(at: number): void {
    this.#queue = [];
    this.#add({ type: 'resync', resource: '*', holder: '', at });
  }

  stop(): void {
    this.#stopped = true;
    this.#queue = [];
  }

  #add(event: SignalboxEvent): void {
    this.#queue.push(event);
    if (this.#draining) return;
    this.#draining = true;
    queueMicrotask(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    for (let event = this.#queue.shift(); event !== undefined && !this.#stopped; event = this.#queue.shift()) {
      try {
        await this.#handler(event);
      } catch (error) {
        // A bug in a handler is its own: told the way an event listener's is, and the next event still comes.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
    this.#draining = false;
  }
}
