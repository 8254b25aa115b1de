/** Records of free locks are deleted, and tokens only ever grow: also where a write that was decided before lands after. */
import fc from 'fast-check';
import type { Changes, Transaction } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process, transports } from '../support/fleet.ts';
import { changesRecord } from '../support/link.ts';
import { settled } from '../support/outcome.ts';

const ROUND_MS = 30_000;
const HORIZON = 'r.horizon';
/** LAW_RUNS=10 for ten times as many. */
const NUM_RUNS = 60 * Number(process.env['LAW_RUNS'] ?? 1);

/** Throws, when asked, if the store was ever told to grant a lock with a token that is not larger than all before. */
class Tokens {
  readonly #highest = new Map<string, { readonly token: number; readonly id: string }>();
  readonly #over = new AbortController();
  deleted = 0;
  wentBack: string | undefined;

  static async of({ store }: Fleet): Promise<Tokens> {
    const tokens = new Tokens();
    const watch = await store.watch({ key: 'r/', end: 'r0' }, 'now', tokens.#over.signal);
    void (async () => {
      for await (const changes of watch) tokens.#saw(changes);
    })();
    return tokens;
  }

  stop(): void {
    this.#over.abort();
  }

  #saw({ changes }: Changes): void {
    for (const change of changes) {
      if (change.kind === 'delete') {
        this.deleted += 1;
        continue;
      }
      const { key, value } = change.pair;
      const { record } = value.json as { record: { holds: readonly { token: number; id: string }[] } };
      for (const { token, id } of record.holds) {
        const highest = this.#highest.get(key);
        if (highest === undefined || token > highest.token) this.#highest.set(key, { token, id });
        else if (id !== highest.id) this.wentBack ??= `${key} was granted with #${token} after #${highest.token}`;
      }
    }
  }
}

type Act =
  | { readonly kind: 'use'; readonly who: number; readonly name: string; readonly late: boolean }
  | { readonly kind: 'deliver'; readonly who: number }
  | { readonly kind: 'maintain' };

const who = fc.nat({ max: 2 });
const acts = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('use'), who, name: fc.constantFrom('a', 'b'), late: fc.boolean() }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('deliver'), who }) },
    { weight: 3, arbitrary: fc.constant({ kind: 'maintain' }) },
  ),
  { minLength: 4, maxLength: 24 },
) as fc.Arbitrary<readonly Act[]>;

type Spoil = (transaction: Transaction) => Transaction;

/** What went back, in one life of two locks; and how many records were deleted. */
async function live(life: readonly Act[], spoilUser?: Spoil, spoilKeeper?: Spoil): Promise<Tokens> {
  const fleet = new Fleet(false);
  const tokens = await Tokens.of(fleet);
  const users = await fleet.startAll('one', 'two', 'three');
  const [keeper] = await fleet.startAll('keeper');
  for (const { link } of users) {
    if (spoilUser !== undefined) link.spoil = spoilUser;
    // What goes on elsewhere is told to nobody: each knows only what it has seen itself.
    link.holdNews();
  }
  if (spoilKeeper !== undefined) keeper!.link.spoil = spoilKeeper;
  const using: Promise<unknown>[] = [];
  for (const act of life) {
    if (act.kind === 'maintain') await keeper!.box.maintain();
    else if (act.kind === 'deliver') users[act.who]!.link.deliverDelayed();
    else {
      const { box, link } = users[act.who]!;
      if (act.late) link.next('transaction', 'delayed', changesRecord);
      using.push(
        box
          .lock(act.name)
          .run(() => undefined, { strategy: 'fail-fast' })
          .catch(() => undefined),
      );
    }
    await settled();
  }
  for (const { link } of users) link.deliverDelayed();
  await settled();
  tokens.stop();
  return tokens;
}

const withoutHorizon: Spoil = (transaction) => ({
  ...transaction,
  compare: transaction.compare.filter(({ key }) => key !== HORIZON),
});

const neverRaising: Spoil = (transaction) => ({
  ...transaction,
  success: transaction.success.map((operation) =>
    operation.do === 'put' && operation.key === HORIZON ? { do: 'read', key: HORIZON } : operation,
  ),
});

