import { open, type Signalbox } from 'signalbox';
import { openMemory, type Transaction } from 'signalbox/store';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { changesRecord, Link } from '../support/link.ts';
import { errorOf, isPending, lossOf, settled } from '../support/outcome.ts';
import { ProcessClock } from '../support/process-clock.ts';

describe('opening', () => {
  const url = process.env['SIGNALBOX_URL'];
  afterEach(() => {
    if (url === undefined) delete process.env['SIGNALBOX_URL'];
    else process.env['SIGNALBOX_URL'] = url;
  });

  it('the same name twice in one process is one store', async () => {
    await using one = await open('memory:shared');
    await using other = await open('memory:shared');
    await using apart = await open('memory:apart');
    const hold = await one.lock('db').acquire({ holder: 'me' });
    expect(await other.lock('db').tryAcquire()).toMatchObject({ kind: 'busy', holders: [{ holder: 'me' }] });
    expect(await apart.lock('db').isFree()).toBe(true);
    const waiting = other.lock('db').acquire();
    await hold.release();
    expect((await waiting).isValid).toBe(true);
  });

  it('a name that everybody has closed is an empty store', async () => {
    const one = await open('memory:closed');
    await one.lock('db').acquire();
    await one.close();
    await using other = await open('memory:closed');
    expect(await other.lock('db').isFree()).toBe(true);
  });

  it('without a name is a store of its own', async () => {
    await using one = await open('memory:');
    await using other = await open('memory:');
    await one.lock('db').acquire();
    expect(await other.lock('db').isFree()).toBe(true);
  });

  it('takes the store from SIGNALBOX_URL where none is given', async () => {
    process.env['SIGNALBOX_URL'] = 'memory:from-environment';
    await using one = await open();
    await using other = await open('memory:from-environment');
    await one.lock('db').acquire();
    expect(await other.lock('db').isFree()).toBe(false);
  });

  it.each([['redis://localhost'], ['memory'], [''], ['MEMORY:x'], [42], [null], [{}]])(
    'something that is no store (%j) is refused, with what it was and what is accepted',
    async (what) => {
      const error = await errorOf(open(what as never));
      expect(error).toMatchObject({ code: 'invalid' });
      expect((error as Error).message).toContain(JSON.stringify(what));
      expect((error as Error).message).toContain('memory:');
    },
  );

  it.each(['sessionTtlMs', 'requestTimeoutMs', 'maintenanceMs'])(
    'with a %s that makes no sense is refused',
    async (option) => {
      for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '15']) {
        const error = await errorOf(open('memory:', { [option]: value }));
        expect(error).toMatchObject({ code: 'invalid' });
        expect((error as Error).message).toContain(option);
        expect((error as Error).message).toContain(String(value));
      }
    },
  );
});

describe('a session', () => {
  it.each([0.01, 1, 99])(
    'of %d ms is refused: its lease would be over before it could be used',
    async (sessionTtlMs) => {
      const error = await errorOf(open('memory:', { sessionTtlMs }));
      expect(error).toMatchObject({ code: 'invalid' });
      expect((error as Error).message).toContain(`sessionTtlMs is ${sessionTtlMs}; expected`);
    },
  );

  it('whose lease is over whenever the store has answered is told as unavailable, not tried for ever', async () => {
    const fleet = new Fleet(false);
    const slow = { sessionTtlMs: 1_000, requestTimeoutMs: 5_000 };
    const { box, link } = await fleet.start('slow', slow);
    // Each session is granted, and its registration answered only when its lease is over.
    const registers = ({ success }: Transaction): boolean =>
      success.some((operation) => operation.do === 'put' && operation.key.startsWith('a/'));
    for (let time = 0; time < 20; time++) link.next('transaction', 'held', registers);
    const acquiring = errorOf(box.lock('a').acquire());
    for (let time = 0; time < 20; time++) {
      await fleet.advance(3_000);
      link.answerHeld();
    }
    expect(await isPending(acquiring)).toBe(false);
    expect(await acquiring).toMatchObject({ code: 'unavailable' });
  });
});

