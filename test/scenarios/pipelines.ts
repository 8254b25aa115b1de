/**
 * A world with one pipeline in it, on the bare machine. What can be said:
 *
 *     ann starts it                             … , and w1 drives it, while lock main is free and file go is there
 *     w1 drives it                              with a new token, larger than any before
 *     w1 looks                                  at the guards of where the pipeline is   … , holding     … , but not at G
 *     w1 looks before, w1 looks after           at those before or after the command
 *     w1 cannot have lock/main yet              w1 is refused lock/main, because "it would deadlock"
 *     w1 begins                                 … holding lock/main #7
 *     w1's command succeeds                     … with VERSION=1.2 URL=x      … , passing on 30000 letters
 *     w1's command fails: exit code 1
 *     w1's command times out after 10 min
 *     w1's command is cancelled
 *     w1 is stopped, and its command with it
 *     w1's pause is over
 *     ann decides through w1: rerun             (or skip)
 *     ann cancels it, because "enough"
 *     ann starts it again from build            after it has failed
 *
 * and of the world that guards look at:
 *
 *     lock main is free, lock main is held by ci-1
 *     file go is there, file go is not there, file go cannot be looked at: EACCES, nobody looks at file go
 *     task t is complete, task t does not exist
 */
import {
  checkGuard,
  type Effect,
  type Event,
  type Gathered,
  type Guard,
  type GuardOutcome,
  type Inputs,
  type Phase,
  type PhaseHold,
  type PhaseResult,
  type PipelineCommand,
  type PipelineOutcome,
  type PipelineRecord,
  pipelineTransition,
  type Runbook,
  spoken,
} from 'signalbox/core';
import type { Setting, Telling, World } from './story.ts';

/** Of each phase what is not as usual. */
export function aPipeline(...phases: readonly (Partial<Phase> & Pick<Phase, 'name'>)[]): Setting {
  return { onMachine: () => new PipelineWorld({ name: 'release', env: {}, phases: phases.map(aPhase) }) };
}

function aPhase(settings: Partial<Phase> & Pick<Phase, 'name'>): Phase {
  const usual = { pre: [], post: [], holds: [], retries: 0, backoffMs: 1_000, idempotent: false, env: {} };
  return { run: { shell: settings.name }, ...usual, ...settings };
}

type Ask = PipelineCommand extends infer Each ? (Each extends PipelineCommand ? Omit<Each, 'command'> : never) : never;
type Said = readonly string[];

class PipelineWorld implements World {
  readonly #runbook: Runbook;
  readonly #tokens = new Map<string, number>();
  readonly #facts = new Map<string, Gathered>();
  #record: PipelineRecord | undefined;
  #turn = 0;

  constructor(runbook: Runbook) {
    this.#runbook = runbook;
  }

