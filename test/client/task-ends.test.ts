// The end of a task through a server that is away, slow or in trouble at that moment: the work is not lost, and not done twice.

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from 'signalbox';
import { connect } from 'signalbox/client';
import type { Told } from '../support/server.ts';
import { settledIn, URL_OF_TESTS, type Wired, wired } from '../support/wire.ts';

const RETRY_MS = 3_000;
const TTL_MS = 15_000;

let { clock, server, wire, box } = {} as Wired;

beforeEach(async () => {
  const all = await wired({ retryMs: RETRY_MS, ttlMs: TTL_MS });
  ({ clock, server, wire, box } = all);
  await box.tasks.publish('t', {}, { retries: 1 });
  return async () => {
    vi.restoreAllMocks();
    await all.close();
  };
});

/** The next end is done, and then the server cannot say so; `meanwhile` comes before the client asks again. */
const doubtAfter = (meanwhile: () => Promise<void>): void => {
  const complete = server.box.tasks.complete.bind(server.box.tasks);
  vi.spyOn(server.box.tasks, 'complete').mockImplementationOnce(async (...given) => {
    await complete(...given);
    await meanwhile();
    throw new Failure('outcome-unknown', 'the store did not answer');
  });
};

const keysOf = (what: string): (string | null)[] =>
  wire.sent.filter(({ path }) => path.endsWith(what)).map(({ key }) => key);

describe('a task that ends while its server is away', () => {
  it('is completed when the server is back, for as long as the claim lasts', async () => {
    const claim = await box.tasks.claim('t');
    wire.isCut = true;
    const completed = claim.complete({ built: true });
    await clock.advance(10_000);
    wire.isCut = false;
    expect(await settledIn(clock, completed)).toMatchObject({ kind: 'completed' });
    expect(await server.box.tasks.show('t')).toMatchObject({ status: 'complete', result: { built: true } });
    expect(claim.signal.aborted).toBe(false);
    expect(new Set(keysOf('/complete')).size).toBe(1);
  });

  it('is completed once although the server was cut off after it had done so', async () => {
    const claim = await box.tasks.claim('t');
    wire.losesAnswer = (path) => {
      const isEnd = path.endsWith('/complete');
      if (isEnd) wire.isCut = true;
      return isEnd;
    };
    const completed = claim.complete();
    await clock.advance(7_000);
    wire.isCut = false;
    expect(await settledIn(clock, completed)).toMatchObject({ kind: 'completed' });
    // A renewal finds no claim any more, because it has ended as its worker wanted.
    expect([claim.signal.aborted, claim.lost]).toEqual([false, undefined]);
    expect(new Set(keysOf('/complete')).size).toBe(1);
  });

  it('keeps its claim while the server answers renewals and no end', async () => {
    const claim = await box.tasks.claim('t');
    vi.spyOn(server.box.tasks, 'complete').mockRejectedValue(new Failure('unavailable', 'the store is away'));
    const completed = claim.complete();
    await clock.advance(4 * TTL_MS);
    expect(claim.isValid).toBe(true);
    vi.restoreAllMocks();
    expect(await settledIn(clock, completed)).toMatchObject({ kind: 'completed' });
  });

  it('is told that it cannot be completed, once the claim is over', async () => {
    const claim = await box.tasks.claim('t');
    wire.isCut = true;
    await expect(settledIn(clock, claim.complete(), 500)).rejects.toMatchObject({ code: 'outcome-unknown' });
    expect(claim.lost).toMatchObject({ why: 'disconnected' });
    wire.isCut = false;
    await clock.advance(TTL_MS);
    expect(await claim.complete()).toMatchObject({ kind: 'not-owner' });
  });

  it('waits only for the usual time once its worker is in a hurry', async () => {
    const claim = await box.tasks.claim('t');
    const hurry = new AbortController();
    claim.hurryAfter(hurry.signal);
    wire.isCut = true;
    const released = claim.release();
    released.catch(() => undefined);
    await clock.advance(RETRY_MS + 1_000);
    hurry.abort();
    await clock.advance(RETRY_MS + 1_000);
    await expect(released).rejects.toMatchObject({ code: 'outcome-unknown' });
    expect(claim.isValid).toBe(true);
  });
});

describe('a task whose end was refused', () => {
  it('can be ended otherwise, and is renewed until then', async () => {
    const claim = await box.tasks.claim('t');
    const tooLarge = 'x'.repeat(2_000_000);
    await expect(claim.complete(tooLarge)).rejects.toMatchObject({ code: 'invalid' });
    await clock.advance(4 * TTL_MS);
    expect(claim.isValid).toBe(true);
    expect(await claim.fail('its result was too large')).toMatchObject({ kind: 'retried' });
  });

  it('is completed by the same request after the server could not say whether it was done', async () => {
    const claim = await box.tasks.claim('t');
    const doubt = new Failure('outcome-unknown', 'the store did not answer');
    vi.spyOn(server.box.tasks, 'complete').mockRejectedValueOnce(doubt);
    expect(await settledIn(clock, claim.complete())).toMatchObject({ kind: 'completed' });
    expect(new Set(keysOf('/complete')).size).toBe(1);
  });

  it('is called completed if the first request was done after all, although its server could not say so', async () => {
    const claim = await box.tasks.claim('t');
    doubtAfter(() => Promise.resolve());
    expect(await settledIn(clock, claim.complete())).toMatchObject({ kind: 'completed' });
    expect([claim.lost, await server.box.tasks.status('t')]).toEqual([undefined, 'complete']);
  });

  it('is not called lost if the first request was done after all, but nobody can say so', async () => {
    const claim = await box.tasks.claim('t');
    doubtAfter(async () => {
      await server.box.tasks.requeue('t');
      await (await server.box.tasks.claim('t', { holder: 'other' })).complete();
    });
    const inBlock = async (): Promise<void> => {
      await using ending = claim;
      await ending.complete();
    };
    const begun = clock.now();
    await expect(settledIn(clock, inBlock())).rejects.toMatchObject({ code: 'outcome-unknown' });
    expect(clock.now() - begun).toBeLessThan(TTL_MS / 2);
    expect(claim.lost).toBeUndefined();
    expect(await server.box.tasks.status('t')).toBe('complete');
  });
});

