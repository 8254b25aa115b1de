/** The laws of semaphores. */
import { isStale } from '../../src/core/hold.ts';
import type { Semaphore, SemaphoreHold, SemaphoreRequest } from '../../src/core/semaphore.ts';
import { slotNumbers, type Slots, slotsOf } from '../../src/core/slots.ts';
import { holdLaws } from './holds.ts';
import { isExhausted, isRepeated, type Laws, same, type Wish } from './law.ts';
import type { Rules } from './order.ts';
import { waitingLaws } from './waiting.ts';

const weigh = (holds: readonly SemaphoreHold[]): number => holds.reduce((sum, { weight }) => sum + weight, 0);

export const semaphoreRules: Rules<Semaphore> = {
  canHave({ record }, holds, wish, own, at) {
    const { weight, steal } = wish as SemaphoreRequest;
    const others = (holds as readonly SemaphoreHold[]).filter(({ id }) => id !== own?.id);
    const living = others.filter((hold) => !isStale(hold, at));
    if (record.drained !== undefined) return false;
    const mayReclaim = record.onStale === 'reclaim' || steal === true;
    return weight + weigh(mayReclaim ? living : others) <= record.capacity;
  },
  covers: (hold, wish) => (hold as SemaphoreHold).weight >= (wish as SemaphoreRequest).weight,
  wish: (command, own) => {
    const { id = '', lease = '', holder = '' } = command;
    const asked = { priority: 0, ...command, id, lease, holder } as Wish;
    return own === undefined ? asked : { ...asked, grows: own.id };
  },
  wrongWith(_semaphore, hold, own, others) {
    const had = slotNumbers((own as SemaphoreHold | undefined)?.slots ?? []);
    const taken = new Set((others as readonly SemaphoreHold[]).flatMap(({ slots }) => slotNumbers(slots)).concat(had));
    const { slots, weight } = hold as SemaphoreHold;
    const expected = [...had];
    for (let slot = 0; expected.length < weight; slot++) if (!taken.has(slot)) expected.push(slot);
    const numbers = slotNumbers(slots);
    return same(numbers, expected) ? undefined : `slots ${numbers.join()} instead of ${expected.join()}`;
  },
  never({ record: { capacity, holds } }, wish, at) {
    const { weight, grows, holder, capacity: named } = wish as SemaphoreRequest;
    const own = holds.find((hold) => hold.holder === holder && !isStale(hold, at));
    if (grows !== undefined && grows !== own?.id) return true;
    if (named !== undefined && capacity > 0 && named !== capacity) return true;
    return weight > Math.max(capacity === 0 ? (named ?? 0) : capacity, own?.weight ?? 0);
  },
  isAsked: (hold, wish) => (hold as SemaphoreHold).weight === (wish as SemaphoreRequest).weight,
  isClosed: ({ record }) => record.drained !== undefined || weigh(record.holds) >= record.capacity,
  /** What a cancelled growth gives back is a part of the hold. */
  remains(hold, event) {
    const { weight, slots } = hold as SemaphoreHold;
    if (event.weight === weight) return undefined;
    const given = new Set(slotNumbers(event.slots as Slots));
    const kept = slotNumbers(slots).filter((slot) => !given.has(slot));
    return { ...hold, weight: kept.length, slots: slotsOf(kept) } as SemaphoreHold;
  },
};

export const semaphoreLaws: Laws<Semaphore> = {
  'used slots never exceed the capacity, and after a shrinking never grow beyond it': ({ before, step }) => {
    const used = weigh(step.state.record.holds);
    const { capacity } = step.state.record;
    return used <= capacity || used <= weigh(before.record.holds) ? undefined : `${used} of ${capacity}`;
  },

  'everyone has as many slots as its weight, and nobody the same': ({ step }) => {
    const { holds } = step.state.record;
    const slots = holds.flatMap((hold) => slotNumbers(hold.slots));
    if (new Set(slots).size < slots.length) return slots.join();
    return holds.find((hold) => slotNumbers(hold.slots).length !== hold.weight || hold.weight < 1)?.holder;
  },

  'many slots in a row take no more room than a few': ({ step }) => {
    const { holds } = step.state.record;
    // Each hold can make one gap, and leave one behind when it ends; a short run has up to 16 numbers.
    return holds.find(({ slots, grown }) => slots.length > 16 * (2 * holds.length + 8) && grown === undefined)?.holder;
  },

  'a hold that grows keeps its token and its slots': ({ before, command, step }) => {
    const changed = step.state.record.holds.find((hold) => {
      const was = before.record.holds.find(({ id }) => id === hold.id);
      if (was === undefined) return false;
      const [longer, shorter] =
        command.kind === 'cancel'
          ? longerFirst(slotNumbers(was.slots), slotNumbers(hold.slots))
          : [slotNumbers(hold.slots), slotNumbers(was.slots)];
      return was.token !== hold.token || shorter.some((slot, place) => slot !== longer[place]);
    });
    return changed?.holder;
  },

  'a request that is granted has as much as it asked for': ({ command, step }) => {
    const { weight = 0 } = command;
    const has = step.outcome.hold?.weight ?? weight;
    return command.kind === 'acquire' && has < weight ? `${has} of ${weight}` : undefined;
  },

  'what can never be had is refused at once, and only that': (seen) => {
    const { before, command, step } = seen;
    const { kind, weight = 0, capacity } = command;
    if (kind !== 'acquire' || isRepeated(seen) || ['lost', 'already-held'].includes(step.outcome.kind))
      return undefined;
    const made = before.record.capacity === 0 ? (capacity ?? 0) : before.record.capacity;
    if (capacity !== undefined && capacity !== made) {
      return ['capacity-mismatch', 'impossible'].includes(step.outcome.kind) ? undefined : step.outcome.kind;
    }
    const canEver = Number.isInteger(weight) && weight > 0 && weight <= made;
    return canEver === (step.outcome.kind === 'impossible') ? `${weight}: ${step.outcome.kind}` : undefined;
  },

  'nobody gets anything while it is drained': ({ before, command, step }) => {
    if (before.record.drained === undefined || command.kind === 'undrain') return undefined;
    const had = new Map(before.record.holds.map(({ id, weight }) => [id, weight]));
    return step.state.record.holds.find(({ id, weight }) => weight > (had.get(id) ?? 0))?.holder;
  },

  'a drain begins and ends only by command': ({ before, command, step }) => {
    const [was, is] = [before.record.drained, step.state.record.drained];
    if (command.kind === 'drain')
      return is === undefined || (was !== undefined && is !== was) ? 'not drained' : undefined;
    const isUndone = command.kind === 'undrain' && (command.revision ?? was?.revision) === was?.revision;
    const expected = isUndone ? undefined : was;
    return is === expected ? undefined : `${was?.reason} became ${is?.reason}`;
  },

  'a request that reclaims takes every stale hold': (seen) => {
    const { at, step } = seen;
    if (isExhausted(seen)) return undefined;
    const reclaims = step.losses.some(({ why }) => why === 'reclaimed');
    return reclaims ? step.state.record.holds.find((hold) => isStale(hold, at))?.holder : undefined;
  },

  ...(holdLaws as Laws<Semaphore>),
  ...waitingLaws(semaphoreRules),
};

function longerFirst<T>(one: readonly T[], other: readonly T[]): readonly [readonly T[], readonly T[]] {
  return one.length >= other.length ? [one, other] : [other, one];
}
