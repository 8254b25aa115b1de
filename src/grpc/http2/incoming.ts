/**
 * Checks the peer's frames against the rules of HTTP/2 and hands on what they mean. A frame that breaks a rule ends the
 * connection, because a peer that broke one rule cannot be trusted with the next frame.
 */
import type { Conversation } from './conversation.ts';
import * as h2 from './frames.ts';
import { ProtocolError } from './frames.ts';
import { type FieldListener, HeaderDecoder, MAX_HEADER_LIST } from './hpack/decoder.ts';

/** A header block in more pieces than this is an attempt to keep us busy. */
const MOST_PIECES = 64;
/** GOAWAY's text is for people, so its first part is enough. */
const LONGEST_TEXT = 256;
const SETTING = 6;
/** Ten times as many as HTTP/2 defines. */
const MOST_SETTINGS = 64;

/** Receives the header fields of exchanges that have ended. */
const DEAF: FieldListener = { field: () => undefined };

export class Incoming {
  readonly #listener: Conversation;
  readonly #decoder = new HeaderDecoder();
  #isGreeted = false;
  /** An incomplete header block: its stream, whether it ends the stream, and the pieces so far. */
  #blockOf = 0;
  #isBlockLast = false;
  #pieces: Buffer[] = [];

  constructor(listener: Conversation) {
    this.#listener = listener;
  }

  frame(kind: number, flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (!this.#isGreeted) this.#greet(kind, flags);
    if (this.#blockOf !== 0 && (kind !== h2.CONTINUATION || id !== this.#blockOf)) {
      throw broken(`a frame of kind ${kind} in the middle of a header block`);
    }
    switch (kind) {
      case h2.DATA:
        return this.#data(flags, id, bytes, at, end);
      case h2.HEADERS:
        return this.#headers(flags, id, bytes, at, end);
      case h2.RST_STREAM:
        return this.#reset(id, bytes, at, end);
      case h2.SETTINGS:
        return this.#settings(flags, id, bytes, at, end);
      case h2.PUSH_PROMISE:
        throw broken('a push, which we had forbidden');
      case h2.PING:
        return this.#ping(flags, id, bytes, at, end);
      case h2.GOAWAY:
        return this.#goAway(id, bytes, at, end);
      case h2.WINDOW_UPDATE:
        return this.#widen(id, bytes, at, end);
      case h2.CONTINUATION:
        return this.#continue(flags, bytes, at, end);
      default:
      // Priorities concern servers only, and HTTP/2 requires that unknown kinds are ignored.
    }
  }

  #greet(kind: number, flags: number): void {
    if (kind !== h2.SETTINGS || (flags & h2.ACK) !== 0) throw broken('a beginning without settings');
    this.#isGreeted = true;
  }

