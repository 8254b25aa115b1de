// What is read, sealed and trimmed while others write, and what is left after it.

import { open, type OpenOptions, type Signalbox, type SignalboxEvent } from 'signalbox';
import { afterEach, describe, expect, it } from 'vitest';
import { Verifier } from '../../src/core/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { always, openMemory, prefixed, readRange, type Store, Value } from '../../src/store/index.ts';
import { signer } from './history.ts';

const opened: Signalbox[] = [];

afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
});

async function opening(store: Store, options: OpenOptions = {}): Promise<Signalbox> {
  const box = await open(store, { maintains: false, witness: true, ...options });
  opened.push(box);
  return box;
}

async function use(box: Signalbox, name: string, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) await (await box.lock(name).acquire()).release();
}

async function lines(box: Signalbox): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const line of box.witness.export()) all.push(line);
  return all;
}

function found(exported: readonly string[], options = {}): string | undefined {
  const verifier = new Verifier({ digest: sha256, ...options });
  for (const line of exported) verifier.line(line);
  const { finding } = verifier.finish();
  return finding && `${finding.kind}: ${finding.why}`;
}

/** A store that does something before each transaction of this user. */
function interrupted(store: Store, before: () => Promise<void>): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'transactionNow') return undefined;
      if (name === 'transaction')
        return async (...call: Parameters<Store['transaction']>) => {
          await before();
          return target.transaction(...call);
        };
      if (name === 'close') return () => Promise.resolve();
      const value = Reflect.get(target, name) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

async function keysOf(store: Store, prefix: string): Promise<readonly string[]> {
  return (await readRange(store, prefixed(prefix))).pairs.map(({ key }) => key);
}

describe('a reader of the record, between whose reads others', () => {
  /** What happens before each read, and a box that reads. */
  async function reading(work: (writer: Signalbox, at: number) => Promise<unknown>): Promise<Signalbox> {
    const store = openMemory();
    const writer = await opening(store);
    await use(writer, 'main', 3);
    let at = 0;
    let isAt = false;
    const reader = await opening(
      interrupted(store, async () => {
        if (isAt) return;
        isAt = true;
        await work(writer, at++);
        isAt = false;
      }),
    );
    return reader;
  }

  const change = async (writer: Signalbox, at: number): Promise<void> => {
    await use(writer, 'main');
    await use(writer, `new-${at}`);
    await writer.tasks.publish(`t${at}`, {});
  };
  const seal = async (writer: Signalbox, at: number): Promise<void> => {
    await change(writer, at);
    // Not for ever: a process between all of whose reads others seal the record cannot seal it.
    if (at < 40) await writer.witness.checkpoint();
  };
  const trim = async (writer: Signalbox, at: number): Promise<void> => {
    await seal(writer, at);
    if (at % 7 === 3 && at < 40) await writer.witness.trim();
  };

  it.each([
    ['write', change],
    ['write and seal', seal],
    ['write, seal and trim', trim],
  ])('%s, finds nothing wrong', async (_, work) => {
    const reader = await reading(work);
    for (let i = 0; i < 3; i++) {
      expect((await reader.witness.verify()).finding).toBeUndefined();
      await reader.witness.checkpoint();
    }
    expect(found(await lines(reader))).toBeUndefined();
  });

  it('trim, does not get an export of parts that do not belong together', async () => {
    const reader = await reading(async (writer, at) => {
      await seal(writer, at);
      await writer.witness.trim();
    });
    await expect(lines(reader)).rejects.toThrow('was trimmed while it was read');
  });

  it('have put an entry past the end of a chain, still finds that', async () => {
    const store = openMemory();
    const box = await opening(store);
    await use(box, 'main');
    const [, key = ''] = await keysOf(store, 'witness/lock/main/');
    const { pairs } = await readRange(store, { key });
    const forged = key.replace(/2$/, '3');
    await store.transaction(always([{ do: 'put', key: forged, value: pairs[0]?.value ?? Value.text('') }]));
    expect((await box.witness.verify()).finding).toMatchObject({ kind: 'changed', resource: 'lock/main', seq: 3 });
  });
});

describe('a trim', () => {
  it('leaves what came after the checkpoint that it names', async () => {
    const box = await opening(openMemory());
    await use(box, 'main', 2);
    const { number } = await box.witness.checkpoint();
    const exported = await lines(box);
    await use(box, 'main', 1);
    await box.witness.checkpoint();
    expect(await box.witness.trim({ upTo: number })).toEqual({ trimmed: 4 });
    const seqs: number[] = [];
    for await (const { seq } of box.witness.entries()) seqs.push(seq);
    expect(seqs).toEqual([5, 6]);
    expect(found(exported)).toBeUndefined();
    expect((await box.witness.verify()).finding).toBeUndefined();
    await expect(box.witness.trim({ upTo: 99 })).rejects.toThrow('no checkpoint 99');
  });

  it('drops a chain whose resource is gone, two trims later, and a resource of that name begins another one', async () => {
    const store = openMemory();
    const box = await opening(store);
    await box.tasks.publish('7', {});
    await box.tasks.forget('7');
    await use(box, 'kept');
    for (let round = 0; round < 2; round++) {
      await box.witness.checkpoint();
      await box.witness.trim();
    }
    expect(await keysOf(store, 'witness.head/task/')).toEqual([]);
    expect(await keysOf(store, 'witness.trimmed/task/')).toEqual([]);
    expect((await box.witness.verify()).finding).toBeUndefined();
    await box.tasks.publish('7', {});
    expect((await box.witness.verify()).finding).toBeUndefined();
    await box.witness.checkpoint();
    await box.tasks.forget('7');
    await box.witness.checkpoint();
    const { finding, entries } = await box.witness.verify();
    expect(finding).toBeUndefined();
    expect(entries).toBe(2);
    expect(found(await lines(box))).toBeUndefined();
  });

  it('does not drop a chain that a process has written since, and the chain goes on', async () => {
    const box = await opening(openMemory());
    await box.tasks.publish('7', {});
    await box.tasks.forget('7');
    await box.witness.checkpoint();
    await box.witness.trim();
    const { heads } = await box.witness.checkpoint();
    expect(heads).toMatchObject([{ resource: 'task/7', seq: 2, closed: true }]);
    await box.tasks.publish('7', {});
    await box.witness.trim();
    const seqs: number[] = [];
    for await (const { seq } of box.witness.entries()) seqs.push(seq);
    expect(seqs).toEqual([3]);
    expect((await box.witness.verify()).finding).toBeUndefined();
  });

  it('leaves the hashes of the checkpoints before it, and only the newest with its heads', async () => {
    const box = await opening(openMemory());
    for (let i = 0; i < 20; i++) {
      await use(box, 'main');
      await box.witness.checkpoint();
    }
    await box.witness.trim();
    const kept = await box.witness.checkpoints();
    expect(kept.map(({ number }) => number)).toEqual(Array.from({ length: 16 }, (_, i) => i + 5));
    expect(kept.filter(({ heads }) => heads !== undefined).map(({ number }) => number)).toEqual([20]);
    expect((await box.witness.verify()).finding).toBeUndefined();
  });
});

