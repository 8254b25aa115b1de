/**
 * Drives pipelines: acquires the driver's lock, ends what an earlier driver left running, and lets a `PipelineDriver` go on
 * under the token of that hold.
 */
import { hostname } from 'node:os';
import type { Adapters } from '../../adapters/adapters.ts';
import {
  hasEnded,
  isAsExpected,
  type Json,
  openQuestion,
  type Phase,
  type PipelineRecord,
  reopenProblem,
  type Runbook,
  type VoidAnswer,
  whyVoid,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { randomHex } from '../../host/index.ts';
import type { Lock, LockHold } from '../holds/lock.ts';
import { surveyOf } from '../observe/survey/index.ts';
import { outerHolds } from '../processes/environment.ts';
import { clearLeftovers } from '../processes/leftovers.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { BackgroundCommand } from '../write/pending-command.ts';
import { type DriverParts, PipelineDriver } from './driver.ts';
import type { PipelineFeed } from './feed.ts';
import { type PhaseFunction, refuseUnlessRunnable } from './functions.ts';
import { phaseAround } from './inside.ts';
import { driverLock, pipelineResource } from './keys.ts';
import { recoverLog } from './log.ts';
import { defaultHolder, missing, readPipeline } from './reading.ts';
import { RecordStore } from './record-store.ts';
import type { RunSpec } from './run-spec.ts';
import type { DriveOutcome, OtherDriver, ResumeOptions } from './terms.ts';

const DEFAULT_GRACE_MS = 5_000;
const FOUND_DEAD_MS = 500;

/** What pipelines need of their signalbox. */
export interface PipelineParts extends Pick<DriverParts, 'children' | 'guards'> {
  lock(name: string): Lock;
  /** What guards look at, if not the machine that drives the pipeline. */
  readonly adapters: Adapters | undefined;
  /** The URL of the store, for the commands. */
  readonly url: string | undefined;
}

export class Driving {
  readonly #runtime: Runtime;
  readonly #parts: PipelineParts;
  readonly #feed: PipelineFeed;

  constructor(runtime: Runtime, parts: PipelineParts, feed: PipelineFeed) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#feed = feed;
  }

  /**
   * The hold of a process that is about to start this pipeline, so that no standing driver takes the pipeline first. Undefined
   * if another process has it.
   */
  async reserve(id: string): Promise<LockHold | undefined> {
    const attempt = await this.#parts.lock(driverLock(id)).tryAcquire(driverTerms(id));
    return 'hold' in attempt ? attempt.hold : undefined;
  }

  /**
   * `reserved`: the driver's hold, if this process has it already. It is released in the end. `startedAt`: when the pipeline
   * was started; if given, a pipeline that was started later under its id is left alone.
   */
  async drive(id: string, options: ResumeOptions, reserved?: LockHold, startedAt?: number): Promise<DriveOutcome> {
    try {
      return await this.#drive(id, options, reserved, startedAt);
    } finally {
      await reserved?.release().catch(() => undefined);
    }
  }

  async #drive(
    id: string,
    options: ResumeOptions,
    reserved: LockHold | undefined,
    startedAt: number | undefined,
  ): Promise<DriveOutcome> {
    const { record, spec } = await readPipeline(this.#runtime, id);
    if (record === undefined || spec === undefined || isLater(record, startedAt)) return { kind: 'missing' };
    if (!isAsExpected(record, options.expected)) return { kind: 'moved-on', record };
    const unopened = notReopened(record, options);
    if (unopened !== undefined) return unopened;
    if (hasEnded(record) && options.from === undefined) return { kind: 'left', record };
    const question = options.question ?? openQuestion(record);
    const refused = voidDecision(record, options, question);
    if (refused !== undefined) return refused;
    // A phase that drives its own pipeline would wait for itself.
    if (phaseAround(record) !== undefined) return { kind: 'driven', by: record.driver?.holder ?? '' };
    const hold = reserved ?? (await this.#driverHold(id, options));
    if (typeof hold === 'string') return { kind: 'driven', by: hold };
    try {
      return await this.#driveWith(id, hold, options, question, record.endedAt, startedAt);
    } finally {
      await hold.release().catch(() => undefined);
    }
  }

  /** `question`: the question that was open when a person decided. */
  async #driveWith(
    id: string,
    hold: LockHold,
    options: ResumeOptions,
    question: number | undefined,
    endedAt: number | undefined,
    startedAt: number | undefined,
  ): Promise<DriveOutcome> {
    const { record: seen } = await readPipeline(this.#runtime, id);
    if (seen === undefined) throw missing(id);
    // While this process waited for the hold, another may have answered the question and reached the next one.
    const refused = voidDecision(seen, options, question);
    if (refused !== undefined) return refused;
    if (!isAsExpected(seen, options.expected)) return { kind: 'moved-on', record: seen };
    // It may have been started again meanwhile, and have failed again for another reason.
    const unopened = notReopened(seen, options, endedAt);
    if (unopened !== undefined) return unopened;
    // A command of an earlier driver must not run while ours does.
    await this.#clear(hold, options, seen.phases[seen.step.phase]?.name ?? '');
    const { record, spec, mod } = await readPipeline(this.#runtime, id);
    if (record === undefined || spec === undefined) throw missing(id);
    if (isLater(record, startedAt)) return { kind: 'missing' };
    await recoverLog(this.#runtime, record);
    const { cwd = spec.cwd, signal, decision, by = defaultHolder() } = options;
    const next = nextToRun(spec.runbook, record, options);
    // Checks this before it writes: otherwise a pending pipeline would be marked running without a driver.
    if (next !== undefined) refuseUnlessRunnable(id, next, options.functions ?? new Map());
    const records = new RecordStore(this.#runtime, id, spec.runbook, { record, mod }, hold.process);
    if (options.from !== undefined) await records.ask({ kind: 'reopen', from: options.from, by }, hold.signal);
    const adapters = await adaptersFor(options.adapters ?? this.#parts.adapters, cwd, spec);
    const driver = new PipelineDriver(this.#driverParts(options), records, { ...spec, cwd }, hold, {
      adapters,
      signal,
      waits: options.waits ?? true,
      decision: decision === undefined || question === undefined ? undefined : { question, choice: decision, by },
      onChange: options.onChange ?? (() => undefined),
    });
    this.#freeLeftBehind(record);
    const last = await driver.drive();
    if (last === undefined) throw missing(id);
    return { kind: 'left', record: last };
  }

  /** Frees the holds that an earlier driver had for the phase. Their lease has ended, so they need not wait for maintenance. */
  #freeLeftBehind({ step, phases }: PipelineRecord): void {
    for (const resource of Object.keys(phases[step.phase]?.tokens ?? {})) {
      this.#runtime.writerFor(resource).submit(new BackgroundCommand({ kind: 'maintain' }));
    }
  }

  #driverParts(options: ResumeOptions): DriverParts {
    const { url, children, guards } = this.#parts;
    const outer = url === undefined ? {} : outerHolds(process.env, url);
    return {
      runtime: this.#runtime,
      feed: this.#feed,
      children,
      guards,
      url,
      env: process.env,
      outer,
      around: () => [...new Set(Object.values(outer).map(({ holder }) => holder))],
      graceMs: options.graceMs ?? DEFAULT_GRACE_MS,
      hurrying: options.hurrying,
      functions: options.functions ?? new Map<string, PhaseFunction>(),
      onOutput: options.onOutput ?? (() => undefined),
      onMessage: tellerOf(options),
    };
  }

  /** The driver's hold, or the name of its holder. */
  async #driverHold(id: string, options: ResumeOptions): Promise<LockHold | string> {
    const { standsBy = false, signal } = options;
    const lock = this.#parts.lock(driverLock(id));
    const terms = driverTerms(id);
    const attempt = await lock.tryAcquire(terms);
    if ('hold' in attempt) return attempt.hold;
    const waiting = { ...terms, ...(signal !== undefined && { signal }) };
    try {
      // A killed driver is found dead in a moment; a live one still holds the lock then.
      if (!standsBy) return await lock.acquire({ ...waiting, waitMs: FOUND_DEAD_MS });
    } catch (error) {
      if (!(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out') throw error;
    }
    const other = await this.#otherDriver(id);
    // The lease of a killed driver ends by itself, while its command has time to end.
    if (!standsBy && other?.isGone !== true) return other?.holder ?? 'a process that waits for it';
    if (other !== undefined) options.onStandBy?.(other);
    return lock.acquire(waiting);
  }

  async #otherDriver(id: string): Promise<OtherDriver | undefined> {
    const { locks } = await surveyOf(this.#runtime, { resource: { kind: 'lock', name: driverLock(id) } });
    const [hold] = locks.flatMap(({ holds }) => holds);
    if (hold === undefined) return undefined;
    const { holder, health, lease } = hold;
    return { holder, isGone: health === 'process-gone', leaseEndsInMs: lease?.remainingMs };
  }

  /**
   * Ends what an earlier driver left running: may take long, or need a person, so it says what it does.
   */
  async #clear(hold: LockHold, options: ResumeOptions, phase: string): Promise<void> {
    const { graceMs = DEFAULT_GRACE_MS, signal } = options;
    const { children } = this.#parts;
    const found = await children.leftovers([hold]);
    if (found.leftovers.length + found.unreadable.length === 0) return;
    const cut = signal === undefined ? hold.signal : AbortSignal.any([hold.signal, signal]);
    const [left] = await clearLeftovers(found, {
      children,
      graceMs,
      tell: (line) => tellerOf(options)(phase, line),
      cut,
    });
    if (cut.aborted)
      throw (
        hold.lost ??
        new Failure('closed', `${hold.resource}: stopped while it waited for processes of an earlier driver to end`)
      );
    if (left !== undefined) throw new Failure('not-acquired', `${left}; the pipeline does not go on while that runs`);
  }
}

/** A program that takes only output still gets to see the messages. */
function tellerOf({ onMessage, onOutput }: ResumeOptions): (phase: string, message: string) => void {
  return onMessage ?? ((phase, message) => onOutput?.(phase, `signalbox: ${message}\n`));
}

function driverTerms(id: string): { readonly holder: string; readonly reason: string; readonly metadata: Json } {
  return {
    holder: `driver:${hostname()}:${process.pid}:${randomHex(3)}`,
    reason: `drives ${pipelineResource(id)}`,
    metadata: { pipeline: id },
  };
}

/** Whether this is another pipeline than the one that is meant: started later, under the same id. */
function isLater({ startedAt }: PipelineRecord, meant: number | undefined): boolean {
  return meant !== undefined && startedAt !== meant;
}

/** The phase that is next; undefined while its command runs, after that, and where a person has to decide first. */
function nextToRun(
  { phases }: Runbook,
  { step, blocked }: PipelineRecord,
  { decision, from }: Pick<ResumeOptions, 'decision' | 'from'>,
): Phase | undefined {
  if (from !== undefined) return phases.find(({ name }) => name === from);
  if (step.when !== 'before' || (blocked?.on === 'person' && decision !== 'rerun')) return undefined;
  return phases[step.phase];
}

/** Why it cannot start again from the phase that was named; undefined if it can, or if none was named. */
function notReopened(
  record: PipelineRecord,
  { from }: ResumeOptions,
  endedAt = record.endedAt,
): DriveOutcome | undefined {
  if (from === undefined) return undefined;
  const isAnother = record.endedAt !== endedAt;
  const why = isAnother ? `pipeline/${record.id} was started again by another process` : reopenProblem(record, from);
  return why === undefined ? undefined : { kind: 'not-reopened', record, why };
}

/** Why the decision does not count; undefined if it does, or if there is none. */
function voidDecision(
  record: PipelineRecord,
  { decision }: ResumeOptions,
  question: number | undefined,
): DriveOutcome | undefined {
  if (decision === undefined) return undefined;
  const why: VoidAnswer | undefined = whyVoid(record, question);
  switch (why?.kind) {
    case undefined:
      return undefined;
    case 'not-asked':
      return { kind: 'nothing-to-decide', record };
    case 'answered':
    case 'another-question':
      return { ...why, record };
  }
}

/** Gives the commands of guards the same variables as those of phases. */
async function adaptersFor(
  given: Adapters | undefined,
  root: string,
  { issues, commandTimeoutMs }: RunSpec,
): Promise<(variables: Readonly<Record<string, string>>) => Adapters> {
  if (given !== undefined) return () => given;
  const { localAdapters } = await import('../../adapters/index.ts');
  return (variables) =>
    localAdapters({
      root,
      env: { ...process.env, ...variables },
      ...(issues !== undefined && { issues }),
      ...(commandTimeoutMs !== undefined && { commandTimeoutMs }),
    });
}
