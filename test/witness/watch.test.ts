// A watch of the record, whose reader is slow, or whose store is in trouble.

import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Signalbox } from 'signalbox';
import { Failure } from '../../src/failure.ts';
import { chainPath, encode, ENTRIES, entryKey } from '../../src/runtime/layout.ts';
import { LONGEST_QUEUE } from '../../src/runtime/subscriber-queue.ts';
import { always, openMemory, type Store, Value } from '../../src/store/index.ts';
import { faultyStore } from '../../src/testing/faulty-store.ts';
import { ScriptedFaults } from '../../src/testing/scripted-faults.ts';
import { settled } from '../support/outcome.ts';
import { opening } from './boxes.ts';

/** Entries that one write makes; the longest queue ends within a write. */
const CHAINS = ['component/a', 'component/b', 'component/c'];
const MANY = Math.ceil(LONGEST_QUEUE / CHAINS.length) + 50;

describe('a watch of the record', () => {
  let inner: Store;
  let faults: ScriptedFaults;
  let box: Signalbox;
  let heard: AsyncIterator<{ readonly resource: string; readonly seq: number }>;
  let refusal: Failure | undefined;
  let written: number;
  let writesAfterRead: number;

  /** So many writes, each with an entry in every chain. */
  async function write(times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      written += 1;
      const entry = { seq: written, time: 0, commands: [{ events: [] }] };
      await inner.transaction(
        always(
          CHAINS.map((resource) => {
            const key = entryKey(chainPath(resource), written);
            return { do: 'put', key, value: encode({ ...entry, resource }) } as const;
          }),
        ),
      );
    }
    await settled();
  }

  async function writeStrange(key: string, value: Value): Promise<void> {
    await inner.transaction(always([{ do: 'put', key: entryKey(chainPath('component/b'), 9000) + key, value }]));
  }

  async function take(count: number): Promise<readonly string[]> {
    const taken: string[] = [];
    while (taken.length < count) {
      const { done, value } = await heard.next();
      if (done === true) break;
      taken.push(`${value.seq} ${value.resource}`);
    }
    return taken;
  }

  function entriesOf(first: number, last: number): readonly string[] {
    const seqs = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    return seqs.flatMap((seq) => CHAINS.map((resource) => `${seq} ${resource}`));
  }

  /** The reader has taken the entries of the first write, and many more wait for it than the queue holds. */
  async function fallBehind(): Promise<void> {
    const first = take(CHAINS.length);
    await settled();
    await write(1);
    expect(await first).toEqual(entriesOf(1, 1));
    await write(MANY);
  }

  beforeEach(async () => {
    inner = openMemory();
    faults = new ScriptedFaults();
    refusal = undefined;
    written = 0;
    writesAfterRead = 0;
    const faulty = faultyStore(inner, faults);
    box = await opening({
      ...faulty,
      transaction: async (...given) => {
        if (refusal !== undefined) throw refusal;
        const result = await faulty.transaction(...given);
        const readsEntries = given[0].success.some((one) => one.do === 'read' && one.key.startsWith(ENTRIES));
        for (; readsEntries && writesAfterRead > 0; writesAfterRead--) await write(1);
        return result;
      },
    });
    heard = box.witness.watch({ resource: 'component/*' })[Symbol.asyncIterator]();
  });

  it('gives a reader that fell far behind every entry, once and in order', async () => {
    await fallBehind();
    const some = await take(1);
    await write(MANY);
    const all = entriesOf(2, 1 + 2 * MANY);
    expect([...some, ...(await take(all.length - 1))]).toEqual(all);
    await write(1);
    expect(await take(CHAINS.length)).toEqual(entriesOf(written, written));
  });

  it('that begins with the last entries misses and repeats none that is written while it reads them', async () => {
    await write(3);
    // The reader takes what is read page by page, and each page is followed by more writes.
    writesAfterRead = 2;
    heard = box.witness.watch({ resource: 'component/*' }, { last: 4 })[Symbol.asyncIterator]();
    const first = await take(1);
    expect(first).toEqual(['2 component/c']);
    await write(MANY);
    const all = entriesOf(3, written);
    expect(await take(all.length)).toEqual(all);
  });

  it('that begins with the last entries of a record that has none gives every entry of the first burst', async () => {
    heard = box.witness.watch({ resource: 'component/*' }, { last: 1 })[Symbol.asyncIterator]();
    const first = take(1);
    await settled();
    await write(MANY);
    expect([...(await first), ...(await take(MANY * CHAINS.length - 1))]).toEqual(entriesOf(1, MANY));
  });

  it('gives every entry, once and in order, although the history that it needed was compacted', async () => {
    const first = take(CHAINS.length);
    await settled();
    await write(1);
    await first;
    await write(3);
    faults.holdWatches();
    await write(3);
    await inner.compact((await inner.health()).revision);
    faults.cutWatches();
    faults.releaseWatches();
    await settled();
    await write(1);
    expect(await take(7 * CHAINS.length)).toEqual(entriesOf(2, 8));
  });

  it('ends in silence if the signalbox is closed while it reads what it missed', async () => {
    const rejected: unknown[] = [];
    const note = (error: unknown): void => void rejected.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    await fallBehind();
    faults.always('transaction', 'hang');
    await take(1);
    const next = heard.next();
    await settled();
    faults.always('transaction', 'pass');
    await box.close();
    expect((await next).done).toBe(true);
    await settled();
    expect(rejected).toEqual([]);
  });

  it('asks again if the store refuses to say what it missed', async () => {
    await fallBehind();
    refusal = new Failure('forbidden', 'not for this user');
    const some = await take(1);
    const next = take(1);
    await settled();
    refusal = undefined;
    expect([...some, ...(await next)]).toEqual(entriesOf(2, 2).slice(0, 2));
  });

  it('leaves out what is no entry, whether it comes at once or was missed', async () => {
    const first = take(CHAINS.length);
    await settled();
    const strange = [Value.text('no entry'), encode(7), encode({ resource: 'component/b', seq: 'x' })];
    for (const [at, value] of strange.entries()) await writeStrange(`early${at}`, value);
    await write(1);
    expect(await first).toEqual(entriesOf(1, 1));
    for (const [at, value] of strange.entries()) await writeStrange(`late${at}`, value);
    await write(MANY);
    const all = entriesOf(2, 1 + MANY);
    expect(await take(all.length)).toEqual(all);
  });
});
