/** What is known of a pipeline: how far it is, what it waits for, who drives it, and what became of each phase. */
import type { PipelineState } from '../guard/inputs.ts';
import type { Outlook } from '../guard/findings.ts';
import type { Token } from '../machine.ts';
import type { Choice } from './question.ts';

export const PIPELINE_STATES: readonly PipelineState[] = [
  'pending',
  'running',
  'blocked',
  'done',
  'failed',
  'cancelled',
];

/** 2: questions to a person have numbers. */
export const RECORD_VERSION = 2;

export interface PipelineRecord {
  readonly version: typeof RECORD_VERSION;
  readonly id: string;
  readonly name: string;
  readonly state: PipelineState;
  /** Where it is; after the end, where it ended. */
  readonly step: PipelineStep;
  readonly phases: readonly PhaseRecord[];
  /** What it waits for. With the state `blocked`, and only then. */
  readonly blocked?: Blocked;
  /** The driver whose commands count. A driver with a smaller token has been replaced. */
  readonly driver?: Driver;
  /** The last token of all drivers so far. */
  readonly lastToken: Token;
  /** The number of the last question to a person; 0 if there was none. */
  readonly lastQuestion: number;
  /** The last answer that counted. */
  readonly answered?: { readonly question: number; readonly choice: Choice; readonly by: string };
  /** What the phases that are done have passed on. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly startedBy: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** It was cancelled; its driver has to end the command first. */
  readonly cancel?: { readonly by: string; readonly reason: string; readonly at: number };
  /** Why it failed or was cancelled. */
  readonly reason?: string;
  /** The last command of a driver, and of any other process; a lost answer is found by it. */
  readonly lastDriven?: string;
  readonly last: string;
}

/**
 * `before`: the guards of the phase have not passed yet, or its holds are not there. `during`: its command has begun.
 * `after`: its command is done, its last guards have not passed yet.
 */
export interface PipelineStep {
  readonly when: 'before' | 'during' | 'after';
  readonly phase: number;
  /** The number of the attempt at the command, from 1. */
  readonly attempt: number;
}

export interface Driver {
  readonly holder: string;
  readonly token: Token;
  readonly since: number;
}

export interface PhaseRecord {
  readonly name: string;
  /**
   * `interrupted`: nothing of its command runs any more, and nobody knows how far it came. `skipped`: a person decided to
   * go on without knowing how it ended.
   */
  readonly state: 'waiting' | 'running' | 'interrupted' | 'done' | 'failed' | 'skipped' | 'cancelled';
  /** How often its command was begun. */
  readonly runs: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** How its command ended the last time, in words. */
  readonly ended?: string;
  /** What went wrong and was let pass. */
  readonly warnings?: readonly string[];
  /** How many older warnings were dropped to keep the record small. */
  readonly warningsDropped?: number;
  /** The tokens of what it held when its command last began. */
  readonly tokens?: Readonly<Record<string, Token>>;
}

export type Blocked = { readonly since: number } & (
  | {
      readonly on: 'guard';
      readonly guards: readonly BlockingGuard[];
      /** The events after which it is looked at again … */
      readonly wakeOn: readonly string[];
      /** … and the inputs that have to be polled, because no event announces their changes. */
      readonly polled: readonly string[];
      /** … at this interval. */
      readonly pollMs?: number;
      /** The time after which it is looked at again in any case. */
      readonly againMs?: number;
    }
  | { readonly on: 'holds'; readonly resources: readonly string[] }
  /** The command failed and is run again after a pause. */
  | { readonly on: 'backoff'; readonly why: string; readonly againMs: number }
  /** Only a person can decide how to go on. An answer names the number of the question. */
  | { readonly on: 'person'; readonly why: string; readonly question: number }
);

export interface BlockingGuard {
  readonly id: string;
  /** All of its reasons, up to a limit: see `short` in `judge.ts`. */
  readonly reasons: readonly string[];
  readonly outlook: Outlook | 'unknown';
}

export function hasEnded({ state }: PipelineRecord): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

/** Whether a driver can take it further by itself: it has not ended, and no person has to decide first. */
export function canBeDriven(record: PipelineRecord): boolean {
  return !hasEnded(record) && record.blocked?.on !== 'person';
}

/** The phase it is in or blocked at; null before the first and after the last. */
export function currentPhase(record: PipelineRecord): string | null {
  if (record.state === 'pending' || hasEnded(record)) return null;
  return record.phases[record.step.phase]?.name ?? null;
}

/** A pipeline as a caller saw it before a request; fields that are left out may have any value. */
export interface ExpectedPipeline {
  /** When it was started: another one may have been started under its id since. */
  readonly startedAt?: number;
  /** The state that it was in. */
  readonly state?: PipelineState;
  /** The phase that it was in or blocked at; null before the first and after the last. */
  readonly phase?: string | null;
}

export function isAsExpected(record: PipelineRecord, expected: ExpectedPipeline = {}): boolean {
  const { startedAt = record.startedAt, state = record.state, phase = currentPhase(record) } = expected;
  return startedAt === record.startedAt && state === record.state && phase === currentPhase(record);
}

/** A record as some version of signalbox wrote it. */
export type StoredRecord = Omit<PipelineRecord, 'version' | 'lastQuestion'> & {
  readonly version: number;
  readonly lastQuestion?: number;
};

export type ReadRecord =
  | { readonly ok: true; readonly record: PipelineRecord }
  | { readonly ok: false; readonly version: unknown };

/** Converts a stored record to today's version. A record of a newer version is refused rather than misread. */
export function readRecord(stored: StoredRecord): ReadRecord {
  const { version } = stored;
  if (version !== 1 && version !== RECORD_VERSION) return { ok: false, version };
  const last = stored.lastQuestion ?? 0;
  const { blocked } = stored;
  // Version 1 asked without numbers. Every reader of the record must give it the same number.
  const isUnnumbered = blocked?.on === 'person' && (blocked as { question?: number }).question === undefined;
  if (!isUnnumbered) return { ok: true, record: { ...stored, version: RECORD_VERSION, lastQuestion: last } };
  const question = last + 1;
  const record = { ...stored, version: RECORD_VERSION, lastQuestion: question, blocked: { ...blocked, question } };
  return { ok: true, record: record as PipelineRecord };
}
