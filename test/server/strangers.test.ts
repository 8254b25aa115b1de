// What everybody may ask without a token, and what goes wrong in the store below.

import { afterEach, expect, it, vi } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { TestClock } from 'signalbox/testing';
import { EventHub, type EventReader } from '../../src/server/event-hub.ts';
import { LOCAL, TestServer } from '../support/server.ts';

let box: Signalbox;
afterEach(async () => {
  vi.restoreAllMocks();
  await box.close();
});

it('the health of a store is looked at once a second, however often strangers ask', async () => {
  const clock = new TestClock();
  box = await open('memory:', { clock });
  const server = new TestServer(box, { clock });
  const looks = vi.spyOn(box, 'health');
  const ask = async (token = ''): Promise<number> => (await server.get('/healthz', { token })).status;
  expect(new Set(await Promise.all(Array.from({ length: 300 }, () => ask())))).toEqual(new Set([200]));
  expect(looks).toHaveBeenCalledTimes(1);
  await clock.advance(1_000);
  await ask();
  expect(looks).toHaveBeenCalledTimes(2);
  looks.mockRejectedValue(new Error('gone'));
  await clock.advance(1_000);
  expect(await ask()).toBe(500);
  looks.mockRestore();
  // A failure is not kept.
  expect(await ask(LOCAL)).toBe(200);
});

function readerOf(wants: readonly string[], seen: string[]): EventReader {
  return {
    wants,
    told: (_source, _revision, events) =>
      void seen.push(...events.map(({ event: { type, resource } }) => `${type} ${resource}`)),
    missed: () => void seen.push('missed'),
    joined: () => undefined,
  };
}

it('an event reaches the readers that want its resource or its type, and no other', async () => {
  box = await open('memory:');
  const hub = new EventHub(box, new AbortController().signal);
  const wants = [['lock/a'], ['lock/b'], ['lock/a', 'lock/b'], ['lock:*'], ['lock:released'], ['task:*'], []];
  const leaving = wants.map(() => new AbortController());
  const place = await hub.now();
  const all = await Promise.all(
    wants.map(async (wanted, at) => {
      const seen: string[] = [];
      await hub.read(readerOf(wanted, seen), place, (leaving[at] as AbortController).signal);
      return seen;
    }),
  );
  const hold = await box.lock('a').acquire();
  await hold.release();
  await box.lock('b').acquire();
  await expect.poll(() => all.at(-1)).toHaveLength(3);
  const [acquired, released, other] = ['lock:acquired lock/a', 'lock:released lock/a', 'lock:acquired lock/b'];
  const three = [acquired, released, other];
  expect(all).toEqual([[acquired, released], [other], three, three, [released], [], three]);
  for (const one of leaving) one.abort();
  expect(hub.readers).toBe(0);
  await box.lock('a').acquire();
  expect(all.at(-1)).toHaveLength(3);
});

it('a source of events that could not be followed is followed later, and the other one not twice', async () => {
  box = await open('memory:');
  const hub = new EventHub(box, new AbortController().signal);
  const follow = box.eventLog.follow.bind(box.eventLog);
  let failures = 1;
  vi.spyOn(box.eventLog, 'follow').mockImplementation((source, ...given) => {
    if (source === 'tasks' && failures-- > 0) return Promise.reject(new Error('the store is away'));
    return follow(source, ...given);
  });
  const seen: string[] = [];
  await expect(hub.now()).rejects.toThrow('the store is away');
  await hub.read(readerOf([], seen), await hub.now(), new AbortController().signal);
  await box.lock('main').tryAcquire();
  await box.tasks.publish('t', {});
  await expect.poll(() => seen).toContain('task:published task/t');
  await box.lock('end').tryAcquire();
  await expect.poll(() => seen).toContain('lock:acquired lock/end');
  expect(seen.filter((one) => one === 'lock:acquired lock/main')).toHaveLength(1);
  expect(hub.counts.get('lock:acquired')).toBe(2);
});
