/** How a command ends, told by its exit code: for scripts, which see nothing else. */
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
  notOwner: 77,
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
  // Not 77, which says something about a hold: here nothing could be asked at all.
  forbidden: EXIT.unreachable,
} satisfies Record<FailureCode, number>;

/** Ends the command with this exit code; the message goes to stderr, and none is printed if it is empty. */
export class CliExit extends Error {
  readonly exitCode: number;
  /** For `--json`, where it is not the word that belongs to the exit code. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(exitCode: number, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'CliExit';
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** What would be refused again however often one tried is a mistake in the call. */
const NEVER = ['impossible', 'capacity-mismatch'];

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliExit) return error.exitCode;
  if (error instanceof NotAcquired && NEVER.includes(error.refusal.kind)) return EXIT.usage;
  return Failure.is(error) ? exitCodeByFailure[error.code] : EXIT.internal;
}

const WORDS: Readonly<Record<number, string>> = {
  [EXIT.no]: 'negative',
  [EXIT.usage]: 'invalid',
  [EXIT.integrity]: 'corrupt',
  [EXIT.unreachable]: 'unavailable',
  [EXIT.notAcquired]: 'not-acquired',
  [EXIT.lost]: 'hold-lost',
  [EXIT.notOwner]: 'not-owner',
  // Of what `run` was to run, with the codes that shells have for it.
  126: 'command-not-executable',
  127: 'command-not-found',
};

/** One word for programs. */
export function errorCodeOf(error: unknown): string {
  if (Failure.is(error)) return error.code;
  return WORDS[exitCodeOf(error)] ?? 'internal';
}
