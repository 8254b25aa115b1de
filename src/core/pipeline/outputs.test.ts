import { describe, expect, it, test } from 'vitest';
import { LARGEST_OUTPUTS_BYTES, parseOutputs, withOutputs } from './outputs.ts';

describe('what a phase writes to pass on', () => {
  it('is a name and a value in each line; empty lines do not matter, and what comes later counts', () => {
    expect(parseOutputs('VERSION=1.2\r\n\n  \nURL=http://x/?a=b\nEMPTY=\nVERSION=1.3')).toEqual({
      ok: true,
      outputs: { VERSION: '1.3', URL: 'http://x/?a=b', EMPTY: '' },
    });
    expect(parseOutputs('')).toEqual({ ok: true, outputs: {} });
  });

  it('may have a name that means something to JavaScript', () => {
    const parsed = parseOutputs('__proto__=x\nconstructor=y');
    expect(parsed.ok && Object.entries(parsed.outputs)).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
    const merged = withOutputs({ A: '1' }, parsed.ok ? parsed.outputs : {});
    const stored = JSON.parse(JSON.stringify(merged.ok && merged.outputs)) as object;
    expect(Object.keys(stored)).toEqual(['A', '__proto__', 'constructor']);
  });

  test.each([
    ['no sign between them', 'A=1\nB 2', 'line 2 of its outputs: "B 2" has no =; expected NAME=VALUE'],
    ['no name', '=2', 'line 1 of its outputs: "" is no name of a variable; expected NAME=VALUE'],
    ['a name with a blank', 'A B=2', 'line 1 of its outputs: "A B" is no name of a variable; expected NAME=VALUE'],
    [
      'one of our own names',
      'SIGNALBOX_TOKEN=2',
      "line 1 of its outputs: SIGNALBOX_TOKEN is signalbox's own: names must not begin with SIGNALBOX_; expected NAME=VALUE",
    ],
  ])('is refused with %s', (_, text, problem) => {
    expect(parseOutputs(text)).toEqual({ ok: false, problem });
  });
});

describe('what a function returns to pass on', () => {
  it('replaces what an earlier phase passed on under the same name, and leaves the rest', () => {
    expect(withOutputs({ A: '1', B: '2' }, { B: '3' })).toEqual({ ok: true, outputs: { A: '1', B: '3' } });
  });

  test.each([
    ['a name that no variable has', { 'A-B': '' }, '"A-B" is no name of a variable'],
    ['what is no text', { A: undefined as unknown as string }, 'A is no text'],
    ['a NUL, which no environment can have', { A: 'a\0b' }, 'the value of A has a NUL in it'],
  ])('is refused with %s', (_, outputs, problem) => {
    expect(withOutputs({}, outputs)).toEqual({ ok: false, problem: `its outputs: ${problem}` });
  });

  it('is refused when all that was passed on would be too large for the record', () => {
    const most = Math.floor((LARGEST_OUTPUTS_BYTES - 2) / 3);
    expect(withOutputs({}, { A: 'x'.repeat(most) }).ok).toBe(true);
    expect(withOutputs({ B: 'x' }, { A: 'x'.repeat(most) })).toMatchObject({
      ok: false,
      problem: expect.stringContaining('its outputs are too large') as string,
    });
  });
});
