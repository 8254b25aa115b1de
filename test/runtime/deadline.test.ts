import { openMemory, type Store, Value, type Watch } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';
import { expect, it } from 'vitest';
import { withDeadlines } from '../../src/store/bounded-store.ts';

it('a watch that opens after its time is ended, because nobody will ever read it', async () => {
  const clock = new TestClock();
  const store: Store = openMemory({ clock });
  let late: Watch | undefined;
  const slow: Pick<Store, 'watch'> = {
    async watch(...asked) {
      await new Promise<void>((resolve) => clock.timer(2000, resolve));
      return (late = await store.watch(...asked));
    },
  };
  const bounded = withDeadlines(slow as Store, clock, 1000);
  const opening = bounded.watch({ key: 'a' }, 'now', new AbortController().signal).catch((error: unknown) => error);
  await clock.advance(3000);
  expect(await opening).toMatchObject({ code: 'unavailable' });
  await store.transaction({
    compare: [],
    success: [{ do: 'put', key: 'a', value: Value.text('x') }],
    failure: [],
  });
  expect(await late?.[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
});
