/** The one way to write: whatever becomes of a request or its answer, what was asked is done once, and told. */
import { Failure } from 'signalbox';
import {
  openMemory,
  type ReadResult,
  type Store,
  type Transaction,
  type TransactionResult,
  Value,
} from 'signalbox/store';
import { faultyStore, type Fate, ScriptedFaults, TestClock } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import { Witness } from '../../src/runtime/write/witness.ts';
import { type Intent, persistently, writeOnce, type WriteHost } from '../../src/runtime/write/write-once.ts';
import { errorOf, isPending, settled } from '../support/outcome.ts';

interface Entry {
  readonly ids: readonly string[];
  readonly mod: number;
}

class Desk implements WriteHost {
  readonly clock = new TestClock();
  readonly faults = new ScriptedFaults();
  readonly engine: Store = openMemory({ clock: this.clock });
  readonly store = faultyStore(this.engine, this.faults);
  readonly over = new AbortController();
  readonly stopped = this.over.signal;
  fences = 0;
  readonly revision = 0;
  readonly session = {};
  readonly witness = new Witness({ isOn: false, isDemanded: false }, this);

  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void {
    this.store.transaction(transaction).then(done, failed);
  }

  later(delayMs: number, call: () => void): { cancel(): void } {
    return this.clock.timer(delayMs, call);
  }

  async entry(store = this.store): Promise<Entry> {
    const { results } = await store.transaction({ compare: [], success: [{ do: 'read', key: 'k' }], failure: [] });
    const [pair] = (results[0] as ReadResult).pairs;
    return { ids: (pair?.value.json as string[] | undefined) ?? [], mod: pair?.modRevision ?? 0 };
  }

  /** Adds its id to a list, once. */
  adding(id: string, given: Partial<Intent<Entry, string>> = {}): Intent<Entry, string> {
    return {
      read: (isFirst) => (isFirst ? { ids: [], mod: 0 } : this.entry()),
      found: ({ ids }) => (ids.includes(id) ? 'found' : undefined),
      decide: ({ ids, mod }) => ({
        kind: 'write',
        transaction: {
          compare: [{ key: 'k', target: 'mod', is: '=', than: mod }],
          success: [{ do: 'put', key: 'k', value: Value.json([...ids, id]) }],
          failure: [{ do: 'read', key: 'k' }],
        },
        deeds: [],
        landed: () => 'landed',
        overtaken: ({ results }) => {
          const [pair] = (results[0] as ReadResult).pairs;
          return { ids: (pair?.value.json as string[] | undefined) ?? [], mod: pair?.modRevision ?? 0 };
        },
      }),
      fence: (done, failed) => {
        this.fences += 1;
        this.entry().then(() => done(), failed);
      },
      until: this.clock.monotonic() + 60_000,
      ...given,
    };
  }
}

const fates: readonly Fate[] = ['pass', 'fail', 'drop-request', 'drop-answer'];

describe('a write', () => {
  it('is done once and told, whichever three of its calls are refused or lost', async () => {
    for (const first of fates) {
      for (const second of fates) {
        for (const third of fates) {
          const writer = new Desk();
          writer.faults.next('transaction', first, second, third);
          const writing = writeOnce(writer, writer.adding('a'));
          await writer.clock.advance(10_000);
          expect(await isPending(writing), [first, second, third].join()).toBe(false);
          expect((await writer.entry(writer.engine)).ids, [first, second, third].join()).toEqual(['a']);
        }
      }
    }
  });

  it('is decided again on what others have written, and both are there', async () => {
    const writer = new Desk();
    await writeOnce(writer, writer.adding('b'));
    expect(await writeOnce(writer, writer.adding('a'))).toBe('landed');
    expect((await writer.entry()).ids).toEqual(['b', 'a']);
  });

  it('whose answer got lost is looked for only when nothing of it can land any more', async () => {
    const writer = new Desk();
    writer.faults.next('transaction', 'drop-answer', 'fail');
    const writing = writeOnce(writer, writer.adding('a'));
    await settled();
    expect([writer.fences, await isPending(writing)]).toEqual([1, true]);
    await writer.clock.advance(100);
    expect(await writing).toBe('found');
    expect(writer.fences).toBe(2);
  });

  it('that could not be told within its time says that nobody knows, and hands over what it leaves', async () => {
    const writer = new Desk();
    const left: unknown[] = [];
    writer.faults.next('transaction', 'drop-answer');
    writer.faults.always('transaction', 'fail');
    const until = writer.clock.monotonic() + 1_000;
    const abandoned = (doubt: Failure, error: unknown): void => void left.push(doubt.code, (error as Failure).code);
    const writing = errorOf(writeOnce(writer, writer.adding('a', { until, abandoned })));
    await writer.clock.advance(3_000);
    expect(await writing).toMatchObject({ code: 'outcome-unknown' });
    expect(left).toEqual(['outcome-unknown', 'outcome-unknown']);
  });

  it('that certainly did nothing within its time says just that', async () => {
    const writer = new Desk();
    writer.faults.always('transaction', 'fail');
    const writing = errorOf(writeOnce(writer, writer.adding('a', { until: writer.clock.monotonic() + 1_000 })));
    await writer.clock.advance(3_000);
    expect(await writing).toMatchObject({ code: 'unavailable' });
  });

  it('backs off, from 20 ms up to a second, and never spins although no write is ever answered', async () => {
    const writer = new Desk();
    writer.faults.always('transaction', 'pass');
    const intent = writer.adding('a', { read: () => ({ ids: [], mod: 0 }), found: () => undefined });
    writer.faults.next('transaction', ...Array.from({ length: 500 }, (): Fate => 'drop-request'));
    const writing = writeOnce(writer, { ...intent, fence: (done) => done() });
    await writer.clock.advance(10_000);
    expect(writer.faults.calls.length).toBeLessThan(25);
    expect(await isPending(writing)).toBe(true);
  });

  it('that may be stopped ends in the middle of a pause', async () => {
    const writer = new Desk();
    const stop = new AbortController();
    writer.faults.always('transaction', 'fail');
    const reading = errorOf(persistently(writer, stop.signal, () => writer.entry()));
    await writer.clock.advance(5_000);
    stop.abort();
    await settled();
    expect(await isPending(reading)).toBe(false);
    expect(await reading).toMatchObject({ code: 'unavailable' });
  });

  it('ends with the process that wanted it', async () => {
    const writer = new Desk();
    writer.faults.always('transaction', 'fail');
    const writing = errorOf(writeOnce(writer, writer.adding('a')));
    await settled();
    writer.over.abort();
    await writer.clock.advance(2_000);
    expect(await writing).toMatchObject({ code: 'unavailable' });
  });

  it('that the store refuses for good is not tried again', async () => {
    const writer = new Desk();
    const intent = writer.adding('a', {
      read: () => {
        throw new Failure('forbidden', 'no');
      },
    });
    expect(await errorOf(writeOnce(writer, intent))).toMatchObject({ code: 'forbidden' });
  });
});
