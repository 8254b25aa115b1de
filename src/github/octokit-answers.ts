/** Reads GitHub's answers. A field that is missing or of another type reads as empty, so that no decision rests on a guess. */
import type { RefSeen, Reply } from '../core/github/index.ts';

export type Headers = Readonly<Record<string, string | number | undefined>>;
export interface Response {
  readonly status: number;
  readonly headers: Headers;
  readonly data: unknown;
}

const SECONDARY_MS = 60_000;

/** Octokit reports a request that never reached GitHub with status 500. */
export function troubleOf(error: Error, response: Response | undefined): Exclude<Reply<never>, { kind: 'ok' }> {
  const message = error.message.split(' - https://')[0] ?? '';
  if (response === undefined) return { kind: 'unknown', message: `no answer from GitHub: ${message}` };
  const { status, headers } = response;
  const date = dateIn(headers);
  const isLimit =
    headers['retry-after'] !== undefined ||
    headers['x-ratelimit-remaining'] === '0' ||
    /rate limit|abuse/i.test(message);
  if ((status === 403 || status === 429) && isLimit)
    return { kind: 'limited', waitMs: waitIn(headers, date.date?.ms), message, ...date };
  if (status === 401 || status === 403) return { kind: 'denied', message, ...date };
  if (status === 404 || status === 410) return { kind: 'missing', message, ...date };
  if (status >= 500) return { kind: 'unknown', message, ...date };
  return { kind: 'refused', status, message, ...date };
}

/** Uses the server's clock, because ours may differ. */
export function waitIn(headers: Headers, serverMs: number | undefined): number {
  const after = Number(headers['retry-after']);
  if (headers['retry-after'] !== undefined && Number.isFinite(after)) return after * 1000;
  const reset = Number(headers['x-ratelimit-reset']) * 1000;
  const isSpent = headers['x-ratelimit-remaining'] === '0' && Number.isFinite(reset) && serverMs !== undefined;
  return isSpent ? Math.max(1_000, reset - serverMs) : SECONDARY_MS;
}

export function dateIn(headers: Headers): { readonly date?: { readonly ms: number; readonly iso: string } } {
  const ms = Date.parse(String(headers['date'] ?? ''));
  return Number.isFinite(ms) ? { date: { ms, iso: new Date(ms).toISOString() } } : {};
}

export function committedMs(data: Readonly<Record<string, unknown>>): number {
  return Date.parse(textIn(asObject(data['committer']), 'date'));
}

export function valued<T>(reply: Reply<unknown>, read: (data: Readonly<Record<string, unknown>>) => T): Reply<T> {
  return reply.kind === 'ok' ? { ...reply, value: read(asObject(reply.value)) } : reply;
}

export function valuedList<T>(
  reply: Reply<readonly unknown[]>,
  read: (data: Readonly<Record<string, unknown>>) => T,
): Reply<readonly T[]> {
  return reply.kind === 'ok' ? { ...reply, value: reply.value.map((one) => read(asObject(one))) } : reply;
}

export function done(reply: Reply<unknown>): Reply<null> {
  return reply.kind === 'ok' ? { ...reply, value: null } : reply;
}

export function refIn(data: Readonly<Record<string, unknown>>): RefSeen {
  return { ref: textIn(data, 'ref'), sha: textIn(asObject(data['object']), 'sha') };
}

export function short(ref: string): string {
  return ref.replace(/^refs\//, '');
}

export function loginsIn(data: Readonly<Record<string, unknown>>): readonly string[] {
  return listIn(data['assignees']).map((user) => textIn(user, 'login'));
}

export function listIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(asObject) : [];
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

export function textIn(data: Readonly<Record<string, unknown>>, key: string): string {
  const value = data[key];
  return typeof value === 'string' ? value : '';
}
