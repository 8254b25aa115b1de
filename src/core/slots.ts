/**
 * Slot numbers, kept as runs: a hold of a million slots in a row is one pair of numbers.
 *
 *     [0, 1, 2, [16, 99]]      slots 0, 1, 2 and 16 to 99
 *
 * A short run is listed number by number, which is how every run used to be stored: records from before runs existed
 * are read as they are, and an older signalbox reads what holders of a few slots have.
 */
import { isCount } from './shape.ts';

/** Numbers, and runs from a first to a last number. In the order in which they were given out. */
export type Slots = readonly (number | readonly [first: number, last: number])[];

/** The longest run of slots that is listed number by number. */
const LISTED = 16;

/** The most slots of one hold: its numbers are handed to its user as a list. */
export const LARGEST_WEIGHT = 1_000_000;

export function countSlots(slots: Slots): number {
  let count = 0;
  for (const run of slots) count += typeof run === 'number' ? 1 : run[1] - run[0] + 1;
  return count;
}

/** All numbers of these slots. */
export function slotNumbers(slots: Slots): readonly number[] {
  if (slots.every((run) => typeof run === 'number')) return slots;
  const numbers: number[] = [];
  for (const run of slots) {
    if (typeof run === 'number') numbers.push(run);
    else for (let slot = run[0]; slot <= run[1]; slot++) numbers.push(slot);
  }
  return numbers;
}

/** The same slots as runs. */
export function slotsOf(numbers: readonly number[]): Slots {
  const slots: (number | readonly [number, number])[] = [];
  for (let from = 0; from < numbers.length;) {
    const first = numbers[from] as number;
    let length = 1;
    while (numbers[from + length] === first + length) length++;
    append(slots, first, first + length - 1);
    from += length;
  }
  return slots;
}

/** The lowest `count` slots that are in none of `taken`. There is no highest: the caller has made sure of the room. */
export function lowestFree(taken: readonly Slots[], count: number): Slots {
  const free: (number | readonly [number, number])[] = [];
  let next = 0;
  let left = count;
  const upTo = (end: number): void => {
    if (next >= end || left === 0) return;
    const last = Math.min(end, next + left) - 1;
    append(free, next, last);
    left -= last - next + 1;
  };
  for (const [first, last] of inOrder(taken)) {
    if (left === 0) return free;
    upTo(first);
    if (last >= next) next = last + 1;
  }
  upTo(Number.POSITIVE_INFINITY);
  return free;
}

interface Slotted {
  readonly weight: number;
  readonly slots: Slots;
}

/** The slots of a hold of this weight: the ones that the holder has already, and the lowest that `others` leave free. */
export function slotsFor(
  { weight }: { readonly weight: number },
  own: Slotted | undefined,
  others: readonly Slotted[],
): Slots {
  const taken = others.map(({ slots }) => slots);
  if (own === undefined) return lowestFree(taken, weight);
  return [...own.slots, ...lowestFree(taken, weight - own.weight)];
}

/** The first `count` slots, and the others. */
export function splitSlots(slots: Slots, count: number): readonly [Slots, Slots] {
  const first: (number | readonly [number, number])[] = [];
  const rest: (number | readonly [number, number])[] = [];
  let left = count;
  for (const run of slots) {
    const [from, to] = typeof run === 'number' ? [run, run] : run;
    const end = Math.min(to, from + left - 1);
    if (end >= from) append(first, from, end);
    if (end < to) append(rest, end + 1, to);
    left -= Math.max(0, end - from + 1);
  }
  return [first, rest];
}

/** A slot that is in two of them, or in one of them twice; undefined if there is none. */
export function slotTwice(taken: readonly Slots[]): number | undefined {
  let next = 0;
  for (const [first, last] of inOrder(taken)) {
    if (first < next) return first;
    next = last + 1;
  }
  return undefined;
}

/** Whether a value that was read is a list of slots. */
export function isSlots(value: unknown): value is Slots {
  return Array.isArray(value) && value.every((run) => isCount(run) || isRun(run));
}

function isRun(run: unknown): boolean {
  return Array.isArray(run) && run.length === 2 && run.every(isCount) && (run[0] as number) <= (run[1] as number);
}

/** Slots of holders that came one after another are in order already, so there is almost nothing to sort. */
function inOrder(taken: readonly Slots[]): readonly (readonly [number, number])[] {
  const runs: (readonly [number, number])[] = [];
  for (const slots of taken) for (const run of slots) runs.push(typeof run === 'number' ? [run, run] : run);
  return runs.sort((one, other) => one[0] - other[0]);
}

function append(slots: (number | readonly [number, number])[], first: number, last: number): void {
  if (last - first >= LISTED) slots.push([first, last]);
  else for (let slot = first; slot <= last; slot++) slots.push(slot);
}
