/** The way from a client to a server in the same process, on which a test loses what it likes. */
import { open } from 'signalbox';
import { connect, type ConnectOptions, type RemoteSignalbox } from 'signalbox/client';
import { TestClock } from 'signalbox/testing';
import { LOCAL, TestServer } from './server.ts';

export const URL_OF_TESTS = 'http://127.0.0.1:7300';

/** The way to the server: a test may lose requests, or the answers to them. */
export class Wire {
  readonly server: TestServer;
  readonly sent: { readonly method: string; readonly path: string; readonly key: string | null }[] = [];
  /** Called before each request goes out; true loses its answer. */
  losesAnswer: (path: string) => boolean = () => false;
  isCut = false;
  /** Requests get no answer, and no error either, until their client gives up. */
  isSilent = false;
  /** Changes what the server answers. */
  answers: ((text: string) => string) | undefined;
  /** Ends all streams that are open. */
  cut = new AbortController();

  constructor(server: TestServer) {
    this.server = server;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const { pathname } = new URL(String(input));
    const headers = new Headers(init?.headers);
    this.sent.push({ method: init?.method ?? 'GET', path: pathname, key: headers.get('idempotency-key') });
    if (this.isCut) throw new TypeError('fetch failed');
    const signal = AbortSignal.any([this.cut.signal, ...(init?.signal ? [init.signal] : [])]);
    if (this.isSilent) return silence(signal);
    const response = await this.server.server.fetch(new Request(String(input), { ...init, signal }));
    if (this.answers !== undefined) return new Response(this.answers(await response.text()), response);
    if (!this.losesAnswer(pathname)) return response;
    this.losesAnswer = () => false;
    await response.body?.cancel();
    throw new TypeError('terminated');
  };
}

/** A client, its server and the way between them, under one clock. */
export interface Wired {
  readonly clock: TestClock;
  readonly server: TestServer;
  readonly wire: Wire;
  readonly box: RemoteSignalbox;
  /** Ends the client and the server, with the wire whole again. */
  readonly close: () => Promise<void>;
}

export async function wired(options: Omit<ConnectOptions, 'token' | 'fetch' | 'clock'> = {}): Promise<Wired> {
  const clock = new TestClock();
  const server = new TestServer(await open('memory:', { clock }), { clock });
  const wire = new Wire(server);
  const box = connect(URL_OF_TESTS, { ...options, token: LOCAL, fetch: wire.fetch, clock });
  const close = async (): Promise<void> => {
    wire.isCut = false;
    await box.close();
    await server.close();
  };
  return { clock, server, wire, box, close };
}

function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const over = (): void => reject(signal.reason as Error);
    if (signal.aborted) over();
    else signal.addEventListener('abort', over, { once: true });
  });
}

/** Lets time pass until the promise is settled: a retry waits for it. */
export async function settledIn<T>(clock: TestClock, promise: Promise<T>, stepMs = 50): Promise<T> {
  let isOver = false;
  const settled = promise.finally(() => (isOver = true));
  settled.catch(() => undefined);
  for (let n = 0; n < 500 && !isOver; n++) await clock.advance(stepMs);
  return settled;
}
