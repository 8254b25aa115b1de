/** Bugs that can be planted in either machine, about steps, the queue and repeats, and the search that has to find them. */
import fc from 'fast-check';
import type { Moment, Step } from '../../src/core/machine.ts';
import type { Command, Outcome, Resource } from './law.ts';
import { BrokenLaw } from './trial.ts';

export type Transition<State extends Resource, Asked extends Command> = (
  state: State,
  command: Asked,
  at: Moment,
) => Step<State, Outcome>;

export interface PlantedBug<State extends Resource, Asked extends Command> {
  readonly bug: string;
  readonly breaks: string;
  readonly planted: Transition<State, Asked>;
}

export function sharedBugs<State extends Resource, Asked extends Command>(
  transition: Transition<State, Asked>,
): readonly PlantedBug<State, Asked>[] {
  /** The step with another queue. */
  const waiting = (step: Step<State, Outcome>, queue: State['waiting']): Step<State, Outcome> => ({
    ...step,
    state: { ...step.state, waiting: queue },
  });
  return [
    {
      bug: 'nothing changed, but a copy comes back',
      breaks: 'no change is the same object, and a change is another',
      planted(state, command, at) {
        const step = transition(state, command, at);
        return step.state === state ? { ...step, state: { ...state } } : step;
      },
    },
    {
      bug: 'the last in the queue is forgotten',
      breaks: 'nobody who waits is forgotten',
      planted(state, command, at) {
        const step = transition(state, command, at);
        return step.outcome.kind === 'released' ? waiting(step, step.state.waiting.slice(0, -1)) : step;
      },
    },
    {
      bug: 'a request that was granted stays in the queue',
      breaks: 'a request that was answered waits no more, and is answered once',
      planted(state, command, at) {
        const step = transition(state, command, at);
        const granted = state.waiting.filter(({ id }) => step.answers.some((answer) => answer.id === id));
        return granted.length === 0 ? step : waiting(step, [...granted, ...step.state.waiting]);
      },
    },
    {
      bug: 'a stale hold is left to the next grant',
      breaks: 'who serves the queue leaves no stale hold in it, for its holders may leave without knowing of it',
      planted(state, command, at) {
        const step = transition(state, command, at);
        const onlyFrees = command.kind === 'settle' && step.answers.length === 0 && step.losses.length > 0;
        return onlyFrees ? { ...step, state, events: [], losses: [] } : step;
      },
    },
    {
      bug: 'a request that is sent again waits twice',
      breaks: 'a request that comes again changes nothing',
      planted(state, command, at) {
        const step = transition(state, command, at);
        const twice = state.waiting.filter(
          ({ id }) => command.kind === 'acquire' && command.again && command.id === id,
        );
        return twice.length === 0 ? step : { ...step, state: { ...state, waiting: [...state.waiting, ...twice] } };
      },
    },
    {
      bug: 'a request that is answered with queued is not written down',
      breaks: 'a request that is answered with queued, and no other, joins at the end',
      planted(state, command, at) {
        const step = transition(state, command, at);
        return step.outcome.kind === 'queued' ? { ...step, state } : step;
      },
    },
    {
      bug: 'a request that is granted holds nothing',
      breaks: 'a request that is granted does hold',
      planted(state, command, at) {
        const step = transition(state, command, at);
        return step.outcome.kind === 'acquired' ? { ...step, state } : step;
      },
    },
    {
      bug: 'everything is done in one write, however much it is',
      breaks: 'a step touches no more than one write takes',
      planted: (state, command, { most: _most, ...at }) => transition(state, command, at),
    },
  ];
}

/** The law that a search from `run` on finds broken; any other error as it is, and undefined if it finds nothing. */
export function lawBrokenIn<Ts>(trials: fc.IProperty<Ts>, run = 0): unknown {
  const { errorInstance } = fc.check(trials, { numRuns: 2000, seed: 1, path: String(run), endOnFailure: true });
  return errorInstance instanceof BrokenLaw ? errorInstance.law : errorInstance;
}
