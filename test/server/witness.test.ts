// The record of every change, for those who reach the server and not the store.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { connect, type RemoteSignalbox } from 'signalbox/client';
import type { WitnessEntry } from '../../src/core/index.ts';
import { ENTRIES } from '../../src/runtime/layout.ts';
import { always, openMemory, prefixed, readRange, type Store, Value } from '../../src/store/index.ts';
import { faultyStore } from '../../src/testing/faulty-store.ts';
import { ScriptedFaults } from '../../src/testing/scripted-faults.ts';
import { LOCAL, readEvents, TestServer } from '../support/server.ts';

let server: TestServer;
let box: RemoteSignalbox;

const through = (token: string): RemoteSignalbox =>
  connect('http://127.0.0.1:7300', {
    token,
    fetch: (input, init) => server.server.fetch(new Request(String(input), init)),
  });

beforeEach(async () => {
  server = new TestServer(await open('memory:', { witness: true }));
  box = through(LOCAL);
});
afterEach(async () => {
  await box.close();
  await server.close();
});

/** The answer of a server whose connection breaks after so many messages. */
async function firstMessages(response: Response, count: number): Promise<Response> {
  const sent = await readEvents(response, (found) => found.length === count);
  const text = sent.map(({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  return new Response(text.join(''), { headers: { 'Content-Type': 'text/event-stream' } });
}

describe('the witness over HTTP', () => {
  it('says whether the record is intact, and what maintenance found damaged, also to those who come later', async () => {
    const store = openMemory();
    const damaged = new TestServer(await open(store, { witness: true }));
    try {
      for (const name of ['bad', 'good']) await (await damaged.box.lock(name).acquire({ holder: 'a' })).release();
      const { body: page } = await damaged.get('/v1/witness/entries?resource=lock/bad');
      expect((await damaged.get('/v1/witness/verify')).body).toMatchObject({ isIntact: true });
      expect((await damaged.get('/v1/witness/verify')).body.revision).toBeGreaterThanOrEqual(page.revision);
      expect((await damaged.get('/v1/board')).body.troubles).toEqual([]);
      const { pairs } = await readRange(store, { ...prefixed('witness/lock/bad/'), limit: 1 });
      await store.transaction(always([{ do: 'put', key: pairs[0]?.key ?? '', value: Value.text('no entry') }]));
      await damaged.box.witness.configure({ mostEntries: 2, checkpointMs: 0 });
      await damaged.box.maintain();
      expect((await damaged.get('/v1/witness/verify')).body).toMatchObject({ isIntact: false });
      for (const path of ['/v1/board', '/v1/board?holds=false']) {
        expect((await damaged.get(path)).body.troubles).toMatchObject([{ kind: 'damaged', subject: 'lock/bad' }]);
      }
    } finally {
      await damaged.close();
    }
  });

  it('has every entry once, in pages of any size', async () => {
    for (let n = 0; n < 7; n++) await (await server.box.lock(`n-${n % 3}`).acquire({ holder: `h-${n}` })).release();
    const all = [];
    for await (const { resource, seq } of server.box.witness.entries()) all.push(`${resource}#${seq}`);
    expect(all.length).toBeGreaterThan(10);
    const paged: string[] = [];
    for (let next: string | null = ''; next !== null;) {
      const after = next === '' ? '' : `&after=${encodeURIComponent(next)}`;
      const { status, body } = await server.get(`/v1/witness/entries?limit=4${after}`);
      expect(status).toBe(200);
      for (const { resource, seq } of body.entries as { resource: string; seq: number }[])
        paged.push(`${resource}#${seq}`);
      next = body.next as string | null;
    }
    expect(paged).toEqual(all);
    // A place that is not of the resource that is asked for.
    for (const place of ['1:lock/a', '1:lock/z']) {
      const path = `/v1/witness/entries?resource=lock/n-1&after=${encodeURIComponent(place)}`;
      expect((await server.get(path)).status).toBe(200);
    }
    const ours = [];
    for await (const { resource, seq } of box.witness.entries({ resource: 'lock/n-1' }))
      ours.push(`${resource}#${seq}`);
    expect(ours).toEqual(all.filter((one) => one.startsWith('lock/n-1#')));
  });

  it('is read no further when its reader has left, although no entry fits', async () => {
    await server.post('/v1/locks/a/acquire', { holder: 'a' });
    const left = new Error('left');
    const reading = server.box.witness.entries({ actor: 'nobody' }, { signal: AbortSignal.abort(left) });
    await expect(reading.next()).rejects.toBe(left);
  });

  it('says so when entries between two pages were trimmed', async () => {
    for (let n = 0; n < 6; n++) await (await server.box.lock('a').acquire({ holder: `h-${n}` })).release();
    await (await server.box.lock('z').acquire()).release();
    const first = await server.get('/v1/witness/entries?resource=lock/*&limit=2');
    expect(first.body).toMatchObject({ isTrimmed: false });
    await server.box.witness.checkpoint();
    await server.box.witness.trim();
    for (const name of ['a', 'z']) await (await server.box.lock(name).acquire()).release();
    const next = await server.get(
      `/v1/witness/entries?resource=lock/*&limit=100&after=${encodeURIComponent(first.body.next)}`,
    );
    expect(next.body.isTrimmed).toBe(true);
    const left = [];
    for await (const { resource, seq } of server.box.witness.entries({ resource: 'lock/*' }))
      left.push([resource, seq]);
    expect(next.body.entries.map(({ resource, seq }: { resource: string; seq: number }) => [resource, seq])).toEqual(
      left,
    );
    expect(left.length).toBeGreaterThan(1);
  });

  it('reads a page from its place on, and not all that comes before', async () => {
    const store = openMemory();
    const long = new TestServer(await open(store, { witness: true }));
    try {
      for (let n = 0; n < 6; n++) await long.box.witness.record({ component: 'c', event: 'x:y' });
      const { body } = await long.get('/v1/witness/entries?resource=component/c&limit=4');
      // One that cannot be read shows whether it is read.
      const { pairs } = await readRange(store, { ...prefixed('witness/component/c/'), limit: 1 });
      await store.transaction(always([{ do: 'put', key: pairs[0]?.key ?? '', value: Value.text('no entry') }]));
      const next = await long.get(`/v1/witness/entries?resource=component/c&after=${body.next}`);
      expect(next).toMatchObject({ status: 200, body: { isTrimmed: false, entries: [{ seq: 5 }, { seq: 6 }] } });
    } finally {
      await long.close();
    }
  });

  it('a client that reads while entries are trimmed throws, and leaves nothing out silently', async () => {
    for (let n = 0; n < 6; n++) await server.box.witness.record({ component: 'c', event: 'x:y' });
    // A client asks for a thousand at a time, which are dear to make.
    const small = connect('http://127.0.0.1:7300', {
      token: LOCAL,
      fetch: (input, init) => server.server.fetch(new Request(String(input).replace('limit=1000', 'limit=3'), init)),
    });
    const read = async (): Promise<void> => {
      for await (const { seq } of small.witness.entries({ resource: 'component/c' })) {
        if (seq !== 2) continue;
        await server.box.witness.checkpoint();
        await server.box.witness.trim();
        await server.box.witness.record({ component: 'c', event: 'x:y' });
      }
    };
    await expect(read()).rejects.toMatchObject({ code: 'compacted' });
  });

  it('is followed, sealed, proven and verified', async () => {
    const response = await server.fetch('GET', '/v1/witness/watch?resource=component/*');
    const reading = readEvents(response, (found) => found.length === 2);
    const entered = await box.witness.record({
      component: 'deploy',
      event: 'deploy:started',
      payload: { version: '1.2' },
    });
    expect((await reading)[1]).toMatchObject({ event: 'entry', data: { hash: entered.hash } });
    expect(entered.commands[0]?.actor).toBe('token:local');
    expect(await box.witness.verify()).toEqual(await server.box.witness.verify());
    const sealed = await box.witness.checkpoint();
    expect((await box.witness.checkpoints()).map(({ hash }) => hash)).toEqual([sealed.hash]);
    expect(await box.witness.proof(entered)).toEqual(await server.box.witness.proof(entered));
    await expect(box.witness.proof({ resource: 'lock/none', seq: 1 })).rejects.toMatchObject({ code: 'not-found' });
    expect(await box.witness.isOn()).toBe(true);
  });

  it('is followed without a gap or a repeat, although the connection breaks after every message, also within a write', async () => {
    await server.box.witness.record({ component: 'äöü', event: 'x:before' });
    const places: (string | null)[] = [];
    // The first connection breaks before it brings an entry, the second one within the write that enters two of them.
    const whileAway = async (): Promise<void> => {
      const times = places.length - 1;
      if (times === 1) await (await server.box.acquireAll([{ lock: 'a' }, { lock: 'b' }], { holder: 'ann' })).release();
      else if (times > 1 && times <= 5) await server.box.witness.record({ component: 'äöü', event: `x:${times}` });
    };
    const broken = connect('http://127.0.0.1:7300', {
      token: LOCAL,
      async fetch(input, init) {
        const request = new Request(String(input), init);
        if (!request.url.includes('/witness/watch')) return server.server.fetch(request);
        places.push(request.headers.get('last-event-id'));
        await whileAway();
        return firstMessages(await server.server.fetch(request), places.length === 1 ? 1 : 2);
      },
    });
    const heard: WitnessEntry[] = [];
    for await (const entry of broken.witness.watch({}, { last: 1 })) {
      heard.push(entry);
      if (entry.commands[0]?.events[0] === 'x:5') break;
    }
    await broken.close();
    const all: WitnessEntry[] = [];
    for await (const entry of server.box.witness.entries()) all.push(entry);
    const names = [...new Set(all.map(({ resource }) => resource))];
    const chains = (entries: readonly WitnessEntry[]): unknown =>
      names.map((name) => entries.filter(({ resource }) => resource === name));
    expect(heard).toHaveLength(all.length);
    expect(chains(heard)).toEqual(chains(all));
    expect(places[0]).toBeNull();
    expect(places.slice(1, 3)).toEqual([expect.stringMatching(/^\d+$/), expect.stringMatching(/^\d+:witness\//)]);
  });

  describe('is followed by a reader who comes back,', () => {
    const PATH = '/v1/witness/watch?resource=component/c';
    let store: Store;
    let own: TestServer;
    let reads: number;

    const enter = (): Promise<WitnessEntry> => own.box.witness.record({ component: 'c', event: 'x:y' });
    const after = async (place: string, messages: number): ReturnType<typeof readEvents> =>
      readEvents(
        await own.fetch('GET', PATH, undefined, { headers: { 'Last-Event-ID': place } }),
        (found) => found.length === messages,
      );
    const trim = async (): Promise<void> => {
      await own.box.witness.checkpoint();
      await own.box.witness.trim();
    };
    const forget = async (): Promise<void> => store.compact((await store.health()).revision);

    /** The place of a reader who has the first of two entries. */
    async function placeOfFirst(): Promise<string> {
      for (let n = 0; n < 2; n++) await enter();
      const sent = await readEvents(await own.fetch('GET', `${PATH}&last=2`), (found) => found.length === 3);
      return sent[1]?.id ?? '';
    }

    beforeEach(async () => {
      store = openMemory();
      reads = 0;
      const faulty = faultyStore(store, new ScriptedFaults());
      const counted: Store = {
        ...faulty,
        transaction(transaction, signal) {
          if (transaction.success.some((one) => one.do === 'read' && one.key.startsWith(ENTRIES))) reads += 1;
          return faulty.transaction(transaction, signal);
        },
      };
      own = new TestServer(await open(counted, { witness: true, maintains: false }));
    });
    afterEach(() => own.close());

    it('from its last entry on, without a look at the record', async () => {
      const place = await placeOfFirst();
      expect(place).toMatch(/^\d+:witness\//);
      await enter();
      reads = 0;
      expect((await after(place, 3)).map(({ event, data }) => [event, data.seq])).toEqual([
        ['open', undefined],
        ['entry', 2],
        ['entry', 3],
      ]);
      expect(reads).toBe(0);
    });

    it('with entries that were trimmed meanwhile, as long as the store remembers them', async () => {
      const place = await placeOfFirst();
      await trim();
      await enter();
      expect((await after(place, 3)).map(({ event, data }) => [event, data.seq])).toEqual([
        ['open', undefined],
        ['entry', 2],
        ['entry', 3],
      ]);
    });

    it('with a resync, once, if entries were trimmed that the store has forgotten', async () => {
      const place = await placeOfFirst();
      await trim();
      await enter();
      await forget();
      const sent = await after(place, 3);
      expect(sent.map(({ event, data }) => [event, data.type ?? data.seq])).toEqual([
        ['open', undefined],
        ['resync', 'resync'],
        ['entry', 3],
      ]);
      await enter();
      await forget();
      expect((await after(sent[2]?.id ?? '', 2)).map(({ event, data }) => [event, data.seq])).toEqual([
        ['open', undefined],
        ['entry', 4],
      ]);
    });

    it.each(['that wants to know', 'that does not ask'])('by a client %s', async (who) => {
      let connections = 0;
      const broken = connect('http://127.0.0.1:7300', {
        token: LOCAL,
        async fetch(input, init) {
          const request = new Request(String(input), init);
          connections += 1;
          if (connections === 1) return firstMessages(await own.server.fetch(request), 2);
          if (connections === 2) {
            await enter();
            await trim();
            await enter();
            await forget();
          }
          return own.server.fetch(request);
        },
      });
      await enter();
      const heard: (number | string)[] = [];
      const follow = async (): Promise<void> => {
        const onTrimmed = (): void => void heard.push('trimmed');
        const options = who === 'that wants to know' ? { last: 1, onTrimmed } : { last: 1 };
        for await (const { seq } of broken.witness.watch({ resource: 'component/c' }, options)) {
          heard.push(seq);
          if (seq === 3) break;
        }
      };
      if (who === 'that wants to know') await follow();
      else await expect(follow()).rejects.toMatchObject({ code: 'compacted' });
      expect(heard).toEqual(who === 'that wants to know' ? [1, 'trimmed', 3] : [1]);
      await broken.close();
    });
  });

  it('is followed without a gap after the answer, also by a reader who is slow to read it', async () => {
    const response = await server.fetch('GET', '/v1/witness/watch?resource=component/c');
    const { hash } = await server.box.witness.record({ component: 'c', event: 'x:y' });
    const [, first] = await readEvents(response, (found) => found.length === 2);
    expect(first).toMatchObject({ event: 'entry', data: { hash } });
  });

  it('is followed from its beginning by a reader who has a place in a store that is gone, and refuses a place that is none', async () => {
    const { hash } = await server.box.witness.record({ component: 'c', event: 'x:y' });
    const watch = (place: string): Promise<Response> =>
      server.fetch('GET', '/v1/witness/watch', undefined, { headers: { 'Last-Event-ID': place } });
    const [, first] = await readEvents(
      await watch('999999:witness/lock/a/000000000001'),
      (found) => found.length === 2,
    );
    expect(first).toMatchObject({ data: { hash } });
    expect((await watch('yesterday')).status).toBe(400);
  });

  it('is read by viewers, written by workers under their own name, and sealed by administrators', async () => {
    const viewer = through(await server.token('viewer'));
    expect(await viewer.witness.checkpoints()).toEqual([]);
    await expect(viewer.witness.record({ component: 'c', event: 'e' })).rejects.toMatchObject({ code: 'forbidden' });
    const worker = through(await server.token('worker', { holders: ['agent:*'] }));
    await expect(worker.witness.checkpoint()).rejects.toMatchObject({ code: 'forbidden' });
    await expect(worker.witness.record({ component: 'c', event: 'e', actor: 'ann' })).rejects.toMatchObject({
      problem: { code: 'foreign-holder' },
    });
    const { commands } = await worker.witness.record({ component: 'c', event: 'e', actor: 'agent:7' });
    expect(commands[0]?.actor).toBe('agent:7');
  });

  it('says so where the store has none', async () => {
    const without = await TestServer.on();
    expect((await without.get('/v1/witness')).body).toEqual({ isOn: false });
    const { status, body } = await without.post('/v1/witness/entries', { component: 'c', event: 'e' });
    expect([status, body.code]).toEqual([409, 'witness-off']);
    await without.close();
  });
});
