/** One request on its way, over however many attempts. */
import type { Timer } from '../../clock.ts';
import type { CallFailure } from '../../grpc/transport.ts';
import type { Link } from './link.ts';

/** What doing it may change: nothing; something, but twice is as good as once; something, and it is done once. */
export type Effect = 'reads' | 'repeatable' | 'once';

/** Sends it over a link. Calls back once, unless what it returns is called: that gives the attempt up. */
export type Attempt<T> = (link: Link, done: (answer: T) => void, failed: (failure: CallFailure) => void) => () => void;

export class Pending {
  readonly attempt: Attempt<unknown>;
  readonly effect: Effect;
  readonly deadline: number;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal | undefined;
  /** For a link. */
  isQueued = false;
  sentAt = 0;
  /** Over which it was sent, and is not yet answered. */
  link: Link | undefined;
  giveUp: (() => void) | undefined;
  pause: Timer | undefined;
  failures = 0;
  logins = 0;
  /** By an attempt that was never answered. */
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

  /** Takes back what was sent, as far as that goes. */
  release(): void {
    this.giveUp?.();
    this.giveUp = undefined;
    this.link = undefined;
    this.pause?.cancel();
    this.pause = undefined;
  }
}
