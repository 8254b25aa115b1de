import { describe, expect, it } from 'vitest';
import { harmless, jsonText, paintFor, printable } from './output.ts';

const paint = paintFor({ isTTY: true }, {});
/** What a terminal would obey: escape sequences of one byte and of two, a bell, a title, and text that runs backwards. */
const HOSTILE = [
  '\x1b[2J',
  '\x9b2J',
  '\x07',
  '\x1b]0;title\x07',
  '\r',
  '\x7f',
  '\u202e',
  '\u2066',
  '\u200f',
  '\u{e0041}',
];

describe('text of others', () => {
  it.each(HOSTILE)('cannot do anything to a terminal: %j', (text) => {
    const obeyed = /[\p{Cc}\p{Cf}]/u;
    expect(printable(`a${text}b`)).not.toMatch(obeyed);
    expect(harmless(`a${text}b`)).not.toMatch(obeyed);
    expect(jsonText({ [text]: [text] })).not.toMatch(obeyed);
  });

  it.each(HOSTILE)('is the same to a program that reads it as JSON: %j', (text) => {
    expect(JSON.parse(jsonText({ [text]: [text, '\n"\\'] }))).toEqual({ [text]: [text, '\n"\\'] });
  });

  it('leaves our own colours, lines and tabs as they are', () => {
    const ours = `${paint('bold', 'a')}\n\t${paint('dim', 'b')}${paint('red', 'c')}${paint('green', 'd')}${paint('yellow', 'é')}`;
    expect(harmless(ours)).toBe(ours);
  });
});
