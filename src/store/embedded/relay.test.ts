import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Listeners, Rings } from './bells.ts';
import type { Engine, Made } from './engine.ts';
import { Relay } from './relay.ts';

const [OURS, ONE, OTHER] = ['00000000000000aa', '00000000000000bb', '00000000000000cc'] as const;
let directory: string;
let state: { revision: number; forgotten: number; listeners: number };
/** The last revision that concerns the bells, and the one that they were rung for. */
let [concerns, rungFor]: [number, number | undefined] = [0, undefined];
let rung: string[];
let called: string[];
let relay: Relay;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-relay-'));
  state = { revision: 10, forgotten: 0, listeners: 1 };
  [rung, called, concerns, rungFor] = [[], [], 0, undefined];
  const engine = {
    state: () => state,
    keysAfter: (since: number) => (since < state.revision ? [{ key: `after ${since}`, wentWithLease: false }] : []),
  };
  const listeners = {
    concernedBy: (keys: readonly unknown[]) =>
      new Map(keys.length > 0 ? [OURS, ONE].map((bell) => [bell, concerns]) : []),
    rungFor: () => rungFor,
    all: () => new Set([OURS, ONE, OTHER]),
    ring: (bell: string) => rung.push(bell),
    ringAll: (bells: Rings) => rung.push(...bells.keys()),
    call: (bells: ReadonlySet<string>) => called.push(...bells),
  };
  relay = new Relay(engine as unknown as Engine, listeners as unknown as Listeners, directory);
  // What it does first is the subject of two tests only. All bells have been rung.
  rungFor = state.revision;
  relay.begin();
  relay.ringAgain(OURS);
  rungFor = undefined;
});

afterEach(() => {
  relay.end();
  rmSync(directory, { recursive: true });
});

function made(revision: number): Made {
  return { revision, changes: [], lease: 1 };
}

describe('the process on duty', () => {
  it('calls all processes when it begins, in no hurry: they may still rely on the process before it', () => {
    expect([called, rung]).toEqual([[ONE, OTHER], []]);
  });

  it('calls none that has already asked it to listen for its bell', () => {
    relay.begin();
    called = [];
    const tell = vi.fn();
    relay.hearFor(OTHER, tell);
    rungFor = state.revision;
    relay.ringAgain(OURS);
    expect([called, tell.mock.calls.length]).toEqual([[ONE], 1]);
  });

  it('rings for the last writes of the process before it, which may have been killed before it rang for them', () => {
    relay.begin();
    [rung, called] = [[], []];
    relay.ringAgain(OURS);
    expect([rung, called]).toEqual([[ONE], [OTHER]]);
  });

  it('rings for what was written since it began before it calls the others, since the writer may have been killed', () => {
    relay.begin();
    [rung, called] = [[], []];
    const tell = vi.fn();
    relay.hearFor(OTHER, tell);
    state.revision = 11;
    relay.ringAgain(OURS);
    expect([rung, called, tell.mock.calls.length]).toEqual([[ONE], [], 1]);
  });

  it('rings again for what was written since, once, and only for those whom it concerns', () => {
    relay.ringAgain(OURS);
    expect(rung).toEqual([]);
    state.revision = 11;
    relay.ringAgain(OURS);
    relay.ringAgain(OURS);
    expect(rung).toEqual([ONE]);
  });

  it('wakes no process a second time whose bell was rung for that, or for something later', () => {
    concerns = 12;
    const ringsFor = (last: number | undefined): readonly string[] => {
      [rung, rungFor] = [[], last];
      state.revision += 3;
      relay.ringAgain(OURS);
      return rung;
    };
    expect([12, 13].map(ringsFor)).toEqual([[], []]);
    // Rung for something earlier, or never, or by a process that sets other times.
    expect([11, 0, undefined, Date.now() / 1000].map(ringsFor)).toEqual([[ONE], [ONE], [ONE], [ONE]]);
  });

  it('does not ring again for what it has written and rung for itself', () => {
    state.revision = 12;
    relay.rangFor([made(11), made(12)]);
    relay.ringAgain(OURS);
    expect(rung).toEqual([]);
  });

  it('rings again for what others wrote before its own changes', () => {
    state.revision = 12;
    relay.rangFor([made(12)]);
    relay.ringAgain(OURS);
    expect(rung).toEqual([ONE]);
  });

  it('wakes everyone before the history that they have not read is forgotten', () => {
    for (const revision of [200, 400, 8000]) {
      state = { ...state, revision };
      relay.ringAgain(OURS);
    }
    expect(rung.filter((bell) => bell === OTHER)).toHaveLength(2);
    // Half of what is kept has been written since.
    state = { ...state, revision: 10_000, forgotten: 2000 };
    relay.ringAgain(OURS);
    expect(rung.filter((bell) => bell === OTHER)).toHaveLength(2);
    state = { ...state, revision: 12_100, forgotten: 4000 };
    relay.ringAgain(OURS);
    expect(rung.filter((bell) => bell === OTHER)).toHaveLength(3);
  });

  it('tells a process that cannot hear its bell when it is rung, and does not look for that', async () => {
    writeFileSync(join(directory, ONE), '');
    const tell = vi.fn();
    const stop = relay.hearFor(ONE, tell);
    expect(tell).toHaveBeenCalledTimes(1);
    expect(relay.mustLook).toBe(false);
    utimesSync(join(directory, ONE), 1, 1);
    await expect.poll(() => tell.mock.calls.length).toBeGreaterThan(1);
    const before = tell.mock.calls.length;
    state.revision = 11;
    relay.ringAgain(OURS);
    expect([tell.mock.calls.length, rung]).toEqual([before + 1, []]);
    stop();
    state.revision = 12;
    relay.ringAgain(OURS);
    expect([tell.mock.calls.length, rung]).toEqual([before + 1, [ONE]]);
  });

  it('looks on behalf of such a process where it has no file watch either', () => {
    const tell = vi.fn();
    // There is no such file, so it cannot be watched.
    relay.hearFor(ONE, tell);
    const uninvolved = vi.fn();
    relay.hearFor(OTHER, uninvolved);
    expect(relay.mustLook).toBe(true);
    state.revision = 11;
    relay.look();
    relay.look();
    expect([tell.mock.calls.length, uninvolved.mock.calls.length, rung]).toEqual([2, 1, []]);
  });
});