async function law(spoilUser?: Spoil, spoilKeeper?: Spoil): Promise<fc.RunDetails<[readonly Act[]]>> {
  const property = fc.asyncProperty(acts, async (life) => {
    const { wentBack } = await live(life, spoilUser, spoilKeeper);
    if (wentBack !== undefined) throw new Error(wentBack);
  });
  return fc.check(property, { numRuns: NUM_RUNS, ...((spoilUser ?? spoilKeeper) ? { seed: 1 } : {}) });
}

describe('tokens of locks whose records are deleted', () => {
  it('never repeat and never go back, whatever write arrives late', async () => {
    const { failed, counterexample, errorInstance, seed } = await law();
    expect({ failed, counterexample, errorInstance, seed }).toMatchObject({ failed: false });
  });

  it.each([
    ['a write that makes a record does not look at the horizon', withoutHorizon, undefined],
    ['maintenance deletes records without having written the horizon', undefined, neverRaising],
  ])('would go back if %s: the law notices', async (_, spoilUser, spoilKeeper) => {
    const { failed, errorInstance } = await law(spoilUser, spoilKeeper);
    expect(failed).toBe(true);
    expect(String(errorInstance)).toMatch(/was granted with #\d+ after #\d+/);
  });

  it('grow past the deleted one, for a process that had decided before and was paused until after', async () => {
    const fleet = new Fleet(false);
    const tokens = await Tokens.of(fleet);
    const [paused, busy] = await fleet.startAll('paused', 'busy');
    paused!.link.holdNews();
    paused!.link.next('transaction', 'delayed', changesRecord);
    const acquiring = paused!.box.lock('db').acquire();
    await settled();
    let last = 0;
    for (let time = 0; time < 5; time++) {
      const hold = await busy!.box.lock('db').acquire();
      last = hold.token;
      await hold.release();
    }
    expect(await busy!.box.maintain()).toMatchObject({ forgotten: 1 });
    paused!.link.deliverDelayed();
    expect((await acquiring).token).toBeGreaterThan(last);
    expect(tokens.deleted).toBe(1);
    expect(tokens.wentBack).toBeUndefined();
  });
});

async function records(fleet: Fleet): Promise<readonly string[]> {
  const read = { do: 'read', key: 'r/', end: 'r0' } as const;
  const { results } = await fleet.store.transaction({ compare: [], success: [read], failure: [] });
  return results.flatMap((result) => (result.do === 'read' ? result.pairs.map(({ key }) => key) : []));
}

async function use({ box }: Process, ...names: readonly string[]): Promise<void> {
  for (const name of names) await (await box.lock(name).acquire()).release();
}

describe.each(transports)('records of free locks on $transport', ({ atOnce }) => {
  it('go although the process that used them lives on', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    await use(one!, 'a', 'b', 'c');
    await fleet.advance(4 * ROUND_MS);
    expect(await records(fleet)).toEqual([]);
    await use(one!, 'd');
    await one!.box.lock('held').acquire();
    await fleet.advance(4 * ROUND_MS);
    expect(await records(fleet)).toEqual(['r/lock/held']);
  });

  it('stay while they are used from round to round', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    // The first round goes through everything; from then on it is known since when a record is as it is.
    await fleet.advance(2 * ROUND_MS);
    for (let round = 0; round < 4; round++) {
      await use(one!, 'often');
      await fleet.advance(ROUND_MS);
      expect(await records(fleet)).toEqual(['r/lock/often']);
    }
    await fleet.advance(2 * ROUND_MS);
    expect(await records(fleet)).toEqual([]);
  });

  it('are deleted by many at once', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    await use(one!, ...Array.from({ length: 100 }, (_, n) => `n${n}`));
    const before = await fleet.revision();
    expect(await one!.box.maintain()).toMatchObject({ records: 100, forgotten: 100 });
    expect((await fleet.revision()) - before).toBeLessThan(10);
  });
});

