/**
 * Looks back: reads the record of the witness once, in pages, and shows the board at the time in the address. One
 * reading serves every earlier time, so that moving through the past needs no further request.
 */
import { items, object } from '../model/read.ts';
import type { Window } from '../model/rates.ts';
import {
  boardAt,
  countsIn,
  entriesIn,
  firstAfter,
  type RecordedEntry,
  timeIn,
  travelled,
  type Travelled,
} from '../model/travel.ts';
import type { Happening, State } from '../model/types.ts';
import { get } from './api.ts';
import type { Snapshot, Store } from './store.ts';

const PAGE = 1_000;
/** Further pages are not read: the browser has to keep them all. */
const MOST_PAGES = 100;

/** How far the record was read. */
interface Progress {
  /** `off`: the store keeps no record. `frozen`: the page itself was kept as it was, without the record. */
  readonly is: 'reading' | 'ready' | 'off' | 'failed' | 'frozen';
  readonly why: string;
  readonly read: number;
  /** The record has more than was read. */
  readonly isCut: boolean;
  /** Entries were trimmed while the record was read. */
  readonly hasGap: boolean;
}

/** A look at the past, and what it is based on. */
export interface Past extends Progress {
  readonly at: number;
  readonly begins: number | undefined;
  readonly trimmed: number;
}

const UNREAD: Progress = { is: 'reading', why: '', read: 0, isCut: false, hasGap: false };

/** The past as the record tells it; undefined for the live page, also while that page is frozen. */
export function rebuilt(past: Past | undefined): Past | undefined {
  return past?.is === 'frozen' ? undefined : past;
}

export function frozenAt(at: number): Past {
  return { ...UNREAD, at, is: 'frozen', begins: undefined, trimmed: 0 };
}

interface Reading extends Progress {
  /** Everything up to this time was read. */
  readonly until: number;
  readonly record: Travelled;
}

const NOTHING: Reading = { ...UNREAD, until: 0, record: travelled([]) };

export class Travel {
  readonly #store: Store;
  #reading: Reading = NOTHING;
  #over: AbortController | undefined;
  #board: { readonly of: Reading; readonly at: number; readonly state: State } | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The snapshot of the time in the address; the live one if there is none. */
  seen(live: Snapshot): Snapshot {
    const asked = timeIn(live.route.filters['at']);
    if (asked === undefined || live.state === undefined) {
      this.#leave();
      return live;
    }
    // The record has nothing yet about a time that is still to come, so reading it would be in vain.
    if (asked >= live.now) return live;
    const at = asked;
    if (this.#over === undefined || (this.#reading.is === 'ready' && at > this.#reading.until)) this.#read(live.now);
    const { is, why, read, isCut, hasGap, record } = this.#reading;
    if (this.#board?.of !== this.#reading || this.#board.at !== at) {
      this.#board = { of: this.#reading, at, state: boardAt(record, at, live.state) };
    }
    const { begins, trimmed } = record;
    const past: Past = { at, is, why, read, isCut, hasGap, begins, trimmed: trimmed.length };
    return { ...live, state: this.#board.state, now: at, past };
  }

  /** The events of one resource up to a time. */
  eventsOf(resource: string, at: number): readonly Happening[] {
    const { events } = this.#reading.record;
    return events.slice(0, firstAfter(events, at)).filter((event) => event.resource === resource);
  }

  /** How many events the record has in each part of a stretch of time; undefined until it is read. */
  eventsIn(window: Window): readonly number[] | undefined {
    const { is, record } = this.#reading;
    return is === 'ready' ? countsIn(record.events, window) : undefined;
  }

  /** The time of the next entry, or of the one before. */
  stepFrom(at: number, by: 1 | -1): number | undefined {
    const { events } = this.#reading.record;
    const place = firstAfter(events, at);
    if (by > 0) return events[place]?.at;
    return events.slice(0, place).findLast((event) => event.at < at)?.at;
  }

  #leave(): void {
    this.#over?.abort();
    this.#over = undefined;
    this.#board = undefined;
    this.#reading = NOTHING;
  }

  #read(until: number): void {
    this.#over?.abort();
    const over = new AbortController();
    this.#over = over;
    // The page keeps what it shows meanwhile.
    this.#reading = { ...this.#reading, until };
    this.#readAll(until, over.signal).catch((error: unknown) => {
      if (over.signal.aborted) return;
      this.#is({ is: 'failed', why: error instanceof Error ? error.message : String(error) });
    });
  }

  #is(change: Partial<Reading>): void {
    this.#reading = { ...this.#reading, ...change };
    this.#store.draw();
  }

  async #readAll(until: number, signal: AbortSignal): Promise<void> {
    const { isOn } = object(await get('/v1/witness', signal));
    if (isOn !== true) return this.#is({ is: 'off' });
    const first = await this.#readPages(signal);
    // Entries that were trimmed meanwhile are missing in the middle. If that happens twice in a row, the page says so.
    const { entries, isCut, hasGap } = first.hasGap ? await this.#readPages(signal) : first;
    this.#is({ is: 'ready', why: '', read: entries.length, isCut, hasGap, until, record: travelled(entries) });
  }

  async #readPages(signal: AbortSignal): Promise<{ entries: RecordedEntry[]; isCut: boolean; hasGap: boolean }> {
    const entries: RecordedEntry[] = [];
    let after: string | undefined;
    let hasGap = false;
    for (let page = 0; page < MOST_PAGES; page++) {
      const from = after === undefined ? '' : `&after=${encodeURIComponent(after)}`;
      const answer = object(await get(`/v1/witness/entries?limit=${PAGE}${from}`, signal));
      entries.push(...entriesIn(answer));
      const { next, isTrimmed } = answer;
      hasGap ||= isTrimmed === true;
      if (typeof next !== 'string' || items(answer['entries']).length === 0) return { entries, isCut: false, hasGap };
      after = next;
      this.#is({ read: entries.length });
    }
    return { entries, isCut: true, hasGap };
  }
}
