/** Server-sent events for one reader: bounded, with a heartbeat, and with ids to resume from. */
import { matches } from '../core/index.ts';
import type { Revision } from '../store/index.ts';
import type { SignalboxEvent } from '../runtime/observe/event-types.ts';
import type { EventSource } from '../runtime/observe/events.ts';
import type { EventHub, EventReader, ToldEvent } from './event-hub.ts';

const encoder = new TextEncoder();

export interface StreamSettings {
  readonly patterns: readonly string[];
  readonly resources: readonly string[];
  readonly heartbeatMs: number;
  /** How many characters the server buffers for a slow reader. */
  readonly mostWaiting: number;
}

/** The last event of a source that a reader has: the whole revision, or its events up to `index`. */
interface Point {
  readonly revision: Revision;
  readonly index?: number;
}

export type ReaderPlace = Readonly<Record<EventSource, Point>>;

/**
 * `r812,t790` means everything up to revision 812 of the records and 790 of the tasks. `r812.0,t790` means only the first event
 * of revision 812. A plain revision stands for both sources.
 */
export function placeIn(text: string): ReaderPlace | undefined {
  if (/^\d{1,15}$/.test(text)) return { records: { revision: Number(text) }, tasks: { revision: Number(text) } };
  const found = /^r(\d{1,15})(?:\.(\d{1,6}))?,t(\d{1,15})(?:\.(\d{1,6}))?$/.exec(text);
  if (found === null) return undefined;
  const point = (revision = '', index?: string): Point => ({
    revision: Number(revision),
    ...(index !== undefined && { index: Number(index) }),
  });
  return { records: point(found[1], found[2]), tasks: point(found[3], found[4]) };
}

export function placeTold({ records, tasks }: ReaderPlace): string {
  const told = ({ revision, index }: Point): string => (index === undefined ? `${revision}` : `${revision}.${index}`);
  return `r${told(records)},t${told(tasks)}`;
}

/** The revision to read after. A revision that was read in part is read again, without the events that the reader has. */
function sinceOf({ revision, index }: Point): Revision {
  return index === undefined ? revision : Math.max(0, revision - 1);
}

/** Sends a reader that is too slow `resync` in place of what it missed, because the server buffers at most `mostWaiting` for it. */
export class EventStream implements EventReader {
  readonly #settings: StreamSettings;
  readonly wants: readonly string[];
  #place: Record<EventSource, Point> = { records: { revision: 0 }, tasks: { revision: 0 } };
  #hub: EventHub | undefined;
  readonly #joined = new Set<EventSource>();
  readonly #over = new AbortController();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #waiting: string[] = [];
  #waitingLength = 0;
  #hasMissed = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(settings: StreamSettings) {
    this.#settings = settings;
    this.wants = settings.resources.length > 0 ? settings.resources : settings.patterns;
  }

  /** Follows the hub until the signal aborts. */
  async open(hub: EventHub, since: ReaderPlace | undefined, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const over = AbortSignal.any([signal, this.#over.signal]);
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#flush(),
        cancel: () => this.#over.abort(),
      },
      { highWaterMark: 16 },
    );
    over.addEventListener('abort', () => this.#close(), { once: true });
    try {
      await this.#begin(hub, since, over);
    } catch (error) {
      this.#over.abort();
      throw error;
    }
    return body;
  }

  async #begin(hub: EventHub, since: ReaderPlace | undefined, over: AbortSignal): Promise<void> {
    this.#heartbeat = setInterval(() => this.#send(': alive\n\n'), this.#settings.heartbeatMs);
    this.#send(': signalbox events\nretry: 1000\n\n');
    if (since === undefined) {
      const { records, tasks } = await hub.now();
      this.#place = { records: { revision: records }, tasks: { revision: tasks } };
    } else this.#place = { ...since };
    // A reader that is cut off before its first event needs an id to resume from.
    this.#send(`id: ${placeTold(this.#place)}\nevent: open\ndata: {}\n\n`);
    const { records, tasks } = this.#place;
    this.#hub = hub;
    await hub.read(this, { records: sinceOf(records), tasks: sinceOf(tasks) }, over);
  }

  told(source: EventSource, revision: Revision, events: readonly ToldEvent[]): void {
    const last = this.#place[source];
    const known = revision === last.revision ? (last.index ?? -1) : -1;
    for (const [index, told] of events.entries()) {
      if (index <= known) continue;
      this.#place[source] = index === events.length - 1 ? { revision } : { revision, index };
      if (this.#isWanted(told.event)) this.#send(`id: ${placeTold(this.#placeBeside(source))}\n${told.text}`);
    }
  }

  joined(source: EventSource): void {
    this.#joined.add(source);
  }

  /** The hub sends this reader only what it wants, so its place in the other source is the hub's place. */
  #placeBeside(source: EventSource): ReaderPlace {
    const other = source === 'records' ? 'tasks' : 'records';
    const last = this.#hub?.lastOf(other) ?? 0;
    if (this.#joined.has(other) && last > this.#place[other].revision) this.#place[other] = { revision: last };
    return this.#place;
  }

  missed(source: EventSource, revision: Revision, why = 'the store has forgotten what happened since'): void {
    this.#place[source] = { revision };
    this.#send(this.#resync(why));
  }

  #isWanted({ type, resource }: SignalboxEvent): boolean {
    const { patterns, resources } = this.#settings;
    if (patterns.length > 0 && !patterns.some((pattern) => matches(pattern, type))) return false;
    return resources.length === 0 || resources.includes(resource);
  }

  #resync(why: string): string {
    const data = JSON.stringify({ type: 'resync', resource: '*', why });
    return `id: ${placeTold(this.#place)}\nevent: resync\ndata: ${data}\n\n`;
  }

  #send(text: string): void {
    if (this.#over.signal.aborted) return;
    const isAlive = text.startsWith(':');
    if (this.#waitingLength + text.length > this.#settings.mostWaiting) {
      if (isAlive) return;
      this.#waiting = [];
      this.#waitingLength = 0;
      this.#hasMissed = true;
    }
    if (this.#hasMissed) return;
    this.#waiting.push(text);
    this.#waitingLength += text.length;
    this.#flush();
  }

  #flush(): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    while ((controller.desiredSize ?? 0) > 0) {
      if (this.#hasMissed && this.#waiting.length === 0) {
        this.#hasMissed = false;
        controller.enqueue(encoder.encode(this.#resync('this reader was too slow')));
        continue;
      }
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingLength -= next.length;
      controller.enqueue(encoder.encode(next));
    }
  }

  #close(): void {
    clearInterval(this.#heartbeat);
    this.#over.abort();
    try {
      this.#controller?.close();
    } catch {
      // The client has disconnected.
    }
    this.#controller = undefined;
  }
}
