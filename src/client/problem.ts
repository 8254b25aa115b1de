/** What a server refuses, as the errors of the library. */
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
  /** What else the server says of it, such as `role` and `needed`. */
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

/** By status, where the code is none of the library's. */
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

/** The error that a caller of the library would get. */
export function errorOf(problem: ProblemDetails): Failure {
  const { code, status, resource, refusal } = problem;
  if (typeof resource === 'string' && typeof refusal === 'object' && refusal !== null) {
    return new NotAcquired(resource, refusal as Refusal);
  }
  const known = FAILURES.includes(code) ? (code as FailureCode) : undefined;
  return new ServerRefusal(known ?? BY_STATUS[status] ?? 'invalid', problem);
}

/** The problem among these codes with which the server refused; others are thrown. */
export function refusedWith(error: unknown, ...codes: readonly string[]): ProblemDetails {
  if (error instanceof ServerRefusal && codes.includes(error.problem.code)) return error.problem;
  throw error;
}
