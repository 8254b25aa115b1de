/**
 * One pair of watches for all readers of events. The hub remembers the latest events, so a returning reader continues from
 * memory; a reader that was away for longer reads the history of the store until it has caught up.
 *
 *     store ──watch──▶ EventHub (the latest events) ──▶ reader, reader, reader …
 *     store ──watch from the reader's revision──▶ reader that lags behind ──caught up──▶ hub
 *
 * Each of the two sources has its own order, so a reader's place is a revision in each: `r812,t790`. The hub finds the readers of
 * an event in a map by resource and type, so 200 readers of 200 locks cost no more than one.
 */
import type { Revision } from '../store/index.ts';
import type { SignalboxEvent } from '../runtime/observe/event-types.ts';
import { EVENT_SOURCES } from '../runtime/observe/event-log.ts';
import type { EventSource } from '../runtime/observe/events.ts';
import type { Signalbox } from '../runtime/signalbox.ts';

export type Place = Readonly<Record<EventSource, Revision>>;

/** An event as readers get it. The hub makes its text once for all readers. */
export class ToldEvent {
  readonly event: SignalboxEvent;
  #text: string | undefined;

  constructor(event: SignalboxEvent) {
    this.event = event;
  }

  /** The whole message except the id, which differs from reader to reader. */
  get text(): string {
    this.#text ??= `event: ${this.event.type}\ndata: ${JSON.stringify(this.event)}\n\n`;
    return this.#text;
  }
}

export interface EventReader {
  /** The resources whose events it wants, or else patterns of event types; without either it gets every event. */
  readonly wants: readonly string[];
  /** Delivers the events of one revision of a source, in order; some may be events that it does not want. */
  told(source: EventSource, revision: Revision, events: readonly ToldEvent[]): void;
  /** The events up to `revision` are lost; delivery goes on after it. */
  missed(source: EventSource, revision: Revision, why?: string): void;
  /** The reader has caught up with this source; from now on it gets each event as soon as the hub does. */
  joined(source: EventSource): void;
}

interface Remembered {
  readonly revision: Revision;
  readonly events: readonly ToldEvent[];
}

interface Source {
  /** The hub remembers every event after this revision. */
  from: Revision;
  /** The hub has delivered every event up to this revision. */
  last: Revision;
  readonly latest: Remembered[];
  readonly readers: Set<Joined>;
  /** The readers by what they want, so that an event goes only to readers that want it. */
  readonly wanting: Map<string, Set<Joined>>;
  following: Promise<void> | undefined;
}

/** A reader that has everything up to `since`; the hub's next events may be older than that. */
interface Joined {
  readonly reader: EventReader;
  readonly since: Revision;
}

/** How many revisions of each source the hub remembers. */
const MOST_REMEMBERED = 2_000;
const EVERYTHING = ['*'];

export class EventHub {
  readonly #box: Signalbox;
  readonly #stop: AbortSignal;
  readonly #sources: Readonly<Record<EventSource, Source>> = { records: newSource(), tasks: newSource() };
  /** How often each event occurred since the hub began to follow. */
  readonly counts = new Map<string, number>();

  constructor(box: Signalbox, stop: AbortSignal) {
    this.#box = box;
    this.#stop = stop;
  }

  get readers(): number {
    return this.#sources.records.readers.size;
  }

  /** The hub has delivered every event of this source up to this revision to its readers. */
  lastOf(source: EventSource): Revision {
    return this.#sources[source].last;
  }

