/** `connect` opens the store behind a server, with the objects of the library. For Node, browsers and every runtime with `fetch`. */
import type { Condition, Explanation, Settings, Verdict } from '../core/index.ts';
import { given } from '../core/given.ts';
import { Failure, shown } from '../failure.ts';
import { surveyFrom, type SurveyJson } from '../json/survey.ts';
import { HoldSet } from '../runtime/holds/hold-set.ts';
import type { Want } from '../runtime/holds/wants.ts';
import type { EventHandler, EventOf, EventPattern, SignalboxEvent } from '../runtime/observe/event-types.ts';
import type { Survey, SurveyOptions } from '../runtime/observe/survey/index.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import { RemoteBus } from './bus.ts';
import { webClock } from './clock.ts';
import { type RemoteEventOptions, RemoteEvents } from './events.ts';
import type { RemoteHold } from './hold.ts';
import { RemoteLock } from './lock.ts';
import { RemoteMembers } from './members.ts';
import { RemotePipelines } from './pipelines.ts';
import { connectionClosed, type ConnectOptions, newKey, Requests } from './requests.ts';
import type { Connected, RemoteOptions } from './resource.ts';
import { RemoteSemaphore } from './semaphore.ts';
import { RemoteTasks } from './tasks.ts';
import { RemoteTokens } from './tokens.ts';
import { RemoteWitness } from './witness.ts';

/** How to check a condition. */
export interface RemoteCheckOptions {
  /** Holders whose holds do not count. */
  readonly own?: readonly string[];
  /** Ends the check when it aborts. */
  readonly signal?: AbortSignal;
  /** Waits at the server until the condition holds, or never can; no longer than this, and than 45 s. */
  readonly waitMs?: number;
  /** While it waits: how often the server checks what sends no events, such as files; 2 s, if not given. */
  readonly pollMs?: number;
  /** While it waits: the lines of the explanation that you have; it answers as soon as there are others. */
  readonly known?: string;
}

/** What the server saw, and its lines for people. */
export interface Judged {
  readonly verdict: Verdict;
  readonly explanation: Explanation;
  readonly text: string;
}

/** Which past events to read. */
export interface RemoteHistoryOptions {
  /** Only events of these types, such as `lock:*`. */
  readonly patterns?: readonly EventPattern[];
  /** Only events of these resources, such as `lock/main`. */
  readonly resources?: readonly string[];
  /** The earliest time, in milliseconds since 1970. */
  readonly since?: number;
}

/** Past events. */
export interface RemoteHistory {
  /** Whether nothing earlier is missing. */
  readonly isWhole: boolean;
  /** The events, oldest first. */
  readonly events: readonly SignalboxEvent[];
}

interface HistoryPage extends RemoteHistory {
  /** Pass it to ask for the earlier page; null if there is none. */
  readonly next: string | null;
}

/** Whose token this is, and what it allows. */
export interface OwnToken {
  /** The id of the token, which is not secret. */
  readonly id: string;
  /** The name that people see. */
  readonly name: string;
  /** What it allows. */
  readonly role: 'viewer' | 'worker' | 'administrator';
  /** The holders that it may act for; null: any. */
  readonly holders: readonly string[] | null;
}

const KEPT_TTL_MS = 30_000;
/** A condition may read files, or run a command. */
const CHECK_MS = 30_000;
/** How many past events one call reads. */
const MOST_EVENTS = 1_000;

/** Connects to the store behind a server. The first call sends the first request. Tries several servers of one store in turn. */
export function connect(url: string | readonly string[], options: ConnectOptions = {}): RemoteSignalbox {
  const servers = [url].flat().map(serverAt);
  if (servers.length === 0) throw new Failure('invalid', 'no server is named; expected http://HOST:PORT');
  const { token } = options;
  if ((typeof token !== 'string' || token === '') && typeof token !== 'function') {
    throw new Failure(
      'invalid',
      'token is missing, and a page cannot read it from a file: signalbox serve prints a link to itself that ends in #token=…, ' +
        'signalbox token local prints the token alone, and signalbox token create makes one for others',
    );
  }
  return new RemoteSignalbox(new Requests(servers, options, options.clock ?? webClock), options);
}

/** The store behind a server, and all primitives on it. */
export class RemoteSignalbox implements AsyncDisposable {
  readonly #connected: Connected;
  /** Tasks, and the workers that claim them. */
  readonly tasks: RemoteTasks;
  /** Runs of phases: look at them, resume them, cancel them. */
  readonly pipelines: RemotePipelines;
  /** Plain keys of the store, for administrators. */
  readonly bus: RemoteBus;
  /** The record of every change, which shows tampering. */
  readonly witness: RemoteWitness;
  /** The live members, and joining. */
  readonly members: RemoteMembers;
  /** The tokens of the store, for administrators. */
  readonly tokens: RemoteTokens;

