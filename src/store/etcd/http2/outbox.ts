/**
 * What is to be sent, gathered until the current turn of the event loop is over: the calls that are made in one go cost
 * one system call. A call on its own waits for nothing but the end of the function that made it.
 */
import type { Socket } from 'node:net';
import { FRAME_HEAD, MAX_PAYLOAD, writeFrameHead, writeUint32 } from './frames.ts';

/** Some frames of the largest size, and hundreds of calls. */
const SLAB = 4 * (FRAME_HEAD + MAX_PAYLOAD);

export class Outbox {
  /** Where `room` is made. It changes with each. */
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

  /** How many bytes there were before the next one. */
  get position(): number {
    return this.#handedOver + this.#to - this.#from;
  }

  /** Whether what was put in at this position, or something of it, may have left the process. */
  hasLeft(position: number): boolean {
    return position < this.#handedOver;
  }

  /** Answers where in `bytes` the next `size` bytes are to be written: at once, and all of them. */
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

  /** A frame of one number: a window's increment, or a code. */
  frameOfNumber(kind: number, id: number, value: number): void {
    const at = this.room(FRAME_HEAD + 4);
    writeUint32(this.bytes, writeFrameHead(this.bytes, at, 4, kind, 0, id), value);
  }

  flush(): void {
    if (this.#from === this.#to || this.#isClosed) return;
    this.#handedOver += this.#to - this.#from;
    this.#socket.write(this.bytes.subarray(this.#from, this.#to));
    this.#from = this.#to;
    // The system took all of it, so nobody looks at these bytes any more.
    if (this.#socket.writableLength === 0) this.#from = this.#to = 0;
  }

  /** What is still here is not sent any more. */
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
