import type { Signalbox } from 'signalbox';
import { HoldLost } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { errorOf } from '../support/outcome.ts';

describe.each(transports)('run on $transport', ({ atOnce }) => {
  const forms: readonly [string, (box: Signalbox, work: () => Promise<string>) => Promise<string>][] = [
    ['of a lock', (box, work) => box.lock('a').run(work)],
    ['of a semaphore', (box, work) => box.semaphore('s', { capacity: 1 }).run(work)],
    ['of several at once', (box, work) => box.runAll([{ lock: 'a' }, { lock: 'b' }], work)],
    [
      'of a lock that is held already',
      async (box, work) => {
        await using _outer = await box.lock('a').acquire({ holder: 'X' });
        return await box.lock('a').run(work, { holder: 'X' });
      },
    ],
  ];

  it.each(forms)('%s throws HoldLost if the work stalled until the lease was over', async (_, run) => {
    const fleet = new Fleet(atOnce);
    const [stalled] = await fleet.startAll('stalled', 'other');
    const { box, clock } = stalled!;
    const running = run(box, async () => {
      // One long synchronous step: no timer rings, and nothing is renewed.
      clock.stall();
      await fleet.advance(TTL_MS);
      return 'done';
    });
    const error = await errorOf(running);
    expect(error).toBeInstanceOf(HoldLost);
    expect((error as HoldLost).why).toBe('disconnected');
    clock.goOn();
  });

  it('throws HoldLost if the time of the hold was up before the work was done', async () => {
    const fleet = new Fleet(atOnce);
    const { box, clock } = await fleet.start('stalled');
    const running = box.lock('a').run(
      async () => {
        clock.stall();
        await fleet.advance(2_000);
      },
      { maxHoldMs: 2_000 },
    );
    expect(await errorOf(running)).toMatchObject({ code: 'hold-lost', why: 'expired' });
    clock.goOn();
  });

  it('throws HoldLost if the store says only at the release that the hold had been taken', async () => {
    const fleet = new Fleet(atOnce);
    const [here, other] = await fleet.startAll('here', 'other');
    const running = here!.box.lock('a').run(async () => {
      here!.link.holdNews();
      await other!.box.lock('a').break({ holder: 'admin', reason: 'stuck' });
    });
    expect(await errorOf(running)).toMatchObject({ code: 'hold-lost' });
  });

  it('resolves where the work has released the hold itself', async () => {
    const fleet = new Fleet(atOnce);
    const { box } = await fleet.start('here');
    expect(await box.lock('a').run(async (hold) => (await hold.release()).kind)).toBe('released');
  });
});
