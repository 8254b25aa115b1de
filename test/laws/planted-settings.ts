/** Bugs about the rules that bind all holders, to be planted in either machine. */
import type { Command, Resource } from './law.ts';
import type { PlantedBug, Transition } from './planted-shared.ts';

export function settingsBugs<State extends Resource, Asked extends Command>(
  transition: Transition<State, Asked>,
): readonly PlantedBug<State, Asked>[] {
  const withoutLimits = (state: State): State => {
    const { limits: _limits, ...record } = state.record;
    return { ...state, record } as State;
  };
  return [
    {
      bug: 'a grant does not look at the limits',
      breaks: 'a grant has the shorter of the times that were asked for and that the resource allows',
      planted(state, command, at) {
        if (command.kind !== 'acquire' && command.kind !== 'release') return transition(state, command, at);
        const unlimited = withoutLimits(state);
        const step = transition(unlimited, command, at);
        if (step.state === unlimited) return { ...step, state };
        const { limits } = state.record;
        return { ...step, state: { ...step.state, record: { ...step.state.record, ...(limits && { limits }) } } };
      },
    },
    {
      bug: 'a renewal gets any time that it asks for',
      breaks: 'a renewal that asks for another time gets no more than the resource allows',
      planted(state, command, at) {
        const step = transition(state, command, at);
        if (step.outcome.ttlMs === undefined || typeof command.ttlMs !== 'number') return step;
        return { ...step, outcome: { ...step.outcome, ttlMs: command.ttlMs } };
      },
    },
    {
      bug: 'one new rule replaces all of them',
      breaks: 'only configure changes the rules, each as it says, and no hold along with them',
      planted: (state, command, at) =>
        transition(command.kind === 'configure' ? withoutLimits(state) : state, command, at),
    },
  ];
}
