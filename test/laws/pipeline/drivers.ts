/** Laws about drivers: who is heard, what they are told to do, and what a cancel may do while a command runs. */
import { hasChanged, isOver, type Laws, pastOf, type Seen } from './law.ts';

export const driverLaws: Laws = {
  'tokens of drivers only grow': ({ before, step, command }) => {
    const last = before?.lastToken ?? 0;
    const now = step.state?.lastToken ?? 0;
    if (now < last) return `${last} became ${now}`;
    const driver = step.state?.driver;
    if (driver !== undefined && driver.token !== now) return `${driver.token} drives, and ${now} was given`;
    if (driver?.token === before?.driver?.token || driver === undefined) return undefined;
    return command.kind === 'drive' && driver.token > last ? undefined : `${driver.token} came by ${command.kind}`;
  },

  'a driver that was replaced changes nothing, and has to leave': (seen) => {
    const { command, step, past } = seen;
    if (!('token' in command) || command.token >= past.token) return undefined;
    if (hasChanged(seen)) return `${command.kind} with ${command.token} after ${past.token}`;
    return step.effect.kind === 'leave' ? undefined : `it is told to ${step.effect.kind}`;
  },

  'nobody is heard as a driver who did not take over': (seen) => {
    const { command, past } = seen;
    if (!('token' in command) || command.kind === 'drive' || command.token <= past.token) return undefined;
    return hasChanged(seen) ? `${command.kind} with ${command.token}` : undefined;
  },

  'what is to be done fits where the pipeline is': ({ step }) => {
    const { state, effect, outcome } = step;
    if (state === undefined || isOver(state) || outcome.kind === 'replaced') {
      return effect.kind === 'leave' ? undefined : `it is told to ${effect.kind}`;
    }
    const { blocked } = state;
    const isResting = blocked?.on === 'backoff' || blocked?.on === 'person';
    const { when } = state.step;
    const isFine = {
      evaluate: !isResting && 'when' in effect && effect.when === when,
      acquire: !isResting && when === 'before',
      begin: !isResting && when === 'before',
      run: when === 'during' && blocked === undefined,
      pause: blocked?.on === 'backoff',
      ask: blocked?.on === 'person',
      leave: false,
    }[effect.kind];
    return isFine ? undefined : `${effect.kind}, ${when}, blocked on ${blocked?.on}`;
  },

  'a driver that takes over can go on, or has to ask, or may leave; it is never in the middle of a command': (seen) => {
    const { state } = seen.step;
    if (state === undefined) return undefined;
    const command = { kind: 'drive', holder: 'next', token: state.lastToken + 1, command: 'next' } as const;
    const taken = seen.transition(seen.runbook, state, command, seen.at);
    const isFine = ['evaluate', 'pause', 'ask', 'leave'].includes(taken.effect.kind);
    if (!isFine) return `it is told to ${taken.effect.kind}`;
    return !isOver(taken.state) && taken.state?.step.when === 'during' ? 'its command has begun' : undefined;
  },

  'a pipeline does not end while its command runs': (seen) => {
    const isEnd = isOver(seen.step.state) && !isOver(seen.before);
    if (!isEnd || pastOf(seen).is !== 'running') return undefined;
    return ['ended', 'drive'].includes(seen.command.kind) ? undefined : `${seen.command.kind} ended it`;
  },

  'cancelled, it ends at once, or with its command': (seen) => {
    const { before, command, step } = seen;
    if (before === undefined || isOver(before)) return undefined;
    const isRunning = pastOf(seen).is === 'running';
    if (command.kind === 'cancel') return isRunning === isOver(step.state) ? `it is ${step.state?.state}` : undefined;
    if (before.cancel === undefined || !endsCommand(seen)) return undefined;
    return step.state?.state === 'cancelled' ? undefined : `it is ${step.state?.state}`;
  },
};

function endsCommand(seen: Seen): boolean {
  const { command } = seen;
  return hasChanged(seen) && (command.kind === 'ended' || command.kind === 'drive');
}
