/**
 * Waking: after which events a guard that did not pass should be checked again, and what must be polled because its changes
 * send no events.
 *
 * A missing name makes a guard wait forever; an extra name costs one more evaluation, which may run commands.
 */
import { childrenOf, type Condition, isLeaf, leavesOf } from './condition.ts';
import type { Input } from './inputs.ts';
import { inputOf, requiredInputs } from './required-inputs.ts';
import { type Own, type ToldEvent, type Wake, type Wakes, wakesOf } from './wakes.ts';

/** The events after which the condition may have come to pass: `lock:released`, `member:joined`. Each once. */
export function wakePatterns(condition: Condition): readonly string[] {
  return [...new Set(patternsFor(condition, 'holds'))];
}

/**
 * The inputs whose changes send no events. Inputs that could not be gathered must be tried again as well: a store that comes
 * back sends no event.
 */
export function polledInputs(condition: Condition): readonly Input[] {
  return requiredInputs({ all: leavesOf(condition).filter((leaf) => wakesOf(leaf) === 'polled') });
}

/** `*` matches every event, `lock:*` every event that begins with `lock:`; without a star at its end a pattern is a name. */
export function matches(pattern: string, eventType: string): boolean {
  return pattern.endsWith('*') ? eventType.startsWith(pattern.slice(0, -1)) : eventType === pattern;
}

export interface Waking {
  /** Only events about these resources wake the guard; undefined: events about any. */
  readonly resources: ReadonlySet<string> | undefined;
  /** Whether to check the guard again after the events of one revision, in their order. */
  isWokenBy(events: readonly ToldEvent[]): boolean;
}

/**
 * What wakes a guard, worked out once. Patterns from the caller wake it for every event that matches. Patterns derived from the
 * condition wake it only for events about its own resources that can make a difference: a lock that is released and granted to
 * the next request in the same write was never free, unless the new holder is in `own`, whose holds do not count.
 */
export function wakingOf(condition: Condition, wakeOn: readonly string[] = [], own?: Own): Waking {
  if (wakeOn.length > 0) {
    const isMatch = ({ type }: ToldEvent): boolean => wakeOn.some((pattern) => matches(pattern, type));
    return { resources: undefined, isWokenBy: (events) => events.some(isMatch) };
  }
  const wakers = wakersFor(condition, 'holds');
  return {
    resources: new Set(wakers.map(({ resource }) => resource)),
    isWokenBy: (events) =>
      wakers.some(({ resource, wake }) =>
        wake.wakes(
          events.filter((event) => event.resource === resource),
          own,
        ),
      ),
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
