/** A message that came in several pieces. Room is made as it arrives and not as announced: a length is easily claimed. */
import { MESSAGE_HEAD } from './backlog.ts';
import { readUint32 } from './frames.ts';

const FIRST_ROOM = 1024;

export class TornMessage {
  #bytes = Buffer.allocUnsafe(FIRST_ROOM);
  #have = 0;

  /** How much of it is here. */
  get size(): number {
    return this.#have;
  }

  /** Its first bytes, once they are all here. */
  get head(): Buffer | undefined {
    return this.#have >= MESSAGE_HEAD ? this.#bytes : undefined;
  }

  /** The message, once it is whole. */
  get whole(): Buffer | undefined {
    return this.#have >= MESSAGE_HEAD && this.#have === this.#wanted()
      ? this.#bytes.subarray(MESSAGE_HEAD, this.#have)
      : undefined;
  }

  /** Answers how many bytes were of this message, or of its head. */
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
