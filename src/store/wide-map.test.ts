import { describe, expect, it } from 'vitest';
import { WideMap } from './wide-map.ts';

const MANY = 32_768;

describe('a map of any size', () => {
  it.each([
    ['numbered', (place: number) => `r/lock/n${place}`],
    ['that differ at the beginning', (place: number) => `r/lock/${place.toString(36)}/the-same-long-end-of-every-name`],
    ['of few and strange characters', (place: number) => `r/lock/${place.toString(2).replaceAll('1', '💥')}`],
  ])('has no part whose growth would take the event loop for long: names %s', (_names, name) => {
    const map = new WideMap<number>();
    for (let place = 0; place < MANY; place++) map.set(name(place), place);
    expect(map.size).toBe(MANY);
    // A Map of so few entries moves them in a fraction of a millisecond; evenly spread there would be 128.
    expect(map.largestPart).toBeLessThan(2 * (MANY / 256));
  });

  it('has what was put and not deleted, whether it has few entries or many', () => {
    const map = new WideMap<number>();
    let deleted = 0;
    for (let place = 0; place < MANY; place++) {
      map.set(`n${place}`, -1);
      map.set(`n${place}`, place);
      if (place % 4 === 0 && map.delete(`n${place}`)) deleted += 1;
      if (place === 6) expect([...map.values()]).toEqual([1, 2, 3, 5, 6]);
    }
    expect([map.size, deleted]).toEqual([(MANY * 3) / 4, MANY / 4]);
    expect([map.get('n0'), map.get('n1'), map.get(`n${MANY - 1}`)]).toEqual([undefined, 1, MANY - 1]);
    expect(map.delete('n0')).toBe(false);
    map.clear();
    expect([map.size, map.get('n1')]).toEqual([0, undefined]);
  });

  it('can be emptied while its values are read', () => {
    const map = new WideMap<string>();
    for (let place = 0; place < MANY; place++) map.set(`n${place}`, `n${place}`);
    let read = 0;
    for (const key of map.values()) if (map.delete(key)) read += 1;
    expect([read, map.size]).toEqual([MANY, 0]);
  });
});
