/** One gRPC call or stream on one HTTP/2 stream: collects headers and messages, and ends with a status. */
import { type Call, CallFailure, type StreamListener } from '../transport.ts';
import { type Backlog, MESSAGE_HEAD } from './backlog.ts';
import { readUint32 } from './frames.ts';
import { INTERNAL, notGrpcFailure, OK, RESOURCE_EXHAUSTED, statusFailure } from '../status.ts';
import { TornMessage } from './torn-message.ts';

const MIB = 1024 * 1024;

/**
 * The longest answer to a call that is read. A store may answer a list in one message: 100,000 records of locks, which
 * the search for deadlocks lists, take some 50 MiB.
 */
export const MAX_ANSWER = 128 * MIB;

/**
 * The longest message on a stream that is read. Servers cut streams of changes into pieces of about their largest
 * request, which should not exceed 10 MiB.
 */
export const MAX_STREAM_MESSAGE = 16 * MIB;

export abstract class Exchange {
  readonly path: string;
  readonly headers: Call['headers'];
  /** Whether it keeps the process alive until it ends. */
  abstract readonly isAwaited: boolean;
  protected abstract readonly longest: number;

  /** 0 until the request is sent. */
  id = 0;
  /** Where the request begins in the outbox. */
  position = 0;
  /** How many more bytes the peer takes; a change of its settings can make this negative. */
  sendWindow = 0;
  backlog: Backlog | undefined;
  /** Our last message was handed to the sender. */
  hasSentAll = false;
  /** It ended or was cancelled; its listener hears nothing more. */
  isOver = false;
  /** Bytes received since we last gave the peer permission to go on. */
  received = 0;
  /** How much of `held` the connection has counted. */
  counted = 0;

  #hasHeaders = false;
  #httpStatus = '';
  #contentType = '';
  #grpcStatus = '';
  #grpcMessage = '';
  #torn: TornMessage | undefined;

  constructor(path: string, headers: Call['headers']) {
    this.path = path;
    this.headers = headers;
  }

  /** Returns a failure if it cannot go on. */
  protected abstract message(message: Uint8Array): CallFailure | undefined;
  /** Tells the caller that the exchange ended: by the server, or by a failure. */
  abstract end(failure: CallFailure | undefined): void;

  field(name: string, value: string): void {
    switch (name) {
      case ':status':
        this.#httpStatus = value;
        break;
      case 'content-type':
        this.#contentType = value;
        break;
      case 'grpc-status':
        this.#grpcStatus = value;
        break;
      case 'grpc-message':
        this.#grpcMessage = value;
        break;
      default:
    }
  }

  /** A header block is complete. Returns a failure if the exchange cannot go on. */
  fieldsEnd(isLast: boolean): CallFailure | undefined {
    if (this.#hasHeaders) {
      return isLast ? undefined : this.#fail(INTERNAL, 'the server sent trailers in the middle');
    }
    // An interim answer (1xx). gRPC does not use them; the real one follows.
    if (!isLast && this.#httpStatus.startsWith('1')) return undefined;
    this.#hasHeaders = true;
    if (this.#grpcStatus !== '') return undefined;
    if (this.#httpStatus === '200' && this.#contentType.startsWith('application/grpc')) return undefined;
    return notGrpcFailure(this.path, Number(this.#httpStatus), this.#contentType);
  }

  /** The failure by the server's trailers, if they report one. */
  result(): CallFailure | undefined {
    if (this.#torn !== undefined) return this.#fail(INTERNAL, 'the server ended it in the middle of a message');
    if (this.#grpcStatus === '') return this.#fail(INTERNAL, 'the server ended it without a status');
    return this.#grpcStatus === '0' ? undefined : statusFailure(this.path, this.#grpcStatus, this.#grpcMessage);
  }

  /** Bytes of an incomplete message, and of an answer that is not delivered yet. */
  get held(): number {
    return this.#torn?.size ?? 0;
  }

  /** Returns a failure if it cannot go on. */
  data(bytes: Buffer, from: number, end: number): CallFailure | undefined {
    if (!this.#hasHeaders && from < end) return this.#fail(INTERNAL, 'the server sent data before any headers');
    let at = from;
    while (at < end && !this.isOver) {
      if (this.#torn === undefined && end - at >= MESSAGE_HEAD) {
        const next = at + MESSAGE_HEAD + readUint32(bytes, at + 1);
        const failure = this.#check(bytes, at);
        if (failure !== undefined) return failure;
        if (next <= end) {
          const wrong = this.message(bytes.subarray(at + MESSAGE_HEAD, next));
          if (wrong !== undefined) return wrong;
          at = next;
          continue;
        }
      }
      const torn = (this.#torn ??= new TornMessage());
      const wasHeadless = torn.head === undefined;
      at += torn.take(bytes, at, end);
      const failure = (wasHeadless && torn.head !== undefined && this.#check(torn.head, 0)) || this.#mended(torn);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  #mended(torn: TornMessage): CallFailure | undefined {
    const whole = torn.whole;
    if (whole === undefined) return undefined;
    this.#torn = undefined;
    return this.message(whole);
  }

  #check(head: Buffer, at: number): CallFailure | undefined {
    if (head[at] !== 0)
      return this.#fail(INTERNAL, 'the server sent a compressed message, which this client did not offer to read');
    const length = readUint32(head, at + 1);
    if (length <= this.longest) return undefined;
    return this.#fail(
      RESOURCE_EXHAUSTED,
      `the server began a message of ${length} bytes; at most ${this.longest} (${this.longest / MIB} MiB) are read`,
    );
  }

  #fail(status: number, what: string): CallFailure {
    return new CallFailure(status, `${this.path}: ${what}`, false);
  }
}

export class UnaryExchange extends Exchange {
  readonly isAwaited = true;
  protected readonly longest = MAX_ANSWER;
  readonly request: Uint8Array;
  readonly #done: (message: Uint8Array) => void;
  readonly #failed: (failure: CallFailure) => void;
  #answer: Uint8Array | undefined;

  constructor(call: Call, done: (message: Uint8Array) => void, failed: (failure: CallFailure) => void) {
    super(call.path, call.headers);
    this.request = call.message;
    this.#done = done;
    this.#failed = failed;
  }

  override get held(): number {
    return super.held + (this.#answer?.length ?? 0);
  }

  protected message(message: Uint8Array): CallFailure | undefined {
    if (this.#answer !== undefined) {
      return new CallFailure(INTERNAL, `${this.path}: the server sent more than one answer`, false);
    }
    this.#answer = message;
    return undefined;
  }

  end(failure: CallFailure | undefined): void {
    if (failure !== undefined) this.#failed(failure);
    else if (this.#answer !== undefined) this.#done(this.#answer);
    else this.#failed(new CallFailure(INTERNAL, `${this.path}: the server ended it without an answer`, false));
  }
}

export class StreamExchange extends Exchange {
  readonly isAwaited = false;
  protected readonly longest = MAX_STREAM_MESSAGE;
  readonly #listener: StreamListener;

  constructor(call: Omit<Call, 'message'>, listener: StreamListener) {
    super(call.path, call.headers);
    this.#listener = listener;
  }

  protected message(message: Uint8Array): undefined {
    this.#listener.message(message);
  }

  end(failure: CallFailure | undefined): void {
    this.#listener.ended(failure ?? new CallFailure(OK, `the server ended ${this.path}`, false));
  }
}
