/**
 * Runbooks in TypeScript: spelt as in YAML, typed, and with functions as well as shell commands.
 *
 *     export default defineRunbook({
 *       name: 'release',
 *       phases: [{ name: 'build', run: 'make' }, { name: 'announce', run: async ({ outputs }) => tell(outputs) }],
 *     });
 */
import { type Condition, type LockMode, parseRunbook, type Path, type Problem } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { EventPattern } from '../observe/event-types.ts';
import type { PhaseFunction } from './functions.ts';
import type { RunbookWithFunctions } from './terms.ts';

/** A runbook, in code. */
export interface RunbookDefinition {
  /** Its name. */
  readonly name: string;
  /** Variables for all phases; those of a phase take precedence. */
  readonly env?: VariablesDefinition;
  /** Its phases, in order. */
  readonly phases: readonly PhaseDefinition[];
}

/** One phase of a runbook. */
export interface PhaseDefinition {
  /** Its name, unique in the runbook. */
  readonly name: string;
  /** A shell command, or a function. */
  readonly run: string | PhaseFunction;
  /** Guards that must all pass before the phase runs (`pre`), and after it (`post`). */
  readonly pre?: GuardDefinition | readonly GuardDefinition[];
  /** Guards that must pass after it. */
  readonly post?: GuardDefinition | readonly GuardDefinition[];
  /** Acquired together before the phase runs, released when none of its processes runs any more. */
  readonly holds?: HoldsDefinition;
  /** The default for guards of the phase. */
  readonly wakeOn?: EventPattern | readonly EventPattern[];
  /** The default for guards of the phase, and what happens when the command still fails after its retries. */
  readonly onFailure?: OnFailureDefinition;
  /** `'10m'`. */
  readonly timeout?: string;
  /** It fails after this time. */
  readonly timeoutMs?: number;
  /** How often it is run again after a failure. */
  readonly retries?: number | { readonly times: number; readonly backoff?: string; readonly backoffMs?: number };
  /** The phase may run again when it is not known how far it got. */
  readonly idempotent?: boolean;
  /** Variables for its command. */
  readonly env?: VariablesDefinition;
}

/** Variables for the commands of a runbook. */
export type VariablesDefinition = Readonly<Record<string, string | number | boolean>>;

/** A guard of a phase: a condition, or one with an id and an action. */
export type GuardDefinition =
  | Condition
  | {
      readonly id?: string;
      readonly condition: Condition;
      readonly onFailure?: OnFailureDefinition;
      readonly wakeOn?: EventPattern | readonly EventPattern[];
    };

/** What to do if a guard fails. */
export type OnFailureDefinition =
  | 'block'
  | 'warn'
  | { readonly retry: string }
  | { readonly retryMs: number }
  | { readonly fail: string };

/** What a phase holds while it runs. */
export interface HoldsDefinition {
  /** `main`, `docs:shared`. */
  readonly locks?: string | readonly (string | { readonly name: string; readonly mode?: LockMode })[];
  /** `agents=1/2`, or by name: `{ agents: 1 }`. */
  readonly semaphores?:
    | string
    | readonly (string | ({ readonly name: string } & SlotsDefinition))[]
    | Readonly<Record<string, number | SlotsDefinition>>;
}

/** Slots that a phase holds. */
export interface SlotsDefinition {
  /** How many; 1 if not given. */
  readonly weight?: number;
  /** The capacity of the semaphore; needed if the phase is the first to use it. */
  readonly capacity?: number;
}

/** A runbook with its functions, by the names of their phases. */
export type DefinedRunbook = RunbookWithFunctions;

/** Throws `invalid` with everything that is wrong with the runbook. */
export function defineRunbook(definition: RunbookDefinition): DefinedRunbook {
  const parsed = parseRunbook(definition, 'code');
  if (!parsed.ok) throw new Failure('invalid', parsed.problems.map(told).join('\n'));
  const functions = definition.phases.flatMap(({ name, run }) =>
    typeof run === 'function' ? [[name, run] as const] : [],
  );
  return { runbook: parsed.runbook, functions: new Map(functions) };
}

/** `phases[0].run: run is missing; …`. */
function told({ path, message }: Problem): string {
  return path.length === 0 ? message : `${placeOf(path)}: ${message}`;
}

function placeOf(path: Path): string {
  return path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('');
}
