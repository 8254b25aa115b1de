import { expect, it } from 'vitest';
import { open } from '../../index.ts';
import { acquireWithTicket } from './with-ticket.ts';

it('a run whose holder could read already re-enters that hold to write, and does not release it', async () => {
  await using box = await open('memory:');
  const lock = box.lock('main');
  const { id } = await lock.acquireDetached({ holder: 'h', mode: 'shared' });
  const options = { holder: 'h', tickets: ['ended'], tell: () => undefined };
  const [hold] = await acquireWithTicket(box, [{ lock: 'main' }], options as never);
  expect([hold?.id, hold?.isReentry]).toEqual([id, true]);
  expect(await hold?.release()).toEqual({ kind: 'still-held' });
  expect(await lock.isHeldBy('h')).toBe(true);
});
