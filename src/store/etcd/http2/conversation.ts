/** What is done about what the peer says: messages go to their exchanges, settings are heeded, questions answered. */
import type { Socket } from 'node:net';
import { systemClock, type Timer } from '../../../clock.ts';
import type { Exchange } from './exchange.ts';
import type { Exchanges } from './exchanges.ts';
import * as h2 from './frames.ts';
import { ProtocolError, writeUint32 } from './frames.ts';
import { resetFailure } from './grpc-status.ts';
import { MAX_HEADER_LIST } from './hpack/decoder.ts';
import type { HeaderEncoder } from './hpack/encoder.ts';
import type { IncomingListener } from './incoming.ts';
import type { Outbox } from './outbox.ts';
import type { Sender } from './sender.ts';

export interface ConversationListener {
  /** Its settings are here; also each time when they change. */
  greeted(): void;
  goesAway(lastId: number, why: string): void;
}

/**
 * How much the peer may send before it hears from us: more than anything that is asked for, so that nothing ever waits
 * for it. What comes is handed on at once, so that a smaller one would save no memory.
 */
const RECEIVE_WINDOW = 64 * 1024 * 1024;
/** So many answers may wait for a peer that asks and asks, but does not read. */
const MOST_UNREAD_ANSWERS = 10_000;

/**
 * A server by gRPC's makers asks with every request how far away we are, to learn how much room it should give, unless it
 * still waits for an answer. To answer at once would cost each call a read and a write more, on both sides.
 */
const ANSWER_DELAY_MS = 10;
/** Who asks so often meanwhile is answered at once. */
const MOST_PINGS = 100;

/**
 * Settings change a handful of times in the life of a connection. Each change of the window has to be counted for every
 * exchange, so that a peer that sends nothing else could keep us busy with little.
 */
const MOST_SETTINGS_A_SECOND = 100;

export class Conversation implements IncomingListener {
  readonly #socket: Socket;
  readonly #outbox: Outbox;
  readonly #sender: Sender;
  readonly #encoder: HeaderEncoder;
  readonly #exchanges: Exchanges;
  readonly #listener: ConversationListener;
  /** Bytes that came since the peer was last told to go on. */
  #received = 0;
  #unreadAnswers = 0;
  #settings = 0;
  #settingsSince = 0;
  readonly #pings: Buffer[] = [];
  #answering: Timer | undefined;

  constructor(
    socket: Socket,
    outbox: Outbox,
    sender: Sender,
    encoder: HeaderEncoder,
    exchanges: Exchanges,
    listener: ConversationListener,
  ) {
    this.#socket = socket;
    this.#outbox = outbox;
    this.#sender = sender;
    this.#encoder = encoder;
    this.#exchanges = exchanges;
    this.#listener = listener;
  }

  /** Does not wait for the peer: it is not asked whether it can do HTTP/2, it is told. */
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

  exchange(id: number): Exchange | undefined {
    return this.#exchanges.find(id);
  }

  data(exchange: Exchange | undefined, bytes: Buffer, at: number, end: number, size: number, isLast: boolean): void {
    // Counted also where nobody listens any more, or the connection would run dry.
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
        return this.#sender.setInitialWindow(value, this.#exchanges.underWay());
      case h2.MAX_FRAME_SIZE:
        // Whatever it is, what we send is not longer than what everyone accepts.
        if (value >= h2.MAX_PAYLOAD && value < 2 ** 24) return;
        throw new ProtocolError(h2.PROTOCOL_ERROR, `a limit of ${value} bytes for a frame`);
      default:
      // What we do not know is to be passed over.
    }
  }

  settingsEnd(): void {
    this.#countAnswer();
    this.#countSettings();
    // First: until it has this, the peer counts by the old ones.
    this.#outbox.frame(h2.SETTINGS, h2.ACK, 0, Buffer.alloc(0));
    this.#sender.resume();
    this.#exchanges.beginWaiting();
    this.#listener.greeted();
  }

  #countSettings(): void {
    const now = systemClock.monotonic();
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
    if (pings === 1) this.#answering = systemClock.timer(ANSWER_DELAY_MS, () => this.#answerPings());
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
    this.#sender.widen(increment);
  }

  widenOne(exchange: Exchange, increment: number): void {
    this.#sender.widenOne(exchange, increment);
  }

  goAway(lastId: number, code: number, text: string): void {
    this.#listener.goesAway(lastId, text === '' ? h2.codeName(code) : `${h2.codeName(code)}: ${text}`);
  }
}
