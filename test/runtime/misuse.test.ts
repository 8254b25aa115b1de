import { describe, expect, it } from 'vitest';
import { open } from 'signalbox';

/** As plain JavaScript calls it, which no type holds back. */
// oxlint-disable-next-line typescript/no-explicit-any
type Anything = any;

describe('what makes no sense is told, with what is accepted, and never taken for something else', () => {
  const calls: readonly [string, (box: Anything) => unknown, RegExp][] = [
    [
      'an option that nobody knows',
      (box) => box.lock('a').acquire({ timeout: 50 }),
      /"timeout" is not an option; there are .*waitMs/,
    ],
    [
      'a weight of a lock',
      (box) => box.lock('a').acquire({ weight: 2 }),
      /"weight" is not an option; there are .*mode/,
    ],
    [
      'a mode of a semaphore',
      (box) => box.semaphore('a', { capacity: 1 }).acquire({ mode: 'shared' }),
      /"mode" is not an option; there are .*weight/,
    ],
    [
      'a time to live of a hold that is kept alive anyway',
      (box) => box.lock('a').acquire({ ttlMs: 5000 }),
      /"ttlMs" is not an option/,
    ],
    [
      'a longest time for several at once',
      (box) => box.acquireAll([{ lock: 'a' }], { maxHoldMs: 5000 }),
      /"maxHoldMs" is not an option; there are .*onWaiting/,
    ],
    [
      'a misspelt field of what a pipeline is expected to be',
      (box) => box.pipelines.cancel('p', { expected: { startetAt: 1 } }),
      /expected is .*; expected an object with startedAt, state or phase/,
    ],
    ['options that are none', (box) => box.lock('a').acquire('worker:1'), /the options are "worker:1", not an object/],
    ['no options at all', (box) => box.lock('a').acquire(null), /the options are null, not an object/],
    ['a signal that is none', (box) => box.lock('a').acquire({ signal: {} }), /signal is \{\}, not an AbortSignal/],
    [
      'a strategy that nobody knows',
      (box) => box.lock('a').acquire({ strategy: 'steal' }),
      /"steal"; expected "retry" or/,
    ],
    ['work that is none', (box) => box.lock('a').run({ waitMs: 5 }), /the work is .*, not a function/],
    ['a pattern that nothing matches', (box) => box.on('lok:*', () => {}), /the pattern is "lok:\*"; expected/],
    ['a handler that is none', (box) => box.on('*'), /the handler is undefined, not a function/],
    ['one thing that is two', (box) => box.acquireAll([{ lock: 'a', semaphore: 'b' }]), /expected \{ lock: NAME \} or/],
    ['a misspelt kind', (box) => box.acquireAll([{ lok: 'a' }]), /expected \{ lock: NAME \} or/],
    ['several that are no list', (box) => box.acquireAll({ lock: 'a' }), /what is wanted is .*, not a list/],
    [
      'a misspelt setting',
      () => open('memory:', { sesionTtlMs: 5 } as Anything),
      /"sesionTtlMs" is not an option; there are sessionTtlMs/,
    ],
  ];

  it.each(calls)('%s', async (_, call, told) => {
    const box = await open('memory:');
    await expect((async () => call(box))()).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(told) as string,
    });
    expect(await box.lock('a').isFree()).toBe(true);
    await box.close();
  });

  it.each(['memory:', 'memory:shared'])('metadata is kept as it was given, and read as a copy, on %s', async (url) => {
    await using box = await open(url);
    const lock = box.lock('copies');
    const metadata = { change: 1, deep: { list: [1] } };
    const hold = await lock.acquire({ holder: 'A', metadata });
    metadata.change = 2;
    metadata.deep.list.push(2);
    const seen = (await lock.inspect()).holders[0]?.metadata as Anything;
    expect(seen).toEqual({ change: 1, deep: { list: [1] } });
    seen.deep.list.push('by a reader');
    seen.self = seen;
    const surveyed = (await box.survey()).locks.find(({ name }) => name === 'copies')?.holds[0]?.metadata as Anything;
    surveyed.change = 'by a reader';
    expect((await lock.inspect()).holders[0]?.metadata).toEqual({ change: 1, deep: { list: [1] } });
    const refused = (await lock.tryAcquire({ holder: 'B' })) as Anything;
    expect(() => (refused.holders[0].metadata.change = 'by a rival')).toThrow(TypeError);
    expect((await lock.inspect()).holders[0]?.metadata).toEqual({ change: 1, deep: { list: [1] } });
    expect(await hold.release()).toEqual({ kind: 'released' });
  });

  it('what a member says of itself, and the data of a task, are copies too', async () => {
    await using box = await open('memory:');
    const metadata = { port: 1 };
    await box.members.join('m', metadata);
    metadata.port = 2;
    ((await box.members.list())[0]?.metadata as Anything).port = 3;
    expect((await box.members.list())[0]?.metadata).toEqual({ port: 1 });
    await box.tasks.publish('t', { deep: { a: 1 } });
    ((await box.tasks.show('t'))?.data as Anything).deep.a = 2;
    expect((await box.tasks.show('t'))?.data).toEqual({ deep: { a: 1 } });
  });

  it('a hold that is printed shows what matters of it', async () => {
    await using box = await open('memory:');
    const hold = await box.lock('a').acquire({ holder: 'worker:1' });
    expect(JSON.parse(JSON.stringify(hold))).toEqual({
      resource: 'lock/a',
      holder: 'worker:1',
      token: hold.token,
      isValid: true,
    });
  });
});
