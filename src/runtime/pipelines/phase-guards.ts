/** The guards of a phase, as its driver checks them: all at first, later the cheap guards before the ones that run commands. */
import type { Adapters } from '../../adapters/adapters.ts';
import { type Guard, type GuardOutcome, type Phase, pipelineHolder, requiredInputs } from '../../core/index.ts';
import type { GuardExecutor } from '../guards/executor.ts';
import { type GuardWatch, nextWithin } from '../guards/watch.ts';
import type { Runtime } from '../runtime.ts';
import { pipelineResource } from './keys.ts';
import type { RecordStore } from './record-store.ts';
import { type RunSpec, variablesOf } from './run-spec.ts';

export interface PhaseGuardsParts {
  readonly runtime: Runtime;
  readonly guards: GuardExecutor;
}

export interface PhaseGuardsTerms {
  /** What guards look at, given the variables that the commands of the phase get. */
  readonly adapters: (variables: Readonly<Record<string, string>>) => Adapters;
}

interface Driven extends PhaseGuardsParts, PhaseGuardsTerms {
  readonly records: RecordStore;
  readonly spec: RunSpec;
  /** The holder name of the driver, for the events. */
  readonly driver: string;
  /** Aborts when the driver has nothing left to do. */
  readonly over: AbortSignal;
}

export class PhaseGuards {
  readonly #of: Driven;

  constructor(of: Driven) {
    this.#of = of;
  }

  /**
   * The first look is at all guards, so that the record has every reason. Later looks leave out guards that run commands
   * until the others pass: an open issue must not cost a test run every two seconds.
   */
  async lookAgain(
    guards: readonly Guard[],
    phase: Phase,
    before: readonly GuardOutcome[],
  ): Promise<readonly GuardOutcome[] | undefined> {
    const cheap = guards.filter(({ condition }) => requiredInputs(condition).every(({ kind }) => kind !== 'command'));
    if (before.length === 0 || cheap.length === guards.length) return this.check(guards, phase);
    const first = await this.check(cheap, phase);
    if (first === undefined) return undefined;
    const isOpen = cheap.some(({ id, onFailure }) => onFailure !== 'warn' && outcomeOf(id, first)?.kind !== 'passed');
    const costly = guards.filter((guard) => !cheap.includes(guard));
    const second = isOpen ? before : await this.check(costly, phase);
    if (second === undefined) return undefined;
    return guards.map(({ id }) => outcomeOf(id, first) ?? outcomeOf(id, second)).filter((one) => one !== undefined);
  }

  /** Undefined if the driver has nothing left to do. */
  async check(guards: readonly Guard[], phase: Phase): Promise<readonly GuardOutcome[] | undefined> {
    const { runtime, records, over } = this.#of;
    if (over.aborted) return undefined;
    if (guards.length === 0) return [];
    const { id } = records;
    const events = guards.map((guard) => ({
      type: 'guard:evaluating',
      at: runtime.clock.now(),
      holder: this.#of.driver,
      guard: guard.id,
      phase: phase.name,
    }));
    runtime.emit(pipelineResource(id), events);
    const adapters = this.#of.adapters(variablesOf(this.#of.spec, records.record, phase));
    const terms = { signal: over, own: pipelineHolder(id), adapters, isQuiet: true };
    try {
      return await this.#of.guards.check(guards, terms);
    } catch (error) {
      if (over.aborted) return undefined;
      throw error;
    }
  }

  /** Waits until another look is worth it, or `againMs` have passed. */
  async nextLook(watch: GuardWatch, againMs: number | undefined): Promise<void> {
    await nextWithin(watch, againMs, this.#of.runtime.clock, this.#of.over);
  }
}

function outcomeOf(id: string, outcomes: readonly GuardOutcome[]): GuardOutcome | undefined {
  return outcomes.find(({ guard }) => guard === id);
}
