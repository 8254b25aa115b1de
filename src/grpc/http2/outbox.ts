/**
 * Gathers outgoing bytes until the current turn of the event loop ends, so that calls made together cost one system call.
 * A single call waits only until the function that made it returns.
 */
import type { Socket } from 'node:net';
import { FRAME_HEAD, MAX_PAYLOAD, writeFrameHead, writeUint32 } from './frames.ts';

/** Room for a few frames of the largest size, or hundreds of calls. */
const SLAB = 4 * (FRAME_HEAD + MAX_PAYLOAD);

export class Outbox {
  /** The buffer in which `room` reserves space. Each call of `room` may replace it. */
  bytes = Buffer.allocUnsafeSlow(SLAB);
  readonly #socket: Socket;
  #from = 0;
  #to = 0;
  #isScheduled = false;
  #isClosed = false;
  #handedOver = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Bytes put in so far: the position of the next byte. */
  get position(): number {
    return this.#handedOver + this.#to - this.#from;
  }

  /** Whether the byte at this position may have left the process. */
  hasLeft(position: number): boolean {
    return position < this.#handedOver;
  }

  /** Reserves `size` bytes and returns their place in `bytes`. The caller must fill all of them before it returns. */
  room(size: number): number {
    if (this.#to + size > this.bytes.length) this.#renew();
    const at = this.#to;
    this.#to += size;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      process.nextTick(this.#flush);
    }
    return at;
  }

  put(bytes: Uint8Array): void {
    const at = this.room(bytes.length);
    this.bytes.set(bytes, at);
  }

  frame(kind: number, flags: number, id: number, payload: Uint8Array): void {
    const at = this.room(FRAME_HEAD + payload.length);
    this.bytes.set(payload, writeFrameHead(this.bytes, at, payload.length, kind, flags, id));
  }

  /** A frame whose payload is one number: a window's increment or an error code. */
  frameOfNumber(kind: number, id: number, value: number): void {
    const at = this.room(FRAME_HEAD + 4);
    writeUint32(this.bytes, writeFrameHead(this.bytes, at, 4, kind, 0, id), value);
  }

  flush(): void {
    if (this.#from === this.#to || this.#isClosed) return;
    this.#handedOver += this.#to - this.#from;
    this.#socket.write(this.bytes.subarray(this.#from, this.#to));
    this.#from = this.#to;
    // The system took all of it, so the buffer can be reused from the start.
    if (this.#socket.writableLength === 0) this.#from = this.#to = 0;
  }

  /** Drops the bytes that are not sent yet. */
  close(): void {
    this.#isClosed = true;
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    this.flush();
  };

  #renew(): void {
    this.flush();
    if (this.#to === 0) return;
    this.bytes = Buffer.allocUnsafeSlow(SLAB);
    this.#from = this.#to = 0;
  }
}
