/**
 * Waking: after which events a guard that did not pass is worth another look, and what must be polled because
 * nobody announces its changes.
 *
 * A name too few here makes a guard wait forever; a name too many costs one more evaluation, which may run commands.
 */
import type { Event, Json } from '../machine.ts';
import {
  childrenOf,
  type Condition,
  entryOf,
  isLeaf,
  type Leaf,
  type LeafArguments,
  type LeafKind,
  leavesOf,
} from './condition.ts';
import type { Input } from './inputs.ts';
import { inputOf, requiredInputs } from './required-inputs.ts';

/** The events after which the condition may have come to pass: `lock:released`, `member:joined`. Each once. */
export function wakePatterns(condition: Condition): readonly string[] {
  return [...new Set(patternsFor(condition, 'holds'))];
}

/**
 * The inputs whose changes nobody announces. Besides these, whatever could not be gathered has to be tried again:
 * a store that comes back sends no event.
 */
export function polledInputs(condition: Condition): readonly Input[] {
  return requiredInputs({ all: leavesOf(condition).filter((leaf) => wakesOf(leaf) === 'polled') });
}

/** `*` matches every event, `lock:*` those that begin with `lock:`; without a star at its end a pattern is a name. */
export function matches(pattern: string, eventType: string): boolean {
  return pattern.endsWith('*') ? eventType.startsWith(pattern.slice(0, -1)) : eventType === pattern;
}

/** One event, with what it is about: `lock/main`. */
export interface ToldEvent extends Event {
  readonly resource: string;
  /** The write that made it also made the resource: before, there was none. */
  readonly isNew?: true;
}

export interface Waking {
  /** It is woken by events about these alone; undefined if by any. */
  readonly resources: ReadonlySet<string> | undefined;
  /** Whether it is worth another look after the events of one revision, in their order. */
  isWokenBy(events: readonly ToldEvent[]): boolean;
}

/**
 * What wakes a guard, worked out once. Patterns that were given wake for every event that matches; those that are derived
 * from the condition wake for events about what it asks for, and only if these can have made a difference: a lock that is
 * released and given to the next one in the same write was never free.
 */
export function wakingOf(condition: Condition, wakeOn: readonly string[] = []): Waking {
  if (wakeOn.length > 0) {
    const isMatch = ({ type }: ToldEvent): boolean => wakeOn.some((pattern) => matches(pattern, type));
    return { resources: undefined, isWokenBy: (events) => events.some(isMatch) };
  }
  const wakers = wakersFor(condition, 'holds');
  return {
    resources: new Set(wakers.map(({ resource }) => resource)),
    isWokenBy: (events) =>
      wakers.some(({ resource, wake }) => wake.wakes(events.filter((event) => event.resource === resource))),
  };
}

interface Waker {
  readonly resource: string;
  readonly wake: Wake;
}

function wakersFor(condition: Condition, change: keyof Wakes): readonly Waker[] {
  if ('not' in condition) return wakersFor(condition.not, opposite(change));
  if (!isLeaf(condition)) return childrenOf(condition).flatMap((child) => wakersFor(child, change));
  const wakes = wakesOf(condition);
  return wakes === 'polled' ? [] : [{ resource: resourceOf(inputOf(condition)), wake: wakes[change] }];
}

/** `lock/main`, as the events about it name it. */
function resourceOf(input: Input): string {
  return `${input.kind}/${'name' in input ? input.name : 'id' in input ? input.id : ''}`;
}

function patternsFor(condition: Condition, change: keyof Wakes): readonly string[] {
  if ('not' in condition) return patternsFor(condition.not, opposite(change));
  if (!isLeaf(condition)) return childrenOf(condition).flatMap((child) => patternsFor(child, change));
  const wakes = wakesOf(condition);
  return wakes === 'polled' ? [] : wakes[change].patterns;
}

function opposite(change: keyof Wakes): keyof Wakes {
  return change === 'holds' ? 'ceases' : 'holds';
}

/** What may have made a leaf come to hold, and what may have made it cease to. */
interface Wakes {
  readonly holds: Wake;
  readonly ceases: Wake;
}

interface Wake {
  readonly patterns: readonly string[];
  /** `events`: those of one revision about the resource of the leaf, in their order. */
  wakes(events: readonly ToldEvent[]): boolean;
}

function wakesOf(leaf: Leaf): Wakes | 'polled' {
  const [kind, argument] = entryOf(leaf);
  const wakes = wakesByLeaf[kind];
  return typeof wakes === 'function' ? wakes(argument) : wakes;
}

/** Any of these events, about whomever it is, or about this holder. */
function any(patterns: readonly string[], holder?: string): Wake {
  const isOne = (event: ToldEvent): boolean =>
    patterns.includes(event.type) && (holder === undefined || event.holder === holder);
  return { patterns, wakes: (events) => events.some(isOne) };
}

const lockTaken = ['lock:acquired'];
const lockFreed = ['lock:released', 'lock:reclaimed', 'lock:forced'];

/** Freed, and not given to the next one by the same write. */
const lockLeftFree: Wake = {
  patterns: lockFreed,
  wakes(events) {
    let isFree = false;
    for (const { type } of events) {
      if (lockFreed.includes(type)) isFree = true;
      if (lockTaken.includes(type)) isFree = false;
    }
    return isFree;
  },
};

const slotsFreed = ['semaphore:released', 'semaphore:reclaimed', 'semaphore:forced'];

/** Slots were freed and not given to the next one by the same write; or there are more of them, or some at last. */
const slotsLeftFree: Wake = {
  // The first acquisition creates a semaphore, and may leave room in it.
  patterns: [...slotsFreed, 'semaphore:resized', 'semaphore:acquired'],
  wakes(events) {
    const free = new Set<Json>();
    for (const event of events) {
      const { type, slots, capacity, from } = event;
      if (event.isNew === true) return true;
      if (type === 'semaphore:resized' && !(Number(capacity) <= Number(from))) return true;
      if (!Array.isArray(slots)) continue;
      // Which slots, and not how many: one that grows tells all that it has by then.
      if (slotsFreed.includes(type)) for (const slot of slots as readonly Json[]) free.add(slot);
      if (type === 'semaphore:acquired') for (const slot of slots as readonly Json[]) free.delete(slot);
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
    // Whoever asks for one holder wants to know that this one is out, whoever comes next.
    return { holds: any(lockTaken, by), ceases: by === undefined ? lockLeftFree : any(lockFreed, by) };
  },
  semaphoreAvailable: { holds: slotsLeftFree, ceases: any(['semaphore:acquired', 'semaphore:resized']) },
  // A pipeline that is blocked before a phase is in it, and out of the one before.
  pipelineInPhase: {
    holds: any(['pipeline:started', 'pipeline:phase', 'pipeline:blocked', 'pipeline:resumed']),
    ceases: any(['pipeline:phase', 'pipeline:blocked', ...pipelineEnded]),
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
  branchMerged: 'polled',
  fileExists: 'polled',
  fileNotExists: 'polled',
  fileContains: 'polled',
  sessionAlive: 'polled',
  command: 'polled',
};
