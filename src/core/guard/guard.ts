/** The guard: a condition that gates a step, and what to do while it does not hold. */
import type { Condition } from './condition.ts';
import { evaluate, type Missing, type Verdict } from './evaluate.ts';
import type { Outlook } from './findings.ts';
import type { Inputs } from './inputs.ts';
import { wakePatterns } from './wake.ts';

/** A condition with an id, and with what to do if it fails. */
export interface Guard {
  /** Its name. */
  readonly id: string;
  /** What must be true. */
  readonly condition: Condition;
  /** `block` by default. */
  readonly onFailure?: OnFailure;
  /** Event patterns such as `lock:released`, `task:*` and `*`; derived from the condition unless given. */
  readonly wakeOn?: readonly string[];
}

/** What to do if a guard fails: wait, warn, retry later, or fail. */
export type OnFailure =
  /** Wait until it passes. */
  | 'block'
  /** Warn and continue. */
  | 'warn'
  /** Check again after this many milliseconds. */
  | { readonly retry: number }
  /** Give up with this message. */
  | { readonly fail: string };

/** What became of a guard, with every reason and its action. */
export type GuardOutcome =
  | { readonly kind: 'passed'; readonly guard: string }
  | {
      readonly kind: 'failed';
      readonly guard: string;
      readonly action: OnFailure;
      readonly reasons: readonly string[];
      readonly outlook: Outlook;
    }
  | { readonly kind: 'needsInput'; readonly guard: string; readonly missing: readonly Missing[] };

export function checkGuard(guard: Guard, inputs: Inputs): GuardOutcome {
  return outcomeOf(guard, evaluate(guard.condition, inputs));
}

/** What a verdict on its condition means for the guard. */
export function outcomeOf(
  { id, onFailure = 'block' }: Pick<Guard, 'id' | 'onFailure'>,
  verdict: Verdict,
): GuardOutcome {
  switch (verdict.kind) {
    case 'passed':
      return { kind: 'passed', guard: id };
    case 'failed':
      return { ...verdict, guard: id, action: onFailure };
    case 'needsInput':
      return { ...verdict, guard: id };
  }
}

/** An empty `wakeOn` counts as absent: a guard that nothing wakes would wait forever. */
export function wakesOn({ condition, wakeOn = [] }: Guard): readonly string[] {
  return wakeOn.length > 0 ? wakeOn : wakePatterns(condition);
}
