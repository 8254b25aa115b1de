import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Connection } from './connection.ts';
import { total } from '../model/rates.ts';
import type { Happening } from '../model/types.ts';
import { Store } from './store.ts';

const AT = new Date(1_800_000_000_000).toISOString();

function granted(revision: number): Happening {
  return {
    ...{ type: 'lock:acquired', resource: 'lock/main', holder: 'a', token: revision },
    at: 1,
    id: `${revision}.0`,
  };
}

const WHOLE = '/v1/board/lines';

/** A server whose answers a test decides. */
class Server {
  readonly asked: string[] = [];
  board: object | number = { since: 10, revision: 10, at: AT };
  /** The lines after the first. */
  more: object[] = [];
  breaksOff = false;
  past: object[] = [granted(8), granted(11)];
  isPastWhole = true;
  denials: number | 'away' = 5;
  resources: object | number = { at: AT };
  work: object = { since: 10, revision: 10, at: AT };
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;

  readonly fetch = (path: string): Promise<Response> => {
    this.asked.push(path);
    if (path.startsWith('/v1/events')) {
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#stream = controller) });
      return Promise.resolve(new Response(body));
    }
    if (path === '/metrics' && this.denials === 'away') return Promise.reject(new Error('away'));
    if (path === '/metrics') return Promise.resolve(new Response(`signalbox_denials_total ${this.denials}\n`));
    if (path.startsWith('/v1/history?since'))
      return Promise.resolve(Response.json({ events: this.past, isWhole: this.isPastWhole }));
    if (path.startsWith('/v1/resources') && typeof this.resources === 'number')
      return Promise.resolve(new Response('{"detail":"away"}', { status: this.resources }));
    if (path.startsWith('/v1/resources')) return Promise.resolve(Response.json(this.resources));
    if (path === WHOLE) return Promise.resolve(this.#whole());
    return Promise.resolve(Response.json(path.startsWith('/v1/board') ? this.work : { events: [] }));
  };

  #whole(): Response {
    if (typeof this.board === 'number') return new Response('{"detail":"away"}', { status: this.board });
    const lines = [this.board, ...this.more, ...(this.breaksOff ? [] : [{ isWhole: true }])];
    return new Response(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }

  send(text: string): void {
    this.#stream?.enqueue(new TextEncoder().encode(`${text}\n\n`));
  }
}

let server: Server;
let store: Store;
beforeEach(async () => {
  vi.useFakeTimers();
  server = new Server();
  vi.stubGlobal('fetch', server.fetch);
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('document', { hidden: false, addEventListener: () => undefined });
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => setTimeout(draw, 0));
  vi.stubGlobal('sessionStorage', { getItem: () => 'sbx_token' });
  store = new Store();
  new Connection(store).start();
  await later(10);
  server.send(': alive');
  await later(10);
  expect(store.link.kind).toBe('live');
});
afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Lets time pass; the server is heard of each second. */
async function stayAlive(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await later(1_000);
    server.send(': alive');
  }
}

