/**
 * Sends requests within flow control: the peer grants a number of bytes to the connection and to each stream. Messages
 * beyond that wait in the exchange's backlog.
 */
import { Backlog, MESSAGE_HEAD } from './backlog.ts';
import type { Exchange } from './exchange.ts';
import {
  CONTINUATION,
  DATA,
  DEFAULT_WINDOW,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL_ERROR,
  FRAME_HEAD,
  HEADERS,
  MAX_PAYLOAD,
  MAX_WINDOW,
  NO_FLAGS,
  ProtocolError,
  writeFrameHead,
  writeUint32,
} from './frames.ts';
import type { Outbox } from './outbox.ts';

/**
 * How much the peer may send before it needs our permission to go on. It is larger than any answer, so that no answer
 * waits for permission. Data is handed on as it arrives, so a smaller window would save no memory.
 */
export const RECEIVE_WINDOW = 64 * 1024 * 1024;

export class FlowControl {
  readonly #outbox: Outbox;
  #window = DEFAULT_WINDOW;
  #initialWindow = DEFAULT_WINDOW;
  /**
   * Exchanges that only the connection's window holds up. Exchanges that wait for their own window are left out: a peer that
   * widens the connection's window byte by byte would make us look at all of them each time.
   */
  readonly #blocked = new Set<Exchange>();

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  /** Sends the headers of an exchange that just got its id, and the backlog it gathered before. */
  begin(exchange: Exchange, block: Buffer): void {
    exchange.position = this.#outbox.position;
    exchange.sendWindow = this.#initialWindow;
    for (let at = 0; at < block.length; at += MAX_PAYLOAD) {
      const end = Math.min(at + MAX_PAYLOAD, block.length);
      const flags = end === block.length ? END_HEADERS : NO_FLAGS;
      this.#outbox.frame(at === 0 ? HEADERS : CONTINUATION, flags, exchange.id, block.subarray(at, end));
    }
    if (exchange.backlog !== undefined) this.#sendBlocked(exchange);
  }

  message(exchange: Exchange, message: Uint8Array, isLast: boolean): void {
    exchange.hasSentAll = isLast;
    const size = MESSAGE_HEAD + message.length;
    if (exchange.id === 0 || exchange.backlog !== undefined || size > this.#roomFor(exchange)) {
      (exchange.backlog ??= new Backlog()).push(message);
      if (exchange.id !== 0) this.#sendBlocked(exchange);
      return;
    }
    const flags = isLast ? END_STREAM : NO_FLAGS;
    const at = this.#data(exchange, size, flags);
    const bytes = this.#outbox.bytes;
    bytes[at] = 0;
    bytes.set(message, writeUint32(bytes, at + 1, message.length));
  }

  /** Drops what the exchange has not sent yet. */
  forget(exchange: Exchange): void {
    exchange.backlog = undefined;
    this.#blocked.delete(exchange);
  }

  widen(increment: number): void {
    this.#window = widened(this.#window, increment);
    this.resume();
  }

  /** Sends what the window now has room for. */
  resume(): void {
    for (const exchange of this.#blocked) {
      if (this.#window <= 0) return;
      this.#sendBlocked(exchange);
    }
  }

  widenOne(exchange: Exchange, increment: number): void {
    exchange.sendWindow = widened(exchange.sendWindow, increment);
    if (exchange.backlog !== undefined) this.#sendBlocked(exchange);
  }

  /** Adjusts the windows of exchanges under way too, as HTTP/2 requires. `resume` then sends what fits. */
  setInitialWindow(size: number, underWay: Iterable<Exchange>): void {
    if (size > MAX_WINDOW) throw new ProtocolError(FLOW_CONTROL_ERROR, `an initial window of ${size} bytes`);
    const change = size - this.#initialWindow;
    this.#initialWindow = size;
    for (const exchange of underWay) {
      exchange.sendWindow = widened(exchange.sendWindow, change);
      if (exchange.backlog !== undefined && exchange.sendWindow > 0) this.#blocked.add(exchange);
    }
  }

  #sendBlocked(exchange: Exchange): void {
    const backlog = exchange.backlog!;
    while (backlog.size > 0) {
      const size = Math.min(backlog.size, this.#roomFor(exchange));
      if (size <= 0) {
        if (exchange.sendWindow > 0) this.#blocked.add(exchange);
        else this.#blocked.delete(exchange);
        return;
      }
      const isLast = exchange.hasSentAll && size === backlog.size;
      const at = this.#data(exchange, size, isLast ? END_STREAM : NO_FLAGS);
      backlog.move(this.#outbox.bytes, at, size);
    }
    this.forget(exchange);
  }

  #roomFor(exchange: Exchange): number {
    return Math.min(MAX_PAYLOAD, this.#window, exchange.sendWindow);
  }

  /** Writes a frame's head and returns where its payload goes. */
  #data(exchange: Exchange, size: number, flags: number): number {
    this.#window -= size;
    exchange.sendWindow -= size;
    const at = this.#outbox.room(FRAME_HEAD + size);
    return writeFrameHead(this.#outbox.bytes, at, size, DATA, flags, exchange.id);
  }
}

function widened(window: number, increment: number): number {
  if (window + increment > MAX_WINDOW) throw new ProtocolError(FLOW_CONTROL_ERROR, 'a window beyond all bounds');
  return window + increment;
}
