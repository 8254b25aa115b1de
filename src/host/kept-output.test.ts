import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KeptOutput } from './kept-output.ts';

it('keeps the first and the last bytes, however they came, and counts the others', () => {
  const chunks = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40 }), { maxLength: 20 });
  fc.assert(
    fc.property(chunks, fc.integer({ min: 2, max: 50 }), (parts, limit) => {
      const output = new KeptOutput(Math.floor(limit / 2), Math.ceil(limit / 2));
      for (const part of parts) output.add(Buffer.from(part));
      const all = parts.join('');
      const left = all.length - limit;
      const head = all.slice(0, Math.floor(limit / 2));
      const tail = all.slice(all.length - Math.ceil(limit / 2));
      expect(output.text).toBe(left <= 0 ? all : `${head}\n… ${left} bytes left out …\n${tail}`);
    }),
  );
});

it('cuts no character in two', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', minLength: 30, maxLength: 60 }),
      fc.integer({ min: 8, max: 20 }),
      (text, limit) => {
        const output = new KeptOutput(Math.floor(limit / 2), Math.ceil(limit / 2));
        output.add(Buffer.from(text));
        expect(output.text.includes('\ufffd')).toBe(text.includes('\ufffd') && output.text.includes('\ufffd'));
        const [head = '', tail = ''] = output.text.split(/\n… \d+ bytes left out …\n/);
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      },
    ),
  );
});
