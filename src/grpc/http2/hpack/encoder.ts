/**
 * Writes the header blocks of gRPC requests (RFC 7541). There are few different ones. The peer's table keeps their fields
 * after the first use; from then on a block is a handful of numbers, and the same bytes serve every call.
 *
 * The caller's own headers, such as a user's token, are marked as never to be kept in a table, neither by the peer nor by
 * a proxy on the way.
 */
import { DEFAULT_TABLE_SIZE, FIRST_DYNAMIC, sizeOf, STATIC_TABLE } from './static-table.ts';

type Headers = Readonly<Record<string, string>>;

interface Block {
  readonly headers: Headers | undefined;
  readonly bytes: Buffer;
}

/** The bits that begin a field, and the largest number that fits into the same byte. */
const INDEXED = [0x80, 0x7f] as const;
const REMEMBERED = [0x40, 0x3f] as const;
const NOT_REMEMBERED = [0x00, 0x0f] as const;
const NEVER_REMEMBERED = [0x10, 0x0f] as const;
/** Sets the peer's table to size 0. */
const FORGET_ALL = 0x20;

export class HeaderEncoder {
  readonly #scheme: string;
  readonly #authority: string;
  /** The fields in the peer's table, numbered in the order in which they were added. None is ever evicted. */
  readonly #remembered = new Map<string, number>();
  #rememberedSize = 0;
  #blocks = new Map<string, Block>();
  #mayRemember = true;
  #mustForget = false;

  constructor(scheme: 'http' | 'https', authority: string) {
    this.#scheme = scheme;
    this.#authority = authority;
  }

  /** Limits the peer's table. Below the default size we add nothing: a smaller table is not worth a strategy. */
  limitTable(size: number): void {
    if (size >= DEFAULT_TABLE_SIZE || !this.#mayRemember) return;
    this.#mayRemember = false;
    this.#mustForget = true;
    this.#remembered.clear();
    this.#blocks.clear();
  }

  /** Each block must be sent before the next is asked for: the next may refer to fields that this one adds. */
  block(path: string, headers: Headers | undefined): Buffer {
    const known = this.#blocks.get(path);
    if (known !== undefined && known.headers === headers) return known.bytes;
    return this.#encode(path, headers);
  }

  #encode(path: string, headers: Headers | undefined): Buffer {
    const before = this.#remembered.size;
    const bytes: number[] = [];
    if (this.#mustForget) bytes.push(FORGET_ALL);
    this.#field(bytes, ':method', 'POST');
    this.#field(bytes, ':scheme', this.#scheme);
    this.#field(bytes, ':path', path);
    this.#field(bytes, ':authority', this.#authority);
    this.#field(bytes, 'te', 'trailers');
    this.#field(bytes, 'content-type', 'application/grpc');
    for (const [name, value] of Object.entries(headers ?? {})) literal(bytes, NEVER_REMEMBERED, 0, name, value);
    const block = { headers, bytes: Buffer.from(bytes) };
    if (this.#remembered.size > before) {
      // Numbers count from the newest field, so all of them have changed.
      this.#blocks.clear();
    } else if (!this.#mustForget) {
      this.#blocks.set(path, block);
    }
    this.#mustForget = false;
    return block.bytes;
  }

  #field(into: number[], name: string, value: string): void {
    const known = STATIC_TABLE.findIndex((field) => field.name === name && field.value === value);
    if (known > 0) return integer(into, INDEXED, known);
    const key = `${name} ${value}`;
    const order = this.#remembered.get(key);
    if (order !== undefined) return integer(into, INDEXED, FIRST_DYNAMIC + this.#remembered.size - 1 - order);

    const nameNumber = Math.max(
      STATIC_TABLE.findIndex((field) => field.name === name),
      0,
    );
    const size = this.#rememberedSize + sizeOf(name, value);
    if (!this.#mayRemember || size > DEFAULT_TABLE_SIZE) return literal(into, NOT_REMEMBERED, nameNumber, name, value);
    literal(into, REMEMBERED, nameNumber, name, value);
    this.#rememberedSize = size;
    this.#remembered.set(key, this.#remembered.size);
  }
}

function literal(into: number[], kind: readonly [number, number], number: number, name: string, value: string): void {
  integer(into, kind, number);
  if (number === 0) text(into, name);
  text(into, value);
}

function text(into: number[], value: string): void {
  const bytes = Buffer.from(value, 'utf8');
  integer(into, [0, 0x7f], bytes.length);
  for (const byte of bytes) into.push(byte);
}

function integer(into: number[], [bits, largest]: readonly [number, number], value: number): void {
  if (value < largest) {
    into.push(bits | value);
    return;
  }
  into.push(bits | largest);
  let rest = value - largest;
  for (; rest >= 0x80; rest >>>= 7) into.push((rest & 0x7f) | 0x80);
  into.push(rest);
}
