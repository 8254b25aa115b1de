/**
 * Reads the board and follows the events from there; after a broken connection, it goes on where it was. Resources in
 * sight are read again now and then, because events do not tell everything: a waiter that gives up causes none.
 */
import { boardRead, countedPast, deniedUpTo, isHeld, refreshed, remembered } from '../model/apply.ts';
import { forgotten, membersRead, pipelineRead, taskRead, workRead } from '../model/apply-tasks.ts';
import { revisionOf } from '../model/as-of.ts';
import { pauseBefore } from '../model/link.ts';
import { boardIn, items, memberIn, object, pipelineIn, resourcesIn, taskIn, textIn, timeIn } from '../model/read.ts';
import { routeOf } from '../model/needs.ts';
import { SentEvents } from '../model/sent.ts';
import { HOUR_MS } from '../model/time.ts';
import type { Happening } from '../model/types.ts';
import { get, getText, keptToken, type PastEvents, pastEvents, Refused, stream } from './api.ts';
import { type ReadBoard, readBoard } from './board.ts';
import type { Store } from './store.ts';

const READ_AGAIN_MS = 1_500;
/** A hidden page reads more slowly, but still reads: changes that no event tells would pile up. */
const HIDDEN_MS = 30_000;
/**
 * With more unread resources than this, the page reads the whole board, at most once per `MUCH_UNREAD_MS`: that is
 * faster than reading them one by one. Otherwise it reads the whole board every `WHOLE_MS`, because no event tells what
 * the store forgets.
 */
const MOST_UNREAD = 2_000;
const MUCH_UNREAD_MS = 30_000;
const WHOLE_MS = 600_000;
/** Resources in sight are read again after this time, even if no event named them. */
const OLD_MS = 6_000;
const MOST_AT_ONCE = 40;
/** In characters. The server takes requests with up to 16 KiB of head. */
const LONGEST_QUERY = 12_000;
/** The most events from before the page was opened that its charts count. */
const MOST_COUNTED = 3_000;
const NOTHING: PastEvents = { events: [], isWhole: false };
/** Tasks, pipelines and members are read as a whole: this often, or sooner if many of them have changed. */
const WORK_MS = 10_000;
const WORK_SOON_MS = 2_000;
/** How often processes write what they counted. */
const DENIALS_MS = 30_000;
const MANY = 10;
/** A large store is read for at most a tenth of the time. */
const REST = 10;

export class Connection {
  readonly #store: Store;
  #over = new AbortController();
  #place = '';
  #sight: readonly string[] = [];
  #isReading = false;
  /** Events were missed, and the board has not been read since: the page may show something wrong. */
  #isBehind = false;
  #work = { at: 0, took: 0 };
  #loaded = { at: 0, took: 0 };
  #denials = { at: 0, took: 0 };
  #readAt = 0;

