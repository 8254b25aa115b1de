/**
 * The only way to send a request. If the answer is lost, it sends the request again, to the next server if there are several:
 *
 *     nothing was done (503, 429, no connection) ──▶ again
 *     perhaps it was done (the connection broke)  ──▶ again, with the same Idempotency-Key: it is carried out once, provided that
 *                                                     it carries the same token too, because keys belong to a token
 *     a repeat does no harm (look, renew, go on with a ticket) ──▶ again, without a key
 */
import { Failure } from '../failure.ts';
import { backoffMs } from '../runtime/write/backoff.ts';
import { type Absence, absenceOf } from './absence.ts';
import { type Clock, instant, sinceMs } from './clock.ts';
import { errorOf, ignoresKey, isPassing, problemIn, refusedWith, unfinished } from './problem.ts';

/** How to reach a server. */
export interface ConnectOptions {
  /**
   * The token, or a function that returns the token for a server: it is called before each request, so that you can replace a
   * token, and again with the token that a server has `refused`: if it then returns another one, the client sends the request once
   * more. If it throws a `Failure` with the code `unavailable` or `forbidden`, the client sends nothing to that server and tries
   * the next one; after `unavailable` it tries again a little later. In Node you may leave it out: then the token comes from
   * `SIGNALBOX_SERVER_TOKEN`, the file of `SIGNALBOX_TOKEN_FILE`, which is read again when a server refuses its token, or, for a
   * server on loopback, from the file of the local token.
   */
  readonly token?: string | ((server: string, refused?: string) => string | Promise<string>);
  /** The holder's name for every call that names no holder itself. */
  readonly holder?: string;
  /** How long holds and claims that renew themselves last if this program dies; 30 s if not given. */
  readonly ttlMs?: number;
  /** How long to repeat a request that got no answer; 30 s if not given. */
  readonly retryMs?: number;
  /**
   * Called with the reason when a wait for a lock or for slots, or a stream of events, of members or of the record, has lost its
   * server for more than a second, and with undefined when it has one again. In between, the client goes on trying.
   */
  readonly onAway?: (trouble: Failure | undefined) => void;
  /** Replaces the `fetch` of this runtime. */
  readonly fetch?: typeof fetch;
  /** The clock, for tests. */
  readonly clock?: Clock;
}

export interface Ask {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  /** Repeating it would do harm, so it carries an Idempotency-Key. */
  readonly isKeyed?: true;
  /** The request that an earlier call has sent: with `isKeyed`, the server carries it out once, however many calls send it. */
  readonly same?: SameRequest;
  /** It changes nothing, although it is no GET. */
  readonly isLook?: true;
  /** How long the server may take before it answers. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** How long to repeat it, if it differs from the usual time. One that is repeated for ever tells the program of it. */
  readonly retryMs?: number;
  /** How long each attempt may take, besides `waitMs`, if it differs from the usual time. */
  readonly answerMs?: number;
  /** Called when an attempt gets no answer although the server may have carried it out. */
  readonly onUnsure?: () => void;
}

/** One request with an Idempotency-Key, which several calls may send. */
export interface SameRequest {
  readonly key: string;
  /** Where an attempt went that got no answer: the key belongs to the token that was sent there. */
  unsure?: Permitted;
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
  /** The server has carried out the request more than once, perhaps: the answer may describe its own first attempt. */
  readonly isRepeat: boolean;
}

const RETRY_MS = 30_000;
/** How long an answer may take on top of the time that the server was asked to wait. */
const ANSWER_MS = 20_000;

/** All that `fetch` says where it does not connect, because the port is known for another service. */
const BAD_PORT = 'bad port';

/** A server that is silent must leave time to ask the others, before what is renewed ends. */
const RENEWAL_PART = 1 / 3;
const SHORTEST_RENEWAL_MS = 1_000;

/** How to ask for a renewal that is of use only within `leftMs`. */
export function renewal(leftMs: number): Pick<Ask, 'retryMs' | 'answerMs'> {
  return { retryMs: leftMs, answerMs: Math.min(ANSWER_MS, Math.max(SHORTEST_RENEWAL_MS, leftMs * RENEWAL_PART)) };
}

