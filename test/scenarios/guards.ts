/**
 * A world in which conditions are judged. What can be said, with what is known after bars:
 *
 *     {"lockFree":"main"}                                nothing is known
 *     {"lockFree":"main"} | lock:main = null             this was gathered
 *     {"lockFree":"main"} | lock:main ! no answer        it was looked for in vain
 *     explain {"lockFree":"main"}                        the tree, for people
 *     guard {"lockFree":"main"} else "warn"              … woken by task:*
 *     all of yes, no, maybe                              likewise any of, not; of nothing
 *
 * `yes` passes, `no` fails, `maybe` lacks input. What is told is the verdict with its reasons, what the condition asks
 * for, and what would wake somebody who waits for it.
 */
import {
  checkGuard,
  type Condition,
  evaluate,
  explain,
  type Gathered,
  type Guard,
  type GuardOutcome,
  type Inputs,
  type Missing,
  parseCondition,
  polledInputs,
  renderExplanation,
  requiredInputs,
  type Verdict,
  wakesOn,
} from 'signalbox/core';
import type { Setting, Telling, World } from './story.ts';

export const aCondition: Setting = { onMachine: () => new GuardWorld() };

class GuardWorld implements World {
  hear(line: string): Telling {
    const [said = '', ...facts] = line.split(' | ');
    const inputs = { ...known, ...Object.fromEntries(facts.map(factOf)) } as Inputs;
    const explained = /^explain (.+)$/.exec(said);
    if (explained !== null) {
      const condition = conditionOf(explained[1] ?? '');
      const answers = renderExplanation(explain(condition, inputs));
      return { outcome: evaluate(condition, inputs).kind, answers, state: asksFor({ id: 'g', condition }) };
    }
    const guarded = /^guard (.+) else (.+?)(?:, woken by (.+))?$/.exec(said);
    if (guarded !== null) {
      const [, condition = '', onFailure = '', wakeOn] = guarded;
      const guard = {
        id: 'g',
        condition: conditionOf(condition),
        onFailure: JSON.parse(onFailure) as 'block',
        ...(wakeOn !== undefined && { wakeOn: wakeOn.split(', ') }),
      };
      return { outcome: outcomeTold(checkGuard(guard, inputs)), state: asksFor(guard) };
    }
    const condition = conditionOf(said);
    return { outcome: verdictTold(evaluate(condition, inputs)), state: asksFor({ id: 'g', condition }) };
  }
}

/** As it is if nobody says otherwise; of the lock `maybe` nothing is known. */
const known: Readonly<Record<string, Gathered>> = {
  'lock:yes': { value: null },
  'lock:no': { value: { holders: [{ holder: 'ci', stale: false }] } },
};

function factOf(fact: string): readonly [string, Gathered] {
  const [, key = '', sign, rest = ''] = /^(\w+:.*?) ([=!]) (.+)$/.exec(fact) ?? [];
  if (key === '') throw new Error(`no story knows it like this: ${fact}`);
  return [key, sign === '!' ? { error: rest } : { value: JSON.parse(rest) as never }];
}

/** As JSON, or in short: `all of yes, maybe`. */
function conditionOf(said: string): Condition {
  const short = /^(all|any|not)(?: of)? (.+)$/.exec(said);
  const children = short?.[2] === 'nothing' ? [] : (short?.[2] ?? '').split(', ').map((lock) => ({ lockFree: lock }));
  const value: unknown =
    short === null ? JSON.parse(said) : { [short[1] ?? '']: short[1] === 'not' ? children[0] : children };
  const parsed = parseCondition(value);
  if (!parsed.ok) throw new Error(`no condition: ${said}: ${JSON.stringify(parsed.problems)}`);
  return parsed.condition;
}

function verdictTold(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'passed':
      return `passed: ${verdict.reasons.join(' / ')}`;
    case 'failed':
      return `failed (${verdict.outlook}): ${verdict.reasons.join(' / ')}`;
    case 'needsInput':
      return `needsInput: ${verdict.missing.map(missingTold).join(' / ')}`;
  }
}

function outcomeTold(outcome: GuardOutcome): string {
  if (outcome.kind === 'passed') return `passed, guard ${outcome.guard}`;
  if (outcome.kind === 'needsInput') return `${verdictTold(outcome)}, guard ${outcome.guard}`;
  return `${verdictTold(outcome)}, guard ${outcome.guard}, so ${JSON.stringify(outcome.action)}`;
}

function missingTold({ key, error }: Missing): string {
  return error === undefined ? key : `${key} (${error})`;
}

function asksFor(guard: Guard): string {
  const keys = requiredInputs(guard.condition).map(({ key }) => key);
  const polled = polledInputs(guard.condition).map(({ key }) => `looking at ${key}`);
  const wakes = [...wakesOn(guard), ...polled];
  const asks = keys.length === 0 ? 'asks for nothing' : `asks for ${keys.join(', ')}`;
  return `${asks}; ${wakes.length === 0 ? 'nothing wakes it' : `woken by ${wakes.join(', ')}`}`;
}
