/**
 * Bugs that signalbox once had and that no simulated run shows: the virtual clock stands still while the event loop is kept, and
 * nobody in it runs out of memory. Each has a guard of its own. It finds nothing in the source as it is, and the bug once that
 * is put back.
 */
import { describe, expect, it } from 'vitest';
import type { open } from '../../src/runtime/open.ts';
import type { Signalbox } from '../../src/runtime/signalbox.ts';
import { openMemory, prefixed, readRange, type Store } from '../../src/store/index.ts';
import { RECORDS } from '../../src/runtime/layout.ts';
import { type Edit, loaded } from './mutants.ts';

const MANY = 1000;

interface Guarded extends Edit {
  readonly name: string;
  /** What is wrong; undefined if nothing is. */
  readonly guard: (box: Signalbox, store: Store) => Promise<string | undefined>;
}

/** So that a guard can look at what no user sees. */
const shown: Edit = {
  file: 'runtime/tasks/task-waiters.ts',
  right: 'readonly #watchers = new Map<string, Set<() => void>>();',
  wrong: "readonly #watchers = ((globalThis as any)['watchers'] = new Map<string, Set<() => void>>());",
};

const guarded: readonly Guarded[] = [
  {
    name: 'the slots of a hold are listed one by one',
    file: 'core/slots.ts',
    right: 'if (last - first >= LISTED) slots.push([first, last]);',
    wrong: 'if (last < first) slots.push([first, last]);',
    guard: async (box, store) => {
      const hold = await box.semaphore('bytes', { capacity: 8_000_000_000 }).acquire({ weight: 100_000 });
      const { pairs } = await readRange(store, prefixed(RECORDS));
      await hold.release();
      const length = pairs[0]?.value.text.length ?? 0;
      return length > 1000 ? `the record of 100000 slots has ${length} characters` : undefined;
    },
  },
  {
    name: 'one holder may have more slots than its process has memory for',
    file: 'core/capacity.ts',
    right: 'if (weight > LARGEST_WEIGHT) {',
    wrong: 'if (weight < 0) {',
    guard: async (box) => {
      const attempt = await box.semaphore('bytes', { capacity: 8_000_000_000 }).tryAcquire({ weight: 100_000_000 });
      return attempt.ok ? 'a hundred million slots were given to one holder' : undefined;
    },
  },
  {
    name: 'maintenance keeps the event loop until it has seen every record',
    file: 'runtime/slices.ts',
    right: 'if (clock.afterOthers !== undefined) clock.afterOthers(resume);\n      else this.#host.later(0, resume);',
    wrong: 'void clock;\n      resume();',
    guard: async (box) => {
      for (let name = 0; name < MANY; name++) await (await box.lock(`n${name}`).acquire()).release();
      const turns = await turnsOf(() => box.maintain());
      return turns < MANY / 250
        ? `only ${turns} turns of the event loop while ${MANY} records were looked at`
        : undefined;
    },
  },
  {
    name: 'each wait for a task that timed out is kept until the task changes',
    file: 'runtime/tasks/task-waiters.ts',
    right: '    callbacks.delete(callback);\n',
    wrong: '    void callback;\n',
    guard: async (box) => {
      await box.tasks.publish('long', {});
      const claim = await box.tasks.claim('long');
      const waits = Array.from({ length: 20 }, () => box.tasks.claim('long', { waitMs: 1 }));
      const refused = (await Promise.allSettled(waits)).filter(({ status }) => status === 'rejected').length;
      const { watchers } = globalThis as unknown as { watchers: ReadonlyMap<string, unknown> };
      const { size } = watchers;
      await claim.complete();
      return size > 0 ? `${refused} waits are over, and are still kept` : undefined;
    },
  },
];

async function libraryOf(name: string, edits: readonly Edit[]): Promise<{ open: typeof open }> {
  return (await loaded('runtime/open.ts', name, edits)) as { open: typeof open };
}

async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next: NodeJS.Immediate | undefined;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  next = setImmediate(turn);
  await work();
  clearImmediate(next);
  return turns;
}

async function found(library: { open: typeof open }, { guard }: Guarded): Promise<string | undefined> {
  const store = openMemory();
  const box = await library.open(store, { maintains: false });
  try {
    return await guard(box, store);
  } finally {
    await box.close();
  }
}

describe('a bug that no simulated run shows', () => {
  it('is not in the source as it is', async () => {
    const library = await libraryOf('as-it-is', [shown]);
    for (const each of guarded) expect(await found(library, each), each.name).toBeUndefined();
  });

  it.each(guarded)('is found by its guard: $name', async (each) => {
    expect(await found(await libraryOf(each.name, [shown, each]), each)).toBeDefined();
  });
});
