/** The exit codes, by which scripts learn how a command ended. */
import { Failure, type FailureCode } from '../failure.ts';
import { NotAcquired } from '../runtime/refusal.ts';

export const EXIT = {
  ok: 0,
  /** A negative answer: unhealthy, nothing to claim, a guard that is false. */
  no: 1,
  usage: 64,
  integrity: 65,
  unreachable: 69,
  /** A bug in signalbox itself. */
  internal: 70,
  notAcquired: 75,
  lost: 76,
  /** Not permitted: not the owner of the hold, or the store refuses this user, token or password. */
  notPermitted: 77,
} as const;

export const exitCodeByFailure = {
  invalid: EXIT.usage,
  corrupt: EXIT.integrity,
  inconsistent: EXIT.integrity,
  unavailable: EXIT.unreachable,
  'outcome-unknown': EXIT.unreachable,
  compacted: EXIT.unreachable,
  'not-found': EXIT.unreachable,
  closed: EXIT.unreachable,
  'not-acquired': EXIT.notAcquired,
  'hold-lost': EXIT.lost,
  forbidden: EXIT.notPermitted,
} satisfies Record<FailureCode, number>;

/** Ends the command with this exit code. The message goes to stderr; an empty one is not printed. */
export class CliExit extends Error {
  readonly exitCode: number;
  /** The outcome for `--json`, if it differs from the word of the exit code. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(exitCode: number, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'CliExit';
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** Refusals that no retry can change. They are mistakes in the call. */
const NEVER = ['impossible', 'capacity-mismatch'];

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliExit) return error.exitCode;
  if (error instanceof NotAcquired && NEVER.includes(error.refusal.kind)) return EXIT.usage;
  if (!Failure.is(error)) return EXIT.internal;
  return isUnusable(error) ? EXIT.unreachable : exitCodeByFailure[error.code];
}

const NO_PERMISSION = ['EACCES', 'EPERM', 'EROFS'];

/** A file in place of a directory, or a certificate that is not trusted: no other user or token would get in either. */
function isUnusable(error: Failure): boolean {
  if (error.code !== 'forbidden') return false;
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (!Failure.is(cause) && typeof code === 'string') return !NO_PERMISSION.includes(code);
  }
  return false;
}

const WORDS: Readonly<Record<number, string>> = {
  [EXIT.no]: 'negative',
  [EXIT.usage]: 'invalid',
  [EXIT.integrity]: 'corrupt',
  [EXIT.unreachable]: 'unavailable',
  [EXIT.notAcquired]: 'not-acquired',
  [EXIT.lost]: 'hold-lost',
  [EXIT.notPermitted]: 'not-owner',
  // The command of `run` could not be started; shells use the same codes.
  126: 'command-not-executable',
  127: 'command-not-found',
};

/** One word for programs. */
export function errorCodeOf(error: unknown): string {
  if (Failure.is(error)) return error.code;
  return WORDS[exitCodeOf(error)] ?? 'internal';
}
