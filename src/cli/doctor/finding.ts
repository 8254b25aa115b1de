/** The result of a check. */
export type Verdict = 'ok' | 'warn' | 'fail';

export interface Finding {
  /** One word, the same in every version: `clock`, `stale-holds`. */
  readonly check: string;
  readonly verdict: Verdict;
  readonly message: string;
  /** What the user can do about it. */
  readonly advice?: string;
}

export function ok(check: string, message: string): Finding {
  return { check, verdict: 'ok', message };
}

export function warn(check: string, message: string, advice: string): Finding {
  return { check, verdict: 'warn', message, advice };
}

export function fail(check: string, message: string, advice: string): Finding {
  return { check, verdict: 'fail', message, advice };
}
