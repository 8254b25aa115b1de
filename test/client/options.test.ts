// A program may ask a server as it asks the library: the types leave out no option that the server takes.

import { beforeEach, expect, expectTypeOf, it } from 'vitest';
import type { Lock, Semaphore, Tasks } from 'signalbox';
import type { RemoteLock, RemoteSemaphore, RemoteTasks } from 'signalbox/client';
import { type Wired, wired } from '../support/wire.ts';

let { server, box } = {} as Wired;

beforeEach(async () => {
  const all = await wired();
  ({ server, box } = all);
  return all.close;
});

type Options<Of, Method extends keyof Of, Place extends 0 | 1> = Of[Method] extends (...all: infer All) => unknown
  ? NonNullable<All[Place & keyof All]>
  : never;
/** The options, at this place among the arguments, that the library takes and a server does not. */
type Lacking<Local, Remote, Method extends keyof Local & keyof Remote, Place extends 0 | 1 = 0> = Exclude<
  keyof Options<Local, Method, Place>,
  keyof Options<Remote, Method, Place>
>;

it('asks with every option of the library, except the process that only the machine of the store can watch', () => {
  expectTypeOf<Lacking<Lock, RemoteLock, 'acquire'>>().toBeNever();
  expectTypeOf<Lacking<Lock, RemoteLock, 'tryAcquire'>>().toBeNever();
  expectTypeOf<Lacking<Lock, RemoteLock, 'acquireDetached'>>().toEqualTypeOf<'pid'>();
  expectTypeOf<Lacking<Lock, RemoteLock, 'askDetached'>>().toEqualTypeOf<'pid'>();
  expectTypeOf<Lacking<Lock, RemoteLock, 'collect', 1>>().toBeNever();
  expectTypeOf<Lacking<Semaphore, RemoteSemaphore, 'acquire'>>().toBeNever();
  expectTypeOf<Lacking<Semaphore, RemoteSemaphore, 'tryAcquire'>>().toBeNever();
  expectTypeOf<Lacking<Semaphore, RemoteSemaphore, 'acquireDetached'>>().toEqualTypeOf<'pid'>();
  expectTypeOf<Lacking<Semaphore, RemoteSemaphore, 'askDetached'>>().toEqualTypeOf<'pid'>();
  expectTypeOf<Lacking<Semaphore, RemoteSemaphore, 'collect', 1>>().toBeNever();
  expectTypeOf<Lacking<Tasks, RemoteTasks, 'claimDetached', 1>>().toBeNever();
  expectTypeOf<Lacking<Tasks, RemoteTasks, 'claimNextDetached'>>().toBeNever();
});

it('gets the slots and the mode that it asks for with a ticket', async () => {
  const slots = await box.semaphore('gpus', { capacity: 4 }).askDetached({ holder: 'a', weight: 3 });
  expect(slots).toMatchObject({ kind: 'acquired', hold: { weight: 3, slots: [0, 1, 2] } });
  for (const holder of ['a', 'b']) await box.lock('main').askDetached({ holder, mode: 'shared' });
  expect((await server.box.lock('main').inspect()).holders).toMatchObject([{ mode: 'shared' }, { mode: 'shared' }]);
});
