/** Acts on the peer's frames: hands messages to their exchanges, applies settings, answers pings. */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../clock.ts';
import type { Exchange } from './exchange.ts';
import type { Exchanges } from './exchanges.ts';
import * as h2 from './frames.ts';
import { ProtocolError, writeUint32 } from './frames.ts';
import { resetFailure } from '../status.ts';
import { MAX_HEADER_LIST } from './hpack/decoder.ts';
import type { HeaderEncoder } from './hpack/encoder.ts';
import type { Outbox } from './outbox.ts';
import { type FlowControl, RECEIVE_WINDOW } from './flow-control.ts';

export interface ConversationListener {
  /** The peer's settings arrived, or changed. */
  greeted(): void;
  goesAway(lastId: number, why: string): void;
}

/** How many of our answers may queue for a peer that keeps asking and does not read. */
const MOST_UNREAD_ANSWERS = 10_000;

/**
 * gRPC's own servers ping with every request to measure the distance, unless a ping is still unanswered. Answering at
 * once would cost each call one more read and one more write on both sides.
 */
const ANSWER_DELAY_MS = 10;
/** With this many unanswered pings, we answer at once. */
const MOST_PINGS = 100;

/**
 * Settings change a handful of times in the life of a connection. Each change of the window is applied to every exchange,
 * so a peer that sends only settings could keep us busy at little cost to itself.
 */
const MOST_SETTINGS_A_SECOND = 100;

export class Conversation {
  readonly #socket: Socket;
  readonly #outbox: Outbox;
  readonly #flow: FlowControl;
  readonly #encoder: HeaderEncoder;
  readonly #exchanges: Exchanges;
  readonly #clock: Clock;
  readonly #listener: ConversationListener;
  /** Bytes received since we last gave the peer permission to go on. */
  #received = 0;
  #unreadAnswers = 0;
  #settings = 0;
  #settingsSince = 0;
  readonly #pings: Buffer[] = [];
  #answering: Timer | undefined;