  constructor(store: Store) {
    this.#store = store;
    setInterval(() => this.#tick(), 1_000);
    setInterval(() => void this.#readAgain(), READ_AGAIN_MS);
    addEventListener('online', () => this.start());
    document.addEventListener('visibilitychange', () => void (document.hidden || this.#store.draw()));
  }

  /** Starts from the beginning: with another token, or for a new try. */
  start(): void {
    this.#over.abort();
    this.#over = new AbortController();
    void this.#run(this.#over.signal);
  }

  /** The resources in sight, which are kept right. */
  see(resources: readonly string[]): void {
    this.#sight = resources;
  }

  #tick(): void {
    const { link } = this.#store;
    this.#store.news({ kind: 'tick', at: Date.now() });
    // Gives up a silent stream: its end may never arrive.
    if (link.kind === 'live' && this.#store.link.kind === 'reconnecting') this.start();
    if (this.#store.link.kind === 'live') this.#store.drawSoon();
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        if (keptToken() === '') throw new Refused(401, { detail: 'a token is missing' });
        if (this.#store.state === undefined || this.#isBehind) await this.#load(signal);
        await this.#follow(signal, () => (tries = 0));
        this.#broken(signal, 'the server ended the stream');
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
          this.#store.news({ kind: 'refused', why: error.message });
          return;
        }
        this.#broken(signal, error instanceof Error ? error.message : 'the server does not answer');
      }
      await pause(pauseBefore(tries), signal);
    }
  }

  #broken(signal: AbortSignal, why: string): void {
    if (!signal.aborted) this.#store.news({ kind: 'broken', at: Date.now(), why });
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { board, since, at } = await this.#readBoard(signal);
    this.#place = String(since);
    this.#isBehind = false;
    const heard = this.#store.state?.revision ?? 0;
    this.#store.begin(board, at);
    void this.#readPast(signal);
    void this.#countPast(signal, { heard, until: since, at });
  }

  async #readBoard(signal: AbortSignal): Promise<ReadBoard> {
    const begun = Date.now();
    try {
      const read = await readBoard(signal);
      this.#work = { at: Date.now(), took: 0 };
      return read;
    } finally {
      this.#loaded = { at: Date.now(), took: Date.now() - begun };
    }
  }

  /** Reads what only events tell about the last hour; the stream brings the events to come. */
  async #readPast(signal: AbortSignal): Promise<void> {
    const since = Date.now() - HOUR_MS;
    const patterns = 'pattern=lock:deadlock&pattern=semaphore:deadlock';
    const { events } = await pastEvents(`${patterns}&since=${since}`, signal).catch(() => NOTHING);
    this.#store.learned((state) => remembered(state, events));
  }

