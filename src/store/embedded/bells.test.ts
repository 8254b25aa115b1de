import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestClock } from '../../testing/index.ts';
import { isBellName, Listeners, newBellName, type Rings } from './bells.ts';
import type { Connection } from './connection.ts';

let directory: string;
let clock: TestClock;
let listeners: Listeners;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-bells-'));
  clock = new TestClock();
  listeners = new Listeners({} as Connection, directory, clock);
});

afterEach(() => rmSync(directory, { recursive: true }));

/** Bells that were hung in this order, and that nobody has rung. */
function hung(count: number): string[] {
  const bells = Array.from({ length: count }, (_, age) => newBellName(1_700_000_000_000 + 128 * age));
  for (const bell of bells) {
    writeFileSync(join(directory, bell), '');
    utimesSync(join(directory, bell), 1, 1);
  }
  return bells;
}

/** To be rung for revision 7. */
const news = (bells: readonly string[]): Rings => new Map(bells.map((bell) => [bell, 7]));

/** The places, in the order of age, of the bells that were rung. */
function rung(bells: readonly string[]): number[] {
  return bells.flatMap((bell, place) => (statSync(join(directory, bell)).mtimeMs > 1000 ? [place] : []));
}

const places = (count: number): number[] => Array.from({ length: count }, (_, place) => place);

describe('the names of bells', () => {
  it('are names of bells, and sort by their age', () => {
    const names = [1.5, 1_700_000_000_000, 1_700_000_000_200, 8_000_000_000_000].map(newBellName);
    expect(names.every(isBellName)).toBe(true);
    expect([...names].sort()).toEqual(names);
    expect(newBellName(5)).not.toBe(newBellName(5));
  });
});

describe('many bells', () => {
  it('are rung a few at a time, the oldest first, so that the woken processes do not hold each other up', async () => {
    const bells = hung(20);
    listeners.ringAll(news([...bells].reverse()));
    expect(rung(bells)).toEqual(places(8));
    await clock.advance(8);
    expect(rung(bells)).toEqual(places(16));
    await clock.advance(8);
    expect(rung(bells)).toEqual(places(20));
  });

  it('wait for their turn behind those that were to be rung before', async () => {
    const bells = hung(30);
    listeners.ringAll(news(bells));
    listeners.ringAll(news(bells.slice(0, 9)));
    await clock.advance(16);
    expect(rung(bells)).toEqual(places(24));
  });

  it('do not hold up a ring for a few', () => {
    const bells = hung(20);
    listeners.ringAll(news(bells));
    listeners.ringAll(news(bells.slice(18)));
    expect(rung(bells)).toEqual([...places(8), 18, 19]);
  });

  it('are all rung before their writer closes the store', () => {
    const bells = hung(20);
    listeners.ringAll(news(bells));
    listeners.call(new Set(bells));
    listeners.ringRest();
    expect(rung(bells)).toEqual(places(20));
  });

  it('are rung one by one where there is no news, and news does not wait for that', async () => {
    const bells = hung(30);
    listeners.call(new Set(bells.slice(20)));
    expect(rung(bells)).toEqual([20]);
    await clock.advance(10);
    expect(rung(bells)).toEqual([20, 21]);
    listeners.ringAll(news(bells.slice(0, 20)));
    expect(rung(bells)).toEqual([...places(8), 20, 21, 22]);
    await clock.advance(16);
    expect(rung(bells)).toEqual([...places(20), 20, 21, 22, 23, 24]);
    await clock.advance(5 * 10);
    expect(rung(bells)).toEqual(places(30));
  });
});

describe('a bell', () => {
  it('says which revision it was last rung for, whether at once or in its turn, and nothing after a ring without news', () => {
    const bells = hung(10);
    listeners.ringAll(news(bells));
    listeners.ringAll(new Map([[bells[1] as string, 8]]));
    listeners.ringAll(new Map(bells.slice(1).map((bell) => [bell, 9])));
    expect(bells.map((bell) => listeners.rungFor(bell))).toEqual([7, 8, 7, 7, 7, 7, 7, 7, 1, 1]);
    listeners.ringRest();
    expect(bells.map((bell) => listeners.rungFor(bell))).toEqual([7, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
    listeners.ring(bells[0] as string);
    expect(listeners.rungFor(bells[0] as string)).toBe(0);
    expect(listeners.rungFor(newBellName(1))).toBeUndefined();
  });
});
