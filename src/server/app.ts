/**
 * The server over an opened signalbox, without a port: `fetch` answers a request.
 *
 *     Host and Origin ──▶ token ──▶ rate ──▶ role ──▶ body ──▶ schemas ──▶ Idempotency-Key ──▶ the operation
 *
 * Each step refuses by throwing, and one place turns what was thrown into the answer.
 */
import { Hono } from 'hono';
import { type Clock, systemClock } from '../clock.ts';
import { allows } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { MetricsSources } from '../metrics/index.ts';
import { hashOf, isSame } from '../runtime/access/tokens.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { wrongRole } from './acting.ts';
import { type Asked, type HeaderReader, WebAsked } from './asked.ts';
import { Dashboard } from './dashboard.ts';
import { docsPage } from './docs-page.ts';
import { EventHub } from './event-hub.ts';
import { ServerFigures } from './figures.ts';
import type { GitHubBoard } from '../github/board.ts';
import { type Gate, refuseTricked, SECURITY_HEADERS } from './gate.ts';
import { checked, parsed, queryOf, refuseUnlessDecodable } from './input.ts';
import { RateLimit } from './limits.ts';
import { KEY_HEADER, onceOnly } from './once.ts';
import { capped, isEventStream, OpenStreams, tracked } from './open-streams.ts';
import { openApi } from './openapi.ts';
import type { Caller, Operation, StoreName } from './operation.ts';
import { type Answer, answerOf, Problem, PROBLEM_TYPE } from './problem.ts';
import { type Route, RouteTable } from './route-table.ts';
import { OPERATIONS } from './routes/index.ts';
import { inTime, unauthenticated } from './request-time.ts';
import { storeName } from './store-name.ts';

/** What logs and metrics learn about a request: no user's path, no token, no body. */
export interface RequestNote {
  readonly operation: string;
  readonly status: number;
  readonly ms: number;
  /** The id of the token; undefined if there was no valid one. */
  readonly caller: string | undefined;
  /** The code of the problem, if the server refused the request. */
  readonly problem?: string;
  /** Where the bug is, if the server failed. */
  readonly trouble?: readonly string[];
}

export interface ServerOptions {
  /** The local administrator's secret, which is not in the store. */
  readonly localToken?: string;
  /** Host names of this server, besides addresses and `localhost`. */
  readonly hosts?: readonly string[];
  /** Whether guards and pipelines may run commands on this machine. */
  readonly allowsCommands?: boolean;
  /** The URL of the store. People see a name made from it, not where it is. */
  readonly store?: string;
  /** How many requests each token may send per second. */
  readonly perSecond?: number;
  /** The most streams that each token may have open, and the most guards that it may wait for. */
  readonly mostStreams?: number;
  /** The most bytes of a body. */
  readonly mostBytes?: number;
  /** The longest time that a request may take. */
  readonly longestMs?: number;
  readonly clock?: Clock;
  /** A GitHub repository whose locks the server lists. */
  readonly github?: GitHubBoard;
  readonly onRequest?: (note: RequestNote) => void;
  /** Locks on GitHub whose metrics appear beside those of the store. */
  readonly lockManagers?: MetricsSources['lockManagers'];
  /** Answers at `/mcp`; loaded with the first request, because it is large. */
  readonly mcp?: ((box: Signalbox, clock: Clock) => Promise<Mounted>) | undefined;
}

/** A handler that the server mounts behind the same gate, tokens and limits. */
export interface Mounted {
  /** `body` is the parsed JSON; undefined if the request had none. */
  fetch(request: Request, caller: Caller, body: unknown): Promise<Response>;
  close(): Promise<void>;
}

export interface Server {
  fetch(request: Request): Promise<Response>;
  /** Answers an operation without making a `Request` or a `Response`; undefined for every other path, which only `fetch` answers. */
  answer(asked: Asked): Promise<Answer | Response> | undefined;
  /** How many readers follow events now. */
  readonly readers: number;
  /** Ends streams and waits; requests that wait are answered with their tickets. */
  stop(): void;
}

const MOST_BYTES = 2 * 1024 * 1024;
/** The most bytes of a mounted stream that its client may leave unread. */
const MOST_UNREAD = 1024 * 1024;
const LONGEST_MS = 60_000;
const MOST_STREAMS = 500;
/** More than the load of one fleet. */
const PER_SECOND = 1_000;
/** How old the answer of `/healthz` may be. */
const HEALTH_MS = 1_000;
/** The limit for all requests without a valid token together. */
const STRANGERS_PER_SECOND = 50;

