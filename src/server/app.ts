/**
 * The server over an opened signalbox, without a port: `fetch` answers a request.
 *
 *     Host and Origin ──▶ token ──▶ rate ──▶ role ──▶ body ──▶ schemas ──▶ Idempotency-Key ──▶ the operation
 *
 * Every step throws what it refuses, and one place makes the answer of it.
 */
import { Hono, type Context } from 'hono';
import type { z } from 'zod';
import { type Clock, systemClock } from '../clock.ts';
import { allows } from '../core/index.ts';
import type { MetricsSources } from '../metrics/index.ts';
import { hashOf, isSame } from '../runtime/access/tokens.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { Dashboard } from './dashboard.ts';
import { docsPage } from './docs-page.ts';
import { EventHub } from './event-hub.ts';
import { ServerFigures } from './figures.ts';
import type { GitHubBoard } from './github-board.ts';
import { type Gate, refuseTricked, SECURITY_HEADERS } from './gate.ts';
import { RateLimit, readBody } from './limits.ts';
import { KEY_HEADER, onceOnly } from './once.ts';
import { OpenStreams, tracked } from './open-streams.ts';
import { openApi } from './openapi.ts';
import type { Caller, Operation, StoreName } from './operation.ts';
import { type Answer, answerOf, Problem, PROBLEM_TYPE } from './problem.ts';
import { OPERATIONS } from './routes/index.ts';
import { storeName } from './store-name.ts';

/** What the server says of one request, for logs and metrics: no path of a user, no token, no body. */
export interface RequestNote {
  readonly operation: string;
  readonly status: number;
  readonly ms: number;
  /** The id of the token; undefined if it had none that is valid. */
  readonly caller: string | undefined;
  /** The code of the problem that it was refused with. */
  readonly problem?: string;
  /** Where a bug of the server is: functions and lines, without the message, which may contain anything. */
  readonly trouble?: readonly string[];
}

export interface ServerOptions {
  /** The secret of the local administrator, which is not in the store. */
  readonly localToken?: string;
  /** Names under which the server is reached, besides addresses and `localhost`. */
  readonly hosts?: readonly string[];
  /** Whether guards and pipelines may run commands on this machine. */
  readonly allowsCommands?: boolean;
  /** The URL of the store; people are shown what it is, and not where. */
  readonly store?: string;
  /** How many requests each token may send per second. */
  readonly perSecond?: number;
  /** The most streams that each token may have open. */
  readonly mostStreams?: number;
  /** The most bytes of a body. */
  readonly mostBytes?: number;
  /** The longest time that a request may take. */
  readonly longestMs?: number;
  readonly clock?: Clock;
  /** The locks of a repository on GitHub. */
  readonly github?: GitHubBoard;
  readonly onRequest?: (note: RequestNote) => void;
  /** Locks on GitHub whose metrics are shown with those of the store. */
  readonly lockManagers?: MetricsSources['lockManagers'];
  /** Answers at `/mcp`; made when it is first asked, because what it needs is large. */
  readonly mcp?: ((box: Signalbox, clock: Clock) => Promise<Mounted>) | undefined;
}

/** Something else that the server serves, behind the same gate, tokens and limits. */
export interface Mounted {
  /** `body`: what was sent, as JSON; undefined if nothing was. */
  fetch(request: Request, caller: Caller, body: unknown): Promise<Response>;
  close(): Promise<void>;
}

export interface Server {
  fetch(request: Request): Promise<Response>;
  /** How many readers follow events now. */
  readonly readers: number;
  /** Ends streams and waits; waiting requests answer with their tickets. */
  stop(): void;
}

const MOST_BYTES = 2 * 1024 * 1024;
const LONGEST_MS = 60_000;
const MOST_STREAMS = 500;
/** The load that one fleet makes, with room. */
const PER_SECOND = 1_000;
/** How old the answer of `/healthz` may be. */
const HEALTH_MS = 1_000;
/** Of all requests without a valid token together. */
const STRANGERS_PER_SECOND = 50;

export function serverOf(box: Signalbox, options: ServerOptions = {}): Server {
  return new App(box, options);
}

