/**
 * Variables in a runbook: `${BRANCH}` in a condition, or in the name of what a phase holds, is what the runbook's `env`, or
 * whoever starts the pipeline, says it is. So one runbook serves many branches. Commands are left alone: the shell has
 * the same variables, and its own rules for them.
 */
import { shown } from '../shown.ts';
import type { Condition } from '../guard/index.ts';
import type { Phase, PhaseHold, Runbook } from './runbook.ts';

export type Filled =
  { readonly ok: true; readonly runbook: Runbook } | { readonly ok: false; readonly problem: string };

/** `$${` stands for `${`. */
const VARIABLE = /\$(\$\{)|\$\{([^}]*)\}/g;

/** `given`: by whoever starts it. */
export function withVariables(runbook: Runbook, given: Readonly<Record<string, string>>): Filled {
  const all = { ...runbook.env, ...given };
  const unknown = new Set<string>();
  const fill = (text: string): string =>
    text.replace(VARIABLE, (_, escaped: string | undefined, name: string) => {
      if (escaped !== undefined) return escaped;
      if (Object.hasOwn(all, name)) return all[name] as string;
      unknown.add(name);
      return '';
    });
  const phases = runbook.phases.map((phase) => phaseWith(phase, fill));
  if (unknown.size === 0) return { ok: true, runbook: { ...runbook, phases } };
  const names = [...unknown].map(shown).join(', ');
  const problem = `the runbook asks for ${names} in its guards or holds, and nobody says what that is: name it in env`;
  return { ok: false, problem };
}

type Fill = (text: string) => string;

function phaseWith(phase: Phase, fill: Fill): Phase {
  const guards = (some: Phase['pre']): Phase['pre'] =>
    some.map((guard) => ({ ...guard, condition: conditionWith(guard.condition, fill) }));
  return {
    ...phase,
    pre: guards(phase.pre),
    post: guards(phase.post),
    holds: phase.holds.map((one) => holdWith(one, fill)),
  };
}

function holdWith(hold: PhaseHold, fill: Fill): PhaseHold {
  return 'lock' in hold ? { ...hold, lock: fill(hold.lock) } : { ...hold, semaphore: fill(hold.semaphore) };
}

function conditionWith(condition: Condition, fill: Fill): Condition {
  if ('command' in condition) return condition;
  return valueWith(condition, fill) as Condition;
}

function valueWith(value: unknown, fill: Fill): unknown {
  if (typeof value === 'string') return fill(value);
  if (Array.isArray(value)) return value.map((each: unknown) => valueWith(each, fill));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, key === 'command' ? each : valueWith(each, fill)]);
  return Object.fromEntries(entries) as unknown;
}