export function serverOf(box: Signalbox, options: ServerOptions = {}): Server {
  return new App(box, options);
}

class App implements Server {
  readonly #box: Signalbox;
  readonly #options: ServerOptions;
  /** Everything that is not an operation: pages, and mounted handlers. */
  readonly #hono = new Hono();
  readonly #table = new RouteTable(OPERATIONS);
  readonly #stop = new AbortController();
  readonly #hub: EventHub;
  readonly #figures: ServerFigures;
  readonly #rate: RateLimit;
  readonly #strangers: RateLimit;
  readonly #streams: OpenStreams;
  readonly #clock: Clock;
  readonly #gate: Gate;
  readonly #localHash: string | undefined;
  readonly #store: StoreName;
  #mcp: Promise<Mounted> | undefined;
  #looked: { readonly at: number; readonly revision: Promise<number> } | undefined;

  constructor(box: Signalbox, options: ServerOptions) {
    this.#box = box;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#hub = new EventHub(box, this.#stop.signal);
    this.#figures = new ServerFigures({ box, lockManagers: options.lockManagers }, this.#hub, options.github);
    this.#rate = new RateLimit(this.#clock, options.perSecond ?? PER_SECOND);
    this.#streams = new OpenStreams(this.#clock, options.mostStreams ?? MOST_STREAMS);
    this.#strangers = new RateLimit(this.#clock, STRANGERS_PER_SECOND);
    this.#gate = { hosts: (options.hosts ?? []).map((host) => host.toLowerCase()) };
    this.#localHash = options.localToken === undefined ? undefined : hashOf(options.localToken);
    this.#store = storeName(options.store ?? 'memory:');
    this.#routes();
  }

  get readers(): number {
    return this.#hub.readers;
  }

  stop(): void {
    this.#stop.abort(new Failure('closed', 'the server stops'));
    void this.#mcp?.then((mounted) => mounted.close()).catch(() => undefined);
  }

  async fetch(request: Request): Promise<Response> {
    const asked = new WebAsked(request);
    const answer = (await this.answer(asked)) ?? (await this.#gated(asked, async () => this.#hono.fetch(request)));
    return answer instanceof Response ? answer : responseOf(answer, request.method);
  }

  answer(asked: Asked): Promise<Answer | Response> | undefined {
    const route = this.#table.find(asked.method, asked.path);
    if (route !== undefined) return this.#gated(asked, () => this.#answered(route, asked));
    // No `Request` has the method TRACE.
    const isMounted = asked.path === '/mcp' && asked.method !== 'TRACE' && this.#options.mcp !== undefined;
    return isMounted ? this.#gated(asked, () => this.#mounted(asked)) : undefined;
  }

  /** Refuses requests that a browser was tricked into, before it looks at anything else. */
  async #gated(asked: Asked, answer: () => Promise<Answer | Response>): Promise<Answer | Response> {
    try {
      refuseTricked(asked, this.#gate);
      refuseUnlessDecodable(asked.path);
      return withRules(await answer());
    } catch (error) {
      const refused = answerOf(error);
      this.#note({ operation: 'none', status: refused.status, ms: 0, caller: undefined, ...troubleOf(error) });
      return withRules(refused);
    }
  }

  #routes(): void {
    const hono = this.#hono;
    hono.get('/healthz', async () => json({ status: 'ok', revision: await this.#health() }));
    const description = openApi(OPERATIONS);
    const page = docsPage(OPERATIONS);
    hono.get('/openapi.json', () => json(description));
    for (const [path, { type, text }] of Object.entries(page)) {
      hono.get(path, () => new Response(text, { headers: { 'Content-Type': type } }));
    }
    const dashboard = Dashboard.here();
    for (const path of dashboard.paths) hono.get(path, (context) => dashboard.answer(context.req.raw));
    hono.notFound(({ req: { raw } }) => {
      const accepted = this.#table.methodsAt(new URL(raw.url).pathname).join(', ');
      const problem =
        accepted === ''
          ? new Problem('no-such-path', 'there is nothing at this path; see /docs')
          : new Problem('wrong-method', `this path accepts ${accepted}`, {}, { Allow: accepted });
      return responseOf(answerOf(problem));
    });
    hono.onError((error) => responseOf(answerOf(error)));
  }

  /** Strangers may ask as often as they like: the server asks the store once, and gives everyone within a second the same answer. */
  #health(): Promise<number> {
    const now = this.#clock.monotonic();
    if (this.#looked === undefined || now - this.#looked.at >= HEALTH_MS) {
      const revision = this.#box.health().then((health) => health.revision);
      revision.catch(() => (this.#looked = undefined));
      this.#looked = { at: now, revision };
    }
    return this.#looked.revision;
  }

  /** Counts each request as a stream until its answer is over, because any of these answers may be one. */
  #mounted(asked: Asked): Promise<Answer | Response> {
    return this.#noted('mcp', asked.headers, async (caller) => {
      const body = asked.method === 'POST' ? parsed(await this.#bodyOf(asked)) : undefined;
      if (Array.isArray(body)) return batchRefused();
      this.#stop.signal.throwIfAborted();
      this.#mcp ??= this.#options.mcp?.(this.#box, this.#clock);
      const mounted = (await this.#mcp) as Mounted;
      // Nothing would end a stream that begins after the handler was closed.
      this.#stop.signal.throwIfAborted();
      const stream = this.#streams.enter(caller, () => this.#isStill(caller, asked.headers));
      try {
        const signal = AbortSignal.any([asked.signal, stream.signal]);
        const answer = await mounted.fetch(asked.request(signal), caller, body);
        if (isEventStream(answer)) return tracked(capped(answer, MOST_UNREAD), stream.leave, signal);
        stream.leave();
        return answer;
      } catch (error) {
        stream.leave();
        throw error;
      }
    });
  }

  #answered({ operation, params }: Route, asked: Asked): Promise<Answer | Response> {
    return this.#noted(operation.id, asked.headers, async (caller) => {
      refuseUnlessRole(caller, operation);
      const answer = await this.#run(operation, params, asked, caller);
      if (asked.method !== 'HEAD' || !(answer instanceof Response)) return answer;
      // No client reads or cancels the body of an answer to HEAD, so a stream would go on for ever.
      await answer.body?.cancel();
      return new Response(null, answer);
    });
  }

