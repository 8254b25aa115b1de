/**
 * What a shell compares when it writes a step that was decided on what it knows. It knows the record for certain (its
 * revision is compared), of the queue any front, and of the leases that have ended any part. A step that rests on more
 * than that is not written, and is decided again on all there is.
 */
import { type Hold, isStale } from '../../src/core/hold.ts';
import type { Moment, Step } from '../../src/core/machine.ts';
import { type Command, isGrant, type Outcome, type Resource, type Wish } from './law.ts';
import { nextOf } from './order.ts';

export interface Written<State extends Resource> {
  /** What the shell knew, and what it asked. */
  readonly view: State;
  readonly command: Command;
  readonly step: Step<State, Outcome>;
  /** Who waits besides, and is alive. */
  readonly unseen: readonly Wish[];
  /** What is true of leases. */
  readonly truth: Moment;
  readonly isClosed: boolean;
}

/** Why the store does not take this write; undefined if it does. */
export function notWritten<State extends Resource>(written: Written<State>): string | undefined {
  const { view, step } = written;
  if (step.state === view) return undefined;
  return dead(written) ?? overtaken(written) ?? twoUpgrades(written);
}

/** A lease that the step relies on has ended, and the shell has not heard of it. */
function dead({ view, command, step, truth }: Written<Resource>): string | undefined {
  const asks = command.kind === 'acquire' || command.kind === 'upgrade';
  if (asks && truth.gone(command.lease ?? '')) return 'whoever asks is dead';
  const granted = view.waiting.filter(({ id }) => step.answers.some((answer) => answer.id === id));
  if (granted.some(({ lease }) => truth.gone(lease))) return 'whoever is answered is dead';
  const { hold } = step.outcome;
  const was = asks || command.kind === 'release' ? undefined : view.record.holds.find(({ id }) => id === hold?.id);
  return was !== undefined && isStale(was as Hold, truth) ? 'what is changed is stale' : undefined;
}

/** Somebody waits whom the shell has not seen, and who goes before one that the step serves, or leaves waiting. */
function overtaken({ view, command, step, unseen, isClosed }: Written<Resource>): string | undefined {
  if (unseen.length === 0) return undefined;
  const { record, waiting } = step.state;
  const asks = command.kind === 'acquire' || command.kind === 'upgrade';
  if (asks && isGrant(step.outcome)) return 'a newcomer is granted, and somebody waits';
  const changes = record !== view.record;
  if (changes && !isClosed && waiting.length === 0) return 'it is left to be had, and somebody waits';
  const next = changes && !isClosed ? nextOf(waiting, record.passed) : undefined;
  const served = view.waiting.filter(({ id }) => step.answers.some((answer) => answer.id === id));
  const lowest = Math.min(...[...served, ...(next === undefined ? [] : [next])].map(rank));
  return unseen.some((waiter) => rank(waiter) > lowest) ? 'somebody waits who goes first' : undefined;
}

/** Two who both wait for the other to leave would wait for ever: only one may go before everyone. */
function twoUpgrades({ view, step, unseen, truth }: Written<Resource>): string | undefined {
  const arriving = step.state.waiting.filter((waiter) => !view.waiting.includes(waiter));
  if (!arriving.some(({ upgrades }) => upgrades !== undefined)) return undefined;
  const others = [...view.waiting, ...unseen].some(
    ({ upgrades, lease }) => upgrades !== undefined && !truth.gone(lease),
  );
  return others ? 'two wait to become the writer' : undefined;
}

export function rank({ upgrades, priority }: Wish): number {
  return upgrades === undefined ? priority : Number.POSITIVE_INFINITY;
}