class App implements Server {
  readonly #box: Signalbox;
  readonly #options: ServerOptions;
  readonly #hono = new Hono();
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
    this.#stop.abort(new Error('the server stops'));
    void this.#mcp?.then((mounted) => mounted.close()).catch(() => undefined);
  }

  async fetch(request: Request): Promise<Response> {
    let response: Response;
    try {
      const url = new URL(request.url);
      refuseTricked(request.headers, url, this.#gate);
      refuseUnlessDecodable(url.pathname);
      response = await this.#hono.fetch(request);
    } catch (error) {
      response = responseOf(answerOf(error));
      this.#note({ operation: 'none', status: response.status, ms: 0, caller: undefined, ...troubleOf(error) });
    }
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.headers.set(name, value);
    return response;
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
    const methods = new Map<string, string[]>();
    for (const operation of OPERATIONS) {
      const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1');
      hono.on(operation.method.toUpperCase(), path, (context) => this.#answered(operation, context));
      methods.set(path, [...(methods.get(path) ?? []), operation.method.toUpperCase()]);
    }
    for (const [path, allowed] of methods) {
      hono.all(path, () => {
        const accepted = allowed.join(', ');
        throw new Problem('wrong-method', `this path accepts ${accepted}`, {}, { Allow: accepted });
      });
    }
    if (this.#options.mcp !== undefined) hono.all('/mcp', (context) => this.#mounted(context));
    hono.notFound(() => {
      return responseOf(answerOf(new Problem('no-such-path', 'there is nothing at this path; see /docs')));
    });
    hono.onError((error) => responseOf(answerOf(error)));
  }

  /** Strangers may ask as often as they like: all of a second get the same answer, for which the store was asked once. */
  #health(): Promise<number> {
    const now = this.#clock.monotonic();
    if (this.#looked === undefined || now - this.#looked.at >= HEALTH_MS) {
      const revision = this.#box.health().then((health) => health.revision);
      revision.catch(() => (this.#looked = undefined));
      this.#looked = { at: now, revision };
    }
    return this.#looked.revision;
  }

  #mounted({ req: { raw } }: Context): Promise<Response> {
    return this.#noted('mcp', raw.headers, async (caller) => {
      const body = raw.method === 'POST' ? parsed(await this.#bodyOf(raw)) : undefined;
      this.#mcp ??= this.#options.mcp?.(this.#box, this.#clock);
      return ((await this.#mcp) as Mounted).fetch(raw, caller, body);
    });
  }

  #answered(operation: Operation, context: Context): Promise<Response> {
    const { raw } = context.req;
    return this.#noted(operation.id, raw.headers, async (caller) => {
      refuseUnlessRole(caller, operation);
      const answer = await this.#run(operation, context, caller);
      const response = answer instanceof Response ? answer : responseOf(answer);
      // Nobody reads the body of an answer to HEAD, nor cancels it: a stream would go on for ever.
      if (raw.method === 'HEAD') await response.body?.cancel();
      return response;
    });
  }

  /** Answers a caller with a valid token, within its rate, and notes how that went. */
  async #noted(operation: string, headers: Headers, answer: (caller: Caller) => Promise<Response>): Promise<Response> {
    const begun = this.#clock.monotonic();
    let caller: Caller | undefined;
    let response: Response;
    let trouble: ReturnType<typeof troubleOf> = {};
    try {
      caller = await this.#callerOf(headers);
      this.#rate.take(caller.id);
      response = await answer(caller);
    } catch (error) {
      response = responseOf(answerOf(error));
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

  async #found(headers: Headers): Promise<Caller | undefined> {
    const secret = secretIn(headers);
    if (secret === undefined) return undefined;
    if (this.#localHash !== undefined && isSame(this.#localHash, hashOf(secret))) {
      return { id: 'local', name: 'local', role: 'administrator' };
    }
    return this.#box.tokens.find(secret);
  }

  async #callerOf(headers: Headers): Promise<Caller> {
    const found = await this.#found(headers);
    if (found !== undefined) return found;
    this.#strangers.take('');
    const secret = secretIn(headers);
    const what = secret === undefined ? 'a token is missing' : 'this token is unknown, expired or revoked';
    const how = 'send Authorization: Bearer TOKEN; signalbox token local prints one for this machine';
    throw new Problem('unauthenticated', `${what}: ${how}`, {}, { 'WWW-Authenticate': 'Bearer' });
  }

  /** Whether the token of a stream is what it was when the stream began. */
  async #isStill({ id, role }: Caller, headers: Headers): Promise<boolean> {
    const found = await this.#found(headers);
    return found?.id === id && found.role === role;
  }

  async #run(operation: Operation, context: Context, caller: Caller): Promise<Answer | Response> {
    const { raw } = context.req;
    const text = operation.body === undefined ? '' : await this.#bodyOf(raw);
    const params = checked(operation.params, context.req.param(), 'the path');
    const query = checked(operation.query, queryOf(context), 'the query');
    const body = operation.body === undefined ? undefined : checked(operation.body, parsed(text), 'the body');
    const isStream = Object.values(operation.answers).every(({ schema, type }) => (schema ?? type) === undefined);
    const stream = isStream ? this.#streams.enter(caller, () => this.#isStill(caller, raw.headers)) : undefined;
    const limit = stream?.signal ?? AbortSignal.timeout(this.#options.longestMs ?? LONGEST_MS);
    const signal = AbortSignal.any([raw.signal, this.#stop.signal, limit]);
    const run = (): Promise<Answer | Response> =>
      operation.run({
        ...{ box: this.#box, hub: this.#hub, figures: this.#figures, caller, params, query, body, signal },
        headers: raw.headers,
        allowsCommands: this.#options.allowsCommands === true,
        store: this.#store,
        github: this.#options.github,
      });
    if (stream !== undefined) {
      try {
        return tracked((await run()) as Response, stream.leave);
      } catch (error) {
        stream.leave();
        throw error;
      }
    }
    const key = raw.headers.get(KEY_HEADER);
    if (key === null || operation.method === 'get' || operation.isSecret === true) return run();
    const content = `${operation.id}\n${JSON.stringify(params ?? {})}\n${text}`;
    return onceOnly(this.#box, { key, caller, content }, run as () => Promise<Answer>);
  }

  async #bodyOf(request: Request): Promise<string> {
    const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase();
    if (type !== 'application/json') {
      throw new Problem('wrong-content-type', 'send the body as JSON, with Content-Type: application/json');
    }
    return readBody(request, this.#options.mostBytes ?? MOST_BYTES);
  }
}

function secretIn(headers: Headers): string | undefined {
  return /^Bearer +(\S{1,200})$/i.exec(headers.get('authorization') ?? '')?.[1];
}

function troubleOf(error: unknown): Pick<RequestNote, 'problem' | 'trouble'> {
  const { code } = answerOf(error).body as { readonly code: string };
  if (code !== 'internal' || !(error instanceof Error)) return { problem: code };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^ +at /.test(line));
  return { problem: code, trouble: [error.name, ...frames.map((line) => line.trim())] };
}

function refuseUnlessRole(caller: Caller, { role: needed }: Operation): void {
  if (allows(caller.role, needed)) return;
  throw new Problem('wrong-role', `this needs the role ${needed}, and this token is of a ${caller.role}`, {
    ...{ needed, role: caller.role },
  });
}

/** The router reads a path that is wrongly encoded as it stands: a name would then have two spellings. */
function refuseUnlessDecodable(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw new WrongInput('the path', [{ where: '', problem: 'it is not percent-encoded UTF-8' }]);
  }
}

/** Repeated ones as a list. */
function queryOf(context: Context): Record<string, string | readonly string[]> {
  return Object.fromEntries(
    Object.entries(context.req.queries()).map(([name, values]) => [
      name,
      values.length === 1 ? (values[0] as string) : values,
    ]),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text) as unknown;
  } catch (error) {
    throw new WrongInput('the body', [{ where: '', problem: `it is not JSON: ${(error as Error).message}` }]);
  }
}

function checked(schema: z.ZodType | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues
    .slice(0, 10)
    .map(({ path, message }) => ({ where: path.join('.'), problem: message }));
  throw new WrongInput(what, problems);
}

class WrongInput extends Problem {
  constructor(what: string, problems: readonly { readonly where: string; readonly problem: string }[]) {
    const told = problems.map(({ where, problem }) => (where === '' ? problem : `${where}: ${problem}`)).join('; ');
    super('invalid-input', `${what} is wrong: ${told}`, { problems });
  }
}

function responseOf({ status, body, headers = {} }: Answer): Response {
  const type = status >= 400 ? PROBLEM_TYPE : 'application/json';
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'Content-Type': type, 'Cache-Control': 'no-store', ...headers },
  });
}

function json(body: unknown): Response {
  return responseOf({ status: 200, body });
}
