import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
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
