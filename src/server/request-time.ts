/**
 * Limits the time of a request. When the time is over, or the token is no longer valid, the server asks a waiting operation to
 * stop and answer with what it has. If the operation does not stop, the server gives it up a moment later, so that every request
 * is answered.
 */
import type { Clock, Timer } from '../clock.ts';
import { Failure } from '../failure.ts';
import type { OpenStreams, OpenWait } from './open-streams.ts';
import type { Caller, Operation } from './operation.ts';
import { type Answer, Problem } from './problem.ts';

/** How long an operation may take to answer after the server asked it to stop. */
const MOMENT_MS = 2_000;

export interface TimeTerms {
  readonly clock: Clock;
  readonly longestMs: number;
  readonly waits: OpenStreams;
  readonly caller: Caller;
  /** Tells whether the token of the request is still valid. */
  readonly isStill: () => Promise<boolean>;
  /** Other signals that end the request. */
  readonly ends: () => readonly AbortSignal[];
}

/**
 * `begin` gets a function that makes the stop signal on demand, because most operations never wait. With `isCounted` it throws if
 * the token has as many such waits as it may.
 */
export async function inTime(
  { clock, longestMs, waits, caller, isStill, ends }: TimeTerms,
  { method }: Pick<Operation, 'method'>,
  begin: (stop: (isCounted?: boolean) => AbortSignal) => Promise<Answer | Response>,
): Promise<Answer | Response> {
  const over = new AbortController();
  let waiting: OpenWait | undefined;
  const stop = (isCounted = false): AbortSignal => {
    waiting ??= isCounted ? waits.enter(caller, isStill, 'guard-wait') : waits.wait(isStill);
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
    // The caller keeps what it was granted so far; an invalid token keeps no place in a queue.
    if (answer.status === 200 || !isRevoked()) return answer;
  } catch (error) {
    if (!isRevoked()) {
      // An operation may throw the reason for which it was asked to stop.
      throw ends().some(({ aborted, reason }) => aborted && reason === error)
        ? unfinished(method, STOPPING, 'ask again', 'it may have been done')
        : error;
    }
  } finally {
    timer?.cancel();
    waiting?.leave();
  }
  throw unauthenticated('this token was revoked or expired meanwhile');
}

const STOPPING = 'the server is stopping, or the client has left';

function tooLong(method: Operation['method'], ms: number): Failure {
  const what = `the request took longer than ${ms / 1000} s, and the server gave it up`;
  return unfinished(method, what, 'ask for less, or later', 'it may have been done, or may still be done');
}

/** A request that only reads has certainly changed nothing. */
function unfinished(method: Operation['method'], what: string, again: string, doubt: string): Failure {
  if (method === 'get') return new Failure('unavailable', `${what}; ${again}`);
  return new Failure('outcome-unknown', `${what}: ${doubt}; read the state before you ask again`);
}

export function unauthenticated(what: string): Problem {
  const how = 'send Authorization: Bearer TOKEN; signalbox token local prints one for this machine';
  return new Problem('unauthenticated', `${what}: ${how}`, {}, { 'WWW-Authenticate': 'Bearer' });
}
