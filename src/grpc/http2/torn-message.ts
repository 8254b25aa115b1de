/** Collects a message that arrives in pieces. It allocates by what arrived, because a peer may announce any length. */
import { MESSAGE_HEAD } from './backlog.ts';
import { readUint32 } from './frames.ts';

const FIRST_ROOM = 1024;

export class TornMessage {
  #bytes = Buffer.allocUnsafe(FIRST_ROOM);
  #have = 0;

  /** Bytes received so far. */
  get size(): number {
    return this.#have;
  }

  /** The message's head, once it is complete. */
  get head(): Buffer | undefined {
    return this.#have >= MESSAGE_HEAD ? this.#bytes : undefined;
  }

  /** The message, once it is complete. */
  get whole(): Buffer | undefined {
    return this.#have >= MESSAGE_HEAD && this.#have === this.#wanted()
      ? this.#bytes.subarray(MESSAGE_HEAD, this.#have)
      : undefined;
  }

  /** Returns how many bytes it took: those of the head, or of the message. */
  take(bytes: Buffer, at: number, end: number): number {
    const size = Math.min(this.#wanted() - this.#have, end - at);
    if (this.#have + size > this.#bytes.length) this.#grow(this.#have + size);
    bytes.copy(this.#bytes, this.#have, at, at + size);
    this.#have += size;
    return size;
  }

  #wanted(): number {
    return this.#have < MESSAGE_HEAD ? MESSAGE_HEAD : MESSAGE_HEAD + readUint32(this.#bytes, 1);
  }

  #grow(size: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.min(Math.max(size, 2 * this.#bytes.length), this.#wanted()));
    this.#bytes.copy(bytes, 0, 0, this.#have);
    this.#bytes = bytes;
  }
}