async function later(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

describe('a stream that says that events were missed', () => {
  it('makes the page say that it is reconnecting until the board was read again, however often that fails', async () => {
    server.board = 503;
    server.send('id: r20,t20\nevent: resync\ndata: {}');
    await later(100);
    expect(store.link.kind).toBe('reconnecting');
    await later(20_000);
    expect(store.link.kind).toBe('reconnecting');
    expect(server.asked.filter((path) => path === WHOLE).length).toBeGreaterThan(3);
    server.board = { since: 30, revision: 30, at: AT, locks: [{ name: 'main', token: 1, holds: [] }] };
    await later(6_000);
    server.send(': alive');
    await later(10);
    expect(store.link.kind).toBe('live');
    expect(store.state?.resources.has('lock/main')).toBe(true);
    expect(server.asked.findLast((path) => path.startsWith('/v1/events'))).toBe('/v1/events?since=30');
  });
});

describe('the charts', () => {
  const counted = (): { grants: number; refusals: number } => total(store.state?.slices ?? []);

  it('count each event once: history up to where the stream begins, then the stream, and what a resync left out', async () => {
    await later(1_000);
    expect(counted().grants).toBe(1);
    server.send(`id: r11,t11\ndata: ${JSON.stringify(granted(11))}`);
    await later(1_000);
    expect(counted().grants).toBe(2);
    server.past = [granted(8), granted(11), granted(13), granted(15)];
    server.board = { since: 14, revision: 14, at: AT };
    server.send('id: r14,t14\nevent: resync\ndata: {}');
    await later(5_000);
    expect(counted().grants).toBe(3);
  });

  it('say that nothing is known before the oldest event that was read after a resync, if more were missed', async () => {
    await later(1_000);
    const known = store.state?.countedFrom;
    const resync = async (revision: number, at: number): Promise<number | undefined> => {
      server.past = [{ ...granted(revision - 1), at }, granted(revision)];
      server.board = { since: revision, revision, at: AT };
      server.send(`id: r${revision},t${revision}\nevent: resync\ndata: {}`);
      await later(5_000);
      return store.state?.countedFrom;
    };
    server.isPastWhole = false;
    // The page of history goes back to what was heard.
    expect(await resync(11, 1_799_999_990_000)).toBe(known);
    expect(await resync(900, 1_799_999_995_000)).toBe(1_799_999_995_000);
  });

  it('count an event of a clock that is far ahead as one of now, and keep what was counted before', async () => {
    const at = 1_800_000_000_000;
    server.send(`id: r11,t11\ndata: ${JSON.stringify({ ...granted(11), at })}`);
    await later(1_000);
    server.send(`id: r12,t12\ndata: ${JSON.stringify({ ...granted(12), at: at + 7_200_000 })}`);
    await later(1_000);
    expect(store.state?.slices.map((slice) => [slice.at, slice.grants]).at(-1)).toEqual([at, 2]);
  });

  it('ask for the number of denials as seldom when the server does not answer', async () => {
    const reads = (): number => server.asked.filter((path) => path === '/metrics').length;
    server.denials = 'away';
    const before = reads();
    await stayAlive(100);
    expect(reads() - before).toBeLessThanOrEqual(4);
  });

  it('count what was denied without an event, from when the page was opened', async () => {
    await stayAlive(5);
    server.denials = 7;
    await stayAlive(40);
    expect(counted().refusals).toBe(2);
  });
});

describe('a page that stays open', () => {
  it('reads again what no event tells', async () => {
    server.work = {
      ...{ since: 12, revision: 12, at: AT },
      pipelines: [{ pipeline: 'p', state: 'running', isDriven: false, phases: [], startedAt: AT }],
    };
    await stayAlive(12);
    expect(store.state?.pipelines.get('p')).toMatchObject({ isDriven: false });
  });

  it('reads on although one resource cannot be read, or all of them', async () => {
    server.work = { ...{ since: 12, revision: 12, at: AT }, pipelines: [] };
    server.resources = 500;
    const reads = (): number => server.asked.filter((path) => path === '/v1/board?holds=false').length;
    server.send(`id: 20.0\nevent: lock:acquired\ndata: ${JSON.stringify(granted(20))}`);
    await stayAlive(12);
    const before = reads();
    expect(before).toBeGreaterThan(0);
    server.resources = { at: AT, malformed: [{ resource: 'lock/main', why: 'it is damaged' }] };
    await stayAlive(12);
    expect(reads()).toBeGreaterThan(before);
    expect(store.state?.unread.has('lock/main')).toBe(false);
  });

  it('reads on when nobody sees it, but more slowly', async () => {
    const reads = (): number => server.asked.filter((path) => path === '/v1/board?holds=false').length;
    vi.stubGlobal('document', { hidden: true });
    await stayAlive(100);
    expect(reads()).toBeGreaterThanOrEqual(2);
    expect(reads()).toBeLessThanOrEqual(4);
  });

  const boards = (): number => server.asked.filter((path) => path === WHOLE).length;
  const streams = (): number => server.asked.filter((path) => path.startsWith('/v1/events')).length;
  const toMany = (): void => {
    const events = Array.from({ length: 2_500 }, (_, place) => {
      const event = { type: 'lock:acquired', resource: `lock/l${place}`, holder: 'a', token: 1, at: 1 };
      return `id: r${20 + place},t${20 + place}\ndata: ${JSON.stringify({ ...event, id: `${20 + place}.0` })}`;
    });
    server.send(events.join('\n\n'));
  };

  it('reads the whole board when more has changed than it can read one by one, and follows the same stream', async () => {
    await stayAlive(40);
    expect(boards()).toBe(1);
    // The store has forgotten all but one, and one was taken after the board was read.
    server.board = { since: 2_518, revision: 2_518, at: AT };
    server.more = [{ locks: [{ name: 'l7', token: 1, holds: [{ holder: 'b', token: 2 }] }] }];
    toMany();
    for (let seconds = 0; seconds < 25 && boards() < 2; seconds++) await stayAlive(1);
    await stayAlive(1);
    const names = [...(store.state?.resources.keys() ?? [])];
    expect([boards(), streams(), names.sort()]).toEqual([2, 1, ['lock/l2499', 'lock/l7']]);
    expect(store.state?.resources.get('lock/l7')?.holds.map(({ holder }) => holder)).toEqual(['b']);
    expect([...(store.state?.unread ?? [])]).toEqual(['lock/l2499']);
  });

  it('does not take a part of the board for the whole', async () => {
    await stayAlive(40);
    server.breaksOff = true;
    toMany();
    for (let seconds = 0; seconds < 25 && boards() < 2; seconds++) await stayAlive(1);
    await stayAlive(1);
    expect([boards(), store.state?.resources.size]).toEqual([2, 2_500]);
  });

  it('reads the whole board now and then, because no event tells what the store forgets', async () => {
    server.send(`id: r11,t11\ndata: ${JSON.stringify(granted(11))}`);
    await stayAlive(2);
    expect(store.state?.resources.has('lock/main')).toBe(true);
    server.board = { since: 12, revision: 12, at: AT };
    await stayAlive(620);
    expect([boards(), streams(), store.state?.resources.size]).toEqual([2, 1, 0]);
  });
});
