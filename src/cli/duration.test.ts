import { describe, expect, it } from 'vitest';
import { spoken } from '../core/index.ts';
import { parseDuration } from './duration.ts';

describe('a duration', () => {
  it.each([
    ['250ms', 250],
    ['60s', 60_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['2d', 172_800_000],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    [' 3 s ', 3000],
    ['0', 0],
  ])('is read from %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it('is in seconds where no unit is given', () => {
    expect(parseDuration('10')).toBe(10_000);
    expect(parseDuration('0.2')).toBe(200);
  });

  it.each([
    '',
    ' ',
    'abc',
    '5q',
    '-5s',
    '5s5',
    '1e3',
    'NaN',
    'Infinity',
    '5 5',
    '0x10',
    '5M',
    '10 min',
    '9'.repeat(30),
  ])('is refused if it is %j, with what is accepted', (text) => {
    expect(() => parseDuration(text)).toThrow(/^expected (.*250ms, 60s, 5m|at most a hundred years)/);
  });
});

describe('how long ago, in words,', () => {
  it.each([
    [-5, '0 ms'],
    [999.9, '999 ms'],
    [3000, '3 s'],
    [99_000, '99 s'],
    [300_000, '5 min'],
    [7_200_000, '2 h'],
    [345_600_000, '4 d'],
  ])('%d ms is %j', (ms, text) => {
    expect(spoken(ms)).toBe(text);
  });
});
