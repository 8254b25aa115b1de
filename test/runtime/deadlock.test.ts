import type { Signalbox } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { Fleet, transports } from '../support/fleet.ts';
import { errorOf, isPending, refusalOf, settled } from '../support/outcome.ts';

describe.each(transports)('a deadlock on $transport', ({ atOnce }) => {
  async function boxes(...names: readonly string[]): Promise<Signalbox[]> {
    return (await new Fleet(atOnce).startAll(...names)).map(({ box }) => box);
  }

  it('between two processes is found, and its victim is told the whole circle', async () => {
    const [one, other] = await boxes('one', 'other');
    const a = await one!.lock('a').acquire({ holder: 'anna' });
    await other!.lock('b').acquire({ holder: 'bert' });
    const first = one!.lock('b').acquire({ holder: 'anna' });
    await settled();
    const error = (await errorOf(other!.lock('a').acquire({ holder: 'bert' }))) as Error & {
      refusal: { cycle: unknown[] };
    };
    expect(error).toMatchObject({ code: 'not-acquired', refusal: { kind: 'deadlock' } });
    expect(error.message).toContain('anna waits for lock/b behind bert');
    expect(error.message).toContain('bert waits for lock/a behind anna');
    expect(error.refusal.cycle).toHaveLength(2);
    expect(a.isValid).toBe(true);
    expect(await isPending(first)).toBe(true);
  });

  it('within one process is found too, and the survivor goes on once the victim lets go', async () => {
    const [box] = await boxes('one');
    await box!.lock('a').acquire({ holder: 'anna' });
    const b = await box!.lock('b').acquire({ holder: 'bert' });
    const first = box!.lock('b').acquire({ holder: 'anna' });
    await settled();
    expect(await refusalOf(box!.lock('a').acquire({ holder: 'bert' }))).toMatchObject({ kind: 'deadlock' });
    await b.release();
    expect((await first).holder).toBe('anna');
  });

  it('has the one of lowest priority as its victim', async () => {
    const [one, other] = await boxes('one', 'other');
    await one!.lock('a').acquire({ holder: 'low' });
    await other!.lock('b').acquire({ holder: 'high' });
    const low = refusalOf(one!.lock('b').acquire({ holder: 'low', priority: -1 }));
    await settled();
    const high = other!.lock('a').acquire({ holder: 'high', priority: 1 });
    expect(await low).toMatchObject({ kind: 'deadlock' });
    expect(await isPending(high)).toBe(true);
  });

  it('of three is found, over locks and semaphores', async () => {
    const [one, two, three] = await boxes('one', 'two', 'three');
    await one!.lock('a').acquire({ holder: 'anna' });
    await two!.semaphore('pool', { capacity: 2 }).acquire({ holder: 'bert', weight: 2 });
    await three!.lock('c').acquire({ holder: 'cleo' });
    const waits = [one!.semaphore('pool').acquire({ holder: 'anna' })];
    await settled();
    const second = two!.lock('c').acquire({ holder: 'bert' });
    await settled();
    const error = (await errorOf(three!.lock('a').acquire({ holder: 'cleo' }))) as Error;
    for (const link of [
      'anna waits for semaphore/pool behind bert',
      'bert waits for lock/c behind cleo',
      'cleo waits for lock/a behind anna',
    ]) {
      expect(error.message).toContain(link);
    }
    expect(await isPending(Promise.race([...waits, second]))).toBe(true);
  });

  it('through those who wait ahead is found', async () => {
    const [one, two, three] = await boxes('one', 'two', 'three');
    const reading = await one!.lock('a').acquire({ holder: 'reader', mode: 'shared' });
    await three!.lock('b').acquire({ holder: 'late' });
    // The writer waits for the reader; who comes later waits behind the writer, although it would only read.
    const writing = two!.lock('a').acquire({ holder: 'writer' });
    await settled();
    const late = three!.lock('a').acquire({ holder: 'late', mode: 'shared' });
    await settled();
    const reader = one!.lock('b').acquire({ holder: 'reader' });
    const first = await Promise.race(
      [writing, late, reader].map((wait, place) =>
        wait.then(
          () => `granted ${place}`,
          (error: { refusal: { kind: string } }) => error.refusal.kind,
        ),
      ),
    );
    expect(first).toBe('deadlock');
    expect(reading.isValid).toBe(true);
  });

  it('is no deadlock while a holder in it can still go on', async () => {
    const [one, other] = await boxes('one', 'other');
    await one!.lock('a').acquire({ holder: 'anna' });
    const b = await other!.lock('b').acquire({ holder: 'bert' });
    const waiting = one!.lock('b').acquire({ holder: 'anna' });
    await settled();
    expect(await isPending(waiting)).toBe(true);
    await b.release();
    expect((await waiting).isValid).toBe(true);
  });

  it('is told as an event that everybody sees', async () => {
    const [one, other] = await boxes('one', 'other');
    const told: unknown[] = [];
    await one!.on('lock:deadlock', (event) => void told.push(event));
    await one!.lock('a').acquire({ holder: 'anna' });
    await other!.lock('b').acquire({ holder: 'bert' });
    const waiting = one!.lock('b').acquire({ holder: 'anna' });
    await settled();
    await errorOf(other!.lock('a').acquire({ holder: 'bert' }));
    await settled();
    expect(told).toMatchObject([{ resource: 'lock/a', holder: 'bert', cycle: [{}, {}] }]);
    expect(await isPending(waiting)).toBe(true);
  });
});
