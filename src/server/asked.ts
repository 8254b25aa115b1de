/**
 * A request in the form that operations need. A request from a port comes without `Request`, `Headers` and the like, which cost
 * more than most operations; any other is made from a `Request`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readChunks } from './limits.ts';

export interface HeaderReader {
  get(name: string): string | null;
}

export interface Asked {
  readonly method: string;
  /** Still percent-encoded, as the client sent it. */
  readonly path: string;
  /** The text after the question mark. */
  readonly query: string;
  readonly headers: HeaderReader;
  readonly host: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Reads the body, at most `most` bytes of it. */
  text(most: number): Promise<string>;
  /** The request without its body, for handlers that take only a `Request`. */
  request(signal: AbortSignal): Request;
}

export class WebAsked implements Asked {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly host: string;
  readonly headers: HeaderReader;
  readonly #request: Request;

  constructor(request: Request) {
    const { pathname, search, host } = new URL(request.url);
    this.method = request.method;
    this.path = pathname;
    this.query = search.slice(1);
    this.headers = request.headers;
    this.host = request.headers.get('host') ?? host;
    this.#request = request;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  text(most: number): Promise<string> {
    return readChunks(this.#request.body ?? [], this.headers.get('content-length'), most);
  }

  request(signal: AbortSignal): Request {
    const { url, method, headers } = this.#request;
    return new Request(url, { method, headers, signal });
  }
}

export class NodeAsked implements Asked {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  #gone: AbortController | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    const { method = '', url = '' } = incoming;
    const mark = url.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? '' : url.slice(mark + 1);
    this.#incoming = incoming;
    this.#outgoing = outgoing;
  }

  get headers(): HeaderReader {
    const { headers } = this.#incoming;
    return {
      get(name) {
        const value = headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    };
  }

  get host(): string {
    return this.#incoming.headers.host ?? '';
  }

  get signal(): AbortSignal {
    if (this.#gone === undefined) {
      const gone = new AbortController();
      this.#gone = gone;
      const look = (): void => {
        if (!this.#outgoing.writableFinished) gone.abort();
      };
      // The connection may have closed before any code asked for the signal.
      if (this.#outgoing.destroyed) look();
      else this.#outgoing.once('close', look);
    }
    return this.#gone.signal;
  }

  text(most: number): Promise<string> {
    // A body that is too long must not end the connection, because the server has yet to send its answer.
    const chunks = this.#incoming.iterator({ destroyOnReturn: false });
    return readChunks(chunks, this.headers.get('content-length'), most);
  }

  request(signal: AbortSignal): Request {
    const { method, headers, url = '' } = this.#incoming;
    const fields = Object.entries(headers).map(([name, value]) => [name, String(value)] as [string, string]);
    return new Request(`http://${this.host}${url}`, { method: method ?? '', headers: fields, signal });
  }
}
