/**
 * Variables in a runbook: `${BRANCH}` in a condition, or in the name of what a phase holds, takes its value from the
 * runbook's `env` or from the start of the pipeline. So one runbook serves many branches. Commands are left alone: the shell
 * has the same variables, and its own rules for them.
 */
import { nameProblem } from '../name.ts';
import { shown } from '../shown.ts';
import { type Condition, leavesOf } from '../guard/condition.ts';
import type { Phase, PhaseHold, Runbook } from './runbook.ts';

export type Filled =
  | { readonly ok: true; readonly runbook: Runbook }
  | { readonly ok: false; readonly problem: string };

/** `$${` stands for `${`. */
const VARIABLE = /\$(\$\{)|\$\{([^}]*)\}/g;

const MOST_FILLED = 131_072;

/** The same for one condition: that of a guard that was copied out of a runbook. */
export function conditionWithVariables(
  condition: Condition,
  given: Readonly<Record<string, string>>,
): { readonly ok: true; readonly condition: Condition } | { readonly ok: false; readonly unknown: readonly string[] } {
  const unknown = new Set<string>();
  const filled = conditionWith(condition, (text) =>
    text.replace(VARIABLE, (_, escaped: string | undefined, name: string) => {
      if (escaped !== undefined) return escaped;
      if (!Object.hasOwn(given, name)) unknown.add(name);
      return Object.hasOwn(given, name) ? (given[name] as string) : '';
    }),
  );
  return unknown.size === 0 ? { ok: true, condition: filled } : { ok: false, unknown: [...unknown] };
}

/** `given`: the variables passed at the start. */
export function withVariables(runbook: Runbook, given: Readonly<Record<string, string>>): Filled {
  const all = { ...runbook.env, ...given };
  const unknown = new Set<string>();
  let length = 0;
  const fill = (text: string): string =>
    text.replace(VARIABLE, (_, escaped: string | undefined, name: string) => {
      if (escaped !== undefined) return escaped;
      if (!Object.hasOwn(all, name)) unknown.add(name);
      const value = Object.hasOwn(all, name) ? (all[name] as string) : '';
      length += value.length;
      // A long value in many places would make the runbook huge.
      return length > MOST_FILLED ? '' : value;
    });
  const phases = runbook.phases.map((phase) => phaseWith(phase, fill));
  if (length > MOST_FILLED) {
    return { ok: false, problem: `the variables in guards and holds have more than ${MOST_FILLED} characters` };
  }
  if (unknown.size === 0) {
    const problem = phases.map(holdsProblem).find((each) => each !== undefined);
    return problem === undefined ? { ok: true, runbook: { ...runbook, phases } } : { ok: false, problem };
  }
  const names = [...unknown].map(shown).join(', ');
  const problem = `the runbook asks for ${names} in its guards or holds, and nobody says what that is: name it in env`;
  return { ok: false, problem };
}

/** A variable that the runbook uses. */
export interface Variable {
  readonly name: string;
  /** Its value unless another is given at the start; undefined if it has none. */
  readonly value: string | undefined;
  /** A guard or a hold uses it, so that no pipeline starts without a value. */
  readonly isRequired: boolean;
}

/** Upper-case variables in the text of a shell command. */
const IN_SHELL = /(?<![\\$])\$\{?([A-Z][A-Z0-9_]*)/g;
const SET_IN_SHELL = /(?:^|[\s;&|(])(?:export\s+)?([A-Z][A-Z0-9_]*)=/gm;
/** Every shell has these. */
const ALWAYS_SET = [
  'HOME',
  'PATH',
  'PWD',
  'OLDPWD',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'TMPDIR',
  'LANG',
  'IFS',
  'HOSTNAME',
];

/**
 * By name: the variables of its `env`, of guards and holds, and of shell commands. A command may get its variables from
 * elsewhere, so those are a guess.
 */
export function runbookVariables(runbook: Runbook): readonly Variable[] {
  const required = new Set<string>();
  const see = (text: string): string =>
    text.replace(VARIABLE, (_, escaped: string | undefined, name: string) => {
      if (escaped === undefined) required.add(name);
      return '';
    });
  for (const phase of runbook.phases) phaseWith(phase, see);
  const read = new Set([...Object.keys(runbook.env), ...required]);
  for (const phase of runbook.phases) {
    const own = new Set([...ALWAYS_SET, ...Object.keys(phase.env)]);
    for (const text of shellTexts(phase)) {
      for (const [, name = ''] of text.matchAll(SET_IN_SHELL)) own.add(name);
    }
    for (const text of shellTexts(phase)) {
      for (const [, name = ''] of text.matchAll(IN_SHELL)) {
        if (!own.has(name) && !name.startsWith('SIGNALBOX_')) read.add(name);
      }
    }
  }
  return [...read].sort().map((name) => ({
    name,
    value: runbook.env[name],
    isRequired: required.has(name) && !Object.hasOwn(runbook.env, name),
  }));
}

function shellTexts({ run, pre, post }: Phase): readonly string[] {
  const guards = [...pre, ...post].flatMap(({ condition }) => leavesOf(condition));
  const commands = guards.flatMap((leaf) => ('command' in leaf ? [leaf.command.cmd] : []));
  return [...commands, 'shell' in run ? run.shell : []].filter((text) => typeof text === 'string');
}

/** Once its variables have values, a name that was accepted may be invalid, or the same as another name. */
function holdsProblem({ name, holds }: Phase): string | undefined {
  const seen = new Set<string>();
  for (const hold of holds) {
    const [kind, held] = 'lock' in hold ? ['lock', hold.lock] : ['semaphore', hold.semaphore];
    const wrong = nameProblem(held, kind);
    if (wrong !== undefined) return `phase ${name} holds what is no name: ${wrong}`;
    if (seen.has(`${kind}/${held}`)) return `phase ${name} holds the ${kind} ${shown(held)} twice; name it once`;
    seen.add(`${kind}/${held}`);
  }
  return undefined;
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
