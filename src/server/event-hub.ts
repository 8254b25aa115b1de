/**
 * One pair of watches for all readers of events. The hub remembers the latest events, so that a reader that comes back
 * continues from memory; one that was away for longer reads the history of the store until it has caught up.
 *
 *     store ──watch──▶ EventHub (the latest events) ──▶ reader, reader, reader …
 *     store ──watch from the reader's revision──▶ reader that lags behind ──caught up──▶ hub
 *
 * The two sources have an order of their own, so the place of a reader is a revision in each: `r812,t790`.
 */
import type { Revision } from '../store/index.ts';
import type { SignalboxEvent } from '../runtime/observe/event-types.ts';
import { EVENT_SOURCES } from '../runtime/observe/event-log.ts';
import type { EventSource } from '../runtime/observe/events.ts';
import type { Signalbox } from '../runtime/signalbox.ts';

export type Place = Readonly<Record<EventSource, Revision>>;

export interface EventReader {
  /** The events of one revision of a source, in order. */
  told(source: EventSource, revision: Revision, events: readonly SignalboxEvent[]): void;
  /** The store has forgotten what came next; what follows comes after `revision`. */
  missed(source: EventSource, revision: Revision): void;
}

interface Remembered {
  readonly revision: Revision;
  readonly events: readonly SignalboxEvent[];
}

interface Source {
  /** Every event after this revision is remembered. */
  from: Revision;
  readonly latest: Remembered[];
  readonly readers: Set<EventReader>;
}

/** How many revisions of each source are remembered. */
const MOST_REMEMBERED = 2_000;

export class EventHub {
  readonly #box: Signalbox;
  readonly #stop: AbortSignal;
  readonly #sources: Readonly<Record<EventSource, Source>> = {
    records: { from: 0, latest: [], readers: new Set() },
    tasks: { from: 0, latest: [], readers: new Set() },
  };
  /** How often each event was seen since the hub began to follow. */
  readonly counts = new Map<string, number>();
  #started: Promise<void> | undefined;

  constructor(box: Signalbox, stop: AbortSignal) {
    this.#box = box;
    this.#stop = stop;
  }

  get readers(): number {
    return this.#sources.records.readers.size;
  }

  /** The watches begin with the first reader, and then stay. */
  start(): Promise<void> {
    this.#started ??= Promise.all(EVENT_SOURCES.map((source) => this.#follow(source))).then(
      () => undefined,
      (error: unknown) => {
        this.#started = undefined;
        throw error;
      },
    );
    return this.#started;
  }

  async #follow(name: EventSource): Promise<void> {
    const source = this.#sources[name];
    const listener = {
      told: (revision: Revision, events: readonly SignalboxEvent[]) => {
        source.latest.push({ revision, events });
        for (const { type } of events) this.counts.set(type, (this.counts.get(type) ?? 0) + 1);
        if (source.latest.length > MOST_REMEMBERED) source.from = (source.latest.shift() as Remembered).revision;
        for (const reader of source.readers) reader.told(name, revision, events);
      },
      missed: (revision: Revision) => {
        source.latest.length = 0;
        source.from = revision;
        for (const reader of source.readers) reader.missed(name, revision);
      },
    };
    source.from = await this.#box.eventLog.follow(name, 'now', listener, this.#stop);
  }

  /** Where a reader begins that wants what happens from now on. */
  async now(): Promise<Place> {
    await this.start();
    const { revision } = await this.#box.health();
    return { records: revision, tasks: revision };
  }

  /** Tells `reader` every event after `place`, until the signal aborts. */
  async read(reader: EventReader, place: Place, signal: AbortSignal): Promise<void> {
    await this.start();
    for (const source of EVENT_SOURCES) await this.#readSource(source, reader, place[source], signal);
  }

  async #readSource(name: EventSource, reader: EventReader, since: Revision, signal: AbortSignal): Promise<void> {
    const source = this.#sources[name];
    if (since >= source.from) return this.#join(name, reader, since, signal);
    const own = new AbortController();
    const listener = {
      told: (revision: Revision, events: readonly SignalboxEvent[]) => {
        if (own.signal.aborted) return;
        reader.told(name, revision, events);
        // From here on the hub has everything.
        if (revision >= source.from) {
          own.abort();
          this.#join(name, reader, revision, signal);
        }
      },
      missed: (revision: Revision) => {
        own.abort();
        reader.missed(name, revision);
        this.#join(name, reader, Math.max(revision, source.from), signal);
      },
    };
    await this.#box.eventLog.follow(name, since, listener, AbortSignal.any([own.signal, signal, this.#stop]));
  }

  /** Without a wait in between, so that no event is sent twice or left out. */
  #join(name: EventSource, reader: EventReader, since: Revision, signal: AbortSignal): void {
    if (signal.aborted) return;
    const source = this.#sources[name];
    for (const { revision, events } of source.latest) if (revision > since) reader.told(name, revision, events);
    // What the hub is yet to tell may be older than what this reader knows.
    const late: EventReader = {
      told: (which, revision, events) => void (revision > since && reader.told(which, revision, events)),
      missed: (which, revision) => reader.missed(which, revision),
    };
    source.readers.add(late);
    signal.addEventListener('abort', () => source.readers.delete(late), { once: true });
  }
}
