/** What a signalbox offers for pipelines: start, drive, resume, cancel, and look at them. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Adapters } from '../../adapters/adapters.ts';
import type { PipelineState } from '../../core/guard/inputs.ts';
import {
  type Choice,
  CHOICES,
  hasEnded,
  type InputValues,
  currentPhase,
  openQuestion,
  outputNameProblem,
  type Phase,
  PIPELINE_STATES,
  type PipelineRecord,
  type Runbook,
  type VoidAnswer,
  whyVoid,
  withVariables,
} from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { randomHex } from '../../host/index.ts';
import { always, type Operation, pairIn, prefixed, readPages } from '../../store/index.ts';
import { outerHolds } from '../processes/environment.ts';
import { DEFAULT_POLL_MS } from '../guards/executor.ts';
import { encode } from '../layout.ts';
import { clearLeftovers } from '../processes/leftovers.ts';
import type { Lock, LockHold } from '../holds/lock.ts';
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
  refuseWrongValues,
  text,
  valuesProblem,
  wholeNumber,
} from '../options.ts';
import { BackgroundCommand } from '../write/pending-command.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { type ListOptions, readEach } from '../stored.ts';
import { surveyOf } from '../observe/survey/index.ts';
import { send } from '../write/write-once.ts';
import { type RunSpec, runSpecIn, thisMachine } from './run-spec.ts';
import { Callbacks } from './callbacks.ts';
import { defineRunbook, type RunbookDefinition } from './define.ts';
import { type DriverParts, PipelineDriver } from './driver.ts';
import { PipelineFeed, recordIn } from './feed.ts';
import { type PhaseFunction, refuseUnlessRunnable } from './functions.ts';
import { phaseAround } from './inside.ts';
import { ALL_PIPELINES, checkedId, driverLock, pipelineKeys, pipelineResource } from './keys.ts';
import { RecordStore } from './record-store.ts';
import { type PhaseLog, phaseLogIn, recoverLog, removeSpools, spoolsOf, withSpooled } from './log.ts';
import { type PipelineView, viewOf } from './view.ts';

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

const DRIVE = {
  signal: abortSignal,
  waits: flag,
  graceMs: millisecondsFromZero,
  hurrying: abortSignal,
  adapters: anObject,
  onChange: aFunction,
  onOutput: aFunction,
};
const RUN = {
  ...DRIVE,
  id: aName,
  cwd: text,
  env: anObject,
  pollMs: milliseconds,
  issues: text,
  commandTimeoutMs: milliseconds,
  by: aName,
};
const RESUME = {
  ...DRIVE,
  decision: oneOf(CHOICES),
  question: wholeNumber,
  by: aName,
  functions: aMap,
  cwd: text,
  standsBy: flag,
};
const CANCEL = { by: aName, reason: text, signal: abortSignal };
const LIST = { onMalformed: aFunction, state: oneOf(PIPELINE_STATES) };
const DEFAULT_GRACE_MS = 5_000;
const FOUND_DEAD_MS = 500;
const PAGE = 100;
/** Logs are long. */
const LOGS_PAGE = 10;
const LARGEST_ENV = 262_144;

/** What pipelines need of the signalbox that they are part of. */
export interface PipelineParts extends Pick<DriverParts, 'children' | 'guards' | 'acquireAll' | 'tryAcquireAll'> {
  lock(name: string): Lock;
  /** What guards look at, if it is not the machine that drives the pipeline. */
  readonly adapters: Adapters | undefined;
  /** The store, for what is started to find. */
  readonly url: string | undefined;
}

export class Pipelines {
  readonly #runtime: Runtime;
  readonly #parts: PipelineParts;
  readonly #feed: PipelineFeed;

