import { expect, it } from 'vitest';
import { unusedSemaphore } from '../../core/index.ts';
import type { Transaction, TransactionResult } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { Anchors } from '../session/session.ts';
import { type AnySnapshot, lookUpLeases } from './snapshot.ts';

it('more holders have died than a process remembers: each is looked up once, and the request goes on', () => {
  const dead = Array.from({ length: 10_100 }, (_, at) => ({ id: `p${at}.1`, lease: `p${at}` }));
  const anchors = new Anchors(() => undefined);
  let reads = 0;
  const runtime = {
    anchors,
    sawLease: (lease: string) => anchors.saw(lease, false, 1),
    commit: ({ success }: Transaction, done: (result: TransactionResult) => void) => {
      reads += success.length;
      done({
        succeeded: true,
        revision: 1,
        results: success.map(() => ({ do: 'read', pairs: [], more: false, count: 0 })),
      });
    },
  } as unknown as Runtime;
  const record = { ...unusedSemaphore.record, holds: dead } as AnySnapshot['state']['record'];

  let isDone = false;
  lookUpLeases(
    runtime,
    [{ record, waiting: [] }],
    () => (isDone = true),
    (error) => expect.fail(String(error)),
  );

  expect({ isDone, reads }).toEqual({ isDone: true, reads: dead.length });
  expect(anchors.isGone('p10099')).toBe(true);
});
