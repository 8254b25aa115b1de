/** Turns the refusals of a server into the errors of the library. */
import { Failure, type FailureCode } from '../failure.ts';
import { NotAcquired, type Refusal } from '../runtime/refusal.ts';

/** The body of a refusal: problem details (RFC 9457), with `code` for programs. */
export interface ProblemDetails {
  /** The status of the answer. */
  readonly status: number;
  /** One word for programs, such as `wrong-role`. */
  readonly code: string;
  /** What was wrong and what to do, for people. */
  readonly detail: string;
  /** Further fields of the answer, such as `role` and `needed`. */
  readonly [field: string]: unknown;
}

/** The server refused a request; `problem` says why, for programs. */
export class ServerRefusal extends Failure {
  /** The problem details, as the server sent them. */
  readonly problem: ProblemDetails;

  /** @internal */
  constructor(code: FailureCode, problem: ProblemDetails) {
    super(code, problem.detail);
    this.name = 'ServerRefusal';
    this.problem = problem;
  }
}

const FAILURES: readonly string[] = [
  'unavailable',
  'outcome-unknown',
  'compacted',
  'corrupt',
  'inconsistent',
  'closed',
  'invalid',
] satisfies readonly FailureCode[];

/** The code by HTTP status, for answers whose code the library does not know. */
const BY_STATUS: Readonly<Record<number, FailureCode>> = {
  401: 'forbidden',
  403: 'forbidden',
  404: 'not-found',
  421: 'forbidden',
  429: 'unavailable',
  500: 'outcome-unknown',
  502: 'unavailable',
  503: 'unavailable',
  504: 'outcome-unknown',
};

/** The error that the library would throw for this problem. */
export function errorOf(problem: ProblemDetails): Failure {
  const { code, status, resource, refusal } = problem;
  if (typeof resource === 'string' && typeof refusal === 'object' && refusal !== null) {
    return new NotAcquired(resource, refusal as Refusal);
  }
  const known = FAILURES.includes(code) ? (code as FailureCode) : undefined;
  return new ServerRefusal(known ?? BY_STATUS[status] ?? 'invalid', problem);
}

/** Returns the problem if its code is one of these, which come with `Details`; throws any other error. */
export function refusedWith<Details = object>(error: unknown, ...codes: readonly string[]): ProblemDetails & Details {
  if (error instanceof ServerRefusal && codes.includes(error.problem.code)) return error.problem as never;
  throw error;
}

export function isPassing({ status, code }: ProblemDetails, isKeyed: boolean): boolean {
  if (code === 'key-in-use') return true;
  // The caller decides: with a key, a repeat gets the same 504, or the server carries it out once more where that is harmless.
  return status === 429 || status === 503 || (status === 504 && !isKeyed);
}

/** Whether the server answered so before it looked at the Idempotency-Key: the answer tells nothing of an earlier attempt. */
export function ignoresKey({ status, refusal }: ProblemDetails): boolean {
  return [401, 429, 502, 503].includes(status) && refusal === undefined;
}

/** Each request has a key of its own, so what is under way is an earlier attempt, perhaps at a server that was killed. */
export function unfinished(refusal: unknown): Failure {
  const told =
    'the request may have been done: an attempt that got no answer still counts as under way; read the state before you send it again';
  return new Failure('outcome-unknown', told, { cause: refusal });
}

export function problemIn({ status, body }: { readonly status: number; readonly body: unknown }): ProblemDetails {
  const { code, detail, ...rest } = Object(body) as Partial<ProblemDetails>;
  return {
    ...rest,
    status,
    code: typeof code === 'string' ? code : `status-${status}`,
    detail: typeof detail === 'string' && detail !== '' ? detail : `the server answered ${status}`,
  };
}