  constructor(runtime: Runtime, parts: PipelineParts) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#feed = new PipelineFeed(runtime);
  }

  /** Starts a pipeline and drives it until it is over, or cannot go on without a person. */
  async run(what: RunbookDefinition | Runbook | RunbookWithFunctions, options: RunOptions = {}): Promise<DriveOutcome> {
    const defined = asDefined(what);
    const callbacks = new Callbacks(options);
    const started = await this.start(defined, callbacks.within(options));
    if (started.kind === 'exists') return started;
    const driven = await this.#drive(started.id, { ...callbacks.within(options), functions: defined.functions });
    callbacks.rethrow();
    return driven;
  }

  /** Starts it, for somebody else to drive: `resume` does. */
  async start(
    what: RunbookDefinition | Runbook | RunbookWithFunctions,
    options: RunOptions = {},
  ): Promise<StartOutcome> {
    this.#runtime.refuseIfClosed();
    const written = asDefined(what).runbook;
    const problem = valuesProblem(options, RUN) ?? environmentProblem(options.env);
    if (problem !== undefined) throw new Failure('invalid', problem);
    const filled = withVariables(written, options.env ?? {});
    if (!filled.ok) throw new Failure('invalid', filled.problem);
    const { runbook } = filled;
    const id = checkedId(options.id ?? `${runbook.name}-${timeTold(this.#runtime.clock.now())}-${randomHex(2)}`);
    const { cwd = process.cwd(), env = {}, pollMs = DEFAULT_POLL_MS, by = defaultHolder() } = options;
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
    const records = new RecordStore(this.#runtime, id, runbook, { record: undefined, mod: 0 });
    const also: Operation[] = [{ do: 'put', key: pipelineKeys(id).spec, value: encode(spec) }];
    const { outcome, record } = await records.ask({ kind: 'start', id, by }, undefined, also);
    if (outcome.kind === 'exists') return { kind: 'exists', id };
    if (record !== undefined) options.onChange?.(record);
    return { kind: 'started', id };
  }

  /** Goes on with a pipeline that nobody drives: its driver died, was stopped, or left it blocked. */
  async resume(id: string, options: ResumeOptions = {}): Promise<DriveOutcome> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, RESUME);
    if (options.question !== undefined && options.decision === undefined) {
      throw new Failure('invalid', `question is ${options.question}, and there is no decision: say "rerun" or "skip"`);
    }
    const callbacks = new Callbacks(options);
    const driven = await this.#drive(checkedId(id), callbacks.within(options));
    callbacks.rethrow();
    return driven;
  }

  /**
   * Ends it: at once if none of its commands runs, otherwise once that has ended. Answers how it stands then. Called by a
   * phase of this very pipeline, it answers as soon as the signal of that phase has aborted: the pipeline is cancelled
   * when the phase has ended.
   */
  async cancel(id: string, options: CancelOptions = {}): Promise<PipelineRecord | undefined> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, CANCEL);
    const { by = defaultHolder(), reason = '', signal } = options;
    const found = await this.#read(checkedId(id));
    if (found.record === undefined || found.spec === undefined) return undefined;
    const records = new RecordStore(this.#runtime, id, found.spec.runbook, found);
    const { outcome, record } = await records.ask({ kind: 'cancel', by, reason });
    if (outcome.kind !== 'cancelling' || record === undefined) return record;
    const own = phaseAround(record);
    if (own === undefined) return this.#cancelled(id, signal);
    await aborted(signal === undefined ? [own.stop] : [own.stop, signal]);
    return record;
  }

  /** Undefined if there is none. */
  async show(id: string): Promise<PipelineView | undefined> {
    this.#runtime.refuseIfClosed();
    const { record, spec } = await this.#read(checkedId(id));
    return record === undefined ? undefined : viewOf(record, spec, await this.#isDriven(record));
  }

  /** All of them, in the order in which they were started. */
  async list(options: ListOptions & { readonly state?: PipelineState } = {}): Promise<readonly ListedPipeline[]> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, LIST);
    const records: PipelineRecord[] = [];
    for await (const { pairs } of readPages(this.#runtime.store, ALL_PIPELINES, PAGE, this.#runtime.stopped)) {
      records.push(...readEach(pairs, recordIn, options.onMalformed));
    }
    const wanted = records
      .filter(({ state }) => options.state === undefined || state === options.state)
      .sort((a, b) => a.startedAt - b.startedAt);
    return Promise.all(wanted.map(async (record) => ({ ...record, isDriven: await this.#isDriven(record) })));
  }

  /** What the commands of a pipeline printed, phase by phase; of each, the last few times that it ran. */
  async logs(id: string, options: ListOptions = {}): Promise<readonly PhaseLog[]> {
    this.#runtime.refuseIfClosed();
    refuseWrongValues(options, { onMalformed: aFunction });
    const { onMalformed } = options;
    const { logs } = pipelineKeys(checkedId(id));
    const { record } = await this.#read(id);
    const spooled = spoolsOf(record);
    const found: PhaseLog[] = [];
    for await (const { pairs } of readPages(this.#runtime.store, prefixed(logs), LOGS_PAGE, this.#runtime.stopped)) {
      found.push(...readEach(pairs, phaseLogIn, onMalformed));
    }
    return withSpooled(found, spooled, record);
  }

  /** Removes all that is known of one that is over. False if there is none, or if it is not over. */
  async forget(id: string): Promise<boolean> {
    const found = await this.#read(checkedId(id));
    if (found.record === undefined || !hasEnded(found.record)) return false;
    const { state, spec, logs } = pipelineKeys(id);
    const { succeeded } = await send(this.#runtime, {
      compare: [{ key: state, target: 'mod', is: '=', than: found.mod }],
      success: [
        { do: 'delete', key: state },
        { do: 'delete', key: spec },
        { do: 'delete', key: logs, end: `${logs.slice(0, -1)}0` },
      ],
      failure: [],
    });
    if (succeeded) removeSpools(found.record);
    return succeeded;
  }

  /** For guards. */
  async look(id: string): Promise<InputValues['pipeline']> {
    const { record } = await this.#read(id);
    return record === undefined ? null : { state: record.state, phase: currentPhase(record) };
  }

  async #drive(id: string, options: ResumeOptions): Promise<DriveOutcome> {
    const { record, spec } = await this.#read(id);
    if (record === undefined || spec === undefined) return { kind: 'missing' };
    if (hasEnded(record)) return { kind: 'left', record };
    const question = options.question ?? openQuestion(record);
    const refused = voidDecision(record, options, question);
    if (refused !== undefined) return refused;
    // Its own phase would wait for itself.
    if (phaseAround(record) !== undefined) return { kind: 'driven', by: record.driver?.holder ?? '' };
    const hold = await this.#driverHold(id, options);
    if (typeof hold === 'string') return { kind: 'driven', by: hold };
    try {
      return await this.#driveWith(id, hold, options, question);
    } finally {
      await hold.release().catch(() => undefined);
    }
  }

  /** `question`: the one that was open when a person decided. */
  async #driveWith(
    id: string,
    hold: LockHold,
    options: ResumeOptions,
    question: number | undefined,
  ): Promise<DriveOutcome> {
    const { record: seen } = await this.#read(id);
    if (seen === undefined) throw missing(id);
    // While we waited for the hold, another process may have answered the question, and come to the next one.
    const refused = voidDecision(seen, options, question);
    if (refused !== undefined) return refused;
    // Whatever an earlier driver began must not run beside what we begin.
    await this.#clear(hold, options, seen.phases[seen.step.phase]?.name ?? '');
    const { record, spec, mod } = await this.#read(id);
    if (record === undefined || spec === undefined) throw missing(id);
    await recoverLog(this.#runtime, record);
    const { cwd = spec.cwd, signal, decision, by = defaultHolder() } = options;
    const next = nextToRun(spec.runbook, record, decision);
    // Asked before anything is written: a pipeline that was pending would be running then, with nobody to drive it.
    if (next !== undefined) refuseUnlessRunnable(id, next, options.functions ?? new Map());
    const records = new RecordStore(this.#runtime, id, spec.runbook, { record, mod }, hold.process);
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

  /** What an earlier driver held for the phase is of no use to anybody, and its lease is gone: it need not wait for maintenance. */
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
      acquireAll: (wants, terms) => this.#parts.acquireAll(wants, terms),
      tryAcquireAll: (wants, terms) => this.#parts.tryAcquireAll(wants, terms),
      url,
      env: process.env,
      outer,
      around: () => [...new Set(Object.values(outer).map(({ holder }) => holder))],
      graceMs: options.graceMs ?? DEFAULT_GRACE_MS,
      hurrying: options.hurrying,
      functions: options.functions ?? new Map<string, PhaseFunction>(),
      onOutput: options.onOutput ?? (() => undefined),
    };
  }

  /** Or who has it. */
  async #driverHold(id: string, { standsBy = false, signal }: ResumeOptions): Promise<LockHold | string> {
    const lock = this.#parts.lock(driverLock(id));
    const terms = {
      holder: `driver:${hostname()}:${process.pid}:${randomHex(3)}`,
      reason: `drives ${pipelineResource(id)}`,
      metadata: { pipeline: id },
    };
    if (standsBy) return lock.acquire({ ...terms, ...(signal !== undefined && { signal }) });
    const attempt = await lock.tryAcquire(terms);
    if ('hold' in attempt) return attempt.hold;
    try {
      // A driver that was killed is found dead in a moment; one that lives is still there then.
      return await lock.acquire({ ...terms, waitMs: FOUND_DEAD_MS, ...(signal !== undefined && { signal }) });
    } catch (error) {
      if (!(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out') throw error;
      const { holders } = await lock.inspect();
      return holders[0]?.holder ?? 'somebody who waits for it';
    }
  }

  /** It may take long, or need somebody: that is told like what the phase prints. */
  async #clear(hold: LockHold, options: ResumeOptions, phase: string): Promise<void> {
    const { graceMs = DEFAULT_GRACE_MS, signal, onOutput } = options;
    const { children } = this.#parts;
    const found = await children.leftovers([hold]);
    if (found.leftovers.length + found.unreadable.length === 0) return;
    const cut = signal === undefined ? hold.signal : AbortSignal.any([hold.signal, signal]);
    const [left] = await clearLeftovers(found, {
      children,
      graceMs,
      tell: (line) => onOutput?.(phase, `signalbox: ${line}\n`),
      cut,
    });
    if (cut.aborted) throw hold.lost ?? new Failure('closed', `${hold.resource}: stopped while it waited`);
    if (left !== undefined) throw new Failure('not-acquired', `${left}; nothing was started beside it`);
  }

  /** Its driver ends the command; if there is none any more, we do. */
  async #cancelled(id: string, signal: AbortSignal | undefined): Promise<PipelineRecord | undefined> {
    const over = new AbortController();
    let record: PipelineRecord | undefined;
    const unlisten = await this.#feed.listen(id, {
      saw: (seen) => {
        if (seen.record !== undefined && !hasEnded(seen.record)) return;
        record = seen.record;
        over.abort();
      },
      missed: () => undefined,
    });
    try {
      ({ record } = await this.#read(id));
      if (record === undefined || hasEnded(record)) return record;
      const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
      const left = await this.#drive(id, { standsBy: true, signal: stop }).catch((error: unknown) => {
        if (stop.aborted) return undefined;
        throw error;
      });
      return left?.kind === 'left' ? left.record : record;
    } finally {
      unlisten();
    }
  }

  async #isDriven({ id, driver }: PipelineRecord): Promise<boolean> {
    if (driver === undefined) return false;
    // Its lease runs on for a while after it was killed; where its process can be seen to be gone, nobody drives it.
    const { locks } = await surveyOf(this.#runtime, { resource: { kind: 'lock', name: driverLock(id) } });
    const holds = locks.flatMap((lock) => lock.holds);
    return holds.some(({ token, isStale, health }) => token === driver.token && !isStale && health !== 'process-gone');
  }

  async #read(id: string): Promise<{ record: PipelineRecord | undefined; spec: RunSpec | undefined; mod: number }> {
    const { state, spec } = pipelineKeys(id);
    const reads = [state, spec].map((key): Operation => ({ do: 'read', key }));
    const { results } = await send(this.#runtime, always(reads));
    const statePair = pairIn(results, state);
    const specPair = pairIn(results, spec);
    return {
      record: statePair === undefined ? undefined : recordIn(statePair),
      spec: specPair === undefined ? undefined : runSpecIn(specPair),
      mod: statePair?.modRevision ?? 0,
    };
  }
}

