/** Laws about the record: what it says is true, it can be kept, and it is written only if something changed. */
import { same } from '../law.ts';
import { hasChanged, isOver, type Laws, type Seen, tells } from './law.ts';

const PER_PHASE = 12_000;
const BESIDES = 8_000;
const REFUSALS = ['replaced', 'misplaced', 'over', 'exists', 'missing', 'not-asked', 'answered', 'another-question'];

export const recordLaws: Laws = {
  'a pipeline that has ended never changes': (seen) =>
    isOver(seen.before) && hasChanged(seen) ? `by ${seen.command.kind}` : undefined,

  'it says what it is blocked on exactly while it is blocked, and that is about where it is': ({ step, runbook }) => {
    const { state } = step;
    if (state === undefined) return undefined;
    if ((state.state === 'blocked') !== 'blocked' in state) return `it is ${state.state}`;
    const { blocked } = state;
    const phase = runbook.phases[state.step.phase];
    if (blocked === undefined || phase === undefined) return undefined;
    const { when } = state.step;
    if (blocked.on !== 'guard') return when === 'before' ? undefined : `blocked on ${blocked.on} ${when}`;
    const ids = { before: phase.pre, during: [], after: phase.post }[when].map(({ id }) => id);
    const strange = blocked.guards.find(({ id }) => !ids.includes(id));
    return strange === undefined ? undefined : `blocked on ${strange.id} ${when} ${phase.name}`;
  },

  'a question has a number that none had before, and keeps it while it is open': ({ before, step, past, command }) => {
    const asked = step.state?.blocked?.on === 'person' ? step.state.blocked.question : undefined;
    if (asked === undefined) return undefined;
    const open = before?.blocked?.on === 'person' ? before.blocked.question : undefined;
    if (asked === open) return undefined;
    if (open !== undefined && command.kind !== 'decided') return `${open} became ${asked}`;
    return past.questions.every((question) => question < asked) ? undefined : `${asked} was a question before`;
  },

  'it is blocked on holds only where there are some': ({ step, runbook }) => {
    const { blocked, step: where } = step.state ?? {};
    if (blocked?.on !== 'holds') return undefined;
    return runbook.phases[where?.phase ?? 0]?.holds.length === 0 ? 'there are none' : undefined;
  },

  'a pipeline that is blocked, resumes or ends is reported': (seen) => {
    const { before, step } = seen;
    const { state } = step;
    if (!hasChanged(seen) || state === undefined) return undefined;
    if (before === undefined) return tells(seen, 'pipeline:started') ? undefined : 'that it was started';
    if (isOver(state)) return tells(seen, `pipeline:${state.state}`) ? undefined : `that it is ${state.state}`;
    if (state.blocked?.on !== undefined && state.blocked.on !== before.blocked?.on) {
      return tells(seen, 'pipeline:blocked') ? undefined : 'that it is blocked';
    }
    const isFree = before.blocked !== undefined && state.blocked === undefined;
    return isFree && !tells(seen, 'pipeline:resumed') ? 'that it goes on' : undefined;
  },

  'nothing changed means the very same record, and what was refused changed nothing': (seen) => {
    const { before, step } = seen;
    if (!hasChanged(seen)) return undefined;
    if (REFUSALS.includes(step.outcome.kind)) return `${step.outcome.kind}, and it changed`;
    return same(step.state, before) ? 'a copy' : undefined;
  },

  'who wrote it is written into it': (seen) => {
    const { command, step } = seen;
    if (!hasChanged(seen)) return undefined;
    const mark = 'token' in command ? step.state?.lastDriven : step.state?.last;
    return mark === command.command ? undefined : `it says ${mark}`;
  },

  'it survives being written and read, and so does every decision on it': (seen) => {
    const { transition, runbook, before, command, at, step } = seen;
    if (step.state !== undefined && !same(copy(step.state), step.state)) return 'the record does not';
    const again = transition(runbook, before === undefined ? undefined : copy(before), command, at);
    return same(copy(again), copy(step)) ? undefined : 'the decision does not';
  },

  'its size has a limit, however long people and programs talk': ({ step, runbook }) => {
    const size = JSON.stringify(step.state ?? {}).length;
    return size <= BESIDES + PER_PHASE * runbook.phases.length ? undefined : `${size}`;
  },

  'no phase is left running by a pipeline that has ended': ({ step }: Seen) => {
    const left = isOver(step.state) ? step.state?.phases.find(({ state }) => state === 'running') : undefined;
    return left === undefined ? undefined : `${left.name} is`;
  },
};

function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