describe('a round of maintenance', () => {
  /** How many keys the store was asked for by it, at most. */
  function looked(process: Process, from: number): number {
    const reads = process.link.asked.slice(from).flatMap(({ transaction }) => transaction.success);
    return reads.filter((operation) => operation.do === 'read' && operation.key.startsWith('r/')).length;
  }

  it('looks at no record if nothing changed, and does not write to a store that is left alone', async () => {
    const fleet = new Fleet(false);
    const [one] = await fleet.startAll('one');
    for (let n = 0; n < 300; n++) await one!.box.lock(`n${n}`).acquire();
    await fleet.advance(3 * ROUND_MS);
    const from = one!.link.asked.length;
    const revision = await fleet.revision();
    await fleet.advance(10 * ROUND_MS);
    expect(looked(one!, from)).toBe(0);
    expect(await fleet.revision()).toBe(revision);
  });

  it('writes nothing for a free lock whose token is ahead of the store, until the store has come past it', async () => {
    const fleet = new Fleet(false);
    const [one] = await fleet.startAll('one');
    const writer = await one!.box.lock('db').acquire();
    // Fifty readers come in with one write: fifty tokens, one revision.
    const reading = Array.from({ length: 50 }, () => one!.box.lock('db').acquire({ mode: 'shared' }));
    await settled();
    await writer.release();
    const readers = await Promise.all(reading);
    await Promise.all(readers.map((hold) => hold.release()));
    await fleet.advance(3 * ROUND_MS);
    const revision = await fleet.revision();
    await fleet.advance(10 * ROUND_MS);
    expect((await fleet.revision()) - revision).toBe(0);
    expect(await records(fleet)).toEqual(['r/lock/db']);
    for (let n = 0; n < 60; n++) await use(one!, 'other');
    await fleet.advance(3 * ROUND_MS);
    expect(await records(fleet)).toEqual([]);
  });

  it('looks at those whose holder has died, and at no others', async () => {
    const fleet = new Fleet(false);
    const [one] = await fleet.startAll('one');
    for (let n = 0; n < 300; n++) await one!.box.lock(`n${n}`).acquire();
    await fleet.advance(3 * ROUND_MS);
    const [dead] = await fleet.startAll('dead');
    await dead!.box.lock('left').acquire();
    await dead!.box.semaphore('slots', { capacity: 2 }).acquire();
    await fleet.advance(2 * ROUND_MS);
    const from = one!.link.asked.length;
    dead!.crash();
    await fleet.advance(4 * ROUND_MS);
    expect(await one!.box.lock('left').isFree()).toBe(true);
    expect(await one!.box.semaphore('slots').usedSlots()).toBe(0);
    expect(looked(one!, from)).toBeLessThan(20);
  });

  it('frees what hangs on a lease that ended before its record was followed', async () => {
    const fleet = new Fleet(false);
    const [one, two] = await fleet.startAll('one', 'two');
    await fleet.advance(2 * ROUND_MS);
    one!.link.holdNews();
    await two!.box.lock('short').acquireDetached({ holder: 'script', ttlMs: 1000 });
    await fleet.advance(4 * ROUND_MS);
    one!.link.deliverNews();
    await fleet.advance(3 * ROUND_MS);
    expect(await one!.box.lock('short').isFree()).toBe(true);
  });

  it('goes through everything where history does not go back to the last one', async () => {
    const fleet = new Fleet(false, { historyLimit: 16 });
    const [one] = await fleet.startAll('one');
    await fleet.advance(2 * ROUND_MS);
    const [dead] = await fleet.startAll('dead');
    await dead!.box.lock('left').acquire();
    for (let n = 0; n < 40; n++) await (await one!.box.lock(`n${n}`).acquire()).release();
    dead!.crash();
    await fleet.advance(4 * ROUND_MS);
    expect(await one!.box.lock('left').isFree()).toBe(true);
    const read = { do: 'read', key: 'r/lock/n', end: 'r/lock/o', countOnly: true } as const;
    const { results } = await fleet.store.transaction({ compare: [], success: [read], failure: [] });
    expect(results).toMatchObject([{ count: 0 }]);
  });
});
