// What is read, sealed and trimmed while others write, and what is left after it.

import type { Signalbox } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { nextCheckpoint } from '../../src/core/index.ts';
import { canonical } from '../../src/core/witness/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { always, openMemory, prefixed, readRange, type Store, Value } from '../../src/store/index.ts';
import { found, keysOf, lines, opening, use } from './boxes.ts';
import { signer } from './history.ts';

/** How many checkpoints a store keeps. */
const KEPT = 16;

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

  it('seal so often that the checkpoint which it was about to read is forgotten, seals the record in the end', async () => {
    const reader = await reading(async (writer, at) => {
      await change(writer, at);
      if (at >= 12) return;
      for (let i = 0; i < KEPT + 1; i++) await writer.witness.checkpoint();
      await writer.witness.trim();
    });
    const { number } = await reader.witness.checkpoint();
    expect(number).toBeGreaterThan(KEPT);
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

it('a checkpoint that was put behind the newest one is found', async () => {
  const store = openMemory();
  const box = await opening(store);
  await use(box, 'main');
  const made = await box.witness.checkpoint();
  const forged = nextCheckpoint(made, made.heads ?? [], made.time + 1, sha256);
  const key = `witness.checkpoint/${String(forged.number).padStart(12, '0')}`;
  await store.transaction(always([{ do: 'put', key, value: Value.text(canonical(forged)) }]));
  expect((await box.witness.verify()).finding).toMatchObject({ kind: 'inserted', checkpoint: 2 });
});

describe('a reader that goes on after an entry', () => {
  const seqs = async (box: Signalbox, after: { resource: string; seq: number }): Promise<readonly string[]> => {
    const places: string[] = [];
    for await (const { resource, seq } of box.witness.entries({}, { after })) places.push(`${resource} ${seq}`);
    return places;
  };

  it('gets what comes after it, of its chain and of those behind it', async () => {
    const box = await opening(openMemory());
    await use(box, 'a', 2);
    await use(box, 'b');
    expect(await seqs(box, { resource: 'lock/a', seq: 3 })).toEqual(['lock/a 4', 'lock/b 1', 'lock/b 2']);
    expect(await seqs(box, { resource: 'lock/b', seq: 2 })).toEqual([]);
  });

  it('hears up to where the chain was trimmed, if that took away what it had not read', async () => {
    const box = await opening(openMemory());
    await use(box, 'a', 2);
    await box.witness.checkpoint();
    await box.witness.trim();
    await use(box, 'a');
    expect(await seqs(box, { resource: 'lock/a', seq: 4 })).toEqual(['lock/a 5', 'lock/a 6']);
    await expect(seqs(box, { resource: 'lock/a', seq: 3 })).rejects.toMatchObject({
      code: 'compacted',
      message: expect.stringContaining('lock/a were trimmed up to 4') as unknown,
    });
  });

  it('hears that the chain is another one by now', async () => {
    const box = await opening(openMemory());
    await box.tasks.publish('7', {});
    await box.tasks.forget('7');
    for (let round = 0; round < 2; round++) {
      await box.witness.checkpoint();
      await box.witness.trim();
    }
    await box.tasks.publish('7', {});
    await expect(seqs(box, { resource: 'task/7', seq: 2 })).rejects.toMatchObject({ code: 'compacted' });
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

  it('that does not come, or comes too late, leaves a closed chain that the next checkpoints cover as well', async () => {
    const box = await opening(openMemory());
    await box.tasks.publish('7', {});
    await box.tasks.forget('7');
    await box.witness.checkpoint();
    await box.witness.trim();
    for (let round = 0; round < 2; round++) {
      const { heads } = await box.witness.checkpoint();
      expect(heads).toMatchObject([{ resource: 'task/7', seq: 2, closed: true }]);
    }
    await box.tasks.publish('7', {});
    const { heads } = await box.witness.checkpoint();
    expect(heads).toMatchObject([{ resource: 'task/7', seq: 3, from: 3 }]);
    expect((await box.witness.verify()).finding).toBeUndefined();
    expect(found(await lines(box))).toBeUndefined();
  });

  it('takes a long chain in steps, so that other writers get their turn', async () => {
    const store = openMemory();
    const writer = await opening(store);
    await use(writer, 'main', 1100);
    await writer.witness.checkpoint();
    const counts: number[] = [];
    const box = await opening(
      interrupted(store, async () => {
        counts.push((await readRange(store, { ...prefixed('witness/'), countOnly: true })).count);
      }),
    );
    expect(await box.witness.trim()).toEqual({ trimmed: 2200 });
    expect([...new Set(counts)]).toEqual([2200, 1200, 200, 0]);
    expect((await box.witness.verify()).finding).toBeUndefined();
  });

  it('by a checkpoint that closed a long chain leaves another chain of that name alone', async () => {
    const box = await opening(openMemory());
    const comeAndGo = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        await box.tasks.publish('7', {});
        await box.tasks.forget('7');
      }
    };
    await comeAndGo(510);
    for (let round = 0; round < 2; round++) {
      await box.witness.checkpoint();
      await box.witness.trim();
    }
    await comeAndGo(505);
    // The newest checkpoint still names the chain that was closed, and covers nothing of this one.
    expect(await box.witness.trim()).toEqual({ trimmed: 0 });
    const { finding, entries } = await box.witness.verify();
    expect(finding).toBeUndefined();
    expect(entries).toBe(1010);
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
