/** gRPC inside HTTP/2: each message with its length in front, and the outcome in the trailers. */
import { CallFailure } from '../../../src/grpc/transport.ts';

const PREFIX = 5;

/** Not compressed, and so long. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, PREFIX);
  return frame;
}

/** Puts messages together from the pieces they come in. */
export class Messages {
  readonly #deliver: (message: Uint8Array) => void;
  #pieces: Uint8Array[] = [];
  #length = 0;
  /** So much is needed before there is anything to do. */
  #needed = PREFIX;

  constructor(deliver: (message: Uint8Array) => void) {
    this.#deliver = deliver;
  }

  take(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
    if (this.#length < this.#needed) return;
    let bytes = this.#pieces.length === 1 ? asBuffer(piece) : Buffer.concat(this.#pieces);
    this.#needed = PREFIX;
    while (bytes.length >= PREFIX) {
      this.#needed = PREFIX + bytes.readUInt32BE(1);
      if (bytes.length < this.#needed) break;
      this.#deliver(bytes.subarray(PREFIX, this.#needed));
      bytes = bytes.subarray(this.#needed);
      this.#needed = PREFIX;
    }
    this.#pieces = bytes.length === 0 ? [] : [bytes];
    this.#length = bytes.length;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** `undefined` as long as nothing is said of the outcome. Status 0 is success. */
export function statusFailure(headers: Readonly<Record<string, unknown>>): CallFailure | undefined {
  const status = headers['grpc-status'];
  if (typeof status === 'string') {
    const message = headers['grpc-message'];
    return new CallFailure(Number(status), typeof message === 'string' ? decoded(message) : '', false);
  }
  const http = headers[':status'];
  if (http === undefined || http === 200) return undefined;
  return new CallFailure(http === 404 ? 12 : 14, `answered with HTTP status ${String(http)}`, false);
}

/** Percent-encoded by the sender; whatever cannot be decoded is shown as it came. */
function decoded(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}
