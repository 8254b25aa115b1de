import { expect, it } from 'vitest';
import type { Event } from '../../core/index.ts';
import { openMemory } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { DenialCounts } from './denials.ts';

const denied = [{ type: 'lock:denied' }] as unknown as readonly Event[];

it('the count does not become less while it is written to the store', async () => {
  const store = openMemory();
  let letThrough = (): void => undefined;
  const isOpen = new Promise<void>((resolve) => (letThrough = resolve));
  const runtime = {
    stopped: new AbortController().signal,
    store: {
      // Writes take their time; reads are answered at once.
      transaction: async (...given: Parameters<typeof store.transaction>) => {
        if (given[0].success.some((one) => one.do === 'put')) await isOpen;
        return store.transaction(...given);
      },
    },
  } as unknown as Runtime;
  const counts = new DenialCounts(runtime);
  for (let n = 0; n < 3; n++) counts.localEvents('lock/main', denied);
  const before = await counts.read();
  const writing = counts.write();
  const during = counts.read();
  letThrough();
  const totals = [before, await during, (await writing, await counts.read())].map(({ total }) => total);
  expect(totals).toEqual([3, 3, 3]);
  expect((await counts.read()).byResource).toEqual(new Map([['lock/main', 3]]));
  await store.close();
});

it('what got lost on the way to the store does not make the count less', async () => {
  const store = openMemory();
  let isAway = false;
  const runtime = {
    stopped: new AbortController().signal,
    store: {
      transaction: (...given: Parameters<typeof store.transaction>) =>
        isAway ? Promise.reject(new Error('away')) : store.transaction(...given),
    },
  } as unknown as Runtime;
  const counts = new DenialCounts(runtime);
  counts.localEvents('lock/main', denied);
  expect((await counts.read()).total).toBe(1);
  isAway = true;
  await counts.write();
  isAway = false;
  expect((await counts.read()).total).toBe(1);
  await store.close();
});
