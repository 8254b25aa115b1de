/** Turns errors into answers: problem details (RFC 9457). Every failure and refusal gets its status here. */
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
  // The store refused the server; the client did nothing wrong.
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
  // The server is stopping, or the request ran out of time; the client may send it again.
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

/** Refusals of the server itself, and of operations that were not carried out. */
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
  'too-many-waits': 429,
  internal: 500,
} as const;

export type ProblemCode = FailureCode | Refusal['kind'] | keyof typeof OWN;

export const STATUS: Readonly<Record<string, number>> = { ...FAILURES, ...REFUSALS, ...OWN };

/** Thrown to refuse a request; `details` become fields of the answer. */
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

/** A body to send, with its status. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const PROBLEM_TYPE = 'application/problem+json';

/** Reports a bug only by name, because its message may contain anything. */
export function answerOf(error: unknown): Answer {
  if (error instanceof Problem) {
    return { ...problem(error.code, error.message, error.details), headers: error.headers };
  }
  if (error instanceof NotAcquired) {
    const { resource, refusal } = error;
    return problem(refusal.kind, error.message, { resource, refusal: shownRefusal(refusal) });
  }
  if (Failure.is(error)) return problem(error.code, error.message);
  return problem('internal', 'the server failed because of a bug; its log names the place');
}

function problem(code: ProblemCode, detail: string, details: Readonly<Record<string, unknown>> = {}): Answer {
  const status = STATUS[code] as number;
  const title = code.replaceAll('-', ' ');
  return {
    status,
    // The standard fields come last, so that no detail overwrites them.
    body: { ...details, type: `/docs#${code}`, title, status, code, detail: redactedWords(detail) },
    ...(status === 503 && { headers: { 'Retry-After': '1' } }),
  };
}

/** Leaves out the reason of an abort, which may be any object of the server, and the ids of leases. */
function shownRefusal(refusal: Refusal): unknown {
  if (refusal.kind === 'aborted') return { kind: refusal.kind };
  if (!('holders' in refusal)) return refusal;
  const holders = (refusal.holders as readonly object[]).map((hold) =>
    Object.fromEntries(Object.entries(hold).filter(([field]) => SHOWN.includes(field))),
  );
  return { ...refusal, holders };
}

const SHOWN = ['holder', 'token', 'acquiredAt', 'reason', 'metadata', 'mode', 'weight', 'maxHoldMs'];

/** Whether the client may send the same request again: the server knows of nothing that was done. */
export function isPassing(status: number): boolean {
  return status >= 500 || status === 429;
}

/** Whether the request may have been done after all: the store gave no answer, or a bug hid it. */
export function isDoubtful(status: number): boolean {
  return status === 500 || status === 504;
}