export class Requests {
  readonly clock: Clock;
  readonly #servers: readonly string[];
  readonly #options: ConnectOptions;
  readonly #fetch: typeof fetch;
  /** Aborts when the connection is closed. */
  readonly closed = new AbortController();
  /** The holds and claims to renew until they end or the connection is closed. */
  readonly kept = new Set<{ end(): void }>();
  #current = 0;

  constructor(servers: readonly string[], options: ConnectOptions, clock: Clock) {
    this.#servers = servers;
    this.#options = options;
    this.#fetch = options.fetch ?? ((...given) => fetch(...given));
    this.clock = clock;
  }

  /** Returns the server's answer; throws its refusals as the errors of the library. */
  async ask<T>(ask: Ask): Promise<T> {
    return (await this.send(ask)).body as T;
  }

  get<T>(path: string, query: Ask['query'] = {}): Promise<T> {
    return this.ask<T>({ method: 'GET', path, query });
  }

  /** Undefined if the server has no such thing. */
  async found<T>(path: string): Promise<T | undefined> {
    return this.get<T>(path).catch((error: unknown) => void refusedWith(error, 'no-such-thing'));
  }

  /** Whether it was done: false if the server refuses it with one of these codes. */
  async did(ask: Ask, ...codes: readonly string[]): Promise<boolean> {
    try {
      await this.ask(ask);
      return true;
    } catch (error) {
      refusedWith(error, ...codes);
      return false;
    }
  }

  async send(ask: Ask): Promise<Answered> {
    const absence = absenceOf(this);
    try {
      return await this.#repeated(ask, absence);
    } finally {
      absence.end();
    }
  }

