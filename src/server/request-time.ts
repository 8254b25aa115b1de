/**
 * The time that a request may take. An operation that waits is asked to stop when that is over, or when its token is not valid
 * any more, and answers what it has by then; one that does not stop is given up a moment later, so that every request is answered.
 */
import type { Clock, Timer } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { OpenStreams, OpenWait } from './open-streams.ts';
import type { Operation } from './operation.ts';
import { type Answer, Problem } from './problem.ts';

/** For an operation to answer after it was asked to stop. */
const MOMENT_MS = 2_000;

export interface TimeTerms {
  readonly clock: Clock;
  readonly longestMs: number;
  readonly waits: OpenStreams;
  /** Whether the token of the request is still valid. */
  readonly isStill: () => Promise<boolean>;
  /** What else ends it. */
  readonly ends: () => readonly AbortSignal[];
}

/** `begin` gets what asks it to stop, which is made when it is called: most operations wait for nothing. */
export async function inTime(
  { clock, longestMs, waits, isStill, ends }: TimeTerms,
  { method }: Pick<Operation, 'method'>,
  begin: (stop: () => AbortSignal) => Promise<Answer | Response>,
): Promise<Answer | Response> {
  const over = new AbortController();
  let waiting: OpenWait | undefined;
  const stop = (): AbortSignal => {
    waiting ??= waits.wait(isStill);
    return AbortSignal.any([...ends(), over.signal, waiting.signal]);
  };
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = clock.timer(longestMs, () => {
      over.abort(tooLong(method, longestMs));
      timer = clock.timer(MOMENT_MS, () => reject(tooLong(method, longestMs)));
    });
  });
  const isRevoked = (): boolean => waiting?.signal.aborted === true;
  try {
    const answer = await Promise.race([begin(stop), late]);
    // What it got until then is its own; a place in a queue is not for a token that is not valid any more.
    if (answer.status === 200 || !isRevoked()) return answer;
  } catch (error) {
    if (!isRevoked()) {
      // An operation may throw why it was asked to stop.
      throw ends().some(({ aborted, reason }) => aborted && reason === error) ? cutShort(method) : error;
    }
  } finally {
    timer?.cancel();
    waiting?.leave();
  }
  throw unauthenticated('this token was revoked or has expired meanwhile');
}

function cutShort(method: Operation['method']): Failure {
  const what = 'the server stops, or the client has left';
  return method === 'get'
    ? new Failure('unavailable', `${what}; ask again`)
    : new Failure('outcome-unknown', `${what}: it may have been done; look before you ask again`);
}

function tooLong(method: Operation['method'], ms: number): Failure {
  const what = `it took longer than ${ms / 1000} s and was given up`;
  return method === 'get'
    ? new Failure('unavailable', `${what}; ask for less, or later`)
    : new Failure('outcome-unknown', `${what}: it may have been done, or may still be; look before you ask again`);
}

export function unauthenticated(what: string): Problem {
  const how = 'send Authorization: Bearer TOKEN; signalbox token local prints one for this machine';
  return new Problem('unauthenticated', `${what}: ${how}`, {}, { 'WWW-Authenticate': 'Bearer' });
}
