/**
 * Reads header blocks (RFC 7541). Every block of a connection must be read in order, also those of exchanges that ended:
 * each block may change the table that later blocks refer to.
 */
import { COMPRESSION_ERROR, ENHANCE_YOUR_CALM, ProtocolError } from '../frames.ts';
import { decodeHuffman } from './huffman.ts';
import { DEFAULT_TABLE_SIZE, type Field, FIRST_DYNAMIC, sizeOf, STATIC_TABLE } from './static-table.ts';

export interface FieldListener {
  field(name: string, value: string): void;
}

/**
 * Limits the decoded header list, counted as RFC 9113 does. A block of a few bytes can repeat a long field many times, so
 * a limit on the block itself would not help.
 */
export const MAX_HEADER_LIST = 65_536;

/** Four further bytes: far more than any real length needs, and far from overflowing. */
const LARGEST_SHIFT = 21;

export class HeaderDecoder {
  /** The newest is last, so that adding one moves none. Entries before `#oldest` are forgotten. */
  #entries: Field[] = [];
  #oldest = 0;
  #size = 0;
  #maxSize = DEFAULT_TABLE_SIZE;

  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  decode(bytes: Buffer, at: number, end: number, listener: FieldListener): void {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
    let listSize = 0;
    let mayResize = true;
    while (this.#at < this.#end) {
      const first = bytes[this.#at]!;
      if ((first & 0xe0) === 0x20) {
        if (!mayResize) throw broken('a change of the table size in the middle of a header block');
        this.#resize(this.#integer(0x1f));
        continue;
      }
      mayResize = false;
      const field = first >= 0x80 ? this.#entry(this.#integer(0x7f)) : this.#literal(first);
      listSize += sizeOf(field.name, field.value);
      if (listSize > MAX_HEADER_LIST) {
        throw new ProtocolError(ENHANCE_YOUR_CALM, `more than ${MAX_HEADER_LIST} bytes of header fields`);
      }
      listener.field(field.name, field.value);
    }
  }

  /** The two highest bits say whether to add the field to the table. We ignore the bit for secret fields. */
  #literal(first: number): Field {
    const isRemembered = first >= 0x40;
    const number = this.#integer(isRemembered ? 0x3f : 0x0f);
    const name = number === 0 ? this.#text() : this.#entry(number).name;
    const field = { name, value: this.#text() };
    if (isRemembered) this.#remember(field);
    return field;
  }

  #entry(number: number): Field {
    const field =
      number < FIRST_DYNAMIC
        ? STATIC_TABLE[number]
        : number - FIRST_DYNAMIC < this.#entries.length - this.#oldest
          ? this.#entries[this.#entries.length - 1 - (number - FIRST_DYNAMIC)]
          : undefined;
    if (field === undefined || number === 0) throw broken(`header field number ${number}, which there is not`);
    return field;
  }

  #remember(field: Field): void {
    this.#size += sizeOf(field.name, field.value);
    this.#entries.push(field);
    this.#forget();
  }

  #resize(size: number): void {
    if (size > DEFAULT_TABLE_SIZE) throw broken(`a header table of ${size} bytes, above the ${DEFAULT_TABLE_SIZE}`);
    this.#maxSize = size;
    this.#forget();
  }

  #forget(): void {
    while (this.#size > this.#maxSize) {
      const { name, value } = this.#entries[this.#oldest++]!;
      this.#size -= sizeOf(name, value);
    }
    // In batches: once per entry, a table of ever new fields would be copied all the time.
    if (this.#oldest > 64 && this.#oldest * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#oldest);
      this.#oldest = 0;
    }
  }

  #text(): string {
    if (this.#at >= this.#end) throw broken('a header block that ends too early');
    const isHuffman = this.#bytes[this.#at]! >= 0x80;
    const length = this.#integer(0x7f);
    const from = this.#at;
    if (length > this.#end - from) throw broken('a header text that is longer than its block');
    this.#at += length;
    return isHuffman ? decodeHuffman(this.#bytes, from, this.#at) : this.#bytes.toString('latin1', from, this.#at);
  }

  /** A small integer lies in the low bits of the first byte. */
  #integer(mask: number): number {
    let value = this.#bytes[this.#at++]! & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      if (this.#at >= this.#end) throw broken('a header block that ends too early');
      if (shift > LARGEST_SHIFT) throw broken('a number without end in a header block');
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
}

function broken(what: string): ProtocolError {
  return new ProtocolError(COMPRESSION_ERROR, what);
}
