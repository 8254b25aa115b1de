/** Errors as the server answers them: problem details (RFC 9457). Every failure and refusal gets its status here. */
import { Failure, type FailureCode, redactedWords } from '../failure.ts';
import { NotAcquired, type Refusal } from '../runtime/refusal.ts';

const FAILURES = {
  invalid: 400,
  'not-acquired': 409,
  'hold-lost': 410,
  'not-found': 404,
  compacted: 410,
  corrupt: 500,
  inconsistent: 500,
  // The store refuses the server, which is no fault of its client.
  forbidden: 502,
  unavailable: 503,
  closed: 503,
  'outcome-unknown': 504,
} satisfies Record<FailureCode, number>;

const REFUSALS = {
  busy: 409,
  full: 409,
  'too-large': 409,
  'timed-out': 409,
  // The server stops, or the time limit of a request is over: the client may ask again.
  aborted: 503,
  deadlock: 409,
  'upgrade-conflict': 409,
  impossible: 422,
  'capacity-mismatch': 409,
  lost: 410,
  closed: 503,
  'session-lost': 503,
  missing: 404,
  taken: 409,
  finished: 409,
  blocked: 409,
  unfit: 409,
  none: 404,
} satisfies Record<Refusal['kind'], number>;

/** What the server itself refuses, and what an operation answers if it is not done. */
const OWN = {
  'invalid-input': 400,
  unauthenticated: 401,
  'wrong-role': 403,
  'foreign-holder': 403,
  'foreign-origin': 403,
  'commands-off': 403,
  'no-such-path': 404,
  'no-such-thing': 404,
  'wrong-method': 405,
  'not-owner': 409,
  'not-held': 409,
  ambiguous: 409,
  exists: 409,
  'asset-taken': 409,
  attached: 409,
  'wrong-state': 409,
  'key-in-use': 409,
  'answer-not-kept': 409,
  'condition-failed': 409,
  'witness-off': 409,
  gone: 410,
  'body-too-large': 413,
  'wrong-content-type': 415,
  'wrong-host': 421,
  'key-reused': 422,
  'too-many-requests': 429,
  'too-many-streams': 429,
  internal: 500,
} as const;

export type ProblemCode = FailureCode | Refusal['kind'] | keyof typeof OWN;

export const STATUS: Readonly<Record<string, number>> = { ...FAILURES, ...REFUSALS, ...OWN };

/** Thrown where a request is refused; `details` become fields of the answer. */
export class Problem extends Error {
  readonly code: keyof typeof OWN;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: keyof typeof OWN,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'Problem';
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

/** A body that is to be sent, with its status. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const PROBLEM_TYPE = 'application/problem+json';

/** Reports a bug by its name alone: its message may contain anything. */
export function answerOf(error: unknown): Answer {
  if (error instanceof Problem) {
    return { ...problem(error.code, error.message, error.details), headers: error.headers };
  }
  if (error instanceof NotAcquired) {
    const { resource, refusal } = error;
    return problem(refusal.kind, error.message, { resource, refusal: shownRefusal(refusal) });
  }
  if (Failure.is(error)) return problem(error.code, error.message);
  return problem('internal', 'the server failed to carry this out, because of a bug in it');
}

function problem(code: ProblemCode, detail: string, details: Readonly<Record<string, unknown>> = {}): Answer {
  const status = STATUS[code] as number;
  const title = code.replaceAll('-', ' ');
  return {
    status,
    // What every problem has comes last: no detail may take its place.
    body: { ...details, type: `/docs#${code}`, title, status, code, detail: redactedWords(detail) },
    ...(status === 503 && { headers: { 'Retry-After': '1' } }),
  };
}

/** Without the reason of an abort, which may be any object of the server, and without the ids of leases. */
function shownRefusal(refusal: Refusal): unknown {
  if (refusal.kind === 'aborted') return { kind: refusal.kind };
  if (!('holders' in refusal)) return refusal;
  const holders = (refusal.holders as readonly object[]).map((hold) =>
    Object.fromEntries(Object.entries(hold).filter(([field]) => SHOWN.includes(field))),
  );
  return { ...refusal, holders };
}

const SHOWN = ['holder', 'token', 'acquiredAt', 'reason', 'metadata', 'mode', 'weight', 'maxHoldMs'];

/** Whether the same request may be sent again later: nothing is known to have been done. */
export function isPassing(status: number): boolean {
  return status >= 500 || status === 429;
}

/** Whether it may have been done all the same: no answer came from the store, or a bug kept the server from saying. */
export function isDoubtful(status: number): boolean {
  return status === 500 || status === 504;
}
