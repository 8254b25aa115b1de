/** Assertions in production: what is read or heard of and breaks a promise is an error that names it, and is never handed out. */
import { Failure } from 'signalbox';
import { Value } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { Fleet, type Process } from '../support/fleet.ts';
import { putLetter, sessionOf } from '../support/letters.ts';
import { changesRecord } from '../support/link.ts';
import { errorOf, settled } from '../support/outcome.ts';

const MAIN = 'r/lock/main';

interface Document {
  readonly record: { readonly token: number; readonly holds: readonly Readonly<Record<string, unknown>>[] };
}

async function edit({ store }: Fleet, change: (document: Document) => Document): Promise<void> {
  const read = { do: 'read', key: MAIN } as const;
  const { results } = await store.transaction({ compare: [], success: [read], failure: [] });
  const [found] = results;
  if (found?.do !== 'read') throw new TypeError('nothing was read');
  const value = Value.json(change(found.pairs[0]?.value.json as Document));
  await store.transaction({ compare: [], success: [{ do: 'put', key: MAIN, value }], failure: [] });
}

function told(error: unknown): string {
  if (!Failure.is(error, 'inconsistent')) throw error;
  return error.message;
}

/** A process that holds the lock, another one that waits for it, and the id of the request that waits. */
async function oneWaits(fleet: Fleet): Promise<{ waiting: Promise<unknown>; id: string; other: Process }> {
  const [one, other] = (await fleet.startAll('one', 'other')) as [Process, Process];
  await one.box.lock('main').acquire({ holder: 'one' });
  const waiting = other.box.lock('main').acquire();
  void waiting.catch(() => undefined);
  await settled();
  const read = { do: 'read', key: 'q/', end: 'q0' } as const;
  const { results } = await fleet.store.transaction({ compare: [], success: [read], failure: [] });
  const [found] = results;
  const key = found?.do === 'read' ? found.pairs[0]?.key : undefined;
  return { waiting, other, id: key?.split('/').at(-1) ?? '' };
}

const grant = (id: string, fields: object): object => {
  return { id, holder: id, token: 99, lease: 'other1', acquiredAt: 0, mode: 'exclusive', ...fields };
};

describe('an answer in a letter', () => {
  it.each([
    ['gives it to another', { holder: 'somebody' }, 'somebody was given it'],
    ['rests on another lease', { lease: 'one1' }, 'got one1'],
    ['has no token', { token: 0 }, 'was given token 0'],
    ['is less than was asked for', { mode: 'shared' }, 'asked for it exclusive, and got it shared'],
  ])('is an error if it %s', async (_, fields, what) => {
    const fleet = new Fleet(false);
    const { waiting, id } = await oneWaits(fleet);
    const outcome = { kind: 'acquired', hold: grant(id, fields) };
    const letter = { answers: [{ id, resource: 'lock/main', outcome }], losses: [] };
    await putLetter(fleet.store, await sessionOf(fleet.store, 'other'), JSON.stringify(letter));
    const message = told(await errorOf(waiting));
    expect(message).toContain('"lock/main", as it was about to be handed out');
    expect(message).toContain(what);
  });

  it('is an error if the record that it comes with breaks a promise', async () => {
    const fleet = new Fleet(false);
    const { waiting, id } = await oneWaits(fleet);
    const holds = [grant('one1.1', { holder: 'one', lease: 'one1', token: 98 }), grant(id, {})];
    const record = { v: 1, kind: 'lock', token: 99, onStale: 'reclaim', passed: null, holds };
    const letter = {
      answers: [{ id, resource: 'lock/main', outcome: { kind: 'acquired', hold: holds[1] } }],
      losses: [],
      reports: [{ resource: 'lock/main', record, by: 'one1', waiting: [], queueRevision: 1 }],
    };
    await putLetter(fleet.store, await sessionOf(fleet.store, 'other'), JSON.stringify(letter));
    const message = told(await errorOf(waiting));
    expect(message).toContain(
      '"lock/main", as another process told it: one holds it exclusively, together with 1 others',
    );
  });

  it('that was refused leaves no ticket behind', async () => {
    const fleet = new Fleet(false);
    const { waiting, id, other } = await oneWaits(fleet);
    const outcome = { kind: 'acquired', hold: grant(id, { token: 0 }) };
    const letter = { answers: [{ id, resource: 'lock/main', outcome }], losses: [] };
    await putLetter(fleet.store, await sessionOf(fleet.store, 'other'), JSON.stringify(letter));
    await errorOf(waiting);
    await settled();
    expect((await other.box.lock('main').inspect()).waiting).toEqual([]);
  });
});

describe('a hold that is found again after its answer got lost', () => {
  it.each(['acquire', 'acquireAll'] as const)('is an error of %s if it is not what was asked for', async (how) => {
    const fleet = new Fleet(false);
    const [one] = (await fleet.startAll('one')) as [Process];
    one.link.next('transaction', 'unanswered', changesRecord);
    // The fence that follows is on its way for as long as it takes another program to change the record.
    one.link.next('transaction', 'delayed', ({ success }) =>
      success.some((operation) => operation.do === 'put' && operation.key.startsWith('a/')),
    );
    const asked =
      how === 'acquire'
        ? one.box.lock('main').acquire({ holder: 'worker:1' })
        : one.box.acquireAll([{ lock: 'main' }], { holder: 'worker:1' });
    void asked.catch(() => undefined);
    await settled();
    await edit(fleet, ({ record, ...rest }) => ({
      ...rest,
      record: { ...record, holds: record.holds.map((hold) => ({ ...hold, holder: 'worker:2' })) },
    }));
    one.link.deliverDelayed();
    expect(told(await errorOf(asked))).toContain('worker:1 asked for it, and worker:2 was given it');
  });
});

describe('a record', () => {
  it('is an error for one who asks if it breaks a promise', async () => {
    const fleet = new Fleet(false);
    const [one, other] = (await fleet.startAll('one', 'other')) as [Process, Process];
    await one.box.lock('main').acquire();
    await edit(fleet, ({ record, ...rest }) => ({ ...rest, record: { ...record, token: 0 } }));
    expect(told(await errorOf(other.box.lock('main').acquire()))).toContain('the last one given out is 0');
  });
});
