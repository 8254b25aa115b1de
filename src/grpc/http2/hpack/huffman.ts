/**
 * Decodes the Huffman code of RFC 7541. The code is canonical: codes of one length follow each other in the order of their
 * symbols, so the lengths define it.
 */
import { COMPRESSION_ERROR, ProtocolError } from '../frames.ts';

/** The number of bits in each byte's code; the last is that of the end mark. */
const LENGTHS = [
  ...[13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28],
  ...[28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28],
  ...[6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6],
  ...[5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10],
  ...[13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7],
  ...[7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6],
  ...[15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5],
  ...[6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28],
  ...[20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23],
  ...[24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24],
  ...[22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23],
  ...[21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23],
  ...[26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25],
  ...[19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27],
  ...[20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23],
  ...[26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26],
  30,
];
const END = 256;
const LONGEST = 30;
/** The shortest code, in bits: it bounds the size of the decoded text. */
const SHORTEST = 5;

/** By length: the first code, how many there are, and where their symbols begin in `SYMBOLS`. */
const FIRST = new Int32Array(LONGEST + 1);
const COUNT = new Int32Array(LONGEST + 1);
const BEGIN = new Int32Array(LONGEST + 1);
const SYMBOLS: number[] = [];

for (let length = 1, code = 0; length <= LONGEST; length++, code <<= 1) {
  FIRST[length] = code;
  BEGIN[length] = SYMBOLS.length;
  for (let symbol = 0; symbol <= END; symbol++) if (LENGTHS[symbol] === length) SYMBOLS.push(symbol);
  COUNT[length] = SYMBOLS.length - BEGIN[length]!;
  code += COUNT[length]!;
}

/** The bytes from `at` to `end`, each as one character. */
export function decodeHuffman(bytes: Buffer, at: number, end: number): string {
  const text = Buffer.allocUnsafe(Math.floor(((end - at) * 8) / SHORTEST));
  let size = 0;
  let code = 0;
  let length = 0;
  for (let index = at; index < end; index++) {
    const byte = bytes[index]!;
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >>> bit) & 1);
      length++;
      const place = code - FIRST[length]!;
      if (place >= COUNT[length]!) continue;
      const symbol = SYMBOLS[BEGIN[length]! + place]!;
      if (symbol === END) throw new ProtocolError(COMPRESSION_ERROR, 'a header text with the mark of the end in it');
      text[size++] = symbol;
      code = 0;
      length = 0;
    }
  }
  // The last byte is padded with ones, which are the beginning of the end mark.
  if (length > 7 || code !== 2 ** length - 1) {
    throw new ProtocolError(COMPRESSION_ERROR, 'a header text that ends in the middle of a character');
  }
  return text.toString('latin1', 0, size);
}
