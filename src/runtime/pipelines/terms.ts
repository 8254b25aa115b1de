/** The options and outcomes of starting, driving, resuming and cancelling a pipeline, and the checks of these options. */
import type { Adapters } from '../../adapters/adapters.ts';
import {
  type Choice,
  CHOICES,
  type ExpectedPipeline,
  outputNameProblem,
  type Phase,
  PIPELINE_STATES,
  type PipelineRecord,
  type Runbook,
  shapeProblem,
} from '../../core/index.ts';
import { shown } from '../../failure.ts';
import {
  type Accepted,
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
import { LONGEST_ID } from './keys.ts';

const LARGEST_ENV = 262_144;

/** A runbook, and the functions of its phases. */
export interface RunbookWithFunctions {
  readonly runbook: Runbook;
  readonly functions: ReadonlyMap<string, PhaseFunction>;
}

/** How to drive a pipeline. */
export interface DriveOptions {
  /** Ends the command and leaves the pipeline, so that it can be resumed. */
  readonly signal?: AbortSignal;
  /** Whether to wait while the pipeline is blocked (the default), or to leave it blocked. */
  readonly waits?: boolean;
  /** The time between TERM and KILL, for commands that have to end. */
  readonly graceMs?: number;
  /** When it aborts, a command that has to end is killed at once. */
  readonly hurrying?: AbortSignal;
  /** What its guards look at; this machine, if not given. */
  readonly adapters?: Adapters;
  /** Gets the record whenever it changes. */
  readonly onChange?: (record: PipelineRecord) => void;
  /** Gets the output of the commands as it comes. */
  readonly onOutput?: (phase: string, text: string) => void;
  /** Gets what the driver itself has to say, such as that it ends what an earlier one left behind. If absent, `onOutput` gets it. */
  readonly onMessage?: (phase: string, message: string) => void;
  /** Called when it has to wait for another driver, or for the lease of one that was killed. */
  readonly onStandBy?: (other: OtherDriver) => void;
}

/** How to run a pipeline. */
export interface RunOptions extends DriveOptions {
  /** By default made of name and time. */
  readonly id?: string;
  /** The directory where its commands run; by default the current one. */
  readonly cwd?: string;
  /** Variables for its commands. */
  readonly env?: Readonly<Record<string, string>>;
  /** The interval between looks at inputs that announce no changes. */
  readonly pollMs?: number;
  /** The issues that guards look at: see `localAdapters`. */
  readonly issues?: string;
  /** The time limit for commands of guards. */
  readonly commandTimeoutMs?: number;
  /** Who starts the pipeline; shown to people. */
  readonly by?: string;
}

/** How to resume a pipeline. */
export interface ResumeOptions extends DriveOptions {
  /** The decision of a person about a phase that was interrupted or has failed. */
  readonly decision?: Choice;
  /**
   * The question that the decision answers: `blocked.question` of the record. By default the one that is open when `resume`
   * is called. If another question is open once this process may drive, the decision is void.
   */
  readonly question?: number;
  /** Starts a failed pipeline again from this phase: the one that failed, or one before it. */
  readonly from?: string;
  /** The pipeline as you saw it: if it has moved on since, it is left alone. */
  readonly expected?: ExpectedPipeline;
  /** Who resumes the pipeline; shown to people. */
  readonly by?: string;
  /** The functions of its phases. */
  readonly functions?: ReadonlyMap<string, PhaseFunction>;
  /** The directory where its commands run, if not the one where it was started. */
  readonly cwd?: string;
  /** Whether to wait while another process drives the pipeline, and to go on when that is gone. */
  readonly standsBy?: boolean;
}

/** How to drive all pipelines that no other process drives. */
export interface DriveAllOptions extends Pick<DriveOptions, 'graceMs' | 'hurrying' | 'adapters' | 'onChange'> {
  /** Ends the commands, and leaves the pipelines so that another process can resume them. */
  readonly signal: AbortSignal;
  /** Gets the output of the commands as it comes, with the id of the pipeline and the name of the phase. */
  readonly onOutput?: (id: string, phase: string, text: string) => void;
  /** Gets what the driver itself has to say about a phase. If absent, `onOutput` gets it. */
  readonly onMessage?: (id: string, phase: string, message: string) => void;
  /** Called when a pipeline waits for the lease of a driver that was killed. */
  readonly onStandBy?: (id: string, other: OtherDriver) => void;
  /** Called once for each pipeline that this process cannot drive, with the reason. */
  readonly onSkipped?: (id: string, why: string) => void;
  /** Called when a drive ended with an error. It is tried again. */
  readonly onTrouble?: (id: string, error: Error) => void;
}

export interface OtherDriver {
  readonly holder: string;
  /** Its process ran on this machine and has ended. What it started may still run; the lease gives that time to end. */
  readonly isGone: boolean;
  /** The time until its lease ends, unless it is renewed. */
  readonly leaseEndsInMs: number | undefined;
}

export interface CancelOptions {
  /** Who cancels the pipeline; shown to people. */
  readonly by?: string;
  readonly reason?: string;
  /** The pipeline as you saw it: if it has moved on since, it is left alone. */
  readonly expected?: ExpectedPipeline;
  /** Ends the wait; the pipeline is still cancelled. */
  readonly signal?: AbortSignal;
}

/** A pipeline, as `show` gives it. */
export interface PipelineView extends PipelineRecord {
  /** Whether a process drives it now. A pipeline that is neither driven nor over waits for `resume`. */
  readonly isDriven: boolean;
  /** The directory where its commands run. */
  readonly cwd: string;
  /** The machine where it was started. */
  readonly host: string;
}

/** `isDriven`: a process drives the pipeline now. */
export type ListedPipeline = PipelineRecord & Pick<PipelineView, 'isDriven'>;

/** What the start of a pipeline answers. */
export type StartOutcome =
  | { readonly kind: 'started'; readonly id: string }
  | { readonly kind: 'exists'; readonly id: string };

/** How the drive of a pipeline ended. */
export type DriveOutcome =
  /** The pipeline is over, was left blocked, or was stopped: the record says which. */
  | { readonly kind: 'left'; readonly record: PipelineRecord }
  | { readonly kind: 'driven'; readonly by: string }
  /** There was a decision, but no question is open: nothing was done. */
  | { readonly kind: 'nothing-to-decide'; readonly record: PipelineRecord }
  /** The question was answered before: nothing was done. `by`, `choice`: that answer, if it is still known. */
  | { readonly kind: 'answered'; readonly record: PipelineRecord; readonly by?: string; readonly choice?: Choice }
  /** Another question is open: nothing was done. */
  | { readonly kind: 'another-question'; readonly record: PipelineRecord; readonly question: number }
  /** It cannot start again from that phase; `why` says the reason. Nothing was done. */
  | { readonly kind: 'not-reopened'; readonly record: PipelineRecord; readonly why: string }
  /** It is not as `expected` says: nothing was done. */
  | { readonly kind: 'moved-on'; readonly record: PipelineRecord }
  | { readonly kind: 'exists'; readonly id: string }
  | { readonly kind: 'missing' };

export const DRIVE_ALL = {
  signal: abortSignal,
  graceMs: millisecondsFromZero,
  hurrying: abortSignal,
  adapters: anObject,
  onChange: aFunction,
  onOutput: aFunction,
  onMessage: aFunction,
  onStandBy: aFunction,
  onSkipped: aFunction,
  onTrouble: aFunction,
};
const { onSkipped: _onSkipped, onTrouble: _onTrouble, ...ofOne } = DRIVE_ALL;
export const DRIVE = { ...ofOne, waits: flag };
const anId: Accepted = {
  words: `a name of 1 to ${LONGEST_ID} printable characters`,
  fits: (value) => aName.fits(value) && (value as string).length <= LONGEST_ID,
};
export const RUN = {
  ...DRIVE,
  id: anId,
  cwd: text,
  env: anObject,
  pollMs: milliseconds,
  issues: text,
  commandTimeoutMs: milliseconds,
  by: aName,
};
/** Refuses a misspelt field, which would not be compared. */
const expectedPipeline: Accepted = {
  words: 'an object with startedAt, state or phase',
  fits: (value) => anObject.fits(value) && shapeProblem(value, ['startedAt', 'state', 'phase']) === undefined,
};
export const RESUME = {
  ...DRIVE,
  decision: oneOf(CHOICES),
  question: wholeNumber,
  from: text,
  expected: expectedPipeline,
  by: aName,
  functions: aMap,
  cwd: text,
  standsBy: flag,
};
export const CANCEL = { by: aName, reason: text, expected: expectedPipeline, signal: abortSignal };
export const LIST = { onMalformed: aFunction, state: oneOf(PIPELINE_STATES) };

/** A runbook as people write it, as `defineRunbook` returns it, or as `parseRunbook` does. */
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
    if (typeof value !== 'string') return `env: the value of ${name} is ${shown(value)}; expected text`;
    if (value.includes('\0')) return `env: the value of ${name} has a NUL in it, which no command can receive`;
  }
  const { length } = JSON.stringify(env);
  // The variables are stored with the runbook in one write, and a store limits the size of a write.
  if (length > LARGEST_ENV) return `env has ${length} characters as JSON; expected at most ${LARGEST_ENV}`;
  return undefined;
}
