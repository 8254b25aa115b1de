/**
 * Drives one pipeline: carries out the effects that the core asks for, and reports their results to it. The driver holds
 * the driver's lock while it drives; if it loses that, it ends the command and writes nothing any more.
 *
 *     evaluate ──▶ acquire ──▶ begin ──▶ run ──▶ evaluate (after) ──▶ the next phase
 */
import { pause } from '../../clock.ts';
import {
  type Choice,
  type Effect,
  type GuardOutcome,
  hasEnded,
  type Phase,
  type PipelineRecord,
  pipelineHolder,
  waitsForItsTurn,
} from '../../core/index.ts';
import type { GuardWatch } from '../guards/watch.ts';
import type { LockHold } from '../holds/lock.ts';
import { NotAcquired } from '../refusal.ts';
import { acquireAllTogether, tryTogether } from '../holds/together.ts';
import type { Runtime } from '../runtime.ts';
import { unlessStopped } from '../write/write-once.ts';
import type { HoldSet } from '../holds/hold-set.ts';
import type { TogetherOptions } from '../holds/together-write.ts';
import type { RunSpec } from './run-spec.ts';
import type { PipelineFeed } from './feed.ts';
import { refuseUnlessRunnable } from './functions.ts';
import { PhaseGuards, type PhaseGuardsParts, type PhaseGuardsTerms } from './phase-guards.ts';
import type { Answered, Ask, RecordStore } from './record-store.ts';
import { MARGIN } from '../session/session.ts';
import { traced } from '../tracer.ts';
import { PhaseRun, type RunParts } from './phase-run.ts';
import { FirstStop, Stop, type StopReason } from './stop.ts';

/** What a driver needs of its signalbox. */
export interface DriverParts extends RunParts, PhaseGuardsParts {
  readonly runtime: Runtime;
  readonly feed: PipelineFeed;
}

export interface DriveTerms extends PhaseGuardsTerms {
  /** When it aborts, the driver ends the command and leaves the pipeline for another driver. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the driver stays while the pipeline is blocked; otherwise it leaves. */
  readonly waits: boolean;
  /** The decision of a person about an open question. */
  readonly decision?: { readonly question: number; readonly choice: Choice; readonly by: string } | undefined;
  /** Gets the record after every change that this driver makes. */
  readonly onChange: (record: PipelineRecord) => void;
}

/** The wait for another hold of the same holder name to be released. */
const REENTRY_PAUSE_MS = 200;

export class PipelineDriver {
  readonly #parts: DriverParts;
  readonly #records: RecordStore;
  readonly #spec: RunSpec;
  readonly #hold: LockHold;
  readonly #terms: DriveTerms;
  readonly #holder: string;
  /** Aborts when the pipeline is cancelled, or another driver takes it over. */
  readonly #taken = new AbortController();
  readonly #over: AbortSignal;
  readonly #guards: PhaseGuards;
  #held: HoldSet | undefined;
  #decision: DriveTerms['decision'];

  constructor(parts: DriverParts, records: RecordStore, spec: RunSpec, hold: LockHold, terms: DriveTerms) {
    this.#parts = parts;
    this.#records = records;
    this.#spec = spec;
    this.#hold = hold;
    this.#terms = terms;
    this.#holder = pipelineHolder(records.id);
    const { signal } = terms;
    this.#over = AbortSignal.any([hold.signal, this.#taken.signal, ...(signal === undefined ? [] : [signal])]);
    const { runtime, guards } = parts;
    const { adapters } = terms;
    this.#guards = new PhaseGuards({ runtime, guards, adapters, records, spec, driver: hold.holder, over: this.#over });
  }

