// A test of a user, by vitest and the clock that comes with signalbox.
import { open } from 'signalbox';
import { TestClock } from 'signalbox/testing';
import { expect, it } from 'vitest';

it('waits a minute in no time', async () => {
  const clock = new TestClock();
  const box = await open('memory:', { clock });
  const hold = await box.lock('main').acquire();
  const waiting = box
    .lock('main')
    .acquire({ waitMs: 60_000 })
    .catch((error) => error.refusal.kind);
  await clock.advance(61_000);
  expect(await waiting).toBe('timed-out');
  await hold.release();
  await box.close();
});
