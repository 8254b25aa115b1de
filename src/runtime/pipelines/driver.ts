/**
 * Drives one pipeline: carries out what the core says is to be done, and tells it what came of it. It has the driver's
 * hold for as long as it drives; when that is lost, the command is ended and nothing is written any more.
 */
import type { Adapters } from '../../adapters/adapters.ts';
import {
  type Choice,
  type Condition,
  type Effect,
  type GuardOutcome,
  type Guard,
  hasEnded,
  type Phase,
  type PipelineRecord,
  pipelineHolder,
  requiredInputs,
  waitsForItsTurn,
} from '../../core/index.ts';
import type { GuardExecutor } from '../guards/executor.ts';
import type { GuardWatch } from '../guards/watch.ts';
import type { LockHold } from '../holds/lock.ts';
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { unlessStopped } from '../write/write-once.ts';
import type { HoldSet, TogetherAttempt, TogetherOptions, Want } from '../holds/together.ts';
import { type RunSpec, variablesOf } from './run-spec.ts';
import type { PipelineFeed } from './feed.ts';
import { refuseUnlessRunnable } from './functions.ts';
import { pipelineResource } from './keys.ts';
import type { Answered, Ask, RecordStore } from './record-store.ts';
import { MARGIN } from '../session/session.ts';
import { PhaseRun, type RunParts } from './phase-run.ts';
import { Stop } from './stop.ts';

/** What a driver needs of the signalbox that it is part of. */
export interface DriverParts extends RunParts {
  readonly runtime: Runtime;
  readonly feed: PipelineFeed;
  readonly guards: GuardExecutor;
  acquireAll(wants: readonly Want[], options: TogetherOptions): Promise<HoldSet>;
  tryAcquireAll(wants: readonly Want[], options: TogetherOptions): Promise<TogetherAttempt>;
}

export interface DriveTerms {
  /** What guards look at, with the variables that the commands of the phase have. */
  readonly adapters: (variables: Readonly<Record<string, string>>) => Adapters;
  /** Aborted, the command is ended and the pipeline left for somebody else. */
  readonly signal?: AbortSignal | undefined;
  /** Whether it stays while the pipeline is blocked; otherwise it leaves it so. */
  readonly waits: boolean;
  /** What a person decided, about a question that is open. */
  readonly decision?: { readonly question: number; readonly choice: Choice; readonly by: string } | undefined;
  /** Told of every change that this driver makes. */
  readonly onChange: (record: PipelineRecord) => void;
}

/** Somebody who held it with the same name has not let go of it yet. */
const REENTRY_PAUSE_MS = 200;

