// What reaches a driver late, twice or in another order than it happened.

import type { ReadResult, Transaction } from 'signalbox/store';
import { fakeAdapters } from 'signalbox/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keysOf } from '../../src/runtime/holds/held-records.ts';
import type { Process } from '../support/fleet.ts';
import { isPending, settled } from '../support/outcome.ts';
import { book, guard, phase, shell } from './books.ts';
import { left, Stage, until } from './stage.ts';

const writesRecord = ({ success }: Transaction): boolean =>
  success.some((operation) => operation.do === 'put' && operation.key.startsWith('s/pipeline/'));

const readsRecord = ({ success }: Transaction): boolean =>
  success.length === 1 && success.some((operation) => operation.do === 'read' && operation.key === 's/pipeline/p');

/** A store that answers later. */
const stage = (): Stage => new Stage(false);

describe('a driver whose pipeline is cancelled', () => {
  it('leaves although it hears of it before it has the answer to its own write', async () => {
    const on = stage();
    const [first, driver, other] = await on.fleet.startAll('first', 'driver', 'other');
    await other!.box.lock('taken').acquire({ holder: 'worker:1' });
    const before = await left(
      on.run(first!, book(phase('work', { pre: [guard({ lockFree: 'taken' })] })), { waits: false }),
    );
    driver!.link.next('transaction', 'held', writesRecord);
    const driving = left(on.resume(driver!));
    await until(async () => ((await other!.box.pipelines.show('p'))?.lastToken ?? 0) > before.lastToken);
    expect((await other!.box.pipelines.cancel('p', { reason: 'no more' }))?.state).toBe('cancelled');
    await on.advance(0);
    driver!.link.answerHeld();
    await on.advance(1_000);
    expect(await isPending(driving)).toBe(false);
    expect((await driving).state).toBe('cancelled');
  });

  it('ends its command although it was cut off meanwhile, and what it missed cannot be read at once', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    on.does({ work: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)) });
    const driving = left(on.run(driver!, book(phase('work'))));
    await until(() => on.ran.length === 1);
    driver!.link.cutOff('refusing');
    const cancelling = other!.box.pipelines.cancel('p');
    await until(async () => (await other!.box.pipelines.show('p'))?.cancel !== undefined);
    await on.fleet.store.compact(await on.fleet.revision());
    driver!.link.reconnect();
    driver!.link.next('transaction', 'refused', readsRecord);
    driver!.link.next('transaction', 'refused', readsRecord);
    for (let turn = 0; turn < 20 && (await isPending(driving)); turn++) await on.advance(500);
    expect(await isPending(driving)).toBe(false);
    expect((await driving).state).toBe('cancelled');
    expect((await cancelling)?.state).toBe('cancelled');
  });
});

describe('a cancel that comes back after the pipeline was removed', () => {
  it('leaves one alone that was started under the same id since', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    on.does({ work: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)) });
    const driving = left(on.run(driver!, book(phase('work'))));
    await until(() => on.ran.length === 1);
    other!.link.next('transaction', 'held', writesRecord);
    const cancelling = other!.box.pipelines.cancel('p');
    expect((await driving).state).toBe('cancelled');
    await driver!.box.pipelines.forget('p');
    await on.advance(1);
    const functions = new Map([['work', () => undefined]]);
    await driver!.box.pipelines.start({ runbook: book(phase('work')), functions }, { id: 'p', cwd: on.directory });
    other!.link.answerHeld();
    await on.advance(1_000);
    expect(await cancelling).toBeUndefined();
    expect((await driver!.box.pipelines.show('p'))?.state).toBe('pending');
  });
});

