/** Explains GitHub's refusals: for which repository, and until when if it is a rate limit. */
import { Failure, type FailureCode } from '../../failure.ts';

export interface Refused {
  readonly status: number;
  readonly headers: Headers;
  readonly message: string;
}

/** The time in milliseconds until a retry makes sense; undefined if the refusal is not about a limit. */
export function limitedForMs({ status, headers, message }: Refused, now: number): number | undefined {
  if (status !== 403 && status !== 429) return undefined;
  const after = retryAfterMs(headers, now);
  if (after !== undefined) return after;
  const reset = Number(headers.get('x-ratelimit-reset'));
  if (headers.get('x-ratelimit-remaining') === '0' && reset > 0) return Math.max(0, reset * 1000 - now);
  // GitHub asks for at least a minute if it names no time.
  return status === 429 || /rate limit/i.test(message) ? 60_000 : undefined;
}

/** Seconds, or a date. */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

export function refusal(refused: Refused, repository: string, hasToken: boolean, now: number): Failure {
  const waitMs = limitedForMs(refused, now);
  if (waitMs !== undefined) {
    const until = new Date(now + waitMs).toISOString();
    const hint = hasToken ? '' : '; with a token (GITHUB_TOKEN) the limit is higher';
    return failure('unavailable', `the limit of requests is reached, try again at ${until}${hint}`);
  }
  const said = refused.message === '' ? '' : `: ${refused.message}`;
  const [code, words] = MEANINGS[refused.status] ?? ['unavailable', 'it did not answer'];
  const hint = refused.status === 404 && !hasToken ? ' (no token was found: set GITHUB_TOKEN for a private one)' : '';
  return failure(code, `${words}${hint} (${refused.status}${said})`);

  function failure(kind: FailureCode, what: string): Failure {
    return new Failure(kind, `GitHub, ${repository}: ${what}`);
  }
}

const MEANINGS: Readonly<Record<number, readonly [FailureCode, string]>> = {
  401: ['forbidden', 'the token is not valid'],
  403: ['forbidden', 'the token may not do this'],
  404: ['not-found', 'there is no such repository, or the token may not see it'],
  410: ['not-found', 'it has no issues: they are switched off'],
  422: ['invalid', 'it does not accept the question'],
};
