/**
 * Reads the board, follows the events from there, and goes on where it was when the connection breaks. What is in sight is
 * read again now and then, because events do not tell everything: a waiter that gives up leaves none.
 */
import { deadlockOf } from '../model/apply.ts';
import { pauseBefore } from '../model/link.ts';
import { boardIn, items, memberIn, object, pipelineIn, resourceIn, taskIn, timeIn } from '../model/read.ts';
import { SentEvents } from '../model/sent.ts';
import type { Happening, Resource } from '../model/types.ts';
import { get, keptToken, Refused, stream } from './api.ts';
import type { Store } from './store.ts';

const READ_AGAIN_MS = 1_500;
/** What is in sight is read again after this time, even if no event was heard of it. */
const OLD_MS = 6_000;
const MOST_AT_ONCE = 40;
const HOUR_MS = 3_600_000;

export class Connection {
  readonly #store: Store;
  #over = new AbortController();
  #place = '';
  #sight: readonly string[] = [];
  #isReading = false;

  constructor(store: Store) {
    this.#store = store;
    setInterval(() => this.#tick(), 1_000);
    setInterval(() => void this.#readAgain(), READ_AGAIN_MS);
    addEventListener('online', () => this.start());
    document.addEventListener('visibilitychange', () => void (document.hidden || this.#store.draw()));
  }

  /** From the beginning: another token, or a new try. */
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
    // A stream that is silent is given up: its end may never arrive.
    if (link.kind === 'live' && this.#store.link.kind === 'reconnecting') this.start();
    if (this.#store.link.kind === 'live') this.#store.draw();
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        if (keptToken() === '') throw new Refused(401, { detail: 'a token is missing' });
        if (this.#store.state === undefined) await this.#load(signal);
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
    const answer = object(await get('/v1/board', signal));
    this.#place = String(answer['since']);
    this.#store.begin(boardIn(answer), timeIn(answer['at']) ?? Date.now());
    void this.#readDeadlocks();
  }

  /** Those of the last hour; those to come are told by events. */
  async #readDeadlocks(): Promise<void> {
    const since = Date.now() - HOUR_MS;
    const path = `/v1/history?pattern=lock:deadlock&pattern=semaphore:deadlock&since=${since}`;
    const answer = await get(path).catch(() => ({}));
    const events = items(object(answer)['events']) as readonly Happening[];
    this.#store.deadlocksRead(events.filter(({ type }) => type !== 'resync').map(deadlockOf));
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
        await this.#load(signal);
        // The board has a place of its own: the stream goes on from there.
        return;
      }
    }
  }

  async #readAgain(): Promise<void> {
    const { state, link } = this.#store;
    if (this.#isReading || state === undefined || link.kind !== 'live' || document.hidden) return;
    this.#isReading = true;
    try {
      // While the page shows the past, the live board is kept right all the same.
      const { past } = this.#store.snapshot;
      const now = past === undefined ? this.#store.snapshot.now : Date.now();
      const isDue = (name: string): boolean => {
        const known = state.resources.get(name);
        return state.unread.has(name) || known === undefined || now - known.readAt > OLD_MS;
      };
      const seen = this.#sight.filter((name) => /^(lock|semaphore)\//.test(name) && isDue(name));
      const waited = [...state.resources.values()]
        .filter((one) => one.waiting.length > 0 && now - one.readAt > OLD_MS)
        .sort((one, other) => one.readAt - other.readAt)
        .map(({ resource }) => resource);
      const unread = [...state.unread].filter((name) => /^(lock|semaphore)\//.test(name));
      await this.#readResources([...new Set([...seen, ...waited, ...unread])].slice(0, MOST_AT_ONCE));
      await this.#readOthers([...state.unread].filter((name) => !/^(lock|semaphore)\//.test(name)));
    } catch {
      // The stream notices a server that is gone.
    } finally {
      this.#isReading = false;
    }
  }

  async #readResources(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const query = names.map((name) => `resource=${encodeURIComponent(name)}`).join('&');
    const answer = object(await get(`/v1/resources?${query}`));
    const at = timeIn(answer['at']) ?? Date.now();
    const found: Resource[] = [
      ...items(answer['locks']).map((one) => resourceIn('lock', one, 0, at)),
      ...items(answer['semaphores']).map((one) => resourceIn('semaphore', one, 0, at)),
    ];
    this.#store.refreshed(found, at);
  }

  async #readOthers(names: readonly string[]): Promise<void> {
    if (names.includes('members')) {
      const { members, coordinator } = object(await get('/v1/members'));
      this.#store.membersRead(items(members).map(memberIn), typeof coordinator === 'string' ? coordinator : null);
    }
    for (const name of names.filter((one) => one !== 'members').slice(0, 10)) await this.#readOne(name);
  }

  async #readOne(name: string): Promise<void> {
    const slash = name.indexOf('/');
    const path = `/v1/${name.slice(0, slash)}s/${encodeURIComponent(name.slice(slash + 1))}`;
    try {
      const answer = await get(path);
      if (name.startsWith('task/')) this.#store.taskRead(taskIn(answer));
      else this.#store.pipelineRead(pipelineIn(answer));
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      this.#store.forgotten(name);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
