/** The exchanges of one connection: under way, or waiting because the peer limits how many run at once. */
import { CallFailure } from '../transport.ts';
import { type Exchange, MAX_ANSWER, UnaryExchange } from './exchange.ts';
import { CANCEL, MAX_STREAM_ID, NO_ERROR, PROTOCOL_ERROR, ProtocolError, RST_STREAM } from './frames.ts';
import { RESOURCE_EXHAUSTED, UNAVAILABLE } from '../status.ts';
import type { HeaderEncoder } from './hpack/encoder.ts';
import type { Outbox } from './outbox.ts';
import type { FlowControl } from './flow-control.ts';

export interface ExchangesListener {
  /** The first call started, or the last one ended. */
  awaited(isAny: boolean): void;
  /** The last stream id is used. */
  usedUp(): void;
  /** No exchange is under way. */
  idle(): void;
}

/** Limits the memory of one connection: messages that have begun, and answers that are not delivered yet. */
const MOST_HELD = 2 * MAX_ANSWER;

export class Exchanges {
  #maxConcurrent = Infinity;
  readonly #listener: ExchangesListener;
  readonly #outbox: Outbox;
  readonly #flow: FlowControl;
  readonly #encoder: HeaderEncoder;
  readonly #underWay = new Map<number, Exchange>();
  readonly #waiting = new Set<Exchange>();
  #nextId: number;
  #awaited = 0;
  /** Streams under way. Each takes one of the peer's places for as long as it lives. */
  #streams = 0;
  #held = 0;

  constructor(listener: ExchangesListener, outbox: Outbox, flow: FlowControl, encoder: HeaderEncoder, firstId: number) {
    this.#listener = listener;
    this.#outbox = outbox;
    this.#flow = flow;
    this.#encoder = encoder;
    this.#nextId = firstId;
  }

  get size(): number {
    return this.#underWay.size;
  }

  /** How many exchanges the peer accepts at once. */
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

  /** Undefined if the exchange has ended. */
  find(id: number): Exchange | undefined {
    const exchange = this.#underWay.get(id);
    if (exchange === undefined && (id % 2 === 0 || id >= this.#nextId)) {
      throw new ProtocolError(PROTOCOL_ERROR, `a frame of stream ${id}, which was never begun`);
    }
    return exchange;
  }

  /** Counts the exchange as awaited until it ends. */
  expect(exchange: Exchange): void {
    if (exchange.isAwaited && this.#awaited++ === 0) this.#listener.awaited(true);
  }

  start(exchange: Exchange): void {
    if (this.#waiting.size === 0 && this.#underWay.size < this.#maxConcurrent) return this.#begin(exchange);
    this.#waiting.add(exchange);
    if (exchange.isAwaited) this.#makeWay();
  }

  /** Takes bytes of a message. Returns a failure if the exchange cannot go on. */
  data(exchange: Exchange, bytes: Buffer, at: number, end: number): CallFailure | undefined {
    const failure = exchange.data(bytes, at, end);
    if (exchange.isOver) return undefined;
    this.#held += exchange.held - exchange.counted;
    exchange.counted = exchange.held;
    if (failure !== undefined || this.#held <= MOST_HELD) return failure;
    const told = `the server began messages of more than ${MOST_HELD} bytes together, which is more than signalbox reads`;
    return new CallFailure(RESOURCE_EXHAUSTED, `${exchange.path}: ${told}`, false);
  }

  /**
   * Ends streams that take every place, because they would starve calls for ever. They are opened again on connections
   * of their own: see `SharedConnection`.
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

  /** Removes the waiting exchanges; the caller finishes them. */
  takeWaiting(): Exchange[] {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    return waiting;
  }

  send(exchange: Exchange, message: Uint8Array): void {
    if (!exchange.isOver) this.#flow.message(exchange, message, false);
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

  /** The peer ended the stream. */
  endedByPeer(exchange: Exchange): void {
    // The peer does not want the rest of our request.
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
    this.#flow.begin(exchange, this.#encoder.block(exchange.path, exchange.headers));
    if (exchange instanceof UnaryExchange) this.#flow.message(exchange, exchange.request, true);
    if (this.#nextId > MAX_STREAM_ID) this.#listener.usedUp();
  }

  /** Resets the stream, if the peer knows it. */
  #breakOff(exchange: Exchange, code: number): void {
    if (exchange.id !== 0) this.#outbox.frameOfNumber(RST_STREAM, exchange.id, code);
  }

  #leave(exchange: Exchange): void {
    exchange.isOver = true;
    if (exchange.backlog !== undefined) this.#flow.forget(exchange);
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