describe('a key', () => {
  const { sign } = signer();
  // Ed25519 signs the same text in the same way each time.
  const verifySignature = (text: string, { ed25519 }: { ed25519: string }): string | undefined =>
    sign(text).ed25519 === ed25519 ? undefined : 'another key signed it';

  it('vouches up to the last signature; checkpoints without one may follow it', async () => {
    const box = await opening(openMemory());
    await use(box, 'main');
    await box.witness.checkpoint({ sign });
    await use(box, 'main');
    await box.witness.checkpoint();
    expect(await box.witness.verify({ verifySignature })).toMatchObject({ signed: 1, covered: 4, vouched: 2 });
    expect((await box.witness.verify({ verifySignature })).finding).toBeUndefined();
  });

  it('does not let what was trimmed or closed rest on a checkpoint that nobody signed', async () => {
    const box = await opening(openMemory());
    await use(box, 'main');
    await box.tasks.publish('7', {});
    await box.tasks.forget('7');
    await box.witness.checkpoint({ sign });
    await use(box, 'main');
    await box.witness.checkpoint();
    await box.witness.trim();
    const { finding } = await box.witness.verify({ verifySignature });
    expect(finding).toMatchObject({ kind: 'not-covered', resource: 'lock/main' });
    await box.witness.checkpoint({ sign });
    expect((await box.witness.verify({ verifySignature })).finding).toBeUndefined();
  });
});

describe('maintenance', () => {
  function hearing(box: Signalbox): { events: SignalboxEvent[]; on: Promise<unknown> } {
    const events: SignalboxEvent[] = [];
    return { events, on: box.on('witness:*', (event) => void events.push(event)) };
  }

  async function settled(): Promise<void> {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  }

  it('warns once when the record fills, and trims it when it is full', async () => {
    const box = await opening(openMemory());
    const { events, on } = hearing(box);
    await on;
    await box.witness.configure({ mostEntries: 10, checkpointMs: 0 });
    await use(box, 'main', 4);
    await box.maintain();
    await box.maintain();
    await settled();
    expect(events).toMatchObject([{ type: 'witness:filling', entries: 9, filled: 90 }]);
    await use(box, 'main', 1);
    await box.maintain();
    await settled();
    expect(events.slice(1)).toMatchObject([{ type: 'witness:trimmed', trimmed: 11, entries: 0, checkpoint: 1 }]);
    expect((await box.witness.verify()).finding).toBeUndefined();
  });

  it('names a damaged chain once, and seals and trims the others', async () => {
    const store = openMemory();
    const box = await opening(store);
    const { events, on } = hearing(box);
    await on;
    await use(box, 'bad', 2);
    await use(box, 'good', 2);
    const [key = ''] = await keysOf(store, 'witness/lock/bad/');
    await store.transaction(always([{ do: 'put', key, value: Value.text('no entry') }]));
    await box.witness.configure({ mostEntries: 5, checkpointMs: 0 });
    await box.maintain();
    await box.maintain();
    await settled();
    expect(events.filter(({ type }) => type === 'witness:damaged')).toMatchObject([{ chain: 'lock/bad' }]);
    expect(await keysOf(store, 'witness/lock/good/')).toEqual([]);
    expect(await keysOf(store, 'witness/lock/bad/')).toHaveLength(4);
  });

  it('signs, anchors and archives in the process that can, and in no other', async () => {
    const store = openMemory();
    const { sign } = signer();
    const anchored: number[] = [];
    const archived: string[][] = [];
    const keeper = await opening(store, {
      keepsRecord: {
        sign,
        anchor: async ({ number }) => void anchored.push(number),
        archive: async (some) => {
          const all: string[] = [];
          for await (const line of some) all.push(line);
          archived.push(all);
        },
      },
    });
    const other = await opening(store);
    await other.witness.configure({ mostEntries: 3, checkpointMs: 1000 });
    await use(other, 'main', 2);
    await keeper.maintain();
    expect(anchored).toEqual([1]);
    expect(archived.map((all) => found(all))).toEqual([undefined]);
    await use(other, 'main', 2);
    await other.maintain();
    expect((await other.witness.size()).entries).toBe(4);
    await keeper.maintain();
    expect((await other.witness.size()).entries).toBe(0);
    expect((await other.witness.checkpoints()).every(({ signature }) => signature !== undefined)).toBe(true);
  });
});
