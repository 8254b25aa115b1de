/** Shows verdicts to people and programs. */
import { type Explanation, type Guard, renderExplanation, type Verdict } from '../../core/index.ts';
import { EXIT } from '../exit-code.ts';
import { type Colour, type Paint, printable } from '../output.ts';

export function exitCodeOf({ kind }: Verdict): number {
  return { passed: EXIT.ok, failed: EXIT.no, needsInput: EXIT.unreachable }[kind];
}

/** One line if there is one reason, else one for each. */
export function verdictLines(verdict: Verdict, paint: Paint): readonly string[] {
  const [colour, word] = WORDS[verdict.kind];
  const isNever = verdict.kind === 'failed' && verdict.outlook === 'never';
  const head = paint(colour, isNever ? 'can never pass' : word);
  const reasons = reasonsOf(verdict).map(printable);
  return reasons.length === 1 ? [`${head}: ${reasons[0]}`] : [`${head}:`, ...reasons.map((reason) => `  ${reason}`)];
}

const WORDS: Readonly<Record<Verdict['kind'], readonly [Colour, string]>> = {
  passed: ['green', 'passed'],
  failed: ['red', 'failed'],
  needsInput: ['yellow', 'cannot be judged'],
};

export function reasonsOf(verdict: Verdict): readonly string[] {
  if (verdict.kind !== 'needsInput') return verdict.reasons;
  return verdict.missing.map(({ key, error }) => `${key} could not be checked: ${error ?? 'no adapter did'}`);
}

/** The tree, its marks in colour. */
export function treeLines(explanation: Explanation, paint: Paint): readonly string[] {
  return renderExplanation(explanation).map((line) => {
    const [, indent = '', mark = '', text = ''] = /^( *)([✓✗?])(.*)$/u.exec(line) ?? [];
    return indent + paint(MARKS[mark] ?? 'bold', mark) + printable(text);
  });
}

const MARKS: Readonly<Record<string, Colour>> = { '✓': 'green', '✗': 'red', '?': 'yellow' };

/** Fields are only ever added; docs/cli.md lists them. */
export function verdictJson(guard: Guard, explanation: Explanation): object {
  const { verdict } = explanation;
  return {
    guard: guard.id,
    verdict: verdict.kind,
    reasons: 'reasons' in verdict ? verdict.reasons : [],
    outlook: verdict.kind === 'failed' ? verdict.outlook : null,
    missing: 'missing' in verdict ? verdict.missing : [],
    explanation: explanationJson(explanation),
  };
}

function explanationJson({ condition, verdict, children }: Explanation): object {
  return { condition, verdict: verdict.kind, reasons: reasonsOf(verdict), children: children.map(explanationJson) };
}
