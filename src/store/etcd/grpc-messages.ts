/** gRPC inside HTTP/2: each message with its length in front, and the outcome in the trailers. */
import { CallFailure } from './transport.ts';

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
  #rest: Buffer | undefined;

  constructor(deliver: (message: Uint8Array) => void) {
    this.#deliver = deliver;
  }

  take(chunk: Uint8Array): void {
    const piece = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    let bytes = this.#rest === undefined ? piece : Buffer.concat([this.#rest, piece]);
    this.#rest = undefined;
    while (bytes.length >= PREFIX) {
      const end = PREFIX + bytes.readUInt32BE(1);
      if (bytes.length < end) break;
      this.#deliver(bytes.subarray(PREFIX, end));
      bytes = bytes.subarray(end);
    }
    if (bytes.length > 0) this.#rest = bytes;
  }
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
