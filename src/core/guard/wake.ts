/**
 * Waking: after which events a guard that did not pass is worth another look, and what must be polled because
 * nobody announces its changes.
 *
 * A name too few here makes a guard wait forever; a name too many costs one more evaluation, which may run commands.
 */
import { childrenOf, type Condition, entryOf, isLeaf, type Leaf, type LeafKind, leavesOf } from './condition.ts';
import type { Input } from './inputs.ts';
import { requiredInputs } from './required-inputs.ts';

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

/** Events after which a leaf may have come to hold, and after which it may have ceased to. */
interface Wakes {
  readonly holds: readonly string[];
  readonly ceases: readonly string[];
}

function patternsFor(condition: Condition, change: keyof Wakes): readonly string[] {
  if ('not' in condition) return patternsFor(condition.not, change === 'holds' ? 'ceases' : 'holds');
  if (!isLeaf(condition)) return childrenOf(condition).flatMap((child) => patternsFor(child, change));
  const wakes = wakesOf(condition);
  return wakes === 'polled' ? [] : wakes[change];
}

function wakesOf(leaf: Leaf): Wakes | 'polled' {
  const [kind] = entryOf(leaf);
  return wakesByLeaf[kind];
}

const lockTaken = ['lock:acquired'];
const lockFreed = ['lock:released', 'lock:reclaimed', 'lock:forced'];
const pipelineEnded = ['pipeline:done', 'pipeline:failed', 'pipeline:cancelled'];

const wakesByLeaf: Readonly<Record<LeafKind, Wakes | 'polled'>> = {
  lockFree: { holds: lockFreed, ceases: lockTaken },
  lockHeld: { holds: lockTaken, ceases: lockFreed },
  semaphoreAvailable: {
    // The first acquisition creates a semaphore, and may leave room in it.
    holds: ['semaphore:released', 'semaphore:reclaimed', 'semaphore:forced', 'semaphore:resized', 'semaphore:acquired'],
    ceases: ['semaphore:acquired', 'semaphore:resized'],
  },
  // Not `pipeline:*`: a pipeline that blocks on this guard would be woken by its own `pipeline:blocked`.
  pipelineInPhase: {
    holds: ['pipeline:started', 'pipeline:phase', 'pipeline:resumed'],
    ceases: ['pipeline:phase', ...pipelineEnded],
  },
  pipelineComplete: { holds: ['pipeline:done'], ceases: ['pipeline:started'] },
  taskDone: { holds: ['task:completed'], ceases: ['task:published'] },
  memberAlive: { holds: ['member:joined'], ceases: ['member:left'] },
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
