/** Requests to the server that this page came from, with the token of the link. */

import { items, object } from '../model/read.ts';
import type { Happening } from '../model/types.ts';

export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(typeof body['detail'] === 'string' ? body['detail'] : `the server answered ${status}`);
    this.status = status;
    this.code = typeof body['code'] === 'string' ? body['code'] : '';
    this.body = body;
  }
}

const KEY = 'signalbox.token';

/** The token, kept for this tab alone and gone with it. */
export function keptToken(): string {
  return sessionStorage.getItem(KEY) ?? '';
}

export function keepToken(token: string): void {
  if (token === '') sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, token);
}

function headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { Authorization: `Bearer ${keptToken()}`, ...more };
}

async function answered(response: Response): Promise<unknown> {
  if (response.ok) return response.json() as Promise<unknown>;
  const body = (await response.json().catch(() => ({}))) as Readonly<Record<string, unknown>>;
  throw new Refused(response.status, body);
}

function asked(path: string, signal?: AbortSignal): Promise<Response> {
  const limit = AbortSignal.timeout(20_000);
  const over = signal === undefined ? limit : AbortSignal.any([signal, limit]);
  return fetch(path, { headers: headers(), cache: 'no-store', signal: over });
}

export async function get(path: string, signal?: AbortSignal): Promise<unknown> {
  return answered(await asked(path, signal));
}

export async function getText(path: string): Promise<string> {
  return (await asked(path)).text();
}

/** The most pages of history to ask for. Each page looks at a part of what the store remembers, from the newest back. */
const MOST_PAGES = 5;

export interface PastEvents {
  /** Oldest first. */
  readonly events: readonly Happening[];
  /** Whether nothing that was asked for is missing. */
  readonly isWhole: boolean;
}

/** What happened, as far as the store remembers it. */
export async function pastEvents(query: string, signal: AbortSignal, most = 1_000): Promise<PastEvents> {
  let found: readonly Happening[] = [];
  let isWhole = false;
  let before = '';
  for (let pages = 0; pages < MOST_PAGES && found.length < most; pages++) {
    const answer = object(await get(`/v1/history?${query}${before}`, signal));
    found = [...(items(answer['events']) as readonly Happening[]), ...found];
    isWhole = answer['isWhole'] === true;
    if (typeof answer['next'] !== 'string') break;
    before = `&before=${answer['next']}`;
  }
  return { events: found, isWhole };
}

/** The key makes a repeat of the same request harmless. */
export async function send(method: 'POST' | 'PUT', path: string, body: object): Promise<unknown> {
  const key = crypto.randomUUID === undefined ? String(Math.random()) : crypto.randomUUID();
  const init = {
    method,
    headers: headers({ 'Content-Type': 'application/json', 'Idempotency-Key': key }),
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  };
  return answered(await fetch(path, init));
}

/** The lines of an answer as they come, some at a time. */
export async function* lines(path: string, signal: AbortSignal): AsyncGenerator<readonly string[]> {
  let rest = '';
  for await (const piece of stream(path, AbortSignal.any([signal, AbortSignal.timeout(60_000)]), 'application/jsonl')) {
    const whole = (rest + piece).split('\n');
    rest = whole.pop() ?? '';
    yield whole;
  }
}

/** The pieces of a stream, of events if nothing else is asked for, as they come. */
export async function* stream(path: string, signal: AbortSignal, type = 'text/event-stream'): AsyncGenerator<string> {
  const response = await fetch(path, { headers: headers({ Accept: type }), cache: 'no-store', signal });
  if (!response.ok || response.body === null) {
    await answered(response);
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // A reader that has enough must not leave the connection open.
    await reader.cancel().catch(() => undefined);
  }
}
