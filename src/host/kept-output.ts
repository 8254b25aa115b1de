/** Keeps the beginning and the end of a command's output, however long it is. */
import { printedText, withoutBrokenBeginning, withoutBrokenEnd } from './printed-text.ts';

export class KeptOutput {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #total = 0;
  readonly #head: Buffer[] = [];
  /** A ring buffer, used once the head is full. */
  #tail: Buffer | undefined;
  #tailTotal = 0;

  /** How many bytes of the beginning and of the end to keep. */
  constructor(headBytes: number, tailBytes: number) {
    this.#headLimit = headBytes;
    this.#tailLimit = tailBytes;
  }

  add(chunk: Buffer): void {
    const room = Math.max(0, this.#headLimit - this.#total);
    this.#total += chunk.length;
    // Copied, because a short piece would keep the whole chunk that it was cut from.
    if (room > 0) this.#head.push(Buffer.from(chunk.subarray(0, room)));
    const rest = chunk.subarray(room);
    if (rest.length > 0) this.#addToTail(rest);
  }

  #addToTail(chunk: Buffer): void {
    const limit = this.#tailLimit;
    this.#tail ??= Buffer.alloc(limit);
    // Only the end of a long chunk stays; it must land where it would have.
    const skipped = Math.max(0, chunk.length - limit);
    const kept = chunk.subarray(skipped);
    const at = (this.#tailTotal + skipped) % limit;
    const first = kept.copy(this.#tail, at);
    if (first < kept.length) kept.copy(this.#tail, 0, first);
    this.#tailTotal += chunk.length;
  }

  /** How much was printed in all. */
  get total(): number {
    return this.#total;
  }

  /** Says where something was left out, and how much. */
  get text(): string {
    return this.cut.text;
  }

  /** The same, with the number of bytes that were left out. */
  get cut(): { readonly text: string; readonly leftOut: number } {
    const head = Buffer.concat(this.#head);
    if (this.#tail === undefined) return { text: printedText(head), leftOut: 0 };
    const limit = this.#tailLimit;
    if (this.#tailTotal <= limit) {
      return { text: printedText(Buffer.concat([head, this.#tail.subarray(0, this.#tailTotal)])), leftOut: 0 };
    }
    const seam = this.#tailTotal % limit;
    const begin = withoutBrokenEnd(head);
    const end = withoutBrokenBeginning(Buffer.concat([this.#tail.subarray(seam), this.#tail.subarray(0, seam)]));
    const leftOut = this.#total - begin.length - end.length;
    return { text: `${printedText(begin)}\n… ${leftOut} bytes left out …\n${printedText(end)}`, leftOut };
  }
}
