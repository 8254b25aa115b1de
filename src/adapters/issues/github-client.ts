/**
 * Reads from GitHub's REST API. It asks for a known answer only if it has changed (ETag), which costs nothing of the rate
 * limit if it has not. It never writes, so it may repeat every request.
 */
import { pause, timeLimit } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { findToken } from './github-token.ts';
import { proxiedFetch } from './proxied-fetch.ts';
import { limitedForMs, type Refused, refusal, retryAfterMs } from './github-trouble.ts';

export interface GitHubOptions {
  /** By default from GITHUB_TOKEN, GH_TOKEN or `gh auth token`. An empty token means none. */
  readonly token?: string;
  /** The URL of the REST API: `https://HOST/api/v3` for GitHub Enterprise. Default: GITHUB_API_URL, else GitHub itself. */
  readonly baseUrl?: string;
  /** The time limit of each request. Default 30 s. */
  readonly timeoutMs?: number;
  readonly env?: NodeJS.ProcessEnv;
}

export interface Page {
  readonly body: unknown;
  /** The address of the next page. */
  readonly next?: string;
}

interface Remembered {
  readonly etag: string;
  readonly page: Page;
  /** Size of its text. */
  readonly length: number;
}

const TIMEOUT_MS = 30_000;
/** The longest wait for a rate limit. Beyond it, an error helps the caller more. */
const LONGEST_PAUSE_MS = 5_000;
const PAUSE_MS = 1_000;
/** Limit of the cached answers' text. */
const REMEMBERED_LENGTH = 32 * 1024 * 1024;
const BODY_LIMIT_BYTES = 32 * 1024 * 1024;
const REDIRECTS = 3;

export class GitHubClient {
  readonly repository: string;
  readonly #base: URL;
  readonly #options: GitHubOptions;
  readonly #env: NodeJS.ProcessEnv;
  /** Undefined until it is first looked for. */
  #token: Promise<string | undefined> | undefined;
  /** Undefined until it is first looked for. */
  #proxied: ReturnType<typeof proxiedFetch> | undefined;
  /** The most recently used answers are at the end. */
  readonly #remembered = new Map<string, Remembered>();
  #rememberedLength = 0;

  constructor(repository: string, options: GitHubOptions) {
    this.repository = repository;
    this.#options = options;
    this.#env = options.env ?? process.env;
    this.#base = baseOf(options.baseUrl ?? (this.#env['GITHUB_API_URL'] || 'https://api.github.com'));
  }

