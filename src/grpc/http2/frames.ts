/** HTTP/2's constants (RFC 9113): frame kinds, flags, settings, error codes. */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Length (3 bytes), kind, flags, stream (4 bytes). */
export const FRAME_HEAD = 9;

/**
 * The longest payload that every peer must accept. Peers may agree on longer ones; we do not, because they save little
 * and one of them would hold up every other stream on the connection.
 */
export const MAX_PAYLOAD = 16_384;

export const MAX_STREAM_ID = 2 ** 31 - 1;
export const MAX_WINDOW = 2 ** 31 - 1;
/** The window of a connection, and of its streams until settings change it. */
export const DEFAULT_WINDOW = 65_535;

export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const NO_FLAGS = 0;
/** On SETTINGS and PING. */
export const ACK = 0x1;
/** On DATA and HEADERS. */
export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const PRIORITISED = 0x20;

export const HEADER_TABLE_SIZE = 1;
export const ENABLE_PUSH = 2;
export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;
export const MAX_FRAME_SIZE = 5;
export const MAX_HEADER_LIST_SIZE = 6;

export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const FLOW_CONTROL_ERROR = 3;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const ENHANCE_YOUR_CALM = 11;

const CODES: Readonly<Record<number, string>> = {
  0: 'NO_ERROR',
  1: 'PROTOCOL_ERROR',
  2: 'INTERNAL_ERROR',
  3: 'FLOW_CONTROL_ERROR',
  4: 'SETTINGS_TIMEOUT',
  5: 'STREAM_CLOSED',
  6: 'FRAME_SIZE_ERROR',
  7: 'REFUSED_STREAM',
  8: 'CANCEL',
  9: 'COMPRESSION_ERROR',
  10: 'CONNECT_ERROR',
  11: 'ENHANCE_YOUR_CALM',
  12: 'INADEQUATE_SECURITY',
  13: 'HTTP_1_1_REQUIRED',
};

export function codeName(code: number): string {
  return CODES[code] ?? `error code ${code}`;
}

/** The peer broke a rule of HTTP/2. Its further frames cannot be trusted, so the connection ends. */
export class ProtocolError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = 'ProtocolError';
    this.code = code;
  }
}

/** Returns where the payload begins. */
export function writeFrameHead(
  into: Buffer,
  at: number,
  length: number,
  kind: number,
  flags: number,
  id: number,
): number {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = kind;
  into[at + 4] = flags;
  return writeUint32(into, at + 5, id);
}

/** Returns the place after the number. */
export function writeUint32(into: Buffer, at: number, value: number): number {
  into[at] = value >>> 24;
  into[at + 1] = value >>> 16;
  into[at + 2] = value >>> 8;
  into[at + 3] = value;
  return at + 4;
}

export function readUint32(from: Uint8Array, at: number): number {
  return ((from[at]! << 24) | (from[at + 1]! << 16) | (from[at + 2]! << 8) | from[at + 3]!) >>> 0;
}

/** Ignores the top bit, which HTTP/2 reserves. */
export function readUint31(from: Uint8Array, at: number): number {
  return readUint32(from, at) & 0x7fff_ffff;
}