describe('a driver whose store does not answer for a moment', () => {
  const takes = ({ success }: Transaction): boolean =>
    success.some((operation) => operation.do === 'put' && operation.key === 'r/lock/main');
  const looks = ({ success }: Transaction): boolean =>
    success.some((operation) => operation.do === 'read' && operation.key === 'r/lock/main');

  it.each([
    ['it looks at what it is to hold', looks],
    ['it takes what it is to hold', takes],
  ])('while %s asks again, and does not leave', async (_, matches) => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    for (let times = 0; times < 3; times++) driver.link.next('transaction', 'refused', matches);
    const driving = left(on.run(driver, book(phase('work', { holds: [{ lock: 'main' }] }))));
    driving.catch(() => undefined);
    for (let turn = 0; turn < 20 && (await isPending(driving)); turn++) await on.advance(500);
    expect(await driving).toMatchObject({ state: 'done', phases: [{ runs: 1 }] });
    expect(driver.link.asked.filter(({ transaction }) => matches(transaction)).length).toBeGreaterThan(3);
  });

  it('looks at its guards again when it does not know whether their warnings were written', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    const hold = await other!.box.lock('main').acquire();
    const adapters = fakeAdapters();
    const pre = [guard({ lockFree: 'main' }), guard({ lockHeld: 'main' }, { id: 'held', onFailure: 'warn' })];
    const driving = left(on.run(driver!, book(phase('work', { pre })), { adapters }));
    await on.advance(0);
    expect((await other!.box.pipelines.show('p'))?.blocked?.on).toBe('guard');
    driver!.link.next('transaction', 'unanswered', writesRecord);
    await hold.release();
    for (let turn = 0; turn < 20 && (await isPending(driving)); turn++) await on.advance(500);
    expect(await isPending(driving)).toBe(false);
    expect((await driving).state).toBe('done');
  });
});
describe('a driver that has not heard that it is none any more', () => {
  /** Its function runs, and it hears nothing of what others do. */
  async function deaf(): Promise<{ on: Stage; other: Process; driving: Promise<unknown>; finish: () => void }> {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    const finishing: (() => void)[] = [];
    on.does({ work: () => new Promise<void>((resolve) => finishing.push(resolve)) });
    const driving = on.run(driver!, book(phase('work', { idempotent: true }), phase('next')));
    driving.catch(() => undefined);
    await until(() => on.ran.length === 1);
    driver!.link.holdNews();
    onTestFinished(() => driver!.link.deliverNews());
    return { on, other: other!, driving, finish: () => finishing.shift()?.() };
  }

  it('because somebody else drives it changes nothing', async () => {
    const { on, other, driving, finish } = await deaf();
    await other.box.lock('pipeline:p').break({ holder: 'ops', reason: 'stuck' });
    const next = left(on.resume(other));
    await until(() => on.ran.length === 2);
    finish();
    await driving.catch(() => undefined);
    expect(on.ran).toEqual(['work', 'work']);
    expect(await other.box.pipelines.show('p')).toMatchObject({ step: { when: 'during', phase: 0 } });
    finish();
    expect((await next).state).toBe('done');
    expect(on.ran).toEqual(['work', 'work', 'next']);
  });

  it('because its session has ended changes nothing, although nobody else has come yet', async () => {
    const { on, other, driving, finish } = await deaf();
    const before = await other.box.pipelines.show('p');
    const success = [{ do: 'read' as const, key: keysOf('lock/pipeline:p').record }];
    const { results } = await on.fleet.store.transaction({ compare: [], success, failure: [] });
    const document = (results[0] as ReadResult).pairs[0]?.value.json as { record: { holds: { lease: string }[] } };
    const key = `a/${document.record.holds[0]?.lease}`;
    const gone = { compare: [], success: [{ do: 'delete' as const, key }], failure: [] };
    expect((await on.fleet.store.transaction(gone)).results[0]).toMatchObject({ deleted: 1 });
    finish();
    await expect(driving).rejects.toThrow('the session of its driver has ended');
    expect(on.ran).toEqual(['work']);
    expect(await other.box.pipelines.show('p')).toMatchObject({ step: before?.step, lastDriven: before?.lastDriven });
  });
});

describe('a pipeline of an id that was used before', () => {
  it('is not driven by the runbook of the one that was forgotten', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    on.does({ old: () => undefined });
    await other!.box.pipelines.start(book(phase('old')), { id: 'p' });
    let isAsked = false;
    driver!.link.next('transaction', 'refused', (transaction) => writesRecord(transaction) && (isAsked = true));
    const driving = on.resume(driver!);
    driving.catch(() => undefined);
    await until(() => isAsked);
    await other!.box.pipelines.cancel('p');
    expect(await other!.box.pipelines.forget('p')).toBe(true);
    await on.advance(1);
    await other!.box.pipelines.start(book(phase('new')), { id: 'p' });
    await on.advance(1_000);
    await expect(driving).rejects.toThrow('pipeline/p: there is no such pipeline any more');
    expect(on.ran).toEqual([]);
    expect((await other!.box.pipelines.show('p'))?.state).toBe('pending');
  });
});

