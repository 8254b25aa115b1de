/** The pipeline API of a signalbox: start, run, resume, cancel, look. */
import { resolve } from 'node:path';
import { whenAborted } from '../../clock.ts';
import type { PipelineState } from '../../core/guard/inputs.ts';
import {
  currentPhase,
  hasEnded,
  type InputValues,
  type PipelineRecord,
  type Runbook,
  withVariables,
} from '../../core/index.ts';
import { Failure, refuseInvalid } from '../../failure.ts';
import { randomHex } from '../../host/index.ts';
import { type Operation, prefixed } from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { DEFAULT_POLL_MS } from '../guards/executor.ts';
import { encode } from '../layout.ts';
import { aFunction, refuseWrongValues, shortText, valuesProblem } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import type { ListOptions } from '../stored.ts';
import { sendWitnessed } from '../write/write-once.ts';
import { Callbacks } from './callbacks.ts';
import type { RunbookDefinition } from './define.ts';
import { Driving, type PipelineParts } from './driving.ts';
import { PipelineFeed } from './feed.ts';
import { phaseAround } from './inside.ts';
import { checkedId, pipelineKeys, pipelineResource } from './keys.ts';
import { type PhaseLog, removeSpools } from './log.ts';
import { defaultHolder, isDriven, readLogs, readPipeline, readPipelines } from './reading.ts';
import { RecordStore } from './record-store.ts';
import { type RunSpec, thisMachine } from './run-spec.ts';
import { StandingDriver } from './standing.ts';
import {
  asDefined,
  CANCEL,
  type CancelOptions,
  DRIVE_ALL,
  type DriveAllOptions,
  type DriveOutcome,
  environmentProblem,
  LIST,
  type ListedPipeline,
  type PipelineView,
  RESUME,
  type ResumeOptions,
  RUN,
  type RunbookWithFunctions,
  type RunOptions,
  type StartOutcome,
} from './terms.ts';

/** A pipeline that is ready to be written. */
interface ToStart {
  readonly id: string;
  readonly spec: RunSpec;
}

/** Runs of phases that outlive the processes that drive them. */
export class Pipelines {
  readonly #runtime: Runtime;
  readonly #feed: PipelineFeed;
  readonly #driving: Driving;

  /** @internal */
  constructor(runtime: Runtime, parts: PipelineParts) {
    this.#runtime = runtime;
    this.#feed = new PipelineFeed(runtime);
    this.#driving = new Driving(runtime, parts, this.#feed);
  }