  /** Starts the watches with the first reader; they then run on. */
  async start(): Promise<void> {
    await Promise.all(EVENT_SOURCES.map((name) => this.#followed(name)));
  }

  /** Starts a failed watch again with the next reader, and leaves the other running. */
  #followed(name: EventSource): Promise<void> {
    const source = this.#sources[name];
    source.following ??= this.#follow(name).catch((error: unknown) => {
      source.following = undefined;
      throw error;
    });
    return source.following;
  }

  async #follow(name: EventSource): Promise<void> {
    const source = this.#sources[name];
    const listener = {
      told: (revision: Revision, events: readonly SignalboxEvent[]) => this.#tell(name, revision, events),
      missed: (revision: Revision) => {
        source.latest.length = 0;
        source.from = revision;
        source.last = revision;
        for (const { reader } of source.readers) reader.missed(name, revision);
      },
    };
    source.from = await this.#box.eventLog.follow(name, 'now', listener, this.#stop);
    source.last = Math.max(source.last, source.from);
  }

  #tell(name: EventSource, revision: Revision, events: readonly SignalboxEvent[]): void {
    const source = this.#sources[name];
    const told = events.map((event) => new ToldEvent(event));
    source.latest.push({ revision, events: told });
    source.last = revision;
    if (source.latest.length > MOST_REMEMBERED) source.from = (source.latest.shift() as Remembered).revision;
    const meant = new Set<Joined>();
    for (const { type, resource } of events) {
      this.counts.set(type, (this.counts.get(type) ?? 0) + 1);
      for (const key of [resource, '*', type, `${type.slice(0, type.indexOf(':'))}:*`]) {
        for (const one of source.wanting.get(key) ?? []) meant.add(one);
      }
    }
    for (const { reader, since } of meant) if (revision > since) reader.told(name, revision, told);
  }

  /** The place from which a reader gets only new events. */
  async now(): Promise<Place> {
    await this.start();
    const { revision } = await this.#box.health();
    return { records: revision, tasks: revision };
  }

  /** Delivers every event after `place` that `reader` wants, until the signal aborts. */
  async read(reader: EventReader, place: Place, signal: AbortSignal): Promise<void> {
    await this.start();
    for (const source of EVENT_SOURCES) await this.#readSource(source, reader, place[source], signal);
  }

  async #readSource(name: EventSource, reader: EventReader, since: Revision, signal: AbortSignal): Promise<void> {
    const source = this.#sources[name];
    if (since > source.last) {
      const { revision } = await this.#box.health();
      // Without this the reader would get nothing until the store had reached a place that it never had.
      if (since > revision) {
        reader.missed(name, revision, 'the store is younger than this place: it was created again or restored');
        return this.#join(name, reader, revision, signal);
      }
    }
    if (since >= source.from) return this.#join(name, reader, since, signal);
    const own = new AbortController();
    const listener = {
      told: (revision: Revision, events: readonly SignalboxEvent[]) => {
        if (own.signal.aborted) return;
        const told = events.map((event) => new ToldEvent(event));
        reader.told(name, revision, told);
        // The hub remembers everything from here on.
        if (revision >= source.from) {
          own.abort();
          this.#join(name, reader, revision, signal);
        }
      },
      missed: (revision: Revision) => {
        if (own.signal.aborted) return;
        own.abort();
        reader.missed(name, revision);
        this.#join(name, reader, Math.max(revision, source.from), signal);
      },
    };
    await this.#box.eventLog.follow(name, since, listener, AbortSignal.any([own.signal, signal, this.#stop]));
  }

  /** Does not await anything, so that no event is sent twice or left out. */
  #join(name: EventSource, reader: EventReader, since: Revision, signal: AbortSignal): void {
    if (signal.aborted) return;
    const source = this.#sources[name];
    for (const { revision, events } of source.latest) if (revision > since) reader.told(name, revision, events);
    const one: Joined = { reader, since };
    const wants = reader.wants.length === 0 ? EVERYTHING : reader.wants;
    source.readers.add(one);
    for (const key of wants) source.wanting.set(key, (source.wanting.get(key) ?? new Set()).add(one));
    reader.joined(name);
    const leave = (): void => {
      source.readers.delete(one);
      for (const key of wants) {
        const others = source.wanting.get(key);
        others?.delete(one);
        if (others?.size === 0) source.wanting.delete(key);
      }
    };
    signal.addEventListener('abort', leave, { once: true });
  }
}

function newSource(): Source {
  return { from: 0, last: 0, latest: [], readers: new Set(), wanting: new Map(), following: undefined };
}