  address(path: string, query: Readonly<Record<string, string>> = {}): string {
    const url = new URL(`${this.#base.pathname.replace(/\/$/, '')}${path}`, this.#base);
    url.search = new URLSearchParams(query).toString();
    return url.href;
  }

  /**
   * Returns the result of `missing` for 404 and 410. An answer that `isOpenEnded` accepts is not cached.
   */
  async get(
    address: string,
    signal?: AbortSignal,
    missing?: () => Promise<Page>,
    isOpenEnded: (page: Page) => boolean = () => false,
  ): Promise<Page> {
    const token = await this.#findToken(signal);
    for (let isAgain = false; ; isAgain = true) {
      const answer = await this.#ask(address, token, isOpenEnded, signal);
      if ('page' in answer) return answer.page;
      const { refused } = answer;
      const instead = refused.status === 404 || refused.status === 410 ? await missing?.() : undefined;
      if (instead !== undefined) return instead;
      const waitMs = isAgain ? undefined : pauseBefore(refused);
      if (waitMs === undefined) {
        if (refused.status === 401) this.#token = undefined;
        throw refusal(refused, this.repository, token !== undefined, Date.now());
      }
      await pause(waitMs, signal);
      signal?.throwIfAborted();
    }
  }

  async #ask(
    address: string,
    token: string | undefined,
    isOpenEnded: (page: Page) => boolean,
    signal?: AbortSignal,
  ): Promise<{ page: Page } | { refused: Refused }> {
    const remembered = this.#remembered.get(address);
    const timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS;
    const limit = timeLimit(timeoutMs);
    const late = limit.signal;
    const over = signal === undefined ? late : AbortSignal.any([signal, late]);
    try {
      const response = await this.#fetch(address, headersFor(token, remembered), over);
      if (response.status === 304 && remembered !== undefined) {
        await response.body?.cancel();
        this.#remember(address, remembered);
        return { page: remembered.page };
      }
      const text = await textOf(response, this.repository);
      if (!response.ok)
        return { refused: { status: response.status, headers: response.headers, message: said(text, token) } };
      const next = this.#nextOf(response.headers.get('link'));
      const page = { body: parsed(text, this.repository), ...(next !== undefined && { next }) };
      const etag = response.headers.get('etag');
      this.#remember(address, etag === null || isOpenEnded(page) ? undefined : { etag, page, length: text.length });
      return { page };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Failure) throw error;
      const why = late.aborted ? `no answer within ${timeoutMs} ms` : networkTrouble(error);
      return { refused: { status: 0, headers: new Headers(), message: why } };
    } finally {
      limit.cancel();
    }
  }

  /** Sends the token only to the host that it is for. */
  async #fetch(address: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    for (let url = address, redirects = 0; ; redirects++) {
      const ask = (await (this.#proxied ??= proxiedFetch(this.#base, this.#env))) ?? fetch;
      const response = await ask(url, { headers, signal, redirect: 'manual' });
      const location = response.headers.get('location');
      const isMoved = [301, 302, 307, 308].includes(response.status) && location !== null;
      if (!isMoved) return response;
      await response.body?.cancel();
      if (redirects === REDIRECTS) throw new Failure('unavailable', `GitHub, ${this.repository}: moved too often`);
      url = this.#sameOrigin(new URL(location, url).href);
    }
  }

  #nextOf(link: string | null): string | undefined {
    const found = /<([^>]*)>\s*;[^,]*\brel="next"/.exec(link ?? '')?.[1];
    return found === undefined ? undefined : this.#sameOrigin(new URL(found, this.#base).href);
  }

  #sameOrigin(address: string): string {
    const { origin } = new URL(address);
    if (origin === this.#base.origin) return address;
    throw new Failure(
      'unavailable',
      `GitHub, ${this.repository}: the answer goes on at another place, ${origin}; not followed`,
    );
  }

  #findToken(signal?: AbortSignal): Promise<string | undefined> {
    const { token } = this.#options;
    if (token === '') return Promise.resolve(undefined);
    const finding = (this.#token ??= findToken(token, this.#base, this.#env, signal));
    // An aborted search must not count as the answer for the next caller.
    finding.catch(() => (this.#token = undefined));
    return finding;
  }

  #remember(address: string, answer: Remembered | undefined): void {
    this.#rememberedLength -= this.#remembered.get(address)?.length ?? 0;
    this.#remembered.delete(address);
    if (answer === undefined) return;
    this.#remembered.set(address, answer);
    this.#rememberedLength += answer.length;
    for (const oldest of this.#remembered.keys()) {
      if (this.#rememberedLength <= REMEMBERED_LENGTH) return;
      this.#remember(oldest, undefined);
    }
  }
}

export function baseOf(text: string): URL {
  const bad = (why: string): Failure => new Failure('invalid', `the address of GitHub's API ${why}`);
  if (!URL.canParse(text)) throw bad('is not a URL');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') throw bad('must not contain a password: give the token as such');
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback)) throw bad(`must be https: ${url.origin}`);
  return url;
}

function headersFor(token: string | undefined, remembered: Remembered | undefined): Readonly<Record<string, string>> {
  return {
    accept: 'application/vnd.github+json',
    'user-agent': 'signalbox',
    'x-github-api-version': '2022-11-28',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(remembered !== undefined && { 'if-none-match': remembered.etag }),
  };
}

/** The pause before the one retry; undefined if a retry would not help or would take too long. */
function pauseBefore(refused: Refused): number | undefined {
  const now = Date.now();
  const isBroken = refused.status === 0 || refused.status >= 500;
  const waitMs =
    limitedForMs(refused, now) ?? (isBroken ? (retryAfterMs(refused.headers, now) ?? PAUSE_MS) : undefined);
  return waitMs !== undefined && waitMs <= LONGEST_PAUSE_MS ? waitMs : undefined;
}

async function textOf(response: Response, repository: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > BODY_LIMIT_BYTES) throw new Failure('unavailable', `GitHub, ${repository}: the answer is too long`);
    text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string, repository: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new Failure('unavailable', `GitHub, ${repository}: the answer is not JSON; is that address its API?`, {
      cause,
    });
  }
}

/** Some servers repeat the request in their answer, token included. */
function said(text: string, token: string | undefined): string {
  let message = '';
  try {
    const body = JSON.parse(text) as {
      readonly message?: unknown;
      readonly errors?: readonly { readonly message?: unknown }[];
    };
    message = [body.message, ...(body.errors ?? []).map((error) => error.message)]
      .filter((each) => typeof each === 'string')
      .join('; ');
  } catch {
    // A proxy answered, not GitHub; its page would say nothing useful here.
  }
  const safe = token === undefined ? message : message.replaceAll(token, '***');
  return safe.length > 300 ? `${safe.slice(0, 297)}…` : safe;
}

function networkTrouble(error: unknown): string {
  const { cause, message } = error as Error & {
    readonly cause?: { readonly code?: string; readonly message?: string };
  };
  return cause?.code ?? cause?.message ?? message;
}
