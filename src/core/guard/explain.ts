/**
 * Explanation, for people: the condition's tree with a verdict on every node and a reason on every leaf.
 *
 *     ✗ all of
 *       ✓ lock "main" is free
 *       ✗ any of
 *         ✗ branch "feature" does not exist
 *         ? fileExists: file:go.txt could not be checked: EACCES
 */
import { childrenOf, type Condition, entryOf, isLeaf, type Leaf } from './condition.ts';
import { judge, type Missing, type Verdict } from './evaluate.ts';
import type { Inputs } from './inputs.ts';

/** A condition with its verdict, and the same of every condition inside it. */
export interface Explanation {
  /** The condition. */
  readonly condition: Condition;
  /** What became of it. */
  readonly verdict: Verdict;
  /** The conditions inside it. */
  readonly children: readonly Explanation[];
}

export function explain(condition: Condition, inputs: Inputs): Explanation {
  return explained(condition, inputs, false);
}

function explained(condition: Condition, inputs: Inputs, isDenied: boolean): Explanation {
  const isChildDenied = 'not' in condition ? !isDenied : isDenied;
  return {
    condition,
    verdict: judge(condition, inputs, isDenied),
    children: childrenOf(condition).map((child) => explained(child, inputs, isChildDenied)),
  };
}

const marks = { passed: '✓', failed: '✗', needsInput: '?' } satisfies Record<Verdict['kind'], string>;

/** One line per node, children indented below their parent. */
export function renderExplanation({ condition, verdict, children }: Explanation): readonly string[] {
  return [
    `${marks[verdict.kind]} ${isLeaf(condition) ? leafText(condition, verdict) : compositeText(condition)}`,
    ...children.flatMap(renderExplanation).map((line) => `  ${line}`),
  ];
}

function compositeText(condition: Exclude<Condition, Leaf>): string {
  if ('not' in condition) return 'not';
  if ('all' in condition) return condition.all.length === 0 ? 'all of nothing' : 'all of';
  return condition.any.length === 0 ? 'any of nothing' : 'any of';
}

function leafText(leaf: Leaf, verdict: Verdict): string {
  const [kind] = entryOf(leaf);
  const text =
    verdict.kind === 'needsInput'
      ? `${kind}: ${verdict.missing.map(missingText).join('; ')}`
      : verdict.reasons.join('; ');
  // A gatherer's error may run over lines or move the cursor.
  return text.replace(/\p{Cc}+/gu, ' ');
}

export function missingText({ key, error }: Missing): string {
  return error === undefined ? `${key} has not been checked` : `${key} could not be checked: ${error}`;
}