  async #repeated(ask: Ask, absence: Absence): Promise<Answered> {
    const begun = instant(this.clock);
    const limit = ask.retryMs ?? this.retryMs;
    const key = ask.isKeyed === true ? (ask.same?.key ?? newKey()) : undefined;
    /** Where an attempt went that got no answer, although the server may have carried it out. */
    let unsure: Permitted | undefined = ask.same?.unsure;
    for (let failures = 0; ; failures++) {
      const tried = await this.#once(ask, key, unsure);
      if ('error' in tried && tried.sentTo !== undefined && !wasNotSent(tried.error)) {
        unsure ??= tried.sentTo;
        if (ask.same !== undefined) ask.same.unsure = unsure;
        ask.onUnsure?.();
      }
      // A server that refuses, or has too much to do, is there.
      if ('body' in tried && tried.status < 500) absence.heard();
      if ('body' in tried && tried.status < 400) return { ...tried, isRepeat: failures > 0 && !tried.isReplayed };
      const problem = 'body' in tried ? problemIn(tried) : undefined;
      const error = problem === undefined ? (tried as { error: unknown }).error : errorOf(problem);
      const isTransient = problem === undefined || isPassing(problem, key !== undefined);
      const pauseMs = Math.max(backoffMs(failures), 'retryMs' in tried ? tried.retryMs : 0);
      if (!isTransient || sinceMs(this.clock, begun) + pauseMs > limit) {
        if (problem?.code === 'key-in-use') throw unfinished(error);
        const isLost = problem === undefined || (unsure !== undefined && key !== undefined && ignoresKey(problem));
        throw isLost ? this.#lost(ask, error, unsure !== undefined) : error;
      }
      // Only a wait is repeated for ever; of any other request, its caller hears soon.
      if (limit === Number.POSITIVE_INFINITY && !('body' in tried && tried.status < 500)) absence.lost(error);
      await this.pause(pauseMs, ask.signal);
      this.#refuseIfOver(ask);
    }
  }

  /** How long to repeat a request that sets no time of its own. */
  get retryMs(): number {
    return this.#options.retryMs ?? RETRY_MS;
  }

  /** Opens a stream at the current server; a caller that loses it opens another. */
  async stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    const over = AbortSignal.any([signal, this.closed.signal]);
    const response = await this.#authorized(await this.#permitted(), { path }, { headers, signal: over }).catch(
      (error: unknown) => {
        throw this.#lost({ method: 'GET' }, error);
      },
    );
    if (response.ok) return response;
    throw errorOf(problemIn({ status: response.status, body: await bodyOf(response) }));
  }

  /** Tells the program why a wait or a stream has lost its server; without a reason, that it has one again. */
  tellAway(trouble?: unknown): void {
    const failure = trouble === undefined || Failure.is(trouble) ? trouble : this.#lost({ method: 'GET' }, trouble);
    this.#options.onAway?.(failure);
  }

  /** Moves on to the next server, which is as good because all serve the same store. */
  nextServer(): void {
    this.#current = (this.#current + 1) % this.#servers.length;
  }

  /** Resolves after `ms`, or as soon as the signal aborts or the connection is closed. Keeps a process alive. */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const over = signal === undefined ? this.closed.signal : AbortSignal.any([signal, this.closed.signal]);
      const alive = this.clock.keepAlive?.();
      const done = (): void => {
        timer.cancel();
        alive?.cancel();
        over.removeEventListener('abort', done);
        resolve();
      };
      const timer = this.clock.timer(ms, done);
      over.addEventListener('abort', done);
      if (over.aborted) done();
    });
  }

  async #once(
    ask: Ask,
    key: string | undefined,
    unsure: Permitted | undefined,
  ): Promise<Received | { error: unknown; sentTo?: Permitted }> {
    this.#refuseIfOver(ask);
    const bound = key === undefined ? undefined : unsure;
    let permitted: Permitted;
    try {
      permitted = await this.#permitted(bound);
    } catch (error) {
      // The function that returns the token may know that the server is away. Its other errors tell nothing of an earlier attempt.
      if (Failure.is(error, 'unavailable') || bound !== undefined) return { error };
      throw error;
    }
    const late = new AbortController();
    const timer = this.clock.timer((ask.waitMs ?? 0) + (ask.answerMs ?? ANSWER_MS), () =>
      late.abort(new Error('no answer in time')),
    );
    const signals = [late.signal, this.closed.signal, ...(ask.signal === undefined ? [] : [ask.signal])];
    try {
      const response = await this.#authorized(permitted, ask, {
        method: ask.method,
        headers: {
          ...(ask.body !== undefined && { 'Content-Type': 'application/json' }),
          ...(key !== undefined && { 'Idempotency-Key': key }),
        },
        signal: AbortSignal.any(signals),
        ...(ask.body !== undefined && { body: JSON.stringify(ask.body) }),
        isBound: bound !== undefined,
      });
      const seconds = Number(response.headers.get('retry-after') ?? 0);
      const isReplayed = response.headers.get('idempotent-replayed') === 'true';
      return { status: response.status, body: await bodyOf(response), retryMs: seconds * 1000 || 0, isReplayed };
    } catch (error) {
      this.#refuseIfOver(ask);
      this.nextServer();
      return { error, sentTo: permitted };
    } finally {
      timer.cancel();
    }
  }

  /**
   * Sends a request. A server refuses a replaced token before it does anything, so the client may send it again with the new one,
   * which it notes in `permitted`; unless it is bound to the old one, because an earlier attempt may have been carried out.
   */
  async #authorized(
    permitted: Permitted,
    to: Pick<Ask, 'path' | 'query'>,
    { isBound = false, headers, ...init }: Sending,
  ): Promise<Response> {
    const { server, token } = permitted;
    const send = (bearer: string): Promise<Response> =>
      this.#fetch(urlAt(server, to), { ...init, headers: { ...headers, Authorization: `Bearer ${bearer}` } });
    const response = await send(token);
    const { token: source } = this.#options;
    if (response.status !== 401 || typeof source !== 'function' || isBound) return response;
    const newer = await (async () => source(server, token))().catch(() => token);
    if (newer === token) return response;
    await response.body?.cancel();
    permitted.token = newer;
    return send(newer);
  }

  /**
   * The first server, from the current one on, for which there is a token, with that token, which is meant for no other server.
   * With `bound`: the first one that gets the same token, or else the server of `bound` itself.
   */
  async #permitted(bound?: Permitted): Promise<Permitted> {
    const { token = '' } = this.#options;
    const first = this.#current;
    const refusals: Failure[] = [];
    for (let next = 0; next < this.#servers.length; next++) {
      const at = (first + next) % this.#servers.length;
      const server = this.#servers[at] as string;
      try {
        const given = typeof token === 'string' ? token : await token(server);
        if (bound !== undefined && given !== bound.token && server !== bound.server) continue;
        if (next > 0) this.#current = at;
        return { server, token: bound?.token ?? given };
      } catch (error) {
        if (!Failure.is(error, 'unavailable') && !Failure.is(error, 'forbidden')) throw error;
        refusals.push(error);
      }
    }
    // A server that is merely away may come back, even if a stranger listens at the address of another one.
    const away = refusals.find(({ code }) => code === 'unavailable');
    const told = [...new Set(refusals.map(({ message }) => message))].join('\n');
    throw new Failure(away === undefined ? 'forbidden' : 'unavailable', told, { cause: away ?? refusals[0] });
  }

  #refuseIfOver({ signal }: Ask): void {
    if (this.closed.signal.aborted) throw connectionClosed();
    signal?.throwIfAborted();
  }

  /**
   * The failure for a lost answer. It is certain that nothing was done if the request only reads, or every attempt ended before a
   * server had it.
   */
  #lost({ method, isLook }: Pick<Ask, 'method' | 'isLook'>, cause: unknown, mayBeDone = false): Failure {
    const where = this.#servers.join(', ');
    const { message, cause: below } = cause as Error;
    const said = below instanceof Error && below.message !== '' ? below.message : message;
    // Matches OpenSSL's words, because it has a separate code for each way a certificate chain can be incomplete.
    const how = /self-signed|certificate/i.test(said)
      ? '; name its authority in NODE_EXTRA_CA_CERTS, which Node reads'
      : '';
    const why = said === BAD_PORT ? 'web clients avoid this port; choose another one' : said + how;
    const isCertain = method === 'GET' || isLook === true || !mayBeDone;
    const told = isCertain ? 'cannot be reached' : 'did not answer: the request may have been done';
    return new Failure(isCertain ? 'unavailable' : 'outcome-unknown', `${where} ${told}: ${why}`, { cause });
  }
}