  constructor(
    socket: Socket,
    outbox: Outbox,
    flow: FlowControl,
    encoder: HeaderEncoder,
    exchanges: Exchanges,
    clock: Clock,
    listener: ConversationListener,
  ) {
    this.#socket = socket;
    this.#outbox = outbox;
    this.#flow = flow;
    this.#encoder = encoder;
    this.#exchanges = exchanges;
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Starts HTTP/2 with prior knowledge: it does not ask the peer whether it supports HTTP/2. */
  begin(): void {
    const settings = [
      [h2.ENABLE_PUSH, 0],
      [h2.INITIAL_WINDOW_SIZE, RECEIVE_WINDOW],
      [h2.MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST],
    ] as const;
    const payload = Buffer.alloc(settings.length * 6);
    settings.forEach(([setting, value], index) => {
      payload[index * 6 + 1] = setting;
      writeUint32(payload, index * 6 + 2, value);
    });
    this.#outbox.put(h2.PREFACE);
    this.#outbox.frame(h2.SETTINGS, h2.NO_FLAGS, 0, payload);
    this.#outbox.frameOfNumber(h2.WINDOW_UPDATE, 0, RECEIVE_WINDOW - h2.DEFAULT_WINDOW);
    this.#socket.on('drain', () => (this.#unreadAnswers = 0));
  }

  /** Undefined if the exchange has ended. Throws if this id was never used. */
  exchange(id: number): Exchange | undefined {
    return this.#exchanges.find(id);
  }

  /** `size` is what the flow control windows count: the data and its padding. */
  data(exchange: Exchange | undefined, bytes: Buffer, at: number, end: number, size: number, isLast: boolean): void {
    // Counted for cancelled exchanges too, or the connection's window would run dry.
    this.#received += size;
    if (this.#received >= RECEIVE_WINDOW / 2) {
      this.#outbox.frameOfNumber(h2.WINDOW_UPDATE, 0, this.#received);
      this.#received = 0;
    }
    if (exchange === undefined) return;
    const failure = this.#exchanges.data(exchange, bytes, at, end);
    if (failure !== undefined) return this.#exchanges.giveUp(exchange, failure);
    if (isLast) return this.#exchanges.endedByPeer(exchange);
    exchange.received += size;
    if (exchange.received < RECEIVE_WINDOW / 2 || exchange.isOver) return;
    this.#outbox.frameOfNumber(h2.WINDOW_UPDATE, exchange.id, exchange.received);
    exchange.received = 0;
  }

  headers(exchange: Exchange, isLast: boolean): void {
    const failure = exchange.fieldsEnd(isLast);
    if (failure !== undefined) this.#exchanges.giveUp(exchange, failure);
    else if (isLast) this.#exchanges.endedByPeer(exchange);
  }

  reset(exchange: Exchange, code: number): void {
    this.#exchanges.finish(exchange, resetFailure(exchange.path, code));
  }

  setting(setting: number, value: number): void {
    switch (setting) {
      case h2.HEADER_TABLE_SIZE:
        return this.#encoder.limitTable(value);
      case h2.ENABLE_PUSH:
        if (value !== 0) throw new ProtocolError(h2.PROTOCOL_ERROR, 'a setting that only clients have');
        return;
      case h2.MAX_CONCURRENT_STREAMS:
        this.#exchanges.maxConcurrent = value;
        return;
      case h2.INITIAL_WINDOW_SIZE:
        return this.#flow.setInitialWindow(value, this.#exchanges.underWay());
      case h2.MAX_FRAME_SIZE:
        // Our frames never exceed the size that every peer accepts, so its limit does not matter.
        if (value >= h2.MAX_PAYLOAD && value < 2 ** 24) return;
        throw new ProtocolError(h2.PROTOCOL_ERROR, `a limit of ${value} bytes for a frame`);
      default:
      // HTTP/2 requires that unknown settings are ignored.
    }
  }

  settingsEnd(): void {
    this.#countAnswer();
    this.#countSettings();
    // First, because the peer counts by the old settings until it receives this.
    this.#outbox.frame(h2.SETTINGS, h2.ACK, 0, Buffer.alloc(0));
    this.#flow.resume();
    this.#exchanges.beginWaiting();
    this.#listener.greeted();
  }

  #countSettings(): void {
    const now = this.#clock.monotonic();
    if (now - this.#settingsSince >= 1000) {
      this.#settingsSince = now;
      this.#settings = 0;
    }
    if (++this.#settings > MOST_SETTINGS_A_SECOND) {
      throw new ProtocolError(h2.ENHANCE_YOUR_CALM, `settings more than ${MOST_SETTINGS_A_SECOND} times a second`);
    }
  }

  ping(payload: Buffer): void {
    this.#countAnswer();
    const pings = this.#pings.push(payload);
    if (pings === 1) this.#answering = this.#clock.timer(ANSWER_DELAY_MS, () => this.#answerPings());
    else if (pings === MOST_PINGS) this.#answerPings();
  }

  #answerPings(): void {
    this.#answering?.cancel();
    for (const payload of this.#pings.splice(0)) this.#outbox.frame(h2.PING, h2.ACK, 0, payload);
  }

  #countAnswer(): void {
    if (this.#socket.writableNeedDrain && ++this.#unreadAnswers > MOST_UNREAD_ANSWERS) {
      throw new ProtocolError(h2.ENHANCE_YOUR_CALM, 'more questions than it reads answers');
    }
  }

  widen(increment: number): void {
    this.#flow.widen(increment);
  }

  widenOne(exchange: Exchange, increment: number): void {
    this.#flow.widenOne(exchange, increment);
  }

  goAway(lastId: number, code: number, text: string): void {
    this.#listener.goesAway(lastId, text === '' ? h2.codeName(code) : `${h2.codeName(code)}: ${text}`);
  }
}
