import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeaderDecoder, MAX_HEADER_LIST } from './decoder.ts';
import { decodeHuffman } from './huffman.ts';
import { FIRST_DYNAMIC, STATIC_TABLE } from './static-table.ts';

type Pair = readonly [name: string, value: string];

function decoded(decoder: HeaderDecoder, bytes: readonly number[]): Pair[] {
  const fields: Pair[] = [];
  // Not at the beginning of its buffer, as in a chunk of a socket.
  const chunk = Buffer.from([0xaa, 0xaa, ...bytes, 0xaa]);
  decoder.decode(chunk, 2, chunk.length - 1, { field: (name, value) => fields.push([name, value]) });
  return fields;
}

function integer(bits: number, mask: number, value: number): number[] {
  if (value < mask) return [bits | value];
  const bytes = [bits | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

function text(value: string): number[] {
  return [...integer(0, 0x7f, value.length), ...Buffer.from(value, 'latin1')];
}

const remembered = (name: string, value: string): number[] => [0x40, ...text(name), ...text(value)];
const indexed = (number: number): number[] => integer(0x80, 0x7f, number);
const resized = (size: number): number[] => integer(0x20, 0x1f, size);

describe('a header block', () => {
  it('may name any field that everyone knows', () => {
    const all = STATIC_TABLE.map(({ name, value }) => [name, value] as const).slice(1);
    expect(all).toHaveLength(61);
    expect(all.map((_, index) => decoded(new HeaderDecoder(), indexed(index + 1))[0])).toEqual(all);
  });

  it('says the same whether a field is to be remembered, not to be, or never to be', () => {
    for (const kind of [0x40, 0x00, 0x10]) {
      expect(decoded(new HeaderDecoder(), [kind, ...text('name'), ...text('value')])).toEqual([['name', 'value']]);
      const mask = kind === 0x40 ? 0x3f : 0x0f;
      const known = [...integer(kind, mask, 58), ...text('ours')];
      expect(decoded(new HeaderDecoder(), known)).toEqual([['user-agent', 'ours']]);
    }
  });

  it('refers to what earlier ones had remembered, the newest first, and to nothing else', () => {
    const decoder = new HeaderDecoder();
    decoded(decoder, [...remembered('a', '1'), ...remembered('b', '2'), 0x00, ...text('c'), ...text('3')]);
    const both = [...indexed(FIRST_DYNAMIC), ...indexed(FIRST_DYNAMIC + 1)];
    expect(decoded(decoder, both)).toEqual([
      ['b', '2'],
      ['a', '1'],
    ]);
    expect(() => decoded(decoder, indexed(FIRST_DYNAMIC + 2))).toThrow('which there is not');
  });

  it('finds its table as any other reader of the same blocks would, whatever was added and forgotten', () => {
    const short = fc.string({ unit: 'binary-ascii', maxLength: 300 });
    const step = fc.oneof(
      fc.record({ do: fc.constant('add' as const), name: short, value: short }),
      fc.record({ do: fc.constant('resize' as const), size: fc.nat(4096) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const decoder = new HeaderDecoder();
        // As the RFC tells it: a list of which the first is the newest, and too much is taken from its end.
        let table: Pair[] = [];
        let limit = 4096;
        for (const each of steps) {
          if (each.do === 'add') {
            decoded(decoder, remembered(each.name, each.value));
            table = [[each.name, each.value], ...table];
          } else {
            decoded(decoder, resized(each.size));
            limit = each.size;
          }
          const size = (): number => table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
          while (size() > limit) table = table.slice(0, -1);
          table.forEach((pair, index) => expect(decoded(decoder, indexed(FIRST_DYNAMIC + index))).toEqual([pair]));
          expect(() => decoded(decoder, indexed(FIRST_DYNAMIC + table.length))).toThrow('which there is not');
        }
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['a field numbered 0', indexed(0)],
    ['a field that was never told', indexed(FIRST_DYNAMIC)],
    ['a number without end', [0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]],
    ['a number that is cut off', [0xff]],
    ['a name that is cut off', [0x40, 5, 97]],
    ['a field without its value', [0x40, ...text('name')]],
    ['a text longer than any memory', [0x40, 0x7f, 0xff, 0xff, 0xff, 0x7f]],
    ['a table larger than agreed', resized(4097)],
    ['a change of the table behind a field', [...indexed(2), ...resized(0)]],
    // 30 ones, and padding.
    ['a text with the mark of the end in it', [0x40, 0x84, 0xff, 0xff, 0xff, 0xff, 0]],
    ['a text padded by more than a byte', [0x40, 0x82, 0x07, 0xff, 0]],
    ['a text padded with zeros', [0x40, 0x81, 0x00, 0]],
  ])('is refused for %s', (_, bytes) => {
    expect(() => decoded(new HeaderDecoder(), bytes)).toThrow(
      expect.objectContaining({ name: 'ProtocolError', code: 9 }),
    );
  });

  it('is refused when few bytes stand for more fields than anyone could want', () => {
    const decoder = new HeaderDecoder();
    decoded(decoder, remembered('bomb', 'x'.repeat(4000)));
    let heard = 0;
    const bomb = Buffer.from(Array<number>(16_000).fill(0x80 | FIRST_DYNAMIC));
    expect(() => decoder.decode(bomb, 0, bomb.length, { field: () => heard++ })).toThrow('header fields');
    expect(heard * 4000).toBeLessThan(MAX_HEADER_LIST);
  });

  it('never does worse than to be refused, whatever it consists of', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }), (blocks) => {
        const decoder = new HeaderDecoder();
        for (const bytes of blocks) {
          try {
            decoded(decoder, [...bytes]);
          } catch (error) {
            expect(error).toMatchObject({ name: 'ProtocolError' });
          }
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a text in Huffman code', () => {
  it('ends with nothing in it, or with up to seven ones', () => {
    expect(decodeHuffman(Buffer.alloc(0), 0, 0)).toBe('');
    // 'a' is 00011, 'o' is 00111; eight of five bits fill five bytes.
    expect(decodeHuffman(Buffer.from([0b00011_111]), 0, 1)).toBe('a');
    expect(decodeHuffman(Buffer.from([0b00011_001, 0b11_111111]), 0, 2)).toBe('ao');
    expect(decodeHuffman(Buffer.from([0x18, 0xc6, 0x31, 0x8c, 0x63]), 0, 5)).toBe('aaaaaaaa');
  });
});
