/**
 * A pipeline on trial: drivers carry out what they are told, die, come back and talk out of turn, people cancel and decide,
 * and every step is held against the laws.
 */
import type { Guard, GuardOutcome } from '../../../src/core/guard/guard.ts';
import { BrokenLaw } from '../trial.ts';
import type { Moment, Token } from '../../../src/core/machine.ts';
import type { Choice } from '../../../src/core/pipeline/question.ts';
import type {
  DriverCommand,
  Effect,
  PhaseResult,
  PipelineCommand,
  PipelineTransition,
} from '../../../src/core/pipeline/command.ts';
import type { PipelineRecord } from '../../../src/core/pipeline/record.ts';
import type { Phase, Runbook } from '../../../src/core/pipeline/runbook.ts';
import type { Laws, Past, Seen, Transition } from './law.ts';
import { beginning, remember } from './past.ts';

export type Move =
  | { readonly do: 'start' }
  /** The driver carries out what it was told. */
  | { readonly do: 'follow'; readonly luck: Luck }
  /** The driver dies, or seems to, and another takes over. */
  | { readonly do: 'take over' }
  | { readonly do: 'cancel'; readonly reason: string }
  /** The last driver, or an earlier one, says something that need not make sense; `late`: how many came after it. */
  | { readonly do: 'say'; readonly late: number; readonly command: DriverCommand }
  | { readonly do: 'judge'; readonly late: number; readonly when: 'before' | 'after'; readonly luck: Luck }
  /** A person answers a question: `ago` 0 is the last one, 1 the one before it, -1 one that has not been asked. */
  | { readonly do: 'answer'; readonly ago: number; readonly choice: Choice }
  /** One who is back, or who was never let in. */
  | { readonly do: 'drive'; readonly late: number };

/** How things go for one who carries something out. */
export interface Luck {
  readonly fates: readonly Fate[];
  readonly result: PhaseResult;
  readonly holds: 'had' | 'waits' | 'refused';
  readonly choice: Choice;
  readonly words: string;
}

/** Of a guard. */
export type Fate = 'passed' | 'open' | 'stuck' | 'never' | 'in vain' | 'not judged';

export class Trial {
  readonly #transition: Transition;
  readonly #runbook: Runbook;
  readonly #laws: Laws;
  #record: PipelineRecord | undefined;
  #past: Past;
  #effect: Effect = { kind: 'leave' };
  #token: Token = 0;
  #turn = 0;

  constructor(transition: Transition, runbook: Runbook, laws: Laws) {
    this.#transition = transition;
    this.#runbook = frozen(runbook);
    this.#laws = laws;
    this.#past = beginning(runbook);
  }

  get record(): PipelineRecord | undefined {
    return this.#record;
  }

  make(move: Move): void {
    switch (move.do) {
      case 'start':
        return void this.#say({ kind: 'start', id: 'p-1', by: 'ann' });
      case 'cancel':
        return void this.#say({ kind: 'cancel', by: 'ann', reason: move.reason });
      case 'take over':
        this.#token += 1;
        return this.#drive(this.#token);
      case 'drive':
        return this.#drive(Math.max(0, this.#token - move.late));
      case 'say':
        return this.#driven(move.command, move.late);
      case 'judge':
        return this.#driven(this.#judged(move.when, move.luck), move.late);
      case 'answer':
        return this.#answer(move.ago, move.choice);
      case 'follow':
        return this.#follow(move.luck);
    }
  }

  #drive(token: Token): void {
    const { effect, outcome } = this.#say({ kind: 'drive', holder: `w${token}`, token });
    if (token === this.#token && outcome.kind === 'ok') this.#effect = effect;
  }

  #driven(command: DriverCommand, late = 0): void {
    const { effect } = this.#say({ ...command, token: this.#token - late });
    if (late === 0) this.#effect = effect;
  }

  #follow(luck: Luck): void {
    const effect = this.#effect;
    switch (effect.kind) {
      case 'evaluate':
        return this.#driven(this.#judged(effect.when, luck));
      case 'acquire':
        return this.#acquire(effect.phase, luck);
      case 'begin':
        return this.#driven({ kind: 'begun', tokens: {} });
      case 'run':
        return this.#driven({ kind: 'ended', result: luck.result });
      case 'pause':
        return this.#driven({ kind: 'rested' });
      case 'ask':
        return this.#answer(0, luck.choice);
      case 'leave':
        return undefined;
    }
  }

  #answer(ago: number, choice: Choice): void {
    const { questions } = this.#past;
    const question = questions.at(-1 - ago) ?? 0;
    return this.#driven({
      kind: 'decided',
      question: ago < 0 ? (questions.at(-1) ?? 0) - ago : question,
      choice,
      by: 'ann',
    });
  }

  #acquire(phase: Phase, luck: Luck): void {
    if (luck.holds === 'waits') return this.#driven({ kind: 'waits', resources: ['lock/main'] });
    if (luck.holds === 'refused') return this.#driven({ kind: 'refused', why: luck.words });
    return this.#driven({ ...this.#judged('before', luck), isHeld: true });
  }

  #judged(when: 'before' | 'after', { fates, words }: Luck): Extract<DriverCommand, { kind: 'judged' }> {
    const phase = this.#runbook.phases[this.#record?.step.phase ?? 0];
    const guards = (when === 'before' ? phase?.pre : phase?.post) ?? [];
    const outcomes = guards.flatMap((guard, at) => outcomeOf(guard, fates[at % fates.length] ?? 'passed', words));
    return { kind: 'judged', when, outcomes };
  }

  #say(ask: object): PipelineTransition {
    const command = frozen({ ...ask, command: `c-${++this.#turn}` } as PipelineCommand);
    const at: Moment = { now: this.#turn, revision: this.#turn, gone: () => false };
    const before = this.#record;
    const step = frozen(this.#decide(before, command, at));
    const [transition, runbook, past] = [this.#transition, this.#runbook, this.#past];
    const seen: Seen = { transition, runbook, before, command, at, step, past };
    for (const [law, isBroken] of Object.entries(this.#laws)) {
      const detail = isBroken(seen);
      if (detail !== undefined) throw new BrokenLaw(law, detail, { before, command, step: step as never });
    }
    this.#past = remember(seen);
    this.#record = step.state;
    return step;
  }

  #decide(before: PipelineRecord | undefined, command: PipelineCommand, at: Moment): PipelineTransition {
    try {
      return this.#transition(this.#runbook, before, command, at);
    } catch (error) {
      throw new BrokenLaw(NOTHING_THROWS, `${command.kind}: ${String(error)}`);
    }
  }
}

export const NOTHING_THROWS = 'whatever is said is answered, and nothing is thrown';

function outcomeOf({ id, onFailure = 'block' }: Guard, fate: Fate, words: string): readonly GuardOutcome[] {
  if (fate === 'not judged') return [];
  if (fate === 'passed') return [{ kind: 'passed', guard: id }];
  if (fate === 'in vain') return [{ kind: 'needsInput', guard: id, missing: [{ key: 'lock:main', error: words }] }];
  return [{ kind: 'failed', guard: id, action: onFailure, reasons: [words], outlook: fate }];
}

/** So that a machine that changed what it was given would stumble over it. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