describe.each(transports)('closing on $transport', ({ atOnce }) => {
  it('is over although a release under way is refused for good, and throws nothing at anybody', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('leaving');
    const hold = await box.lock('a').acquire();
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    link.forbid(changesRecord);
    const releasing = errorOf(hold.release());
    await box.close();
    expect(await releasing).toMatchObject({ code: 'forbidden' });
    await settled();
    expect(unhandled).toEqual([]);
  });

  it('releases everything at once: others find it free, and whoever waits has it', async () => {
    const fleet = new Fleet(atOnce);
    const [leaving, next] = await fleet.startAll('leaving', 'next');
    await leaving!.box.lock('a').acquire();
    await leaving!.box.lock('b').acquire();
    await leaving!.box.semaphore('pool', { capacity: 2 }).acquire({ weight: 2 });
    const waiting = next!.box.lock('b').acquire();
    await settled();
    await leaving!.box.close();
    await settled();
    expect((await waiting).isValid).toBe(true);
    expect(await next!.box.lock('a').isFree()).toBe(true);
    expect(await next!.box.semaphore('pool').usedSlots()).toBe(0);
    expect(await next!.box.lock('a').tryAcquire()).toMatchObject({ kind: 'acquired' });
  });

  it('is told as released, not as reclaimed from the dead', async () => {
    const fleet = new Fleet(atOnce);
    const [leaving, next] = await fleet.startAll('leaving', 'next');
    const told: string[] = [];
    await next!.box.on('lock:*', ({ type }) => void told.push(type));
    await leaving!.box.lock('a').acquire();
    await leaving!.box.close();
    await settled();
    await next!.box.lock('a').acquire();
    await settled();
    // Whoever finds it used before may have to look at the queue first.
    expect(told.filter((type) => type !== 'lock:queued')).toEqual(['lock:acquired', 'lock:released', 'lock:acquired']);
  });

  it('tells the holds that were left', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('leaving');
    const hold = await box.lock('a').acquire();
    const { signal } = hold;
    await box.close();
    expect(hold.isValid).toBe(false);
    expect(lossOf(signal)?.why).toBe('released-elsewhere');
    expect(await hold.release()).toMatchObject({ kind: 'already-lost' });
  });

  it('ends the waits, which leave no trace', async () => {
    const fleet = new Fleet(atOnce);
    const [holder, leaving] = await fleet.startAll('holder', 'leaving');
    await holder!.box.lock('a').acquire();
    const waiting = errorOf(leaving!.box.lock('a').acquire());
    const both = errorOf(leaving!.box.acquireAll([{ lock: 'a' }, { lock: 'b' }]));
    await settled();
    await leaving!.box.close();
    expect(await waiting).toMatchObject({ code: expect.stringMatching(/^(closed|not-acquired)$/) as string });
    expect(await both).toMatchObject({ code: expect.stringMatching(/^(closed|not-acquired)$/) as string });
    await settled();
    expect((await holder!.box.lock('a').inspect()).waiting).toEqual([]);
    expect(await holder!.box.lock('b').isFree()).toBe(true);
  });

  it('twice is the same as once, also at the end of a block', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('leaving');
    {
      await using _same = box;
      await box.lock('a').acquire();
      await box.close();
    }
    await box.close();
    expect(await errorOf(box.lock('a').acquire())).toMatchObject({ code: 'closed' });
  });

  it('leaves nothing running', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('leaving');
    await box.on('*', () => {});
    await box.lock('a').acquire({ maxHoldMs: 1000 });
    await box.close();
    await fleet.advance(60_000);
    const asked = fleet.clock.pendingTimers;
    expect(asked).toBe(0);
  });

  it.each(['refusing', 'silent'] as const)('ends although the store cannot be reached, being %s', async (how) => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('leaving');
    const hold = await box.lock('a').acquire();
    link.cutOff(how);
    const closing = box.close();
    await fleet.advance(60_000);
    expect(await isPending(closing)).toBe(false);
    expect(hold.isValid).toBe(false);
  });

  const later: readonly [string, (box: Signalbox) => Promise<unknown>][] = [
    ['acquire', (box) => box.lock('a').acquire()],
    ['tryAcquire', (box) => box.lock('a').tryAcquire()],
    ['run', (box) => box.lock('a').run(() => 1)],
    ['acquireDetached', (box) => box.lock('a').acquireDetached({ holder: 'me' })],
    ['renew', (box) => box.lock('a').renew({ holder: 'me', token: 1 })],
    ['extend', (box) => box.lock('a').extend({ holder: 'me', token: 1 }, 1000)],
    ['release', (box) => box.lock('a').release({ holder: 'me', token: 1 })],
    ['break', (box) => box.lock('a').break({ holder: 'me', reason: 'stuck' })],
    ['configure', (box) => box.lock('a').configure({ onStale: 'alert' })],
    ['inspect', (box) => box.lock('a').inspect()],
    ['isFree', (box) => box.lock('a').isFree()],
    ['slots', (box) => box.semaphore('s', { capacity: 1 }).acquire()],
    ['resize', (box) => box.semaphore('s').resize(3)],
    ['acquireAll', (box) => box.acquireAll([{ lock: 'a' }])],
    ['tryAcquireAll', (box) => box.tryAcquireAll([{ lock: 'a' }])],
    ['on', (box) => box.on('*', () => {})],
    ['events', (box) => box.events('*')[Symbol.asyncIterator]().next()],
    ['maintain', async (box) => box.maintain()],
    ['health', async (box) => box.health()],
  ];

  it.each(later)('%s is refused afterwards as closed', async (_what, call) => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('closed');
    await box.lock('a').acquire();
    await box.close();
    expect(await errorOf(call(box))).toMatchObject({ code: 'closed' });
  });

  it('what gives a promise never throws in its place', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('closed');
    await box.close();
    expect(await errorOf(box.maintain())).toMatchObject({ code: 'closed' });
    expect(await errorOf(box.health())).toMatchObject({ code: 'closed' });
  });
});

