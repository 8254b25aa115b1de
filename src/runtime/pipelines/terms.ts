/** What callers say when they start, drive, resume or cancel a pipeline, what they are answered, and what is accepted. */
import type { Adapters } from '../../adapters/adapters.ts';
import {
  type Choice,
  CHOICES,
  outputNameProblem,
  type Phase,
  PIPELINE_STATES,
  type PipelineRecord,
  type Runbook,
} from '../../core/index.ts';
import { shown } from '../../failure.ts';
import {
  abortSignal,
  aFunction,
  aMap,
  aName,
  anObject,
  flag,
  milliseconds,
  millisecondsFromZero,
  oneOf,
  text,
  wholeNumber,
} from '../options.ts';
import { defineRunbook, type RunbookDefinition } from './define.ts';
import type { PhaseFunction } from './functions.ts';
import type { PipelineView } from './view.ts';

const LARGEST_ENV = 262_144;

/** A runbook, and the functions among its phases. */
export interface RunbookWithFunctions {
  readonly runbook: Runbook;
  readonly functions: ReadonlyMap<string, PhaseFunction>;
}

export interface DriveOptions {
  /** Ends the command and leaves the pipeline, so that it can be resumed. */
  readonly signal?: AbortSignal;
  /** Whether to stay while it is blocked (the default), or to leave it so. */
  readonly waits?: boolean;
  /** Between TERM and KILL, for commands that are to end. */
  readonly graceMs?: number;
  /** Aborted, a command that is to end is killed at once. */
  readonly hurrying?: AbortSignal;
  readonly adapters?: Adapters;
  /** Told how it stands whenever that changes. */
  readonly onChange?: (record: PipelineRecord) => void;
  /** What the commands print, as it comes. */
  readonly onOutput?: (phase: string, text: string) => void;
}

export interface RunOptions extends DriveOptions {
  /** By default name and time. */
  readonly id?: string;
  /** Where its commands run; by default here. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** How often it looks at what nobody announces. */
  readonly pollMs?: number;
  /** Which issues are meant: see `localAdapters`. */
  readonly issues?: string;
  /** How long a command that a guard runs may take. */
  readonly commandTimeoutMs?: number;
  /** Who starts it, for people. */
  readonly by?: string;
}

export interface ResumeOptions extends DriveOptions {
  /** What a person decided about a phase that was interrupted or has failed. */
  readonly decision?: Choice;
  /**
   * Which question that answers: `blocked.question` of the record. By default the one that is open when `resume` is
   * called. If another one is open once this process may drive, the decision is void.
   */
  readonly question?: number;
  readonly by?: string;
  /** The functions among its phases. */
  readonly functions?: ReadonlyMap<string, PhaseFunction>;
  /** Where its commands run, if that is not where it was started. */
  readonly cwd?: string;
  /** Whether to stand by while somebody else drives it, and to go on when that one is gone. */
  readonly standsBy?: boolean;
}

export interface CancelOptions {
  /** Who cancels it, for people. */
  readonly by?: string;
  readonly reason?: string;
  /** Ends the wait, not the cancelling. */
  readonly signal?: AbortSignal;
}

/** `isDriven`: somebody drives it at this moment. */
export type ListedPipeline = PipelineRecord & Pick<PipelineView, 'isDriven'>;

export type StartOutcome =
  | { readonly kind: 'started'; readonly id: string }
  | { readonly kind: 'exists'; readonly id: string };

export type DriveOutcome =
  /** It is over, or blocked and left so, or it was stopped: the record says which. */
  | { readonly kind: 'left'; readonly record: PipelineRecord }
  | { readonly kind: 'driven'; readonly by: string }
  /** There was a decision, and no question is open: nothing was done. */
  | { readonly kind: 'nothing-to-decide'; readonly record: PipelineRecord }
  /** The decision is about a question that was answered before: nothing was done. `by`, `choice`: that answer, if it is still known. */
  | { readonly kind: 'answered'; readonly record: PipelineRecord; readonly by?: string; readonly choice?: Choice }
  /** The decision is about another question than the one that is open: nothing was done. */
  | { readonly kind: 'another-question'; readonly record: PipelineRecord; readonly question: number }
  | { readonly kind: 'exists'; readonly id: string }
  | { readonly kind: 'missing' };

export const DRIVE = {
  signal: abortSignal,
  waits: flag,
  graceMs: millisecondsFromZero,
  hurrying: abortSignal,
  adapters: anObject,
  onChange: aFunction,
  onOutput: aFunction,
};
export const RUN = {
  ...DRIVE,
  id: aName,
  cwd: text,
  env: anObject,
  pollMs: milliseconds,
  issues: text,
  commandTimeoutMs: milliseconds,
  by: aName,
};
export const RESUME = {
  ...DRIVE,
  decision: oneOf(CHOICES),
  question: wholeNumber,
  by: aName,
  functions: aMap,
  cwd: text,
  standsBy: flag,
};
export const CANCEL = { by: aName, reason: text, signal: abortSignal };
export const LIST = { onMalformed: aFunction, state: oneOf(PIPELINE_STATES) };

/** As somebody writes it, as `defineRunbook` gives it, or as `parseRunbook` does. */
export function asDefined(what: RunbookDefinition | Runbook | RunbookWithFunctions): RunbookWithFunctions {
  if (typeof what === 'object' && what !== null && 'runbook' in what) return what;
  if (!isParsed(what)) return defineRunbook(what as RunbookDefinition);
  return { runbook: what, functions: new Map() };
}

function isParsed(what: RunbookDefinition | Runbook): what is Runbook {
  const phases: unknown = what?.phases;
  return Array.isArray(phases) && phases.some((phase: Phase | undefined) => typeof phase?.run === 'object');
}

export function environmentProblem(env: RunOptions['env'] = {}): string | undefined {
  for (const [name, value] of Object.entries(env)) {
    const problem = outputNameProblem(name);
    if (problem !== undefined) return `env: ${problem}`;
    if (typeof value !== 'string') return `env: the value of ${name} is ${shown(value)}; accepted is text`;
    if (value.includes('\0')) return `env: the value of ${name} has a NUL in it, which no command could be given`;
  }
  const { length } = JSON.stringify(env);
  // It is kept with the runbook, and a store takes only so much at once.
  if (length > LARGEST_ENV) return `env has ${length} characters as JSON; accepted are at most ${LARGEST_ENV}`;
  return undefined;
}