export class PipelineDriver {
  readonly #parts: DriverParts;
  readonly #records: RecordStore;
  readonly #spec: RunSpec;
  readonly #hold: LockHold;
  readonly #terms: DriveTerms;
  readonly #holder: string;
  /** Aborts when somebody cancels the pipeline, or takes it over. */
  readonly #taken = new AbortController();
  readonly #over: AbortSignal;
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
  }

  /** Until it is over, blocked for a person, stopped, or somebody else's. */
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
      // What was heard meanwhile was about the one before us.
      this.#heard();
      this.#decision = this.#terms.decision;
      while (effect !== undefined && !this.#over.aborted) effect = await this.#carryOut(effect);
      if (this.#hold.lost !== undefined) throw this.#hold.lost;
      return this.#records.record;
    } catch (error) {
      // Whatever could not be done after that, could not be done because of that.
      throw this.#hold.lost ?? error;
    } finally {
      unlisten();
      alive?.cancel();
      await this.#release();
    }
  }

  /** What is to be done after it; undefined if there is nothing left for this driver. */
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
        const outcomes: readonly GuardOutcome[] | undefined = await this.#lookAgain(guards, phase, before);
        if (outcomes === undefined) return undefined;
        before = outcomes;
        const { pollMs } = this.#spec;
        const { effect, isFound } = await this.#tell({ kind: 'judged', when, outcomes, pollMs });
        // Those of the next phase are to be looked at next: these have passed.
        const isBlocked = effect.kind === 'evaluate' && effect.when === when && effect.phase.name === phase.name;
        if (!isBlocked) return effect;
        // Whether these passed got lost with the answer.
        if (isFound === true) continue;
        if (!this.#terms.waits) return undefined;
        if (when === 'before' && waitsForItsTurn(phase, outcomes)) {
          return await this.#waitFor({ kind: 'acquire', phase, holds: phase.holds });
        }
        if (watch === undefined) {
          watch = await this.#patiently(() => this.#parts.guards.watch(guards, { pollMs, own: this.#holder }));
          if (watch === undefined) return undefined;
          // What happened between the look and the watch was not heard.
          continue;
        }
        await this.#nextLook(watch, effect.againMs);
        if (this.#over.aborted) return undefined;
      }
    } finally {
      watch?.close();
    }
  }

  /**
   * The first time at all of them, so that every reason is told. After that those that run commands are looked at only
   * once the others pass: nobody wants the tests to be run every two seconds while an issue is open.
   */
  async #lookAgain(
    guards: readonly Guard[],
    phase: Phase,
    before: readonly GuardOutcome[],
  ): Promise<readonly GuardOutcome[] | undefined> {
    const cheap = guards.filter(({ condition }) => !runsCommands(condition));
    if (before.length === 0 || cheap.length === guards.length) return this.#check(guards, phase);
    const first = await this.#check(cheap, phase);
    if (first === undefined) return undefined;
    const isOpen = cheap.some(({ id, onFailure }) => onFailure !== 'warn' && !first.some(passes(id)));
    const costly = guards.filter((guard) => !cheap.includes(guard));
    const second = isOpen ? before : await this.#check(costly, phase);
    return second === undefined
      ? undefined
      : guards.map(({ id }) => outcomeOf(id, first) ?? outcomeOf(id, second)).filter((one) => one !== undefined);
  }

  /** Undefined if there is nothing left for this driver. */
  async #check(guards: readonly Guard[], phase: Phase): Promise<readonly GuardOutcome[] | undefined> {
    if (this.#over.aborted) return undefined;
    if (guards.length === 0) return [];
    const { runtime } = this.#parts;
    const told = guards.map(({ id }) => ({
      type: 'guard:evaluating',
      at: runtime.clock.now(),
      holder: this.#hold.holder,
      guard: id,
      phase: phase.name,
    }));
    runtime.emit(pipelineResource(this.#records.id), told);
    const adapters = this.#terms.adapters(variablesOf(this.#spec, this.#records.record, phase));
    const terms = { signal: this.#over, own: this.#holder, adapters, isQuiet: true };
    try {
      return await this.#parts.guards.check(guards, terms);
    } catch (error) {
      if (this.#over.aborted) return undefined;
      throw error;
    }
  }

  async #nextLook(watch: GuardWatch, againMs: number | undefined): Promise<void> {
    if (againMs === undefined) return void (await watch.next(this.#over));
    const enough = new AbortController();
    const timer = this.#parts.runtime.later(againMs, () => enough.abort(), false);
    await watch.next(AbortSignal.any([this.#over, enough.signal]));
    timer.cancel();
  }

  // Holds

  async #acquire({ phase, holds }: Extract<Effect, { kind: 'acquire' }>): Promise<Effect | undefined> {
    const options = this.#holdOptions(phase.name);
    const attempt = await this.#patiently(() => this.#parts.tryAcquireAll(holds, options));
    if (attempt === undefined) return undefined;
    if (attempt.kind === 'acquired' && (await this.#took(attempt.holds))) {
      return { kind: 'begin', phase, attempt: this.#records.record?.step.attempt ?? 1 };
    }
    if (attempt.kind === 'refused') {
      const never = attempt.refusals.find(({ refusal }) => ['impossible', 'capacity-mismatch'].includes(refusal.kind));
      if (never !== undefined) return this.#refused(new NotAcquired(never.resource, never.refusal));
    }
    const resources = attempt.kind === 'refused' ? attempt.refusals.map(toldOf) : namesOf(holds);
    const { effect } = await this.#tell({ kind: 'waits', resources });
    if (effect.kind !== 'acquire') return effect;
    if (!this.#terms.waits) return undefined;
    return this.#waitFor(effect);
  }

  async #waitFor({ phase, holds }: Extract<Effect, { kind: 'acquire' }>): Promise<Effect | undefined> {
    try {
      const options = { ...this.#holdOptions(phase.name), signal: this.#over };
      const held = await this.#patiently(() => this.#parts.acquireAll(holds, options));
      if (held === undefined) return undefined;
      if (!(await this.#took(held))) return await this.#pauseThenLookAgain(phase);
    } catch (error) {
      if (this.#over.aborted) return undefined;
      if (error instanceof NotAcquired) return this.#refused(error);
      throw error;
    }
    // It may have taken long: what was true before need not be now.
    const outcomes = await this.#check(phase.pre, phase);
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

  /** False, and given back, if it rests on a hold that ends with somebody else. */
  async #took(held: HoldSet): Promise<boolean> {
    this.#held = held;
    if (!held.holds.some(({ isReentry }) => isReentry)) return true;
    await this.#release();
    return false;
  }

  /** From the guards on: the other one may have it for long. */
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
      // The pipeline is somewhere else than we thought: what runs there is not what we have just started.
      const isElsewhere = begun.outcome.kind === 'misplaced';
      if (isElsewhere || begun.effect.kind !== 'run') {
        await run.abandon();
        return isElsewhere ? undefined : begun.effect;
      }
      const result = await this.#run(run, phase.timeoutMs);
      if (this.#hold.lost !== undefined) return undefined;
      return (await this.#tell({ kind: 'ended', result })).effect;
    } finally {
      await run.abandon();
      await this.#release();
    }
  }

  /** Ended early by the time limit, a lost hold, a cancel, a stop: whichever comes first is why. */
  async #run(run: PhaseRun, timeoutMs: number | undefined): ReturnType<PhaseRun['run']> {
    const stop = new AbortController();
    const listeners: [AbortSignal, () => Stop][] = [
      // Half of the time between the loss and the end of the lease.
      [this.#hold.signal, () => Stop.replaced((this.#parts.runtime.options.sessionTtlMs * MARGIN) / 2)],
      [this.#taken.signal, () => Stop.cancelled],
    ];
    if (this.#held !== undefined && this.#held.holds.length > 0) {
      const lost = this.#held.signal;
      listeners.push([lost, () => Stop.holdLost(lost.reason)]);
    }
    const { signal } = this.#terms;
    // One of our own: the same signal may stop any number of drivers, and so many listeners look like a leak.
    const stopped = signal === undefined ? [] : [AbortSignal.any([signal])];
    for (const own of stopped) listeners.push([own, () => Stop.stopped('its driver was stopped')]);
    const undo = listeners.map(([of, why]) => {
      const onAbort = (): void => stop.abort(why());
      if (of.aborted) onAbort();
      else of.addEventListener('abort', onAbort, { once: true });
      return () => of.removeEventListener('abort', onAbort);
    });
    const timer =
      timeoutMs === undefined
        ? undefined
        : this.#parts.runtime.later(timeoutMs, () => stop.abort(Stop.timedOut(timeoutMs)), false);
    try {
      return await run.run(stop.signal);
    } finally {
      timer?.cancel();
      for (const each of undo) each();
    }
  }

  // The rest

  /** A store that is away for a moment is asked again. Undefined if there is nothing left for this driver. */
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
    return new Promise((resolve) => {
      const over = (): void => {
        timer.cancel();
        this.#over.removeEventListener('abort', over);
        resolve();
      };
      const timer = this.#parts.runtime.later(ms, over, false);
      this.#over.addEventListener('abort', over, { once: true });
      if (this.#over.aborted) over();
    });
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

  /** What we wrote comes back to us by the watch, sometimes before the answer. */
  #show(record: PipelineRecord | undefined): void {
    const shown = `${record?.last} ${record?.lastDriven}`;
    if (record === undefined || shown === this.#shown) return;
    this.#shown = shown;
    this.#terms.onChange(record);
  }

  #shown = '';

  #isDriving = false;

  /** Somebody else wrote the record. */
  #heard(): void {
    if (!this.#isDriving) return;
    const { record } = this.#records;
    const isOurs = record !== undefined && record.driver?.token === this.#hold.token;
    this.#show(record);
    if (!isOurs || record.cancel !== undefined || hasEnded(record)) this.#taken.abort();
  }
}

function passes(id: string): (outcome: GuardOutcome) => boolean {
  return ({ guard, kind }) => guard === id && kind === 'passed';
}

function outcomeOf(id: string, outcomes: readonly GuardOutcome[]): GuardOutcome | undefined {
  return outcomes.find(({ guard }) => guard === id);
}

function runsCommands(condition: Condition): boolean {
  return requiredInputs(condition).some(({ kind }) => kind === 'command');
}

type WithoutToken<Each> = Each extends { readonly token: number } ? Omit<Each, 'token'> : never;

/** `lock/main: held by ada (merging)`. */
function toldOf({ resource, refusal }: { readonly resource: string; readonly refusal: Refusal }): string {
  return new NotAcquired(resource, refusal).message;
}

function namesOf(holds: readonly Want[]): readonly string[] {
  return holds.map((want) => ('lock' in want ? `lock/${want.lock}` : `semaphore/${want.semaphore}`));
}
