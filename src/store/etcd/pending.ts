/** One request under way, over all its attempts. */
import type { Timer } from '../../clock.ts';
import type { CallFailure } from '../../grpc/transport.ts';
import type { Link } from './link.ts';

/** The effect of a request: none; one that may be repeated; one that must happen at most once. */
export type Effect = 'reads' | 'repeatable' | 'once';

/** Sends the request over a link and calls back once. The returned function cancels the attempt. */
export type Attempt<T> = (link: Link, done: (answer: T) => void, failed: (failure: CallFailure) => void) => () => void;

export class Pending {
  readonly attempt: Attempt<unknown>;
  readonly effect: Effect;
  readonly deadline: number;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal | undefined;
  /** Whether it waits for a link. */
  isQueued = false;
  sentAt = 0;
  /** The link over which the request was sent, while there is no answer. */
  link: Link | undefined;
  giveUp: (() => void) | undefined;
  pause: Timer | undefined;
  failures = 0;
  logins = 0;
  /** Whether an attempt that was never answered may have applied it. */
  mayBeApplied = false;
  lastFailure: CallFailure | undefined;

  constructor(
    attempt: Attempt<unknown>,
    effect: Effect,
    deadline: number,
    signal: AbortSignal | undefined,
    resolve: (answer: never) => void,
    reject: (error: unknown) => void,
  ) {
    this.attempt = attempt;
    this.effect = effect;
    this.deadline = deadline;
    this.signal = signal;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Cancels the current attempt and its pause. */
  release(): void {
    this.giveUp?.();
    this.giveUp = undefined;
    this.link = undefined;
    this.pause?.cancel();
    this.pause = undefined;
  }
}
