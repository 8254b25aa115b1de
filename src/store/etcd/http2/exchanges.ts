/** The exchanges of one connection: those under way, and those that wait until the peer takes more at once. */
import { CallFailure } from '../transport.ts';
import { type Exchange, MAX_ANSWER, UnaryExchange } from './exchange.ts';
import { CANCEL, MAX_STREAM_ID, NO_ERROR, PROTOCOL_ERROR, ProtocolError, RST_STREAM } from './frames.ts';
import { RESOURCE_EXHAUSTED, UNAVAILABLE } from './grpc-status.ts';
import type { HeaderEncoder } from './hpack/encoder.ts';
import type { Outbox } from './outbox.ts';
import type { Sender } from './sender.ts';

export interface ExchangesListener {
  /** A call is awaited, or none is any more. */
  awaited(isAny: boolean): void;
  /** The last id was given away. */
  usedUp(): void;
  /** Nothing is under way any more. */
  idle(): void;
}

/** Of the messages that have begun on one connection, and the answers that are not handed over yet. */
const MOST_HELD = 2 * MAX_ANSWER;

export class Exchanges {
  #maxConcurrent = Infinity;
  readonly #listener: ExchangesListener;
  readonly #outbox: Outbox;
  readonly #sender: Sender;
  readonly #encoder: HeaderEncoder;
  readonly #underWay = new Map<number, Exchange>();
  readonly #waiting = new Set<Exchange>();
  #nextId: number;
  #awaited = 0;
  /** Streams under way: what only listens, and keeps its place for as long as it does. */
  #streams = 0;
  #held = 0;

  constructor(listener: ExchangesListener, outbox: Outbox, sender: Sender, encoder: HeaderEncoder, firstId: number) {
    this.#listener = listener;
    this.#outbox = outbox;
    this.#sender = sender;
    this.#encoder = encoder;
    this.#nextId = firstId;
  }

  get size(): number {
    return this.#underWay.size;
  }

  /** How many the peer takes at once. */
  get maxConcurrent(): number {
    return this.#maxConcurrent;
  }

  set maxConcurrent(value: number) {
    this.#maxConcurrent = value;
    this.#makeWay();
  }

  underWay(): IterableIterator<Exchange> {
    return this.#underWay.values();
  }

  /** Undefined if it is over. */
  find(id: number): Exchange | undefined {
    const exchange = this.#underWay.get(id);
    if (exchange === undefined && (id % 2 === 0 || id >= this.#nextId)) {
      throw new ProtocolError(PROTOCOL_ERROR, `a frame of stream ${id}, which was never begun`);
    }
    return exchange;
  }

  /** It is counted as awaited from here until it is over. */
  expect(exchange: Exchange): void {
    if (exchange.isAwaited && this.#awaited++ === 0) this.#listener.awaited(true);
  }

  start(exchange: Exchange): void {
    if (this.#waiting.size === 0 && this.#underWay.size < this.#maxConcurrent) return this.#begin(exchange);
    this.#waiting.add(exchange);
    if (exchange.isAwaited) this.#makeWay();
  }

  /** Takes what came of a message. Answers a failure if the exchange cannot go on. */
  data(exchange: Exchange, bytes: Buffer, at: number, end: number): CallFailure | undefined {
    const failure = exchange.data(bytes, at, end);
    if (exchange.isOver) return undefined;
    this.#held += exchange.held - exchange.counted;
    exchange.counted = exchange.held;
    if (failure !== undefined || this.#held <= MOST_HELD) return failure;
    const told = `the server began messages of more than ${MOST_HELD} bytes together; so much is not read`;
    return new CallFailure(RESOURCE_EXHAUSTED, `${exchange.path}: ${told}`, false);
  }

  /**
   * Streams that take every place would starve the calls behind them for ever. They end, and are opened again elsewhere:
   * see `Trunk`.
   */
  #makeWay(): void {
    if (this.#streams < this.#maxConcurrent || this.#awaited === 0) return;
    const told = `the server takes ${this.#maxConcurrent} streams at once, and a call waits for a place`;
    for (const exchange of [...this.#underWay.values()]) {
      if (!exchange.isAwaited) this.giveUp(exchange, new CallFailure(UNAVAILABLE, told, false));
    }
  }

  beginWaiting(): void {
    for (const exchange of this.#waiting) {
      if (this.#underWay.size >= this.#maxConcurrent) return;
      this.#waiting.delete(exchange);
      this.#begin(exchange);
    }
  }

  /** They are not waiting any more: it is for the caller to finish them. */
  takeWaiting(): Exchange[] {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    return waiting;
  }

  send(exchange: Exchange, message: Uint8Array): void {
    if (!exchange.isOver) this.#sender.message(exchange, message, false);
  }

  cancel(exchange: Exchange): void {
    if (exchange.isOver) return;
    this.#breakOff(exchange, CANCEL);
    this.#leave(exchange);
  }

  giveUp(exchange: Exchange, failure: CallFailure): void {
    if (exchange.isOver) return;
    this.#breakOff(exchange, CANCEL);
    this.finish(exchange, failure);
  }

  /** The peer said its last word. */
  endedByPeer(exchange: Exchange): void {
    // It does not want the rest of what we had to say.
    if (!exchange.hasSentAll || exchange.backlog !== undefined) this.#breakOff(exchange, NO_ERROR);
    this.finish(exchange, exchange.result());
  }

  finish(exchange: Exchange, failure: CallFailure | undefined): void {
    if (exchange.isOver) return;
    this.#leave(exchange);
    exchange.end(failure);
  }

  #begin(exchange: Exchange): void {
    exchange.id = this.#nextId;
    this.#nextId += 2;
    this.#underWay.set(exchange.id, exchange);
    if (!exchange.isAwaited) this.#streams += 1;
    this.#sender.begin(exchange, this.#encoder.block(exchange.path, exchange.headers));
    if (exchange instanceof UnaryExchange) this.#sender.message(exchange, exchange.request, true);
    if (this.#nextId > MAX_STREAM_ID) this.#listener.usedUp();
  }

  /** Tells the peer, unless it does not know of it. */
  #breakOff(exchange: Exchange, code: number): void {
    if (exchange.id !== 0) this.#outbox.frameOfNumber(RST_STREAM, exchange.id, code);
  }

  #leave(exchange: Exchange): void {
    exchange.isOver = true;
    if (exchange.backlog !== undefined) this.#sender.forget(exchange);
    this.#held -= exchange.counted;
    exchange.counted = 0;
    if (exchange.id !== 0) {
      this.#underWay.delete(exchange.id);
      if (!exchange.isAwaited) this.#streams -= 1;
    }
    if (exchange.isAwaited && --this.#awaited === 0) this.#listener.awaited(false);
    if (this.#waiting.size > 0) {
      this.#waiting.delete(exchange);
      this.beginWaiting();
    }
    if (this.#underWay.size === 0) this.#listener.idle();
  }
}
