/**
 * Draining a semaphore: nothing new is granted until the drain is undone. Holders keep what they have, requests wait their
 * turn, and a try is refused. Not even force gets past a drain: an administrator who may force may also undo the drain, which
 * leaves an event.
 *
 *     drain ──▶ requests wait, holders leave one by one ──▶ nothing is held: change what the slots stand for ──▶ undrain
 */
import { settle } from './grant.ts';
import { event, type Moment, step } from './machine.ts';
import type { Rules } from './resource.ts';
import type { Semaphore, SemaphoreOutcome, SemaphoreRecord, SemaphoreStep } from './semaphore.ts';

/** Who drained it, when and why. */
export interface Drain {
  /** Who did it. */
  readonly by: string;
  /** When, by the clock of the process that did it. */
  readonly at: number;
  /** Why; those who wait get to see it. */
  readonly reason: string;
  /** The store's revision at which it was decided. No two drains of a semaphore have the same. */
  readonly revision: number;
}

export type DrainCommand =
  | { readonly kind: 'drain'; readonly holder: string; readonly reason: string }
  /** `revision`: only if this is still the drain that it names. */
  | { readonly kind: 'undrain'; readonly holder: string; readonly revision?: number };

export type DrainOutcome =
  | { readonly kind: 'drained'; readonly drain: Drain }
  /** It was drained already: the first drain stays. */
  | { readonly kind: 'already-drained'; readonly drain: Drain }
  | { readonly kind: 'undrained'; readonly drain: Drain }
  | { readonly kind: 'not-drained' }
  /** The current drain is not the one that was named. */
  | { readonly kind: 'another-drain'; readonly drain: Drain };

/** `drained by ops (new database): …`, for requests that get no slots. */
export function drainTold({ by, reason }: Drain): string {
  return `drained by ${by} (${reason}): nothing new is granted until that is undone`;
}

/** Versions of signalbox that know nothing of drains would grant past one: they refuse a record of version 2. */
export function withDrain({ drained: _, ...record }: SemaphoreRecord, drained: Drain | undefined): SemaphoreRecord {
  return drained === undefined ? { ...record, v: 1 } : { ...record, v: 2, drained };
}

export function drainTransition(
  semaphore: Semaphore,
  command: DrainCommand,
  rules: Rules<Semaphore, SemaphoreOutcome>,
  at: Moment,
): SemaphoreStep {
  const { record, waiting } = semaphore;
  const { drained } = record;
  const { holder } = command;
  if (command.kind === 'drain') {
    if (drained !== undefined) return step(semaphore, { kind: 'already-drained', drain: drained });
    const { reason } = command;
    const drain: Drain = { by: holder, at: at.now, reason, revision: at.revision };
    const told = event('semaphore:drained', { holder }, at, { reason });
    const closed = { record: withDrain(record, drain), waiting };
    return settle(step(closed, { kind: 'drained', drain }, [told]), rules, at);
  }
  if (drained === undefined) return step(semaphore, { kind: 'not-drained' });
  if (command.revision !== undefined && command.revision !== drained.revision) {
    return step(semaphore, { kind: 'another-drain', drain: drained });
  }
  const told = event('semaphore:undrained', { holder }, at, { reason: drained.reason });
  const open = { record: withDrain(record, undefined), waiting };
  return settle(step(open, { kind: 'undrained', drain: drained }, [told]), rules, at);
}
