/** Laws about phases: when they begin, what lets them, and what comes of how they end. */
import { fateOf, hasChanged, isOver, type Laws, pastOf, phaseOf, placeOf, type Seen, verdictOf } from './law.ts';
import { failuresBy, hasSucceeded } from './past.ts';

const hasBegun = (seen: Seen): boolean => seen.command.kind === 'begun' && hasChanged(seen);

export const phaseLaws: Laws = {
  'a command runs again only if it failed and is to be retried, if it is idempotent, or if a person says so': (
    seen,
  ) => {
    if (!hasBegun(seen)) return undefined;
    const phase = phaseOf(seen);
    const { is, failures } = pastOf(seen);
    const isAllowed =
      is === 'fresh' ||
      is === 'rerun' ||
      (is === 'failed' && fateOf(phase, failures) === 'again') ||
      (is === 'interrupted' && phase.idempotent);
    return isAllowed ? undefined : `${phase.name} began, and was ${is}`;
  },

  'what a person decides counts for the question that he names, and for no other': (seen) => {
    const { before, command, past, step } = seen;
    if (command.kind !== 'decided') return undefined;
    const open = before?.blocked?.on === 'person' ? past.questions.at(-1) : undefined;
    const isFor = open !== undefined && command.question === open && command.token === past.token && !isOver(before);
    if (hasChanged(seen)) return isFor ? undefined : `${command.question} was answered, and ${open} was asked`;
    return isFor ? `${open} is open, and the answer is ${step.outcome.kind}` : undefined;
  },

  'phases begin in order, each when the one before it is over': (seen) => {
    if (!hasBegun(seen)) return undefined;
    const place = placeOf(seen);
    const open = seen.past.phases.findIndex(
      ({ is }, at) => at < place && !['succeeded', 'waived', 'skipped'].includes(is),
    );
    if (open >= 0) return `phase ${place} began although ${open} was not over`;
    const later = seen.past.phases.findIndex(({ runs }, at) => at > place && runs > 0);
    return later < 0 ? undefined : `phase ${place} began after ${later} had`;
  },

  'a pipeline is done when every phase is over': ({ step, past, command, ...seen }) => {
    if (step.state?.state !== 'done' || isOver(seen.before)) return undefined;
    const last = past.phases.length - 1;
    const open = past.phases.findIndex(({ is }, at) => at < last && !['succeeded', 'waived', 'skipped'].includes(is));
    return open < 0 && seen.before?.step.phase === last ? undefined : `phase ${open} is not over after ${command.kind}`;
  },

  'what guards say is done: pass, wait, or fail': (seen) => {
    const { command, step, before } = seen;
    if (command.kind !== 'judged' || step.outcome.kind !== 'ok') return undefined;
    const phase = phaseOf(seen);
    const verdict = verdictOf(phase, command.when, command.outcomes);
    const isFailed = step.state?.state === 'failed';
    if (isFailed !== (verdict === 'fails')) return `they say ${verdict}, it is ${step.state?.state}`;
    if (verdict === 'blocks') return step.state?.blocked?.on === 'guard' ? undefined : 'it is not blocked on them';
    if (verdict === 'fails') return undefined;
    const isPassed =
      command.when === 'before'
        ? step.effect.kind === 'begin' || step.effect.kind === 'acquire'
        : isOver(step.state) || step.state?.step.phase === (before?.step.phase ?? 0) + 1;
    return isPassed ? undefined : `they pass, and it is told to ${step.effect.kind}`;
  },

  'nothing else gets past the guards after a phase': (seen) => {
    const { command, step } = seen;
    const isPast = step.state?.state === 'done' || (step.state?.step.phase ?? 0) > placeOf(seen);
    if (!hasChanged(seen) || !isPast || phaseOf(seen).post.length === 0) return undefined;
    return command.kind === 'judged' && command.when === 'after' ? undefined : `${command.kind} did`;
  },

  'a phase that has passed its guards begins, if it holds something once it has that': (seen) => {
    const { command, step } = seen;
    const hasPassed = step.effect.kind === 'begin' || step.effect.kind === 'acquire';
    if (command.kind !== 'judged' || !hasPassed) return undefined;
    const isReady = command.isHeld === true || phaseOf(seen).holds.length === 0;
    return (step.effect.kind === 'begin') === isReady ? undefined : `it is to ${step.effect.kind}`;
  },

  'a command that fails is retried, let pass, asked about, or fails the pipeline, as the phase says': (seen) => {
    const failures = failuresBy(seen);
    if (failures === undefined || !hasChanged(seen) || seen.before?.cancel !== undefined) return undefined;
    const { state } = seen.step;
    const fate = fateOf(phaseOf(seen), failures);
    const warned = state?.phases[placeOf(seen)]?.warnings?.length ?? 0;
    const isFine = {
      again: state?.blocked?.on === 'backoff',
      warn: state?.state !== 'failed' && state?.blocked === undefined && warned > 0,
      block: state?.blocked?.on === 'person',
      fail: state?.state === 'failed',
    }[fate];
    return isFine ? undefined : `${fate}, and it is ${state?.state} on ${state?.blocked?.on}`;
  },

  'the number of the attempt tells how often it failed before': (seen) => {
    if (!hasBegun(seen)) return undefined;
    const attempt = seen.step.state?.step.attempt;
    return attempt === pastOf(seen).failures + 1 ? undefined : `attempt ${attempt}, failed ${pastOf(seen).failures}`;
  },

  'runs are counted': (seen) => {
    const wrong = seen.step.state?.phases.findIndex(
      ({ runs }, at) => runs !== (seen.past.phases[at]?.runs ?? 0) + (hasBegun(seen) && at === placeOf(seen) ? 1 : 0),
    );
    return wrong === undefined || wrong < 0 ? undefined : `of phase ${wrong}`;
  },

  'what is passed on is what successful commands passed on': (seen) => {
    const { before, command, step } = seen;
    if (before === undefined || step.state === undefined) return undefined;
    const isPassedOn =
      command.kind === 'ended' && hasChanged(seen) && before.cancel === undefined && hasSucceeded(command.result);
    const outputs = isPassedOn && 'outputs' in command.result ? command.result.outputs : {};
    const wanted = JSON.stringify({ ...before.outputs, ...outputs });
    return JSON.stringify(step.state.outputs) === wanted ? undefined : `wanted ${wanted}`;
  },
};