  /** For the charts: the events after the last that was heard, up to where the stream begins. */
  async #countPast(signal: AbortSignal, { heard, until, at }: Record<'heard' | 'until' | 'at', number>): Promise<void> {
    const isFirst = heard === 0;
    const since = at - HOUR_MS;
    const reading = pastEvents(`since=${since}`, signal, isFirst ? MOST_COUNTED : 1);
    const { events, isWhole } = await reading.catch(() => NOTHING);
    const missed = events.filter(({ id }) => revisionOf(id) > heard && revisionOf(id) <= until);
    const [oldest] = events;
    // Nobody knows what happened between the last event that was heard and the oldest that was read.
    const isGapless = isWhole || (oldest !== undefined && revisionOf(oldest.id) <= heard);
    const from = isGapless ? (isFirst ? since : undefined) : Math.min(oldest?.at ?? at, at);
    this.#store.learned((state) => countedPast(state, missed, { from, now: at }));
  }

  async #follow(signal: AbortSignal, isLive: () => void): Promise<void> {
    const sent = new SentEvents();
    for await (const piece of stream(`/v1/events?since=${encodeURIComponent(this.#place)}`, signal)) {
      if (signal.aborted) return;
      isLive();
      this.#store.news({ kind: 'heard', at: Date.now() });
      const events: Happening[] = [];
      let isBehind = false;
      for (const { id, event, data } of sent.push(piece)) {
        if (id !== '') this.#place = id;
        if (event === 'resync') isBehind = true;
        else if (event !== 'open') events.push(JSON.parse(data) as Happening);
      }
      if (events.length > 0) this.#store.tell(events);
      if (isBehind) {
        // The board has a position of its own: another stream goes on from there.
        this.#isBehind = true;
        throw new Error('events were missed');
      }
    }
  }

  async #readAgain(): Promise<void> {
    const { state, link } = this.#store;
    if (this.#isReading || state === undefined || link.kind !== 'live') return;
    if (document.hidden && Date.now() - this.#readAt < HIDDEN_MS) return;
    this.#readAt = Date.now();
    const unread = [...state.unread].filter(isHeld);
    this.#isReading = true;
    try {
      if (isRested(this.#loaded, unread.length > MOST_UNREAD ? MUCH_UNREAD_MS : WHOLE_MS))
        return await tried(this.#readAll());
      // While the page shows the past, the live board is kept up to date all the same.
      const { past } = this.#store.snapshot;
      const now = past === undefined ? this.#store.snapshot.now : Date.now();
      const isDue = (name: string): boolean => {
        const known = state.resources.get(name);
        return state.unread.has(name) || known === undefined || now - known.readAt > OLD_MS;
      };
      const seen = this.#sight.filter((name) => isHeld(name) && isDue(name));
      const waited = [...state.resources.values()]
        .filter((one) => one.waiting.length > 0 && now - one.readAt > OLD_MS)
        .sort((one, other) => one.readAt - other.readAt)
        .map(({ resource }) => resource);
      await tried(this.#readResources([...new Set([...seen, ...waited, ...unread])].slice(0, MOST_AT_ONCE)));
      const others = [...state.unread].filter((name) => !isHeld(name));
      const isMany = others.length > MANY || others.includes('witness');
      if (isRested(this.#work, isMany ? WORK_SOON_MS : WORK_MS)) await tried(this.#readWork());
      else if (!isMany) await tried(this.#readOthers(others));
      if (isRested(this.#denials, DENIALS_MS)) await tried(this.#readDenials());
    } finally {
      this.#isReading = false;
    }
  }

  async #readResources(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const all = names.map((name) => `resource=${encodeURIComponent(name)}`);
    let length = 0;
    // Each name may have 200 letters, and each letter may take twelve characters here.
    const query = all.filter((one) => (length += one.length + 1) <= LONGEST_QUERY || one === all[0]).join('&');
    const answer = object(await get(`/v1/resources?${query}`));
    const at = timeIn(answer['at']) ?? Date.now();
    const unreadable = items(answer['malformed']).map((one) => textIn(object(one)['resource']));
    this.#store.learned((state) => refreshed(state, resourcesIn(answer, 0, at), at, unreadable));
  }

  /** Reads the whole board; the stream goes on meanwhile. */
  async #readAll(): Promise<void> {
    const { signal } = this.#over;
    const { board } = await this.#readBoard(signal);
    if (!signal.aborted) this.#store.learned((state) => boardRead(state, board));
  }

  async #readWork(): Promise<void> {
    const begun = Date.now();
    try {
      const work = boardIn(await get('/v1/board?holds=false'));
      this.#store.learned((state) => workRead(state, work));
    } finally {
      this.#work = { at: Date.now(), took: Date.now() - begun };
    }
  }

  /** A request that does not wait leaves no event when it is denied; the processes count such requests in the store. */
  async #readDenials(): Promise<void> {
    const begun = Date.now();
    try {
      const [, total] = /^signalbox_denials_total (\d+)$/m.exec(await getText('/metrics')) ?? [];
      const at = this.#store.serverTime;
      if (total !== undefined) this.#store.learned((state) => deniedUpTo(state, Number(total), at));
    } finally {
      this.#denials = { at: Date.now(), took: Date.now() - begun };
    }
  }

  async #readOthers(names: readonly string[]): Promise<void> {
    if (names.includes('members')) {
      const { revision, members, coordinator } = object(await get('/v1/members'));
      const first = typeof coordinator === 'string' ? coordinator : null;
      this.#store.learned((state) => membersRead(state, Number(revision), items(members).map(memberIn), first));
    }
    for (const name of names.filter((one) => one !== 'members')) await this.#readOne(name);
  }

  async #readOne(name: string): Promise<void> {
    try {
      const answer = await get(`/v1${routeOf(name)}`);
      const now = this.#store.snapshot.now;
      this.#store.learned((state) =>
        name.startsWith('task/')
          ? taskRead(state, taskIn(answer, 0, now))
          : pipelineRead(state, pipelineIn(answer, 0, now)),
      );
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      const revision = Number(error.body['revision'] ?? 0);
      this.#store.learned((state) => forgotten(state, name, revision));
    }
  }
}

/** If one thing cannot be read now, the page still reads the rest. The stream notices a server that is gone. */
async function tried(read: Promise<void>): Promise<void> {
  await read.catch(() => undefined);
}

function isRested({ at, took }: { readonly at: number; readonly took: number }, shortest: number): boolean {
  return Date.now() - at >= Math.max(shortest, REST * took);
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
