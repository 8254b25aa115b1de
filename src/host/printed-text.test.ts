import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PrintedText, printedText } from './printed-text.ts';

const bytes = fc.array(
  fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'é', '→', '🚦', '\ufffd'), maxLength: 4 }).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 3 }).map((array) => Buffer.from(array)),
  ),
  { maxLength: 8 },
);

it('shows stray bytes as what they are, and all else unchanged', () => {
  expect(printedText(Buffer.from('caf\xe9 ok\xff\n', 'latin1'))).toBe('caf\\xe9 ok\\xff\n');
  // Overlong, a surrogate, and beyond the last character: none of them is UTF-8.
  for (const odd of [
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
  ]) {
    expect(printedText(Buffer.from(odd))).toBe(odd.map((byte) => `\\x${byte.toString(16)}`).join(''));
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(printedText(Buffer.from(text))).toBe(Buffer.from(text).toString());
    }),
  );
});

it('says the same however the bytes come, and loses none of them', () => {
  fc.assert(
    fc.property(bytes, fc.integer({ min: 1, max: 5 }), (pieces, size) => {
      const all = Buffer.concat(pieces);
      const printed = new PrintedText();
      let text = '';
      for (let at = 0; at < all.length; at += size) text += printed.write(all.subarray(at, at + size));
      text += printed.end();
      expect(text).toBe(printedText(all));
      const back = text.replaceAll('\ufffd', '?').includes('\\x') ? undefined : Buffer.from(text);
      if (back !== undefined) expect(back.equals(all)).toBe(true);
    }),
  );
});