/** As somebody writes it, as `defineRunbook` gives it, or as `parseRunbook` does. */
function asDefined(what: RunbookDefinition | Runbook | RunbookWithFunctions): RunbookWithFunctions {
  if (typeof what === 'object' && what !== null && 'runbook' in what) return what;
  if (!isParsed(what)) return defineRunbook(what as RunbookDefinition);
  return { runbook: what, functions: new Map() };
}

function isParsed(what: RunbookDefinition | Runbook): what is Runbook {
  const phases: unknown = what?.phases;
  return Array.isArray(phases) && phases.some((phase: Phase | undefined) => typeof phase?.run === 'object');
}

/** Resolves when one of them has aborted. */
function aborted(signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  return new Promise((resolve) => {
    if (any.aborted) resolve();
    else any.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The phase whose turn it is; undefined while its command runs, after it has, and where a person decides first. */
function nextToRun(
  { phases }: Runbook,
  { step, blocked }: PipelineRecord,
  decision: Choice | undefined,
): Phase | undefined {
  if (step.when !== 'before' || (blocked?.on === 'person' && decision !== 'rerun')) return undefined;
  return phases[step.phase];
}

/** Undefined if there is no decision, or if it counts. */
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

/** Commands that guards run have the same variables as those of phases. */
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

function missing(id: string): Failure {
  return new Failure('not-found', `${pipelineResource(id)}: there is none any more`);
}

function defaultHolder(): string {
  return `user:${hostname()}:${process.pid}`;
}

/** `20261116-051233`. */
function timeTold(now: number): string {
  return new Date(now).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
}

function environmentProblem(env: RunOptions['env'] = {}): string | undefined {
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