  hear(line: string): Telling {
    this.#turn += 1;
    for (const [pattern, act] of this.#grammar) {
      const found = new RegExp(`^${pattern}$`).exec(line);
      if (found !== null) return { ...act(found.slice(1).map((part) => part ?? '')), state: this.#state() };
    }
    throw new Error(`no story goes like this: ${line}`);
  }

  readonly #grammar: readonly [string, (said: Said) => Omit<Telling, 'state'>][] = [
    ['(\\w+) starts it', ([by = '']) => this.#ask({ kind: 'start', id: 'release-7', by })],
    ['(\\w+) starts it, and (\\w+) drives it(?:, while (.+))?', (said) => this.#begun(said)],
    ['(\\w+) drives it', ([who = '']) => this.#drive(who)],
    ['(\\w+) drives it with its old token', ([who = '']) => this.#driveAs(who)],
    ['(\\w+) looks(?: (before|after))?(, holding)?(?:, but not at (\\w+))?', (said) => this.#look(said)],
    [
      '(\\w+) cannot have (.+) yet',
      ([who, what = '']) => this.#driven(who, { kind: 'waits', resources: what.split(' and ') }),
    ],
    ['(\\w+) is refused .+, because "(.*)"', ([who, why = '']) => this.#driven(who, { kind: 'refused', why })],
    ['(\\w+) begins(?: holding (\\S+) #(\\d+))?', (said) => this.#begin(said)],
    ["(\\w+)'s command succeeds(?: with (.+))?", ([who, outputs = '']) => this.#succeed(who, outputs)],
    [
      "(\\w+)'s command succeeds, passing on (\\d+) letters",
      ([who, size]) => this.#ended(who, { kind: 'succeeded', outputs: { BIG: 'x'.repeat(Number(size)) } }),
    ],
    ["(\\w+)'s command fails: (.+)", ([who, why = '']) => this.#ended(who, { kind: 'failed', why })],
    [
      "(\\w+)'s command times out after (.+)",
      ([who, after]) => this.#ended(who, { kind: 'failed', why: `timed out after ${after}` }),
    ],
    ["(\\w+)'s command is cancelled", ([who]) => this.#ended(who, { kind: 'cancelled' })],
    [
      '(\\w+) is stopped, and its command with it',
      ([who]) => this.#ended(who, { kind: 'stopped', why: 'its driver was stopped' }),
    ],
    ["(\\w+)'s pause is over", ([who]) => this.#driven(who, { kind: 'rested' })],
    [
      '(\\w+) decides through (\\w+): (rerun|skip)',
      ([by = '', who, choice]) =>
        this.#driven(who, { kind: 'decided', question: this.#record?.lastQuestion ?? 0, choice, by }),
    ],
    [
      '(\\w+) answers question (\\d+) through (\\w+): (rerun|skip)',
      ([by = '', question, who, choice]) =>
        this.#driven(who, { kind: 'decided', question: Number(question), choice, by }),
    ],
    ['(\\w+) cancels it, because "(.*)"', ([by = '', reason = '']) => this.#ask({ kind: 'cancel', by, reason })],
    ['(\\w+) starts it again from (\\w+)', ([by = '', from = '']) => this.#ask({ kind: 'reopen', by, from })],
    ['nobody looks at (\\w+) (\\w+)', ([kind, name]) => this.#fact(`${kind}:${name}`, undefined)],
    ['(\\w+) (\\w+) cannot be looked at: (.+)', ([kind, name, error = '']) => this.#fact(`${kind}:${name}`, { error })],
    ['lock (\\w+) is free', ([name]) => this.#fact(`lock:${name}`, { value: null })],
    [
      'lock (\\w+) is held by (\\S+)',
      ([name, holder = '']) => this.#fact(`lock:${name}`, { value: { holders: [{ holder, stale: false }] } }),
    ],
    ['file (\\w+) is (not )?there', ([name, not]) => this.#fact(`file:${name}`, { value: { exists: not === '' } })],
    ['task (\\w+) does not exist', ([name]) => this.#fact(`task:${name}`, { value: null })],
    ['task (\\w+) is complete', ([name]) => this.#fact(`task:${name}`, { value: { status: 'complete' } })],
  ];

  #begun([by = '', who = '', facts = '']: Said): Omit<Telling, 'state'> {
    if (facts !== '') for (const fact of facts.split(' and ')) this.hear(fact);
    const started = this.#ask({ kind: 'start', id: 'release-7', by });
    const driven = this.#drive(who);
    return { ...driven, events: [...(started.events ?? []), ...(driven.events ?? [])] };
  }

  #fact(key: string, gathered: Gathered | undefined): Omit<Telling, 'state'> {
    if (gathered === undefined) this.#facts.delete(key);
    else this.#facts.set(key, gathered);
    return {};
  }

  #drive(who: string): Omit<Telling, 'state'> {
    this.#tokens.set(who, Math.max(0, ...this.#tokens.values()) + 1);
    return this.#driveAs(who);
  }

  #driveAs(holder: string): Omit<Telling, 'state'> {
    return this.#ask({ kind: 'drive', holder, token: this.#tokens.get(holder) ?? 0 });
  }

  #look([who, where, holding, without]: Said): Omit<Telling, 'state'> {
    const { when: here = 'before', phase = 0 } = this.#record?.step ?? {};
    const when = where === 'before' || where === 'after' ? where : here === 'after' ? 'after' : 'before';
    const { pre = [], post = [] } = this.#runbook.phases[phase] ?? {};
    const guards = when === 'before' ? pre : post;
    const outcomes = guards.filter(({ id }) => id !== without).map((guard) => this.#check(guard));
    return this.#driven(who, { kind: 'judged', when, outcomes, ...(holding !== '' && { isHeld: true }) });
  }

  #check(guard: Guard): GuardOutcome {
    return checkGuard(guard, Object.fromEntries(this.#facts) as Inputs);
  }

  #begin([who, resource, token]: Said): Omit<Telling, 'state'> {
    const tokens = resource === undefined || resource === '' ? {} : { [resource]: Number(token) };
    return this.#driven(who, { kind: 'begun', tokens });
  }

  #succeed(who: string | undefined, outputs: string): Omit<Telling, 'state'> {
    const pairs = outputs === '' ? [] : outputs.split(' ').map((pair) => pair.split('='));
    return this.#ended(who, { kind: 'succeeded', outputs: Object.fromEntries(pairs) as Record<string, string> });
  }

  #ended(who: string | undefined, result: PhaseResult): Omit<Telling, 'state'> {
    return this.#driven(who, { kind: 'ended', result });
  }

  #driven(who = '', command: object): Omit<Telling, 'state'> {
    return this.#ask({ ...command, token: this.#tokens.get(who) ?? 0 } as Ask);
  }

  #ask(ask: Ask): Omit<Telling, 'state'> {
    const at = { now: this.#turn, revision: this.#turn, gone: () => false };
    const command = { ...ask, command: `c-${this.#turn}` } as PipelineCommand;
    const { state, outcome, events, effect } = pipelineTransition(this.#runbook, this.#record, command, at);
    this.#record = state;
    return { outcome: answerTold(outcome, effect), events: events.map(eventTold) };
  }

  #state(): string {
    const record = this.#record;
    if (record === undefined) return 'not started';
    const phases = record.phases.map(({ name, state, runs, warnings = [] }) => {
      const often = runs < 2 ? '' : `, ${runs} runs`;
      return `${name} ${state}${often}${warnings.map((warning) => ` (warned: ${warning})`).join('')}`;
    });
    const outputs = Object.entries(record.outputs).map(([name, value]) => `${name}=${value}`);
    const by = record.driver === undefined ? '' : ` by ${record.driver.holder} #${record.driver.token}`;
    return [
      `${record.state}${by}${whereTold(record)}`,
      phases.join(', '),
      ...(outputs.length === 0 ? [] : [outputs.join(' ')]),
      ...(record.cancel === undefined || record.endedAt !== undefined ? [] : [`${record.cancel.by} wants it to end`]),
    ].join(' | ');
  }
}

/** What the one who asked is told, and has to do next. */
function answerTold(outcome: PipelineOutcome, effect: Effect): string {
  return `${outcome.kind}; ${effectTold(effect)}`;
}

function effectTold(effect: Effect): string {
  switch (effect.kind) {
    case 'evaluate': {
      const again = effect.againMs === undefined ? '' : `, again after ${spoken(effect.againMs)} at the latest`;
      return `look at the guards ${effect.when} ${effect.phase.name}${again}`;
    }
    case 'acquire':
      return `acquire ${effect.holds.map(holdTold).join(' and ')}`;
    case 'begin':
    case 'run':
      return `${effect.kind} ${effect.phase.name}${effect.attempt === 1 ? '' : `, attempt ${effect.attempt}`}`;
    case 'pause':
      return `pause for ${spoken(effect.ms)}`;
    case 'ask':
      return 'ask a person';
    case 'leave':
      return 'leave';
  }
}

function holdTold(hold: PhaseHold): string {
  return 'lock' in hold ? `lock/${hold.lock}` : `semaphore/${hold.semaphore}`;
}

function eventTold({ type, holder, at: _, ...details }: Event): string {
  const told = Object.entries(details).map(([name, detail]) =>
    name === 'phase' || name === 'name' || name === 'guard'
      ? String(detail)
      : `${name}: ${Array.isArray(detail) ? detail.join('; ') : String(detail)}`,
  );
  return [type, holder, ...told].join(', ').replace(', ', ' ');
}

function whereTold({ step, state, blocked, reason, phases }: PipelineRecord): string {
  if (state === 'pending') return '';
  const where = ` ${step.when} ${phases[step.phase]?.name ?? ''}${step.attempt === 1 ? '' : `, attempt ${step.attempt}`}`;
  if (state === 'done') return '';
  if (blocked === undefined) return `${where}${reason === undefined ? '' : `: ${reason}`}`;
  switch (blocked.on) {
    case 'guard': {
      const guards = blocked.guards.map(({ id, reasons, outlook }) => `${id} (${outlook}): ${reasons.join('; ')}`);
      const wakes = [...blocked.wakeOn, ...blocked.polled.map((key) => `looking at ${key}`)];
      const again = blocked.againMs === undefined ? [] : [`after ${spoken(blocked.againMs)}`];
      return `${where} on guard ${guards.join(' and ')}; woken by ${[...wakes, ...again].join(', ')}`;
    }
    case 'holds':
      return `${where} on ${blocked.resources.join(' and ')}`;
    case 'backoff':
      return `${where} for ${spoken(blocked.againMs)}: ${blocked.why}`;
    case 'person':
      return `${where} for a person: ${blocked.why}`;
  }
}
