/**
 * Evaluates conditions in three-valued (Kleene) logic: an unknown answer is neither true nor false, and does not matter if
 * the other answers decide.
 *
 *             a child ✗    a child ✓    a child ?, none decides    otherwise
 *     all         ✗                                 ?                  ✓         ✓ passed
 *     any                      ✓                    ?                  ✗         ✗ failed
 *     not         ✓            ✗                    ?                            ? needsInput
 *
 * So a verdict that was reached while inputs were missing stays the same once they come in.
 *
 * One kind of answer has no opposite. A leaf that asks about something which does not exist (an unknown task, branch or
 * semaphore) fails; but under `not` it is needsInput, so that nothing passes because nothing was found. That is why
 * every node is judged with whether it is denied, that is, under an odd number of `not`s.
 */
import { type Condition, type Leaf, leavesOf } from './condition.ts';
import { findingOf, type Outlook } from './findings.ts';
import type { InputKey, Inputs } from './inputs.ts';
import { inputOf } from './required-inputs.ts';

/** Whether a condition passed, failed with every reason, or lacks input. */
export type Verdict =
  /** The reasons are the facts that made it pass. */
  | { readonly kind: 'passed'; readonly reasons: readonly string[] }
  /** Every reason why it does not pass, not only the first. */
  | { readonly kind: 'failed'; readonly reasons: readonly string[]; readonly outlook: Outlook }
  | { readonly kind: 'needsInput'; readonly missing: readonly Missing[] };

export interface Missing {
  readonly key: InputKey;
  /** Why the input could not be gathered; absent if it was not gathered yet. */
  readonly error?: string;
}

export function evaluate(condition: Condition, inputs: Inputs): Verdict {
  return judge(condition, inputs, false);
}

/** `isDenied`: it stands under an odd number of `not`s. */
export function judge(condition: Condition, inputs: Inputs, isDenied: boolean): Verdict {
  if ('all' in condition) return all(condition.all.map((child) => judge(child, inputs, isDenied)));
  if ('any' in condition) return any(condition.any.map((child) => judge(child, inputs, isDenied)));
  // A condition without inputs can never change.
  if ('not' in condition) return not(judge(condition.not, inputs, !isDenied), leavesOf(condition.not).length === 0);
  return judgeLeaf(condition, inputs, isDenied);
}

function judgeLeaf(leaf: Leaf, inputs: Inputs, isDenied: boolean): Verdict {
  const { key } = inputOf(leaf);
  const gathered = inputs[key];
  if (gathered === undefined) return { kind: 'needsInput', missing: [{ key }] };
  if ('error' in gathered) return { kind: 'needsInput', missing: [{ key, error: gathered.error }] };
  const finding = findingOf(leaf, gathered.value);
  if (finding.holds === undefined) return { kind: 'needsInput', missing: [{ key, error: finding.error }] };
  if (isDenied && finding.holds === false && finding.unfound !== undefined) {
    return { kind: 'needsInput', missing: [{ key, error: `${finding.unfound}, so "not" of it cannot be judged` }] };
  }
  const reasons = [finding.because];
  return finding.holds ? { kind: 'passed', reasons } : { kind: 'failed', reasons, outlook: finding.outlook };
}

function all(children: readonly Verdict[]): Verdict {
  if (children.length === 0) return { kind: 'passed', reasons: ['"all" of no conditions always passes'] };
  const failed = ofKind(children, 'failed');
  if (failed.length > 0) return { kind: 'failed', reasons: reasonsOf(failed), outlook: bleakest(failed) };
  return lacking(children) ?? { kind: 'passed', reasons: reasonsOf(ofKind(children, 'passed')) };
}

function any(children: readonly Verdict[]): Verdict {
  if (children.length === 0) {
    return { kind: 'failed', reasons: ['"any" of no conditions can never pass'], outlook: 'never' };
  }
  const passed = ofKind(children, 'passed');
  if (passed.length > 0) return { kind: 'passed', reasons: reasonsOf(passed) };
  const failed = ofKind(children, 'failed');
  return lacking(children) ?? { kind: 'failed', reasons: reasonsOf(failed), outlook: brightest(failed) };
}

function not(inner: Verdict, isForEver: boolean): Verdict {
  switch (inner.kind) {
    case 'passed':
      return {
        kind: 'failed',
        reasons: [`must not hold, but does: ${inner.reasons.join(' and ')}`],
        outlook: isForEver ? 'never' : 'open',
      };
    case 'failed':
      return { kind: 'passed', reasons: inner.reasons };
    case 'needsInput':
      return inner;
  }
}

type OfKind<Kind extends Verdict['kind']> = Extract<Verdict, { readonly kind: Kind }>;

function ofKind<Kind extends Verdict['kind']>(verdicts: readonly Verdict[], kind: Kind): readonly OfKind<Kind>[] {
  return verdicts.filter((verdict): verdict is OfKind<Kind> => verdict.kind === kind);
}

function reasonsOf(verdicts: readonly { readonly reasons: readonly string[] }[]): readonly string[] {
  return verdicts.flatMap(({ reasons }) => reasons);
}

/** The inputs that are missing, each once; undefined if none is. */
function lacking(verdicts: readonly Verdict[]): OfKind<'needsInput'> | undefined {
  const missing = new Map<string, Missing>();
  for (const verdict of ofKind(verdicts, 'needsInput')) {
    for (const one of verdict.missing) missing.set(one.key, one);
  }
  return missing.size === 0 ? undefined : { kind: 'needsInput', missing: [...missing.values()] };
}

/** One child that can never pass is enough to keep an `all` from passing … */
function bleakest(failed: readonly OfKind<'failed'>[]): Outlook {
  const outlooks = failed.map(({ outlook }) => outlook);
  if (outlooks.includes('never')) return 'never';
  return outlooks.includes('stuck') ? 'stuck' : 'open';
}

/** … and one that still may is enough to keep an `any` hopeful. */
function brightest(failed: readonly OfKind<'failed'>[]): Outlook {
  const outlooks = failed.map(({ outlook }) => outlook);
  if (outlooks.includes('open')) return 'open';
  return outlooks.includes('stuck') ? 'stuck' : 'never';
}
