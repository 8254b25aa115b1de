/** Handles a server that is away while a command waits: asks it again, tells the user, and gives up in the end. */
import type { Clock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { ServerRefusal } from '../../client/problem.ts';
import { FullScreen } from '../full-screen.ts';
import { say } from '../output.ts';
import { Voice } from '../run/voice.ts';

const TOO_MANY = 429;

let isTold = false;

/**
 * Says once that the server is away, and once that it is back, however many requests and streams notice. Scripts see it too: a
 * command that waits for ever must not do so in silence.
 */
export function tellAway(trouble: Failure | undefined): void {
  const isAway = trouble !== undefined;
  // What draws on the whole screen asks the server every second and ends with its error; a line would destroy the picture.
  if (isAway === isTold || FullScreen.isShown || Voice.current?.isSilent === true) return;
  isTold = isAway;
  const line = isAway ? `${trouble.message}; trying again` : 'the server is back';
  const print = Voice.current?.say ?? say;
  print(line);
}

export class Away {
  readonly #mostMs: number;
  readonly #clock: Clock;
  #since: number | undefined;
  /** Why the server did not answer; undefined if it did. */
  trouble: Failure | undefined;

  /** `mostMs`: after this time without an answer the wait is over. */
  constructor(mostMs: number, clock: Clock) {
    this.#mostMs = mostMs;
    this.#clock = clock;
  }

  /** The server's answer; undefined if it is away, or if `over` has aborted meanwhile. */
  async unless<T>(asked: Promise<T>, over: AbortSignal | undefined): Promise<T | undefined> {
    const begun = this.#clock.monotonic();
    try {
      const answer = await asked;
      tellAway(undefined);
      this.trouble = undefined;
      this.#since = undefined;
      return answer;
    } catch (error) {
      if (over?.aborted === true && !Failure.is(error)) return undefined;
      // The request only reads, so it does not matter whether the server carried it out.
      if (!Failure.is(error, 'unavailable') && !Failure.is(error, 'outcome-unknown')) throw error;
      this.#since ??= begun;
      if (this.#clock.monotonic() - this.#since >= this.#mostMs) throw error;
      // A server that has too much to do for this token is there.
      if (!(error instanceof ServerRefusal && error.problem.status === TOO_MANY)) tellAway(error);
      this.trouble = error;
      return undefined;
    }
  }

  /** The error for a wait that is over without an answer of the server. */
  told(within: string): Failure {
    const why = this.trouble?.message ?? 'the server did not answer';
    return new Failure('unavailable', `${why}; given up ${within}`, { cause: this.trouble });
  }
}
