/**
 * The one thing signalbox throws. Refusals (busy, full, not the owner) are outcomes and are
 * returned; a `Failure` means that the world failed, or that the call itself made no sense.
 */
export type FailureCode =
  /** The store could not be reached; certainly nothing was applied. */
  | 'unavailable'
  /** The request was sent and no answer came: it may have been applied. Read before writing again. */
  | 'outcome-unknown'
  /** The history that was asked for is no longer kept. List again, then watch from there. */
  | 'compacted'
  /** The store contains something that signalbox did not write. Nothing was changed. */
  | 'corrupt'
  /**
   * What is stored, or what was about to be, breaks a promise of signalbox: two writers of one lock, a slot given twice, a
   * token that does not grow. Nothing was changed.
   */
  | 'inconsistent'
  /** The store refuses this caller. */
  | 'forbidden'
  /** A lease or key that the request depends on does not exist; nothing was applied. */
  | 'not-found'
  /** This client was closed. */
  | 'closed'
  /** The call made no sense; the message shows the value and what is accepted. */
  | 'invalid'
  /** A waiting form (`acquire`, `run`) ended without a hold; the refusal says why. */
  | 'not-acquired'
  /** A hold ended before its holder released it. */
  | 'hold-lost';

/** The same symbol in every copy of this class: the command line consists of several bundles, and each contains a copy. */
const MARK = Symbol.for('signalbox.Failure');

/** The one error that signalbox throws; `code` says what failed. */
export class Failure extends Error {
  /** What failed, for programs. */
  readonly code: FailureCode;

  static {
    Object.defineProperty(this.prototype, MARK, { value: true });
  }

  /** `message` is for people. */
  constructor(code: FailureCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'Failure';
    this.code = code;
  }

  /** Also true for an error of another copy of this package. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    // A subclass of which there are copies as well has its own.
    if (this !== Failure) return Function.prototype[Symbol.hasInstance].call(this, error);
    return isMarked(error, MARK);
  }

  /** Whether it is a `Failure`, and has this code if one is named. */
  static is(error: unknown, code?: FailureCode): error is Failure {
    return error instanceof Failure && (code === undefined || error.code === code);
  }
}

/** Whether it has the mark that every copy of a class gives to its errors. */
export function isMarked(error: unknown, mark: symbol): boolean {
  return typeof error === 'object' && error !== null && mark in error;
}

/** Throws `invalid` if a check of what a caller gave has found a problem. */
export function refuseInvalid(problem: string | undefined): void {
  if (problem !== undefined) throw new Failure('invalid', problem);
}

/** Passwords are hidden wherever a URL or an argument is shown. */
export { redacted, redactedWords } from './core/redacted.ts';
/** Messages show the offending value, cut so that a huge one does not hide the message itself. */
export { shown } from './core/shown.ts';
