import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { HOME } from '../model/route.ts';
import { boardIn } from '../model/read.ts';
import { timeText } from '../model/travel.ts';
import { Store } from './store.ts';

const NOW = 1_800_000_000_000;

/** The pages of the record that a test decides, each given once. */
let pages: object[];
let asked: string[];
let store: Store;
beforeEach(() => {
  // The clock of the page alone: answers come when they come.
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
  pages = [];
  asked = [];
  vi.stubGlobal('fetch', (path: string): Promise<Response> => {
    asked.push(path);
    const answer = path === '/v1/witness' ? { isOn: true } : (pages.shift() ?? { entries: [], next: null });
    return Promise.resolve(Response.json(answer));
  });
  vi.stubGlobal('document', { hidden: false });
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => setTimeout(draw, 0));
  vi.stubGlobal('sessionStorage', { getItem: () => 'sbx_token' });
  store = new Store();
  store.begin(boardIn({ since: 10, revision: 10, at: new Date(NOW).toISOString() }), NOW);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function lookAt(at: number): void {
  store.go({ ...HOME, filters: { at: timeText(at) } });
}

async function read(): Promise<void> {
  await expect.poll(() => store.snapshot.past?.is, { timeout: 60_000 }).toBe('ready');
}

function page(seq: number, more: object): object {
  const entries = [{ resource: 'lock/main', seq, time: NOW - 60_000 + seq, commands: [] }];
  return { entries, next: null, isTrimmed: false, ...more };
}

describe('a look at a time that is still to come', () => {
  it('shows the live page and reads nothing until the time is over', async () => {
    lookAt(NOW + 60_000);
    expect(store.snapshot.past).toBeUndefined();
    expect(asked).toEqual([]);
    vi.setSystemTime(NOW + 61_000);
    store.draw();
    await read();
    for (let seconds = 62; seconds < 65; seconds++) {
      vi.setSystemTime(NOW + seconds * 1_000);
      store.draw();
    }
    expect(store.snapshot.past).toMatchObject({ is: 'ready', at: NOW + 60_000 });
    expect(asked).toEqual(['/v1/witness', '/v1/witness/entries?limit=1000']);
  });
});

describe('a record of which entries are trimmed while it is read', () => {
  it('is read once more, so that nothing is missing in the middle', async () => {
    pages = [
      page(1, { next: '1:lock/main' }),
      page(7, { isTrimmed: true }),
      page(6, { next: '6:lock/main' }),
      page(7, {}),
    ];
    lookAt(NOW - 1_000);
    await read();
    expect(store.snapshot.past).toMatchObject({ is: 'ready', read: 2, hasGap: false });
    expect(asked).toHaveLength(5);
  });

  it('has a gap if that happens again and is not read for ever', async () => {
    const trimmed = [page(1, { next: '1:lock/main' }), page(7, { isTrimmed: true })];
    pages = [...trimmed, ...trimmed];
    lookAt(NOW - 1_000);
    await read();
    expect(store.snapshot.past).toMatchObject({ is: 'ready', hasGap: true });
    expect(asked).toHaveLength(5);
  });
});
