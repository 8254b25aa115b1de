/** What a task asks of its worker. Part of the data, so that any publisher can write it and any worker read it. */
import type { Json } from '../machine.ts';
import { nameProblem } from '../name.ts';
import { documentProblem, HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../request.ts';
import { isRecord } from '../shape.ts';
import { shown } from '../shown.ts';

export interface Terms {
  /** A worker may claim it if it has all of these. */
  readonly capabilities: readonly string[];
  /** From -100 to 100; higher goes first. */
  readonly priority: number;
  /** It can be claimed only once all of these are complete. */
  readonly dependsOn: readonly string[];
  /** How often it is tried again after it has failed. */
  readonly retries: number;
  /** The pause before the first retry; each later pause is twice as long, up to a day. */
  readonly backoffMs: number;
  /** The task fails once this number of its workers died, or lost their claim, while they worked on it. */
  readonly lossLimit: number;
}

export const DEFAULT_LOSS_LIMIT = 3;

export const NO_TERMS: Terms = {
  capabilities: [],
  priority: 0,
  dependsOn: [],
  retries: 0,
  backoffMs: 0,
  lossLimit: DEFAULT_LOSS_LIMIT,
};

/** Leaves room for the rest of a request: etcd takes 1.5 MiB. */
export const LARGEST_DATA_BYTES = 1024 * 1024;
/** One write compares each of them, and a write has room for 128 comparisons. */
export const MOST_DEPENDENCIES = 64;
export const MOST_CAPABILITIES = 64;
export const MOST_RETRIES = 1_000_000;
export const LONGEST_BACKOFF_MS = 86_400_000;

const FIELDS = ['capabilities', 'priority', 'dependsOn', 'retries', 'backoffMs', 'lossLimit'] as const;

/** Terms as they were found, or what is wrong with them and what is accepted. */
export type ReadTerms =
  | { readonly terms: Terms; readonly problem?: undefined }
  | { readonly terms: Terms; readonly problem: string };

export function termsOf(data: unknown): ReadTerms {
  if (!isRecord(data)) return { terms: NO_TERMS };
  const problem = FIELDS.map((field) => CHECKS[field](data[field])).find((found) => found !== undefined);
  if (problem !== undefined) return { terms: NO_TERMS, problem };
  const { capabilities, priority, dependsOn, retries, backoffMs, lossLimit } = {
    ...NO_TERMS,
    ...(data as Partial<Terms>),
  };
  return {
    terms: {
      capabilities: [...new Set(capabilities)],
      priority,
      dependsOn: [...new Set(dependsOn)],
      retries,
      backoffMs,
      lossLimit,
    },
  };
}

/** The pause before the next attempt, after the task has failed this often. */
export function backoffAfter({ backoffMs }: Terms, failures: number): number {
  // 2 ** 30 ms are more than a day already.
  return Math.min(LONGEST_BACKOFF_MS, backoffMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
}

/** Whether a claim depends on the worker's capabilities or on other tasks. */
export function hasTerms({ capabilities, dependsOn }: Terms): boolean {
  return capabilities.length > 0 || dependsOn.length > 0;
}

/** The capabilities that the task wants and the worker does not have. */
export function lacking({ capabilities }: Pick<Terms, 'capabilities'>, has: readonly string[]): readonly string[] {
  return capabilities.filter((capability) => !has.includes(capability));
}

/** Merges the data with terms that were given separately. `problem` if the two cannot be combined. */
export function withTerms(
  data: unknown,
  said: Partial<Terms>,
): { readonly data: Json; readonly problem?: undefined } | { readonly problem: string } {
  const given = FIELDS.filter((field) => said[field] !== undefined);
  if (given.length > 0 && !isRecord(data)) {
    return {
      problem: `data is ${shown(data)}; a task keeps its ${given.join(', ')} in its data, so the data has to be an object, such as {"value":${shown(data)}}`,
    };
  }
  const twice = given.find((field) => isRecord(data) && data[field] !== undefined);
  if (twice !== undefined) return { problem: `${twice} is in the data and given separately too; give it once` };
  const whole = given.length === 0 ? data : { ...(data as object), ...only(said, given) };
  const problem = documentProblem(whole, 'data', LARGEST_DATA_BYTES) ?? termsOf(whole).problem;
  return problem === undefined ? { data: whole as Json } : { problem };
}

function only(said: Partial<Terms>, fields: readonly (keyof Terms)[]): object {
  return Object.fromEntries(fields.map((field) => [field, said[field]]));
}

type Check = (value: unknown) => string | undefined;

const CHECKS: Readonly<Record<keyof Terms, Check>> = {
  capabilities: names('capabilities', 'capability', MOST_CAPABILITIES),
  dependsOn: names('dependsOn', 'dependsOn', MOST_DEPENDENCIES),
  priority: whole('priority', LOWEST_PRIORITY, HIGHEST_PRIORITY),
  retries: whole('retries', 0, MOST_RETRIES),
  backoffMs: whole('backoffMs', 0, LONGEST_BACKOFF_MS),
  lossLimit: whole('lossLimit', 1, MOST_RETRIES),
};

function names(field: string, each: string, most: number): Check {
  return (value) => {
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return `${field} is ${shown(value)}, not a list of names`;
    if (value.length > most) return `${field} has ${value.length} names; expected at most ${most}`;
    return value.map((name) => nameProblem(name, each)).find((problem) => problem !== undefined);
  };
}

function whole(field: string, least: number, most: number): Check {
  return (value) => {
    if (value === undefined) return undefined;
    const fits = Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
    return fits ? undefined : `${field} is ${shown(value)}; expected a whole number from ${least} to ${most}`;
  };
}
