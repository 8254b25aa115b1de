import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Signalbox } from '../runtime/signalbox.ts';
import { openInTime, WaitLimit } from './opening.ts';

it('a store that opens is not called unreachable because the user waits for less than that takes', async () => {
  const box = { isOpen: true } as unknown as Signalbox;
  const opening = openInTime({ url: 'etcd://host', limit: new WaitLimit(1) }, async () => {
    await sleep(50);
    return box;
  });
  expect(await opening).toBe(box);
});

it('a store in a file may take long on a busy machine, and an etcd may not', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const opening = (url: string): Promise<Signalbox | string> =>
    openInTime({ url, limit: new WaitLimit(10) }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      return { name: 'opened', close: () => Promise.resolve() } as unknown as Signalbox;
    }).catch((error: Error) => error.message);
  const both = [opening('file:/srv/store'), opening('etcd://host')];
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await Promise.all(both)).toEqual([
    expect.objectContaining({ name: 'opened' }),
    'the store etcd://host could not be reached within 2 s; signalbox doctor says why',
  ]);
});