interface Received {
  readonly status: number;
  readonly body: unknown;
  readonly retryMs: number;
  /** The server has kept it from an earlier attempt. */
  readonly isReplayed: boolean;
}

interface Permitted {
  readonly server: string;
  token: string;
}

interface Sending extends Omit<RequestInit, 'headers'> {
  readonly headers: Readonly<Record<string, string>>;
  readonly isBound?: boolean;
}

/** No connection was made, so nothing was done. */
function wasNotSent(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown; readonly message?: unknown } };
  return cause?.code === 'ECONNREFUSED' || cause?.code === 'ENOTFOUND' || cause?.message === BAD_PORT;
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return text === '' ? {} : (JSON.parse(text) as unknown);
  } catch (error) {
    // The answer came from a proxy, or from a server that is no signalbox.
    if (!response.ok) return { detail: text.slice(0, 200) };
    throw new Failure('unavailable', `${response.url}: this is not a signalbox server: its answer is not JSON`, {
      cause: error,
    });
  }
}

export function connectionClosed(): Failure {
  return new Failure('closed', 'this connection was closed');
}

/** Avoids `crypto.randomUUID`, which browsers have only on HTTPS. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

function urlAt(server: string, { path, query = {} }: Pick<Ask, 'path' | 'query'>): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const text = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
  return `${server}${path}${text}`;
}

/** Encodes one segment of a path. */
export function segment(name: string): string {
  // URL parsers would resolve them into another path, however they are encoded.
  if (name === '.' || name === '..') throw new Failure('invalid', `${name} cannot be part of a URL; use another name`);
  return encodeURIComponent(name);
}