  /** Starts a pipeline and drives it until it is over, or cannot go on without a person. */
  async run(what: RunbookDefinition | Runbook | RunbookWithFunctions, options: RunOptions = {}): Promise<DriveOutcome> {
    const defined = asDefined(what);
    const callbacks = new Callbacks(options);
    const safe = callbacks.within(options);
    const begun = this.#prepared(defined, safe);
    // Before there is a pipeline: otherwise a standing driver could take it from the process that wants to drive it.
    const reserved = await this.#driving.reserve(begun.id);
    const started = await this.#started(begun, safe).catch(async (error: unknown) => {
      await reserved?.release().catch(() => undefined);
      throw error;
    });
    if (started.kind === 'exists') {
      await reserved?.release().catch(() => undefined);
      return started;
    }
    const driven = await this.#driving.drive(started.id, { ...safe, functions: defined.functions }, reserved);
    callbacks.rethrow();
    return driven;
  }

  /** Starts a pipeline without driving it; `resume` drives it. */
  async start(
    what: RunbookDefinition | Runbook | RunbookWithFunctions,
    options: RunOptions = {},
  ): Promise<StartOutcome> {
    return this.#started(this.#prepared(asDefined(what), options), options);
  }

  /**
   * A standing driver: drives every pipeline that no process drives, now or later, until the signal aborts. It leaves alone
   * what a person has to decide, and what has phases that are functions of another program.
   */
  driveAll(options: DriveAllOptions): Promise<void> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, DRIVE_ALL);
    return new StandingDriver(this.#runtime, this.#feed, this.#driving, options).drive();
  }

  /** Throws `invalid` if anything is wrong with the pipeline that is to be started. */
  #prepared({ runbook: written }: RunbookWithFunctions, options: RunOptions): ToStart {
    this.#runtime.refuseIfClosed();
    refuseInvalid(valuesProblem(options, RUN) ?? environmentProblem(options.env));
    const filled = withVariables(written, options.env ?? {});
    if (!filled.ok) throw new Failure('invalid', filled.problem);
    const { runbook } = filled;
    const id = checkedId(options.id ?? `${runbook.name}-${timeTold(this.#runtime.clock.now())}-${randomHex(2)}`);
    const { cwd = process.cwd(), env = {}, pollMs = DEFAULT_POLL_MS } = options;
    const { issues, commandTimeoutMs } = options;
    const spec: RunSpec = {
      runbook,
      cwd: resolve(cwd),
      host: thisMachine(),
      env,
      pollMs,
      ...(issues !== undefined && { issues }),
      ...(commandTimeoutMs !== undefined && { commandTimeoutMs }),
    };
    return { id, spec };
  }

  async #started({ id, spec }: ToStart, { by = defaultHolder(), onChange }: RunOptions): Promise<StartOutcome> {
    const records = new RecordStore(this.#runtime, id, spec.runbook, { record: undefined, mod: 0 });
    const also: Operation[] = [{ do: 'put', key: pipelineKeys(id).spec, value: encode(spec) }];
    const { outcome, record } = await records.ask({ kind: 'start', id, by }, undefined, also);
    if (outcome.kind === 'exists') return { kind: 'exists', id };
    if (record !== undefined) onChange?.(record);
    return { kind: 'started', id };
  }

  /** Goes on with a pipeline that has no driver: it died, was stopped, or left the pipeline blocked. */
  async resume(id: string, options: ResumeOptions = {}): Promise<DriveOutcome> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, RESUME);
    if (options.question !== undefined && options.decision === undefined) {
      throw new Failure(
        'invalid',
        `question is ${options.question}, but there is no decision; add one: "rerun" or "skip"`,
      );
    }
    if (options.from !== undefined && options.decision !== undefined) {
      throw new Failure(
        'invalid',
        'from and decision are two answers; a failed pipeline needs from, a question a decision',
      );
    }
    const callbacks = new Callbacks(options);
    const driven = await this.#driving.drive(checkedId(id), callbacks.within(options));
    callbacks.rethrow();
    return driven;
  }

  /**
   * Cancels a pipeline: at once if no command of it runs, otherwise once that has ended. Answers its record then. Called by a
   * phase of the same pipeline, it answers as soon as the signal of that phase has aborted: the pipeline is cancelled when
   * the phase has ended.
   */
  async cancel(id: string, options: CancelOptions = {}): Promise<PipelineRecord | undefined> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, CANCEL);
    const { by = defaultHolder(), reason = '', expected = {}, signal } = options;
    const found = await readPipeline(this.#runtime, checkedId(id));
    if (found.record === undefined || found.spec === undefined) return undefined;
    const records = new RecordStore(this.#runtime, id, found.spec.runbook, found);
    const { outcome, record } = await records.ask({ kind: 'cancel', by, reason, expected });
    if (outcome.kind !== 'cancelling' || record === undefined) return record;
    const own = phaseAround(record);
    if (own === undefined) return this.#cancelled(record, signal);
    await whenAborted(signal === undefined ? own.stop : AbortSignal.any([own.stop, signal]));
    return record;
  }

  /** Undefined if there is no such pipeline. */
  async show(id: string): Promise<PipelineView | undefined> {
    this.#runtime.refuseIfClosed();
    const { record, spec } = await readPipeline(this.#runtime, checkedId(id));
    if (record === undefined) return undefined;
    return { ...record, isDriven: await isDriven(this.#runtime, record), cwd: spec?.cwd ?? '', host: spec?.host ?? '' };
  }

  /** All pipelines, in the order in which they were started. */
  async list(options: ListOptions & { readonly state?: PipelineState } = {}): Promise<readonly ListedPipeline[]> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, LIST);
    return readPipelines(this.#runtime, options.state, options.onMalformed);
  }

  /** The output of the commands of a pipeline, phase by phase; of each phase, the last few runs. */
  async logs(id: string, options: ListOptions = {}): Promise<readonly PhaseLog[]> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, { onMalformed: aFunction });
    return readLogs(this.#runtime, checkedId(id), options.onMalformed);
  }

  /** Removes a pipeline that is over, with its logs. False if there is no such pipeline, or if it is not over. */
  async forget(id: string, options: { readonly by?: string } = {}): Promise<boolean> {
    refuseWrongValues(options, { by: shortText });
    const found = await readPipeline(this.#runtime, checkedId(id));
    if (found.record === undefined || !hasEnded(found.record)) return false;
    const { state, spec, logs } = pipelineKeys(id);
    const keys = [{ key: state }, { key: spec }, prefixed(logs)];
    const forgetting = ifUnchanged(
      state,
      found.mod,
      keys.map((range) => ({ do: 'delete', ...range })),
    );
    const actor = options.by ?? this.#runtime.sender.id;
    const deed = { resource: pipelineResource(id), actor, command: 'forget', outcome: 'forgotten' };
    const { succeeded } = await sendWitnessed(this.#runtime, forgetting, [deed]);
    if (succeeded) removeSpools(found.record);
    return succeeded;
  }

  /** What guards see of a pipeline. */
  async look(id: string): Promise<InputValues['pipeline']> {
    const { record } = await readPipeline(this.#runtime, id);
    return record === undefined ? null : { state: record.state, phase: currentPhase(record) };
  }

  /**
   * The driver ends the command; if there is no driver any more, this process does. The pipeline may also be over and removed
   * before this process looks, and another one started under its id, which is left alone.
   */
  async #cancelled(
    { id, startedAt }: PipelineRecord,
    signal: AbortSignal | undefined,
  ): Promise<PipelineRecord | undefined> {
    const over = new AbortController();
    const same = (seen: PipelineRecord | undefined): PipelineRecord | undefined =>
      seen?.startedAt === startedAt ? seen : undefined;
    let record: PipelineRecord | undefined;
    const unlisten = await this.#feed.listen(id, {
      saw: (seen) => {
        const found = same(seen.record);
        if (found !== undefined && !hasEnded(found)) return;
        record = found;
        over.abort();
      },
      missed: () => undefined,
    });
    try {
      record = same((await readPipeline(this.#runtime, id)).record);
      if (record === undefined || hasEnded(record)) return record;
      const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
      const options = { standsBy: true, signal: stop };
      const left = await this.#driving.drive(id, options, undefined, startedAt).catch((error: unknown) => {
        if (stop.aborted) return undefined;
        throw error;
      });
      if (left?.kind === 'missing') return undefined;
      return left?.kind === 'left' ? left.record : record;
    } finally {
      unlisten();
    }
  }
}

/** `20261116-051233`. */
function timeTold(now: number): string {
  return new Date(now).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
}
