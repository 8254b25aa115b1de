/**
 * All or nothing: several locks and semaphores are acquired together, or none of them changes.
 *
 *     parts ──▶ each tried by itself, without waiting ──▶ all granted: their steps, in order of their names
 *                                                    └──▶ one refused: nothing but the refusals
 *
 * A request that held a part while waiting for the rest could be part of a deadlock; this request never does.
 */
import { type Lock, type LockCommand, type LockOutcome, type LockStep, lockTransition } from './lock.ts';
import type { Event, Moment } from './machine.ts';
import {
  type Semaphore,
  type SemaphoreCommand,
  type SemaphoreOutcome,
  type SemaphoreStep,
  semaphoreTransition,
} from './semaphore.ts';
import { shown } from './shown.ts';

export type LockAcquire = Extract<LockCommand, { kind: 'acquire' }>;
export type SemaphoreAcquire = Extract<SemaphoreCommand, { kind: 'acquire' }>;

/** `wait` is taken to be false, whatever it says. */
export type Part =
  | { readonly name: string; readonly state: Lock; readonly command: LockAcquire }
  | { readonly name: string; readonly state: Semaphore; readonly command: SemaphoreAcquire };

export type Together =
  | { readonly kind: 'granted'; readonly steps: readonly NamedStep[] }
  | { readonly kind: 'refused'; readonly refusals: readonly Refusal[] }
  | { readonly kind: 'invalid'; readonly problem: string };

export interface NamedStep {
  readonly name: string;
  readonly step: LockStep | SemaphoreStep;
}

export interface Refusal {
  readonly name: string;
  readonly outcome: LockOutcome | SemaphoreOutcome;
  /** The denial; of interest only to the caller. */
  readonly events: readonly Event[];
}

export function acquireTogether(parts: readonly Part[], at: Moment): Together {
  // One order for everyone: a store that locks its keys one by one cannot deadlock either.
  const sorted = parts.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const twice = sorted.find(({ name }, place) => name === sorted[place + 1]?.name);
  if (twice !== undefined) {
    const problem = `${shown(twice.name)} is asked for twice; expected each resource once, with the mode or weight wanted in all`;
    return { kind: 'invalid', problem };
  }
  const steps = sorted.map((part): NamedStep => ({ name: part.name, step: tryOne(part, at) }));
  const refused = steps.filter(({ step }) => !isGrant(step.outcome));
  if (refused.length === 0) return { kind: 'granted', steps };
  const refusals = refused.map(({ name, step: { outcome, events } }) => ({ name, outcome, events }));
  return { kind: 'refused', refusals };
}

/** The caller has what it asked for. */
export type Grant = Extract<
  LockOutcome | SemaphoreOutcome,
  { kind: 'acquired' | 'reclaimed' | 'extended' | 'upgraded' | 'increased' | 'already-held' }
>;

export function isGrant(outcome: LockOutcome | SemaphoreOutcome): outcome is Grant {
  return Object.hasOwn(grants, outcome.kind);
}

const grants: Readonly<Record<Grant['kind'], true>> = {
  acquired: true,
  reclaimed: true,
  extended: true,
  upgraded: true,
  increased: true,
  'already-held': true,
};

function tryOne(part: Part, at: Moment): LockStep | SemaphoreStep {
  return isOfLock(part)
    ? lockTransition(part.state, { ...part.command, wait: false }, at)
    : semaphoreTransition(part.state, { ...part.command, wait: false }, at);
}

function isOfLock(part: Part): part is Extract<Part, { state: Lock }> {
  return part.state.record.kind === 'lock';
}