describe('what a person decided', () => {
  it('is not taken for the answer to a question that nobody had asked yet', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    const hold = await other!.box.lock('main').acquire();
    const runbook = book(
      shell('work', 'exit 1', { pre: [guard({ lockFree: 'main' })], onFailure: 'block' }),
      phase('next'),
    );
    await left(on.run(driver!, runbook, { waits: false }));
    for (const decision of ['skip', 'rerun'] as const) {
      expect(await on.resume(driver!, { decision })).toMatchObject({ kind: 'nothing-to-decide' });
    }
    const resuming = left(on.resume(driver!));
    await on.advance(0);
    expect(await on.resume(other!, { decision: 'skip', standsBy: true })).toMatchObject({ kind: 'nothing-to-decide' });
    await hold.release();
    expect(await resuming).toMatchObject({
      state: 'blocked',
      blocked: { on: 'person' },
      phases: [{ state: 'failed', runs: 1 }, {}],
    });
    expect(on.ran).toEqual([]);
  });

  it.each(['skip', 'rerun'] as const)(
    'while a phase runs is refused at once: %s cannot mean what happens to the phase later',
    async (decision) => {
      const on = stage();
      const [driver, other] = await on.fleet.startAll('driver', 'other');
      on.does({ pay: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)) });
      const stop = new AbortController();
      const driving = on.run(driver!, book(phase('pay'), phase('ship')), { signal: stop.signal });
      await until(() => on.ran.length === 1);
      const deciding = on.resume(other!, { decision, standsBy: true });
      expect(await deciding).toMatchObject({ kind: 'nothing-to-decide', record: { state: 'running' } });
      stop.abort();
      expect(await left(driving)).toMatchObject({ state: 'blocked', blocked: { on: 'person' } });
      expect(on.ran).toEqual(['pay']);
    },
  );

  it('is carried out once, however many give the same answer to one question', async () => {
    const on = stage();
    const [driver, second, third] = await on.fleet.startAll('driver', 'second', 'third');
    on.does({
      pay: () => {
        throw new Error('no funds');
      },
    });
    const asked = await left(on.run(driver!, book(phase('pay', { onFailure: 'block' }))));
    const answers = await Promise.all(
      [driver!, second!, third!].map((each) => on.resume(each, { decision: 'rerun', standsBy: true })),
    );
    expect(answers.map(({ kind }) => kind).sort()).toEqual(['answered', 'answered', 'left']);
    expect(answers).toContainEqual(expect.objectContaining({ kind: 'answered', choice: 'rerun' }));
    expect(on.ran).toEqual(['pay', 'pay']);
    const now = await driver!.box.pipelines.show('p');
    expect([asked, now].map((record) => record?.blocked)).toMatchObject([{ on: 'person' }, { on: 'person' }]);
    const question = asked.blocked?.on === 'person' ? asked.blocked.question : 0;
    expect(await on.resume(driver!, { decision: 'skip', question })).toMatchObject({ kind: 'answered' });
    const other = { kind: 'another-question', question: now?.lastQuestion };
    expect(await on.resume(driver!, { decision: 'skip', question: question + 1_000 })).toMatchObject(other);
    expect(on.ran).toEqual(['pay', 'pay']);
  });

  it('is not taken for an answer to a later pipeline of the same id', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    const runbook = book(shell('pay', 'exit 1', { onFailure: 'block' }));
    const asked = await left(on.run(driver!, runbook));
    await other!.box.pipelines.cancel('p');
    await other!.box.pipelines.forget('p');
    await left(on.run(driver!, runbook));
    const question = asked.lastQuestion;
    expect((await on.resume(other!, { decision: 'skip', question })).kind).toBe('another-question');
  });

  it('leaves a pipeline pending that nobody has driven, for a driver to come', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    await driver.box.pipelines.start(book(phase('work')), { id: 'p' });
    for (const decision of ['skip', 'rerun'] as const) {
      expect(await on.resume(driver, { decision })).toMatchObject({ kind: 'nothing-to-decide' });
    }
    await expect(driver.box.pipelines.resume('p')).rejects.toThrow('phase work is a function of the program');
    expect(await driver.box.pipelines.show('p')).toMatchObject({ state: 'pending', isDriven: false, lastToken: 0 });
  });

  it('about one phase is not taken for another that is asked about when its turn comes', async () => {
    const on = stage();
    const [driver, other] = await on.fleet.startAll('driver', 'other');
    const runbook = book(
      shell('one', 'exit 1', { onFailure: 'block' }),
      shell('two', 'exit 1', { onFailure: 'block' }),
    );
    await left(on.run(driver!, runbook));
    const busy = await other!.box.lock('pipeline:p').acquire();
    const late = on.resume(driver!, { decision: 'skip', standsBy: true });
    await until(async () => (await other!.box.lock('pipeline:p').inspect()).waiting.length === 1);
    const sooner = on.resume(other!, { decision: 'skip', standsBy: true });
    await until(async () => (await other!.box.lock('pipeline:p').inspect()).waiting.length === 2);
    await busy.release();
    const outcomes = await Promise.all([late, sooner]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['left', 'answered']);
    const record = await other!.box.pipelines.show('p');
    expect(record?.phases.map(({ state }) => state)).toEqual(['skipped', 'failed']);
  });
});
describe('many pipelines', () => {
  it('can be stopped by one signal without a word about too many listeners', async () => {
    const on = stage();
    const driver = await on.fleet.start('driver');
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => {
      // Of others that are loaded at that moment, others may warn.
      if (name === 'MaxListenersExceededWarning') warnings.push(name);
    };
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    on.does({ work: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)) });
    const stop = new AbortController();
    const driving = Array.from({ length: 20 }, (_, place) =>
      left(on.run(driver, book(phase('work')), { id: `p${place}`, signal: stop.signal })),
    );
    await until(() => on.ran.length === 20);
    stop.abort();
    expect((await Promise.all(driving)).map(({ blocked }) => blocked?.on)).toEqual(driving.map(() => 'person'));
    await settled();
    expect(warnings).toEqual([]);
  });
});
