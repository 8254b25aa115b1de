/** Lists for each leaf the events after which it may have come to hold, or ceased to hold. */
import type { Event } from '../machine.ts';
import { isSlots, slotNumbers } from '../slots.ts';
import { entryOf, type Leaf, type LeafArguments, type LeafKind } from './condition.ts';

/** One event, with what it is about: `lock/main`. */
export interface ToldEvent extends Event {
  readonly resource: string;
  /** The write that sent the event also created the resource. */
  readonly isNew?: true;
}

/** A holder, or several, whose holds do not count. */
export type Own = string | readonly string[];

export function isOwn(own: Own | undefined, holder: string): boolean {
  return typeof own === 'string' ? own === holder : own?.includes(holder) === true;
}

/** What may have made a leaf come to hold, and what may have made it cease to. */
export interface Wakes {
  readonly holds: Wake;
  readonly ceases: Wake;
}

export interface Wake {
  readonly patterns: readonly string[];
  /** `events`: those of one revision about the resource of the leaf, in their order. `own`: holders that do not count. */
  wakes(events: readonly ToldEvent[], own?: Own): boolean;
}

export function wakesOf(leaf: Leaf): Wakes | 'polled' {
  const [kind, argument] = entryOf(leaf);
  const wakes = wakesByLeaf[kind];
  return typeof wakes === 'function' ? wakes(argument) : wakes;
}

/** Any of these events, about any holder or about this one. */
function any(patterns: readonly string[], holder?: string): Wake {
  const isOne = (event: ToldEvent): boolean =>
    patterns.includes(event.type) && (holder === undefined || event.holder === holder);
  return { patterns, wakes: (events) => events.some(isOne) };
}

const lockTaken = ['lock:acquired'];
const lockFreed = ['lock:released', 'lock:reclaimed', 'lock:forced'];

/** The lock was freed, and not granted to the next request by the same write. */
const lockLeftFree: Wake = {
  patterns: lockFreed,
  wakes(events, own) {
    let isFree = false;
    for (const { type, holder } of events) {
      if (lockFreed.includes(type)) isFree = true;
      if (lockTaken.includes(type) && !isOwn(own, holder)) isFree = false;
    }
    return isFree;
  },
};

const slotsFreed = ['semaphore:released', 'semaphore:reclaimed', 'semaphore:forced'];

/** Slots were freed and not granted again by the same write; or the capacity grew; or the semaphore was created. */
const slotsLeftFree: Wake = {
  // The first acquisition creates a semaphore, and may leave room in it.
  patterns: [...slotsFreed, 'semaphore:resized', 'semaphore:undrained', 'semaphore:acquired'],
  wakes(events, own) {
    const free = new Set<number>();
    for (const event of events) {
      const { type, holder, slots, capacity, from } = event;
      if (event.isNew === true || type === 'semaphore:undrained') return true;
      if (type === 'semaphore:resized' && !(Number(capacity) <= Number(from))) return true;
      if (!isSlots(slots)) continue;
      // Compares slot numbers and not counts: the event of a hold that grows lists all its slots.
      if (slotsFreed.includes(type)) for (const slot of slotNumbers(slots)) free.add(slot);
      if (type !== 'semaphore:acquired' || isOwn(own, holder)) continue;
      for (const slot of slotNumbers(slots)) free.delete(slot);
    }
    return free.size > 0;
  },
};

const pipelineEnded = ['pipeline:done', 'pipeline:failed', 'pipeline:cancelled'];

type WakesByLeaf = {
  readonly [Kind in LeafKind]: Wakes | 'polled' | ((argument: LeafArguments[Kind]) => Wakes);
};

const wakesByLeaf: WakesByLeaf = {
  lockFree: { holds: lockLeftFree, ceases: any(lockTaken) },
  lockHeld: (held) => {
    const by = typeof held === 'string' ? undefined : held.by;
    // A condition on one holder is about this holder leaving; who comes next does not matter.
    return { holds: any(lockTaken, by), ceases: by === undefined ? lockLeftFree : any(lockFreed, by) };
  },
  semaphoreAvailable: {
    holds: slotsLeftFree,
    ceases: any(['semaphore:acquired', 'semaphore:resized', 'semaphore:drained']),
  },
  // A pipeline that is blocked before a phase counts as in that phase, and no longer in the one before.
  pipelineInPhase: {
    holds: any(['pipeline:started', 'pipeline:phase', 'pipeline:blocked', 'pipeline:resumed']),
    // Before it has started, whether it is in a phase is unknown.
    ceases: any(['pipeline:started', 'pipeline:phase', 'pipeline:blocked', ...pipelineEnded]),
  },
  pipelineComplete: { holds: any(['pipeline:done']), ceases: any(['pipeline:started']) },
  taskDone: { holds: any(['task:completed']), ceases: any(['task:published']) },
  memberAlive: { holds: any(['member:joined']), ceases: any(['member:left']) },
  issuesComplete: 'polled',
  noBlockedIssues: 'polled',
  issueStatus: 'polled',
  branchExists: 'polled',
  branchNotExists: 'polled',
  branchClean: 'polled',
  worktreeClean: 'polled',
  branchMerged: 'polled',
  fileExists: 'polled',
  fileNotExists: 'polled',
  fileContains: 'polled',
  sessionAlive: 'polled',
  command: 'polled',
};
