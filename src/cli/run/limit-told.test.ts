import { expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { open } from '../../runtime/open.ts';
import { limitTold } from './limit-told.ts';

it('a hold that ended with the longest time of its lock is not said to have lost its lease', async () => {
  await using box = await open('memory:');
  await box.lock('main').configure({ maxHoldMs: 60_000 });
  const loss = { resource: 'lock/main', why: 'expired' } as const;
  const ago = (ms: number): number => systemClock.monotonic() - ms;
  expect(await limitTold(box, loss, ago(60_000))).toBe(
    'lock/main: the hold was lost: it was held for the --max-hold of 60 s that is set for all holders',
  );
  expect(await limitTold(box, { ...loss, why: 'forced' }, ago(60_000))).toBeUndefined();
  expect(await limitTold(box, { ...loss, resource: 'lock/free' }, ago(60_000))).toBeUndefined();
  expect(await limitTold(box, { ...loss, resource: 'task/build' }, ago(60_000))).toBeUndefined();
  // Its lease ended long before.
  await box.lock('main').configure({ maxHoldMs: 3_600_000 });
  expect(await limitTold(box, loss, ago(60_000))).toBeUndefined();
});