  /** Drives until the pipeline is over, waits for a person, is stopped, or has another driver. */
  async drive(): Promise<PipelineRecord | undefined> {
    const { feed, runtime } = this.#parts;
    const unlisten = await feed.listen(this.#records.id, {
      saw: (seen) => {
        if (this.#records.saw(seen)) this.#heard();
      },
      missed: () =>
        void this.#records.read(this.#hold.signal).then(
          () => this.#heard(),
          () => undefined,
        ),
    });
    const alive = runtime.clock.keepAlive?.();
    try {
      const { holder, token } = this.#hold;
      let effect: Effect | undefined = (await this.#ask({ kind: 'drive', holder, token })).effect;
      this.#isDriving = true;
      // Changes that arrived before this were about the driver before us.
      this.#heard();
      this.#decision = this.#terms.decision;
      while (effect !== undefined && !this.#over.aborted) effect = await this.#carryOut(effect);
      if (this.#hold.lost !== undefined) throw this.#hold.lost;
      return this.#records.record;
    } catch (error) {
      // Any failure after the loss of the hold is a consequence of it.
      throw this.#hold.lost ?? error;
    } finally {
      unlisten();
      alive?.cancel();
      await this.#release();
    }
  }

  /** Answers the next effect; undefined if this driver has nothing left to do. */
  async #carryOut(effect: Effect): Promise<Effect | undefined> {
    switch (effect.kind) {
      case 'evaluate':
        if (effect.when === 'before') refuseUnlessRunnable(this.#records.id, effect.phase, this.#parts.functions);
        return this.#evaluate(effect);
      case 'acquire':
        return this.#acquire(effect);
      case 'begin':
        return this.#begin(effect);
      case 'pause':
        return this.#pause(effect.ms);
      case 'ask':
        return this.#decide();
      case 'run':
      case 'leave':
        return undefined;
    }
  }

  // Guards

  async #evaluate({ phase, when }: Extract<Effect, { kind: 'evaluate' }>): Promise<Effect | undefined> {
    const guards = when === 'before' ? phase.pre : phase.post;
    let watch: GuardWatch | undefined;
    let before: readonly GuardOutcome[] = [];
    try {
      for (;;) {
        const outcomes: readonly GuardOutcome[] | undefined = await this.#guards.lookAgain(guards, phase, before);
        if (outcomes === undefined) return undefined;
        before = outcomes;
        const { pollMs } = this.#spec;
        const { effect, isFound } = await this.#tell({ kind: 'judged', when, outcomes, pollMs });
        // An effect for another phase means that these guards have passed.
        const isBlocked = effect.kind === 'evaluate' && effect.when === when && effect.phase.name === phase.name;
        if (!isBlocked) return effect;
        // The answer to an earlier report got lost, so whether these guards passed is not known.
        if (isFound === true) continue;
        if (!this.#terms.waits) return undefined;
        if (when === 'before' && waitsForItsTurn(phase, outcomes)) {
          return await this.#waitFor({ kind: 'acquire', phase, holds: phase.holds });
        }
        if (watch === undefined) {
          watch = await this.#patiently(() => this.#parts.guards.watch(guards, { pollMs, own: this.#holder }));
          if (watch === undefined) return undefined;
          // Looks once more: the watch did not see what changed before it began.
          continue;
        }
        await this.#guards.nextLook(watch, effect.againMs);
        if (this.#over.aborted) return undefined;
      }
    } finally {
      watch?.close();
    }
  }

  // Holds

  async #acquire({ phase, holds }: Extract<Effect, { kind: 'acquire' }>): Promise<Effect | undefined> {
    const options = this.#holdOptions(phase.name);
    const attempt = await this.#patiently(() => tryTogether(this.#parts.runtime, holds, options));
    if (attempt === undefined) return undefined;
    if (attempt.kind === 'acquired' && (await this.#took(attempt.holds))) {
      return { kind: 'begin', phase, attempt: this.#records.record?.step.attempt ?? 1 };
    }
    if (attempt.kind === 'refused') {
      const never = attempt.refusals.find(({ refusal }) => ['impossible', 'capacity-mismatch'].includes(refusal.kind));
      if (never !== undefined) return this.#refused(new NotAcquired(never.resource, never.refusal));
    }
    const resources =
      attempt.kind === 'refused'
        ? attempt.refusals.map(({ resource, refusal }) => new NotAcquired(resource, refusal).message)
        : holds.map((want) => ('lock' in want ? `lock/${want.lock}` : `semaphore/${want.semaphore}`));
    const { effect } = await this.#tell({ kind: 'waits', resources });
    if (effect.kind !== 'acquire') return effect;
    if (!this.#terms.waits) return undefined;
    return this.#waitFor(effect);
  }

  async #waitFor({ phase, holds }: Extract<Effect, { kind: 'acquire' }>): Promise<Effect | undefined> {
    try {
      const options = { ...this.#holdOptions(phase.name), signal: this.#over };
      const held = await this.#patiently(() => acquireAllTogether(this.#parts.runtime, holds, options));
      if (held === undefined) return undefined;
      if (!(await this.#took(held))) return await this.#pauseThenLookAgain(phase);
    } catch (error) {
      if (this.#over.aborted) return undefined;
      if (error instanceof NotAcquired) return this.#refused(error);
      throw error;
    }
    // The wait may have been long: the guards may not pass any more.
    const outcomes = await this.#guards.check(phase.pre, phase);
    if (outcomes === undefined) return undefined;
    const { effect } = await this.#tell({
      kind: 'judged',
      when: 'before',
      outcomes,
      isHeld: true,
      pollMs: this.#spec.pollMs,
    });
    if (effect.kind !== 'begin') await this.#release();
    return effect;
  }

  /** Releases them and answers false if one is a re-entry: it would end with the outer hold. */
  async #took(held: HoldSet): Promise<boolean> {
    this.#held = held;
    if (!held.holds.some(({ isReentry }) => isReentry)) return true;
    await this.#release();
    return false;
  }

  /** Begins again with the guards: the outer hold may last long. */
  async #pauseThenLookAgain(phase: Phase): Promise<Effect | undefined> {
    await this.#rest(REENTRY_PAUSE_MS);
    return this.#over.aborted ? undefined : { kind: 'evaluate', when: 'before', phase };
  }

  async #refused(error: NotAcquired): Promise<Effect> {
    return (await this.#tell({ kind: 'refused', why: error.message })).effect;
  }

  #holdOptions(phase: string): TogetherOptions {
    const { id } = this.#records;
    const within = this.#parts.around();
    return {
      holder: this.#holder,
      reason: `phase ${phase}`,
      metadata: { pipeline: id, phase },
      ...(within.length > 0 && { within }),
    };
  }

  // The command

  async #begin({ phase, attempt }: Extract<Effect, { kind: 'begin' }>): Promise<Effect | undefined> {
    const place = this.#records.record?.step.phase ?? 0;
    const runs = (this.#records.record?.phases[place]?.runs ?? 0) + 1;
    const held = this.#held?.holds ?? [];
    const at = { place, run: runs, attempt };
    const run = new PhaseRun(this.#parts, this.#records, this.#spec, phase, at, [this.#hold, ...held]);
    try {
      const tokens = Object.fromEntries(held.map(({ resource, token }) => [resource, token]));
      const begun = await this.#tell({ kind: 'begun', tokens });
      // The pipeline is at another phase than this driver thought, so the command that it started is the wrong one.
      const isElsewhere = begun.outcome.kind === 'misplaced';
      if (isElsewhere || begun.effect.kind !== 'run') {
        await run.abandon();
        return isElsewhere ? undefined : begun.effect;
      }
      const fields = { pipeline: this.#records.id, phase: phase.name, attempt };
      const trace = this.#parts.runtime.measures.tracer?.begin('phase', fields);
      const work = (): ReturnType<PhaseRun['run']> => this.#run(run, phase.timeoutMs);
      const result = await traced(trace, work, ({ kind }) => kind === 'succeeded');
      if (this.#hold.lost !== undefined) return undefined;
      return (await this.#tell({ kind: 'ended', result })).effect;
    } finally {
      await run.abandon();
      await this.#release();
    }
  }

  /** Runs the command until it ends, or until the first of these stops it: time limit, lost hold, cancel, stop. */
  async #run(run: PhaseRun, timeoutMs: number | undefined): ReturnType<PhaseRun['run']> {
    const { runtime } = this.#parts;
    const reasons: StopReason[] = [
      // Half of the time between the loss of the hold and the end of its lease.
      [this.#hold.signal, () => Stop.replaced((runtime.options.sessionTtlMs * MARGIN) / 2)],
      [this.#taken.signal, () => Stop.cancelled],
    ];
    if (this.#held !== undefined && this.#held.holds.length > 0) {
      const lost = this.#held.signal;
      reasons.push([lost, () => Stop.holdLost(lost.reason)]);
    }
    const { signal } = this.#terms;
    // A signal of our own: many drivers may share the caller's signal, and many listeners on it would look like a leak.
    if (signal !== undefined) reasons.push([AbortSignal.any([signal]), () => Stop.stopped('its driver was stopped')]);
    const stop = new FirstStop(reasons);
    const timer =
      timeoutMs === undefined ? undefined : runtime.later(timeoutMs, () => stop.stop(Stop.timedOut(timeoutMs)), false);
    try {
      return await run.run(stop.signal);
    } finally {
      timer?.cancel();
      stop.forget();
    }
  }

  // The rest

  /** Repeats `work` while the store does not answer. Undefined if this driver has nothing left to do. */
  #patiently<T>(work: () => Promise<T>): Promise<T | undefined> {
    return unlessStopped(this.#parts.runtime, this.#over, work);
  }

  async #pause(ms: number): Promise<Effect | undefined> {
    if (!this.#terms.waits) return undefined;
    await this.#rest(ms);
    if (this.#over.aborted) return undefined;
    return (await this.#tell({ kind: 'rested' })).effect;
  }

  async #decide(): Promise<Effect | undefined> {
    const decision = this.#decision;
    this.#decision = undefined;
    if (decision === undefined) return undefined;
    return (await this.#tell({ kind: 'decided', ...decision })).effect;
  }

  #rest(ms: number): Promise<void> {
    return pause(ms, this.#over, this.#parts.runtime.clock);
  }

  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    await held?.release().catch(() => undefined);
  }

  #tell(command: WithoutToken<Extract<Ask, { token: number }>>): Promise<Answered> {
    return this.#ask({ ...command, token: this.#hold.token } as Ask);
  }

  async #ask(command: Ask): Promise<Answered> {
    const answered = await this.#records.ask(command, this.#hold.signal);
    if (answered.outcome.kind === 'replaced') this.#taken.abort();
    this.#show(answered.record);
    return answered;
  }

  /** Shows each record once: the watch delivers our own writes too, sometimes before the answer to them. */
  #show(record: PipelineRecord | undefined): void {
    const shown = `${record?.last} ${record?.lastDriven}`;
    if (record === undefined || shown === this.#shown) return;
    this.#shown = shown;
    this.#terms.onChange(record);
  }

  #shown = '';

  #isDriving = false;

  /** The record was changed by another process. */
  #heard(): void {
    if (!this.#isDriving) return;
    const { record } = this.#records;
    const isOurs = record !== undefined && record.driver?.token === this.#hold.token;
    this.#show(record);
    if (!isOurs || record.cancel !== undefined || hasEnded(record)) this.#taken.abort();
  }
}

type WithoutToken<Each> = Each extends { readonly token: number } ? Omit<Each, 'token'> : never;
