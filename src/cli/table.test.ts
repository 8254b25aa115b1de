import { describe, expect, it } from 'vitest';
import { paintFor, printable, unpainted } from './output.ts';
import { layoutFor, PLAIN, tableLines } from './table.ts';

describe('a table', () => {
  const rows = [{ cells: ['main-branch', 'agent:7'], note: 'merging' }, { cells: ['x', 'a'.repeat(100)] }];

  it('lines up its columns, and is not cut where nobody has a width', () => {
    expect(tableLines(['LOCK', 'WHO'], rows, PLAIN)).toEqual([
      'LOCK         WHO',
      'main-branch  agent:7',
      '  merging',
      `x            ${'a'.repeat(100)}`,
    ]);
  });

  it.each([20, 40, 80])('fits a terminal of %d columns, and shows what was cut', (width) => {
    const lines = tableLines(['LOCK', 'WHO'], rows, { width, paint: unpainted });
    expect(lines.filter((line) => [...line].length > width)).toEqual([]);
    expect(lines.at(-1)).toMatch(/a…$/);
  });

  it('shows text of others on one line, unable to do anything to the terminal', () => {
    expect(printable('two\nlines\x1b[2J\u202Eturned')).toBe('two lines�[2J�turned');
    expect(tableLines(['A'], [{ cells: ['\x1b]0;title\x07'] }], PLAIN).join('\n')).not.toMatch(/[\x1b\x07]/);
  });
});

describe('a terminal that does not say how wide it is', () => {
  it.each([{ isTTY: true }, { isTTY: true, columns: 0 }])('is taken to have 80 columns: %j', (stream) => {
    expect(layoutFor(stream, PLAIN.paint).width).toBe(80);
  });
});

describe('colours', () => {
  it('are only used on a terminal, and not where NO_COLOR or a dumb terminal asks for none', () => {
    const isPainted = (stream: object, env: NodeJS.ProcessEnv): boolean => paintFor(stream, env)('red', 'x') !== 'x';
    expect(isPainted({ isTTY: true }, {})).toBe(true);
    expect(isPainted({ isTTY: true }, { NO_COLOR: '' })).toBe(true);
    expect(isPainted({ isTTY: true }, { NO_COLOR: '1' })).toBe(false);
    expect(isPainted({ isTTY: true }, { TERM: 'dumb' })).toBe(false);
    expect(isPainted({}, {})).toBe(false);
  });
});