  /** Answers a caller that has a valid token and keeps to its rate, and reports the outcome. */
  async #noted(
    operation: string,
    headers: HeaderReader,
    answer: (caller: Caller) => Promise<Answer | Response>,
  ): Promise<Answer | Response> {
    const begun = this.#clock.monotonic();
    let caller: Caller | undefined;
    let response: Answer | Response;
    let trouble: ReturnType<typeof troubleOf> = {};
    try {
      caller = await this.#callerOf(headers);
      this.#rate.take(caller.id);
      response = await answer(caller);
    } catch (error) {
      response = answerOf(error);
      trouble = troubleOf(error);
    }
    const ms = this.#clock.monotonic() - begun;
    this.#note({ operation, status: response.status, ms, caller: caller?.id, ...trouble });
    return response;
  }

  #note(note: RequestNote): void {
    this.#figures.answered(note.operation, note.status, note.ms);
    this.#options.onRequest?.(note);
  }

  async #found(headers: HeaderReader): Promise<Caller | undefined> {
    const secret = secretIn(headers);
    if (secret === undefined) return undefined;
    if (this.#localHash !== undefined && isSame(this.#localHash, hashOf(secret))) {
      return { id: 'local', name: 'local', role: 'administrator' };
    }
    return this.#box.tokens.find(secret);
  }

  async #callerOf(headers: HeaderReader): Promise<Caller> {
    const found = await this.#found(headers);
    if (found !== undefined) return found;
    this.#strangers.take('');
    const secret = secretIn(headers);
    throw unauthenticated(secret === undefined ? 'a token is missing' : 'this token is unknown, expired or revoked');
  }

  /** Whether the token of a stream still allows what it did when the stream began. */
  async #isStill({ id, role }: Caller, headers: HeaderReader): Promise<boolean> {
    const found = await this.#found(headers);
    return found?.id === id && found.role === role;
  }

  async #run(operation: Operation, encoded: Route['params'], asked: Asked, caller: Caller): Promise<Answer | Response> {
    const text = operation.body === undefined ? '' : await this.#bodyOf(asked);
    const named = Object.entries(encoded).map(([name, value]) => [name, decodeURIComponent(value)]);
    const params = checked(operation.params, Object.fromEntries(named), 'the path');
    const query = checked(operation.query, queryOf(asked), 'the query');
    const body = operation.body === undefined ? undefined : checked(operation.body, parsed(text), 'the body');
    const isStream = Object.values(operation.answers).every(
      ({ schema, type, isStream: isSaid }) => isSaid ?? (schema ?? type) === undefined,
    );
    const isStill = (): Promise<boolean> => this.#isStill(caller, asked.headers);
    const stream = isStream ? this.#streams.enter(caller, isStill) : undefined;
    const ends = (): readonly AbortSignal[] => [asked.signal, this.#stop.signal];
    const begin = (stop: (isCounted?: boolean) => AbortSignal, request?: string): Promise<Answer | Response> =>
      operation.run({
        ...{ box: this.#box, hub: this.#hub, figures: this.#figures, caller, params, query, body, request },
        // Made on demand, because most operations never wait, and four signals cost more than such an operation.
        get signal() {
          return stop();
        },
        countedSignal: () => stop(true),
        clock: this.#clock,
        headers: asked.headers,
        allowsCommands: this.#options.allowsCommands === true,
        store: this.#store,
        github: this.#options.github,
      });
    if (stream !== undefined) {
      try {
        const body = (await begin(() => AbortSignal.any([...ends(), stream.signal]))) as Response;
        return tracked(body, stream.leave, asked.signal);
      } catch (error) {
        stream.leave();
        throw error;
      }
    }
    const { longestMs = LONGEST_MS } = this.#options;
    const terms = { clock: this.#clock, longestMs, waits: this.#streams, caller, isStill, ends };
    const run = (request?: string): Promise<Answer | Response> =>
      inTime(terms, operation, (stop) => begin(stop, request));
    const key = asked.headers.get(KEY_HEADER);
    if (key === null || operation.method === 'get' || operation.isSecret === true) return run();
    const content = `${JSON.stringify(params ?? {})}\n${text}`;
    return onceOnly(this.#box, { key, caller, operation: operation.id, body, content }, run as () => Promise<Answer>);
  }

  async #bodyOf(asked: Asked): Promise<string> {
    const type = (asked.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase();
    if (type !== 'application/json') {
      throw new Problem('wrong-content-type', 'send the body as JSON, with Content-Type: application/json');
    }
    return asked.text(this.#options.mostBytes ?? MOST_BYTES);
  }
}

/** Refuses a JSON-RPC batch, which MCP no longer has: its calls would count as one request, one stream and one wait. */
function batchRefused(): Response {
  const error = { code: -32_600, message: 'a batch is not accepted; send each message in a request of its own' };
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 400 });
}

function secretIn(headers: HeaderReader): string | undefined {
  return /^Bearer +(\S{1,200})$/i.exec(headers.get('authorization') ?? '')?.[1];
}

function troubleOf(error: unknown): Pick<RequestNote, 'problem' | 'trouble'> {
  const { code } = answerOf(error).body as { readonly code: string };
  if (code !== 'internal' || !(error instanceof Error)) return { problem: code };
  return { problem: code, trouble: placeOf(error) };
}

/** Tells where a bug is: functions and lines, without the message, which may contain anything. */
export function placeOf(error: Error): readonly string[] {
  const frames = (error.stack ?? '').split('\n').filter((line) => /^ +at /.test(line));
  return [error.name, ...frames.map((line) => line.trim())];
}

function refuseUnlessRole(caller: Caller, { role: needed }: Operation): void {
  if (!allows(caller.role, needed)) throw wrongRole(caller, needed, 'this');
}

/** The headers of every answer. */
function withRules(answer: Answer | Response): Answer | Response {
  if (answer instanceof Response) {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) answer.headers.set(name, value);
    return answer;
  }
  const { status, body, headers } = answer;
  const type = status >= 400 ? PROBLEM_TYPE : 'application/json';
  const own = { 'Content-Type': type, 'Cache-Control': 'no-store' };
  return { status, body, headers: { ...SECURITY_HEADERS, ...own, ...headers } };
}

function responseOf(answer: Answer, method = 'GET'): Response {
  const { status, body, headers = {} } = withRules(answer) as Answer;
  return new Response(method === 'HEAD' ? null : JSON.stringify(body), { status, headers });
}

function json(body: unknown): Response {
  return responseOf({ status: 200, body });
}
