/** Queues the messages that one exchange cannot send yet because the peer has no room; sends them piece by piece. */
import { writeUint32 } from './frames.ts';

/** Size of a gRPC message's head: one byte for compression, four for the length. */
export const MESSAGE_HEAD = 5;

export class Backlog {
  /** Bytes still to send. */
  size = 0;
  readonly #pieces: Uint8Array[] = [];
  /** Bytes of the first piece that were sent. */
  #gone = 0;

  push(message: Uint8Array): void {
    const head = Buffer.alloc(MESSAGE_HEAD);
    writeUint32(head, 1, message.length);
    this.#pieces.push(head, message);
    this.size += MESSAGE_HEAD + message.length;
  }

  /** Moves the next `size` bytes into a buffer. */
  move(into: Buffer, at: number, size: number): void {
    let left = size;
    while (left > 0) {
      const piece = this.#pieces[0]!;
      const part = piece.subarray(this.#gone, this.#gone + left);
      into.set(part, at + size - left);
      left -= part.length;
      this.#gone += part.length;
      if (this.#gone < piece.length) break;
      this.#pieces.shift();
      this.#gone = 0;
    }
    this.size -= size;
  }
}
