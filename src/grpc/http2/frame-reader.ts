/**
 * Cuts the socket's chunks into frames, wherever the network split them. A frame inside one chunk is handed on without
 * copying; only a frame across chunks is copied.
 */
import { FRAME_HEAD, FRAME_SIZE_ERROR, MAX_PAYLOAD, ProtocolError, readUint31 } from './frames.ts';

/** The payload is `bytes` from `at` to `end`. It is never overwritten, so the listener may keep a view of it. */
export type FrameListener = (kind: number, flags: number, id: number, bytes: Buffer, at: number, end: number) => void;

/** A frame too long to be one. If it is the first, its head shows which protocol the peer speaks instead. */
export class FrameTooLong extends ProtocolError {
  readonly head: Buffer;

  constructor(length: number, head: Buffer) {
    super(FRAME_SIZE_ERROR, `a frame of ${length} bytes, where at most ${MAX_PAYLOAD} were agreed on`);
    this.head = head;
  }
}

export class FrameReader {
  readonly #onFrame: FrameListener;
  readonly #head = Buffer.alloc(FRAME_HEAD);
  /** Bytes received of a torn frame: of its head first, then of the whole frame. */
  #have = 0;
  #torn: Buffer | undefined;
  #isStopped = false;

  constructor(onFrame: FrameListener) {
    this.#onFrame = onFrame;
  }

  /** Hands on nothing more, not even the rest of this chunk. */
  stop(): void {
    this.#isStopped = true;
  }

  read(chunk: Buffer): void {
    let at = this.#have === 0 ? 0 : this.#mend(chunk);
    while (!this.#isStopped && chunk.length - at >= FRAME_HEAD) {
      const end = at + FRAME_HEAD + lengthOf(chunk, at);
      if (end > chunk.length) break;
      this.#handOn(chunk, at, end);
      at = end;
    }
    if (at < chunk.length && !this.#isStopped) this.#keep(chunk, at);
  }

  #handOn(bytes: Buffer, at: number, end: number): void {
    this.#onFrame(bytes[at + 3]!, bytes[at + 4]!, readUint31(bytes, at + 5), bytes, at + FRAME_HEAD, end);
  }

  /** Completes the frame that an earlier chunk began. Returns where the next frame begins. */
  #mend(chunk: Buffer): number {
    const at = this.#torn === undefined ? this.#mendHead(chunk) : 0;
    const torn = this.#torn;
    if (torn === undefined) return at;
    const copied = chunk.copy(torn, this.#have, at);
    this.#have += copied;
    if (this.#have === torn.length) {
      this.#have = 0;
      this.#torn = undefined;
      this.#handOn(torn, 0, torn.length);
    }
    return at + copied;
  }

  #mendHead(chunk: Buffer): number {
    const copied = chunk.copy(this.#head, this.#have);
    this.#have += copied;
    if (this.#have === FRAME_HEAD) this.#begin(this.#head, 0);
    return copied;
  }

  #keep(chunk: Buffer, at: number): void {
    if (chunk.length - at < FRAME_HEAD) {
      this.#have = chunk.copy(this.#head, 0, at);
      return;
    }
    this.#begin(chunk, at);
    this.#have = chunk.copy(this.#torn!, 0, at);
  }

  /** Allocates at most one frame's size: `lengthOf` refuses a longer claim. */
  #begin(bytes: Buffer, at: number): void {
    this.#torn = Buffer.allocUnsafeSlow(FRAME_HEAD + lengthOf(bytes, at));
    bytes.copy(this.#torn, 0, at, at + FRAME_HEAD);
  }
}

function lengthOf(bytes: Buffer, at: number): number {
  const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length > MAX_PAYLOAD) throw new FrameTooLong(length, Buffer.from(bytes.subarray(at, at + FRAME_HEAD)));
  return length;
}