  #data(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    const exchange = this.#listener.exchange(id);
    const size = end - at;
    const isLast = (flags & h2.END_STREAM) !== 0;
    if ((flags & h2.PADDED) === 0) return this.#listener.data(exchange, bytes, at, end, size, isLast);
    const padding = paddingOf(bytes, at, end);
    this.#listener.data(exchange, bytes, at + 1, end - padding, size, isLast);
  }

  #headers(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    let from = at;
    let to = end;
    if ((flags & h2.PADDED) !== 0) {
      to -= paddingOf(bytes, at, end);
      from += 1;
    }
    if ((flags & h2.PRIORITISED) !== 0) from += 5;
    if (from > to) throw new ProtocolError(h2.FRAME_SIZE_ERROR, 'headers that are shorter than what they begin with');
    const isLast = (flags & h2.END_STREAM) !== 0;
    if ((flags & h2.END_HEADERS) !== 0) return this.#block(id, isLast, bytes, from, to);
    this.#blockOf = id;
    this.#isBlockLast = isLast;
    this.#pieces = [bytes.subarray(from, to)];
    // Id 0 means that no header block is open.
    this.#listener.exchange(id);
  }

  #continue(flags: number, bytes: Buffer, at: number, end: number): void {
    if (this.#blockOf === 0) throw broken('a continuation of nothing');
    this.#pieces.push(bytes.subarray(at, end));
    const size = this.#pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (size > MAX_HEADER_LIST || this.#pieces.length > MOST_PIECES) {
      const what = `a header block of more than ${MAX_HEADER_LIST} bytes or ${MOST_PIECES} pieces`;
      throw new ProtocolError(h2.ENHANCE_YOUR_CALM, what);
    }
    if ((flags & h2.END_HEADERS) === 0) return;
    const block = Buffer.concat(this.#pieces);
    const id = this.#blockOf;
    this.#blockOf = 0;
    this.#pieces = [];
    this.#block(id, this.#isBlockLast, block, 0, block.length);
  }

  #block(id: number, isLast: boolean, bytes: Buffer, at: number, end: number): void {
    const exchange = this.#listener.exchange(id);
    this.#decoder.decode(bytes, at, end, exchange ?? DEAF);
    if (exchange !== undefined) this.#listener.headers(exchange, isLast);
  }

  #reset(id: number, bytes: Buffer, at: number, end: number): void {
    mustBe(end - at === 4, 'RST_STREAM');
    const exchange = this.#listener.exchange(id);
    if (exchange !== undefined) this.#listener.reset(exchange, h2.readUint32(bytes, at));
  }

  #settings(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (id !== 0) throw broken('settings of a single stream');
    const isAnswer = (flags & h2.ACK) !== 0;
    mustBe((end - at) % SETTING === 0 && (!isAnswer || at === end), 'SETTINGS');
    if (isAnswer) return;
    if (end - at > MOST_SETTINGS * SETTING) {
      throw new ProtocolError(h2.ENHANCE_YOUR_CALM, `more than ${MOST_SETTINGS} settings at once`);
    }
    for (let one = at; one < end; one += SETTING) {
      this.#listener.setting((bytes[one]! << 8) | bytes[one + 1]!, h2.readUint32(bytes, one + 2));
    }
    this.#listener.settingsEnd();
  }

  #ping(flags: number, id: number, bytes: Buffer, at: number, end: number): void {
    if (id !== 0) throw broken('a ping of a single stream');
    mustBe(end - at === 8, 'PING');
    // Our own pings need no particular answer: hearing anything from the peer is enough.
    if ((flags & h2.ACK) === 0) this.#listener.ping(bytes.subarray(at, end));
  }

  #goAway(id: number, bytes: Buffer, at: number, end: number): void {
    if (id !== 0) throw broken('a farewell of a single stream');
    mustBe(end - at >= 8, 'GOAWAY');
    const text = bytes.toString('utf8', at + 8, Math.min(end, at + 8 + LONGEST_TEXT));
    this.#listener.goAway(h2.readUint31(bytes, at), h2.readUint32(bytes, at + 4), text);
  }

  #widen(id: number, bytes: Buffer, at: number, end: number): void {
    mustBe(end - at === 4, 'WINDOW_UPDATE');
    const increment = h2.readUint31(bytes, at);
    if (increment === 0) throw broken('a window that is widened by nothing');
    if (id === 0) return this.#listener.widen(increment);
    const exchange = this.#listener.exchange(id);
    if (exchange !== undefined) this.#listener.widenOne(exchange, increment);
  }
}

/** Size of the padding at the end. Its length is the payload's first byte. */
function paddingOf(bytes: Buffer, at: number, end: number): number {
  const padding = end > at ? bytes[at]! : 0;
  if (padding >= end - at) throw broken('more padding than there is in the frame');
  return padding;
}

function mustBe(isSo: boolean, kind: string): void {
  if (!isSo) throw new ProtocolError(h2.FRAME_SIZE_ERROR, `a frame of kind ${kind} that is not of its size`);
}

function broken(what: string): ProtocolError {
  return new ProtocolError(h2.PROTOCOL_ERROR, what);
}