  /** @internal */
  constructor(requests: Requests, { holder, ttlMs = KEPT_TTL_MS }: ConnectOptions) {
    this.#connected = { requests, holder, ttlMs, holds: new Map(), reentries: new Set(), asks: new Set() };
    this.tasks = new RemoteTasks(this.#connected);
    this.pipelines = new RemotePipelines(requests);
    this.bus = new RemoteBus(requests);
    this.witness = new RemoteWitness(requests);
    this.members = new RemoteMembers(this.#connected);
    this.tokens = new RemoteTokens(requests);
  }

  /** A lock by its name; sends no request yet. */
  lock(name: string): RemoteLock {
    return new RemoteLock(this.#connected, name);
  }

  /** A semaphore by its name, such as `{ capacity: 3 }`. The capacity may be left out if another program has set it. */
  semaphore(name: string, options: { readonly capacity?: number } = {}): RemoteSemaphore {
    return new RemoteSemaphore(this.#connected, name, options.capacity);
  }

  /**
   * Acquires all of them, one after another in the order of their names, which is the same for every caller. If it does not get
   * one, it keeps none and throws `NotAcquired`.
   */
  async acquireAll(wants: readonly Want[], options: RemoteOptions = {}): Promise<HoldSet> {
    const named = wants.map((want) => ({
      want,
      resource: 'lock' in want ? `lock/${want.lock}` : `semaphore/${want.semaphore}`,
    }));
    const inOrder = named.sort((one, other) => (one.resource < other.resource ? -1 : 1));
    const holder = options.holder ?? this.#connected.holder ?? `client:${newKey()}`;
    const holds: RemoteHold[] = [];
    const { clock } = this.#connected.requests;
    const begun = clock.monotonic();
    try {
      for (const { want } of inOrder) {
        const left = options.waitMs === undefined ? undefined : options.waitMs - (clock.monotonic() - begun);
        // Zero would mean not to wait at all, so a wait that is over still leaves 1.
        const waitMs = options.waitMs === 0 ? 0 : left === undefined ? undefined : Math.max(1, left);
        holds.push(await this.#acquired(want, { ...options, holder, ...given({ waitMs }) }));
      }
    } catch (error) {
      await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
      throw error;
    }
    return new HoldSet(holds as never);
  }

  #acquired(want: Want, options: RemoteOptions): Promise<RemoteHold> {
    if ('lock' in want) return this.lock(want.lock).acquire({ ...options, ...given({ mode: want.mode }) });
    const { semaphore, weight = 1, capacity } = want;
    return this.semaphore(semaphore, given({ capacity })).acquire({ ...options, weight });
  }

  /** Makes sure that the lock has these settings, which bind every holder, for administrators; its holds stay. */
  async ensureLock(name: string, settings: Settings): Promise<RemoteLock> {
    const lock = this.lock(name);
    await lock.configure(settings);
    return lock;
  }

  /** Makes sure that the semaphore exists with this capacity and these settings, for administrators; its holds stay. */
  async ensureSemaphore(name: string, options: Settings & { readonly capacity: number }): Promise<RemoteSemaphore> {
    const semaphore = this.semaphore(name, { capacity: options.capacity });
    const { capacity } = await semaphore.inspect();
    if (capacity > 0 && capacity !== options.capacity) {
      const refusal = { kind: 'capacity-mismatch', capacity, asked: options.capacity } as const;
      throw new NotAcquired(semaphore.resource, refusal);
    }
    await semaphore.configure(options);
    return semaphore;
  }

  /**
   * Calls the handler for every new event. Resolves once it can miss no event; rejects if no server answers, or the connection is
   * closed before. What the handler throws is an uncaught exception, and so is the refusal of a server that ends the subscription
   * later.
   */
  on<Pattern extends EventPattern>(
    pattern: Pattern,
    handler: EventHandler<Pattern>,
  ): Promise<{ readonly unsubscribe: () => void }> {
    return this.subscribe(pattern, handler, thrownLater);
  }

  /** @internal `onRefused`: gets the error that ends the subscription, if a server refuses to go on with it. */
  subscribe<Pattern extends EventPattern>(
    pattern: Pattern,
    handler: EventHandler<Pattern>,
    onRefused: (error: unknown) => void,
  ): Promise<{ readonly unsubscribe: () => void }> {
    const over = new AbortController();
    return new Promise((resolve, reject) => {
      let failed: (error: unknown) => void = reject;
      const opened = (): void => {
        failed = onRefused;
        resolve({ unsubscribe: () => over.abort() });
      };
      const events = this.events<Pattern>(pattern, { signal: over.signal, onOpen: opened });
      const handle = async (event: EventOf<Pattern>): Promise<void> => handler(event as never);
      const read = async (): Promise<void> => {
        for await (const event of events) await handle(event).catch(thrownLater);
      };
      // An open stream ends without an error when it is closed, and the promise is settled by then.
      read().then(
        () => reject(connectionClosed()),
        (error: unknown) => failed(error),
      );
    });
  }

  /** New events as an async iterator, which reconnects by itself when its connection is lost. */
  events<Pattern extends EventPattern = '*'>(
    pattern: Pattern | readonly Pattern[] = '*' as Pattern,
    options: RemoteEventOptions = {},
  ): RemoteEvents<Pattern> {
    const query = new URLSearchParams([
      ...[pattern].flat().map((one): [string, string] => ['pattern', one as string]),
      ...(options.resources ?? []).map((one): [string, string] => ['resource', one]),
    ]);
    return new RemoteEvents<Pattern>(this.#connected.requests, `/v1/events?${query.toString()}`, options);
  }

  /** Past events that the store still remembers, oldest first; at most the last thousand. */
  async history(options: RemoteHistoryOptions = {}): Promise<RemoteHistory> {
    const { patterns = [], resources = [], since } = options;
    const query = new URLSearchParams([
      ...patterns.map((one): [string, string] => ['pattern', one]),
      ...resources.map((one): [string, string] => ['resource', one]),
      ...(since === undefined ? [] : [['since', String(since)] as [string, string]]),
    ]);
    let events: readonly SignalboxEvent[] = [];
    // The server looks through a limited number of revisions per page, so a page may be empty although an earlier one is not.
    for (;;) {
      query.set('limit', String(MOST_EVENTS - events.length));
      const page = await this.#connected.requests.get<HistoryPage>(`/v1/history?${query.toString()}`);
      events = [...page.events, ...events];
      if (page.next === null || events.length >= MOST_EVENTS) return { isWhole: page.isWhole, events };
      query.set('before', page.next);
    }
  }

  /** Whether a condition holds now. The role of the token decides what it may look at. */
  async check(condition: Condition, options: RemoteCheckOptions = {}): Promise<Verdict> {
    return (await this.judged(condition, options)).verdict;
  }

  /** The same as a tree, with a verdict and a reason on every leaf. */
  async explain(condition: Condition, options: RemoteCheckOptions = {}): Promise<Explanation> {
    return (await this.judged(condition, options)).explanation;
  }

  /** @internal */
  judged(condition: Condition, { signal, ...options }: RemoteCheckOptions): Promise<Judged> {
    const body = { condition, ...options };
    const most = CHECK_MS + (options.waitMs ?? 0);
    const ask = { method: 'POST', path: '/v1/guards/check', body, isLook: true } as const;
    return this.#connected.requests.ask({ ...ask, signal, waitMs: most });
  }

  /** Shows who holds what and who waits for whom, in the whole store at one revision, or at one lock or semaphore. */
  async survey({ resource }: SurveyOptions = {}): Promise<Survey> {
    if (resource !== undefined) {
      const { kind, name } = resource;
      const [locks, semaphores] = [
        kind === 'lock' ? [await this.lock(name).inspect()] : [],
        kind === 'semaphore' ? [await this.semaphore(name).inspect()] : [],
      ];
      const at = this.#connected.requests.clock.now();
      return { revision: 0, at, locks, semaphores, sessions: [], maintainer: undefined, malformed: [] };
    }
    return surveyFrom(await this.#connected.requests.get<SurveyJson>('/v1/who'));
  }

  /** Everything at a glance: what `signalbox status --json` prints. */
  status(): Promise<Readonly<Record<string, unknown>>> {
    return this.#connected.requests.get('/v1/status');
  }

  /** Whose token this is, and what it allows. */
  token(): Promise<OwnToken> {
    return this.#connected.requests.get('/v1/token');
  }

  /** Asks the server whether it and its store work. */
  health(): Promise<{ readonly revision: number }> {
    return this.#connected.requests.get('/healthz');
  }

  /** Releases this program's holds, leaves its memberships, and ends its waits and streams. */
  async close(): Promise<void> {
    const { holds, requests } = this.#connected;
    const released = [...holds.values()].map((hold) => hold.release().catch(() => undefined));
    await Promise.all([...released, this.members.leaveAll()]);
    for (const one of [...requests.kept]) one.end();
    requests.closed.abort();
  }

  /** Closes it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Throws an error that has no caller as the runtime throws that of an event listener. */
function thrownLater(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Removes a slash at the end, and refuses a token in the URL, which would end up in logs. */
function serverAt(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isHttp = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  if (parsed === undefined || !isHttp || parsed.username !== '' || parsed.search !== '' || parsed.hash !== '') {
    throw new Failure('invalid', `the server is ${shown(url)}; expected http://HOST:PORT or https://HOST:PORT`);
  }
  return parsed.href.replace(/\/+$/, '');
}
