/** What one exchange could not send yet, because the peer has no room for it: whole messages, sent piece by piece. */
import { writeUint32 } from './frames.ts';

/** One byte that says whether it is compressed, and four for its length. */
export const MESSAGE_HEAD = 5;

export class Backlog {
  /** Bytes that are left. */
  size = 0;
  readonly #pieces: Uint8Array[] = [];
  /** How much of the first piece is gone. */
  #gone = 0;

  push(message: Uint8Array): void {
    const head = Buffer.alloc(MESSAGE_HEAD);
    writeUint32(head, 1, message.length);
    this.#pieces.push(head, message);
    this.size += MESSAGE_HEAD + message.length;
  }

  /** Moves so many bytes. */
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