describe('a task whose server is killed in the middle of its end', () => {
  /** It has done what was asked, and has neither answered nor kept an answer: another server of the store has to tell. */
  const killServerAt = (end: string): void => {
    const begin = server.box.once.begin.bind(server.box.once);
    vi.spyOn(server.box.once, 'begin').mockImplementationOnce(async (...given) => {
      await begin(...given);
      return { kind: 'first', done: () => Promise.resolve(false), failed: () => Promise.resolve(false) };
    });
    wire.losesAnswer = (path) => path.endsWith(end);
  };

  it('is completed once, as another server says', async () => {
    const claim = await box.tasks.claim('t');
    killServerAt('/complete');
    expect(await settledIn(clock, claim.complete({ built: true }))).toEqual({ kind: 'completed' });
    expect(await server.box.tasks.show('t')).toMatchObject({ status: 'complete', result: { built: true } });
    expect(new Set(keysOf('/complete')).size).toBe(1);
  });

  it('is tried again once, as another server says, even if another worker has it by then', async () => {
    const claim = await box.tasks.claim('t');
    killServerAt('/fail');
    const failed = claim.fail('the disk is full');
    const next = await server.box.tasks.claim('t', { holder: 'next' });
    expect(await settledIn(clock, failed)).toMatchObject({ kind: 'retried' });
    expect([next.isValid, await server.box.tasks.status('t')]).toEqual([true, 'running']);
  });

  it('may have been released or not, if another worker has had it since: the repeat says that nobody knows', async () => {
    const { token } = await box.tasks.claimDetached('t', { holder: 'w' });
    const releases = (): Promise<Told> =>
      server.post('/v1/tasks/t/release', { holder: 'w', token }, { headers: { 'Idempotency-Key': 'k' } });
    killServerAt('nothing');
    expect((await releases()).status).toBe(200);
    await (await server.box.tasks.claim('t', { holder: 'next' })).release();
    expect(await releases()).toMatchObject({ status: 504, body: { code: 'outcome-unknown' } });
  });

  it('gets the same answer from then on, whatever becomes of the task', async () => {
    const { token } = await box.tasks.claimDetached('t', { holder: 'w' });
    const ends = (key: string): Promise<Told> =>
      server.post('/v1/tasks/t/complete', { holder: 'w', token }, { headers: { 'Idempotency-Key': key } });
    killServerAt('nothing');
    expect((await ends('k')).status).toBe(200);
    expect((await ends('k')).status).toBe(200);
    await server.box.tasks.requeue('t');
    await clock.advance(3_600_000);
    expect((await ends('k')).status).toBe(200);
    expect((await ends('other')).status).toBe(409);
  });
});

describe('a block that a claim was made for', () => {
  it('ends with its own error and without a further wait, if the claim was lost', async () => {
    const claim = await box.tasks.claim('t');
    const inBlock = async (): Promise<void> => {
      await using ending = claim;
      wire.isCut = true;
      await ending.complete();
    };
    await expect(settledIn(clock, inBlock(), 500)).rejects.toMatchObject({ name: 'Failure', code: 'outcome-unknown' });
    expect(keysOf('/release')).toEqual([]);
  });

  it('gives the task back whose end was refused', async () => {
    const claim = await box.tasks.claim('t');
    const inBlock = async (): Promise<void> => {
      await using ending = claim;
      await ending.complete('x'.repeat(2_000_000));
    };
    await expect(inBlock()).rejects.toMatchObject({ code: 'invalid' });
    expect(await server.box.tasks.status('t')).toBe('pending');
  });
});

describe('a claim that waits through a server', () => {
  it('is given back by a token that may act for its holder alone, when its caller has left', async () => {
    const token = await server.token('worker', { holders: ['worker:1'] });
    const bound = connect(URL_OF_TESTS, { token, fetch: wire.fetch, clock });
    await server.box.tasks.claim('t', { holder: 'other' });
    const leaving = new AbortController();
    const given = bound.tasks.claimNext({ holder: 'worker:1', signal: leaving.signal });
    await expect.poll(() => wire.sent.some(({ path }) => path.endsWith('/claim'))).toBe(true);
    leaving.abort();
    await expect(given).rejects.toMatchObject({ refusal: { kind: 'aborted' } });
    await server.box.tasks.publish('late', {});
    await expect.poll(() => wire.sent.some(({ path }) => path === '/v1/tasks/late/release')).toBe(true);
    await expect.poll(() => server.box.tasks.status('late')).toBe('pending');
    await bound.close();
  });

  it('is valid although it was granted late in a long wait', async () => {
    await server.box.tasks.claim('t', { holder: 'other' });
    const waiting = box.tasks.claimNext({ ttlMs: 5_000 });
    await clock.advance(9_000);
    await server.box.tasks.publish('late', {});
    const claim = await settledIn(clock, waiting, 1);
    expect(claim.isValid).toBe(true);
    await clock.advance(60_000);
    expect(claim.isValid).toBe(true);
  });
});
