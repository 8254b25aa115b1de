/** `connect`: the store behind a server, with the objects of the library. For Node, browsers, and all that have `fetch`. */
import type { Condition, Explanation, Member, Verdict } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { type MemberJson, memberFrom } from '../json/member.ts';
import { surveyFrom, type SurveyJson } from '../json/survey.ts';
import { HoldSet } from '../runtime/holds/hold-set.ts';
import type { Want } from '../runtime/holds/wants.ts';
import type { EventPattern } from '../runtime/observe/event-types.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';
import { RemoteBus } from './bus.ts';
import { webClock } from './clock.ts';
import { type RemoteEventOptions, RemoteEvents } from './events.ts';
import type { RemoteHold } from './hold.ts';
import { RemoteLock } from './lock.ts';
import { RemotePipelines } from './pipelines.ts';
import { type ConnectOptions, newKey, Requests } from './requests.ts';
import type { Connected, RemoteOptions } from './resource.ts';
import { RemoteSemaphore } from './semaphore.ts';
import { RemoteTasks } from './tasks.ts';

/** Whose token this is, and what it allows. */
export interface OwnToken {
  /** Names the token; not secret. */
  readonly id: string;
  /** What people call it. */
  readonly name: string;
  /** What it allows. */
  readonly role: 'viewer' | 'worker' | 'administrator';
  /** The holders that it may act for; null: any. */
  readonly holders: readonly string[] | null;
}

/** The store behind a server. Asks nothing yet: the first call does. Several servers of one store are tried in turn. */
export function connect(url: string | readonly string[], options: ConnectOptions): RemoteSignalbox {
  const servers = [url].flat().map(serverAt);
  if (servers.length === 0) throw new Failure('invalid', 'no server was named; expected http://HOST:PORT');
  const { token } = options;
  if ((typeof token !== 'string' || token === '') && typeof token !== 'function') {
    throw new Failure(
      'invalid',
      'token is missing: signalbox token create makes one, signalbox token local prints yours',
    );
  }
  return new RemoteSignalbox(new Requests(servers, options, options.clock ?? webClock), options.holder);
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
  /** The processes that have joined. */
  readonly members: { readonly list: () => Promise<readonly Member[]> };

  /** @internal */
  constructor(requests: Requests, holder: string | undefined) {
    this.#connected = { requests, holder, holds: new Map() };
    this.tasks = new RemoteTasks(this.#connected);
    this.pipelines = new RemotePipelines(requests);
    this.bus = new RemoteBus(requests);
    this.members = {
      list: async () => {
        const { members } = await requests.ask<{ members: readonly MemberJson[] }>({
          method: 'GET',
          path: '/v1/members',
        });
        return members.map(memberFrom);
      },
    };
  }

  /** A lock by its name; nothing is asked of the server yet. */
  lock(name: string): RemoteLock {
    return new RemoteLock(this.#connected, name);
  }

  /** A semaphore by its name, such as `{ capacity: 3 }`. The capacity may be left out if another program has set it. */
  semaphore(name: string, options: { readonly capacity?: number } = {}): RemoteSemaphore {
    return new RemoteSemaphore(this.#connected, name, options.capacity);
  }

  /**
   * Acquires all of them, one after another in the order of their names, which is the same for everyone; if one cannot be had,
   * none is kept. Throws `NotAcquired` then.
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
        // Zero means not to wait at all; what is left of a wait that is over is 1.
        const waitMs = options.waitMs === 0 ? 0 : left === undefined ? undefined : Math.max(1, left);
        holds.push(await this.#acquired(want, { ...options, holder, ...(waitMs !== undefined && { waitMs }) }));
      }
    } catch (error) {
      await Promise.all(holds.map((hold) => hold.release().catch(() => undefined)));
      throw error;
    }
    return new HoldSet(holds as never);
  }

  #acquired(want: Want, options: RemoteOptions): Promise<RemoteHold> {
    if ('lock' in want) {
      return this.lock(want.lock).acquire({ ...options, ...(want.mode !== undefined && { mode: want.mode }) });
    }
    const { semaphore, weight = 1, capacity } = want;
    return this.semaphore(semaphore, capacity === undefined ? {} : { capacity }).acquire({ ...options, weight });
  }

  /** What happens, as an async iterator that goes on by itself when its connection is lost. */
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

  /** Whether a condition holds now. What it may look at depends on the role of the token. */
  async check(condition: Condition): Promise<Verdict> {
    return (await this.#judged(condition)).verdict;
  }

  /** The same as a tree, with a verdict and a reason on every leaf. */
  async explain(condition: Condition): Promise<Explanation> {
    return (await this.#judged(condition)).explanation;
  }

  #judged(condition: Condition): Promise<{ readonly verdict: Verdict; readonly explanation: Explanation }> {
    return this.#connected.requests.ask({ method: 'POST', path: '/v1/guards/check', body: { condition } });
  }

  /** Who holds what and who waits for whom, in the whole store at one revision. */
  async survey(): Promise<Survey> {
    return surveyFrom(await this.#look<SurveyJson>('/v1/who'));
  }

  /** Everything at a glance: what `signalbox status --json` prints. */
  status(): Promise<Readonly<Record<string, unknown>>> {
    return this.#look('/v1/status');
  }

  /** Whose token this is, and what it allows. */
  token(): Promise<OwnToken> {
    return this.#look('/v1/token');
  }

  /** Asks the server whether it and its store work. */
  health(): Promise<{ readonly revision: number }> {
    return this.#look('/healthz');
  }

  /** Releases the holds of this program, and ends its waits and streams. */
  async close(): Promise<void> {
    const { holds, requests } = this.#connected;
    await Promise.all([...holds.values()].map((hold) => hold.release().catch(() => undefined)));
    requests.closed.abort();
  }

  /** Closes it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #look<T>(path: string): Promise<T> {
    return this.#connected.requests.ask<T>({ method: 'GET', path });
  }
}

/** Without the slash at its end; a token in it would end up in logs. */
function serverAt(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isHttp = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  if (parsed === undefined || !isHttp || parsed.username !== '' || parsed.search !== '' || parsed.hash !== '') {
    throw new Failure('invalid', `the server is ${shown(url)}; expected http://HOST:PORT or https://HOST:PORT`);
  }
  return parsed.href.replace(/\/+$/, '');
}