describe.each(transports)('a store that cannot be reached, on $transport', ({ atOnce }) => {
  const TIMEOUT_MS = 5000;

  it('is told when it is opened', async () => {
    const fleet = new Fleet(atOnce);
    const link = new Link(openMemory({ clock: fleet.clock }), atOnce === true);
    link.cutOff('refusing');
    const opening = errorOf(open(link, { clock: new ProcessClock(fleet.clock) }));
    await fleet.advance(2 * TIMEOUT_MS);
    expect(await opening).toMatchObject({ code: 'unavailable' });
  });

  it('is told when it is opened, although it never answers', async () => {
    const fleet = new Fleet(atOnce);
    const link = new Link(openMemory({ clock: fleet.clock }), atOnce === true);
    link.cutOff('silent');
    const opening = errorOf(open(link, { clock: new ProcessClock(fleet.clock) }));
    await fleet.advance(2 * TIMEOUT_MS);
    expect(await isPending(opening)).toBe(false);
    expect(await opening).toMatchObject({ code: 'unavailable' });
  });

  const calls: readonly [string, (box: Signalbox) => Promise<unknown>][] = [
    ['acquire', (box) => box.lock('a').acquire()],
    ['tryAcquire', (box) => box.lock('a').tryAcquire()],
    ['a semaphore', (box) => box.semaphore('s', { capacity: 2 }).acquire()],
    ['acquireAll', (box) => box.acquireAll([{ lock: 'a' }, { lock: 'b' }])],
    ['acquireDetached', (box) => box.lock('a').acquireDetached({ holder: 'me' })],
    ['inspect', (box) => box.lock('a').inspect()],
    ['configure', (box) => box.lock('a').configure({ onStale: 'alert' })],
    ['maintain', (box) => box.maintain()],
    ['health', (box) => box.health()],
    ['on', (box) => box.on('*', () => {})],
  ];

  describe.each(['refusing', 'silent'] as const)('because it is %s', (how) => {
    it.each(calls)('%s says so after the stated time, and does not hang', async (_what, call) => {
      const fleet = new Fleet(atOnce);
      const [cut] = await fleet.startAll('cut');
      cut!.link.cutOff(how);
      const called = errorOf(call(cut!.box));
      // A request may have been on its way once more when the time was up.
      await fleet.advance(2 * TIMEOUT_MS);
      expect(await isPending(called)).toBe(false);
      expect(await called).toMatchObject({ code: expect.stringMatching(/^(unavailable|outcome-unknown)$/) as string });
    });

    it.each(calls)('%s says so without a session too', async (_what, call) => {
      const fleet = new Fleet(atOnce);
      const { box, link } = await fleet.start('cut');
      link.cutOff(how);
      const called = errorOf(call(box));
      await fleet.advance(2 * TIMEOUT_MS);
      expect(await isPending(called)).toBe(false);
      expect(await called).toMatchObject({ code: expect.stringMatching(/^(unavailable|outcome-unknown)$/) as string });
    });
  });

  it('but comes back in time is not noticed by the caller', async () => {
    const fleet = new Fleet(atOnce);
    const [cut] = await fleet.startAll('cut');
    cut!.link.cutOff('refusing');
    const acquiring = cut!.box.lock('a').acquire();
    await fleet.advance(TIMEOUT_MS - 2000);
    expect(await isPending(acquiring)).toBe(true);
    cut!.link.reconnect();
    await fleet.advance(1500);
    expect((await acquiring).isValid).toBe(true);
  });

  it('is reported after the time that was set', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('cut', { requestTimeoutMs: 500 });
    await box.semaphore('unused').tryAcquire();
    link.cutOff('refusing');
    const acquiring = errorOf(box.lock('a').acquire());
    await fleet.advance(2000);
    expect(await isPending(acquiring)).toBe(false);
    expect(await acquiring).toMatchObject({ code: 'unavailable' });
  });

  it('leaves no hold behind that was granted when nobody could be told', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('cut', { sessionTtlMs: 600_000 });
    await box.semaphore('unused').tryAcquire();
    link.next('transaction', 'unanswered', changesRecord);
    for (let time = 0; time < 20; time++) link.next('transaction', 'refused');
    const acquiring = errorOf(box.lock('a').acquire());
    await fleet.advance(60_000);
    expect(await acquiring).toMatchObject({ code: 'outcome-unknown' });
    expect(await box.lock('a').isFree()).toBe(true);
  });

  it('costs a process its session, and the next acquire has a new one', async () => {
    const fleet = new Fleet(atOnce);
    const { box, link } = await fleet.start('cut');
    const hold = await box.lock('a').acquire();
    link.cutOff('refusing');
    await fleet.advance(60_000);
    expect(hold.isValid).toBe(false);
    link.reconnect();
    const again = box.lock('a').acquire();
    await fleet.advance(5000);
    expect((await again).token).toBeGreaterThan(hold.token);
  });
});
