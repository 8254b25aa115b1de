// What phases print is kept for a while, and goes with the pipeline.

import { describe, expect, it } from 'vitest';
import type { PhaseContext } from '../../src/runtime/pipelines/functions.ts';
import { book, phase } from './books.ts';
import { left, Stage, until } from './stage.ts';

describe('the log of a phase', () => {
  it('is kept of its last runs only, although some of them print nothing', async () => {
    const on = new Stage(true);
    const driver = await on.fleet.start('driver');
    on.does({
      work: ({ attempt, log }) => {
        if (attempt % 2 === 1) log(`run ${attempt}`);
        if (attempt < 20) throw new Error('no');
      },
    });
    const driving = on.run(driver, book(phase('work', { onFailure: { retry: 1_000 } })));
    await on.advance(20_000);
    expect((await left(driving)).state).toBe('done');
    expect((await driver.box.pipelines.logs('p')).map(({ run }) => run)).toEqual([15, 17, 19]);
  });

  it('does not come back after all of the pipeline was forgotten', async () => {
    const on = new Stage(true);
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    let finish = (): void => undefined;
    let context: PhaseContext | undefined;
    on.does({
      work: (given) => {
        context = given;
        return new Promise<void>((resolve) => (finish = resolve));
      },
    });
    const driving = on.run(driver!, book(phase('work')));
    driving.catch(() => undefined);
    await until(() => on.ran.length === 1);
    await other!.box.lock('pipeline:p').break({ holder: 'ops', reason: 'stuck' });
    await left(on.resume(other!));
    await other!.box.pipelines.cancel('p');
    expect(await other!.box.pipelines.forget('p')).toBe(true);
    context?.log('still here');
    await on.advance(5_000);
    finish();
    await expect(driving).rejects.toMatchObject({ name: 'HoldLost' });
    context?.log('and here');
    await on.advance(5_000);
    expect(await other!.box.pipelines.logs('p')).toEqual([]);
  });
});
