import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { freeLock, type Lock, type LockMode, lockTransition } from './lock.ts';
import type { Moment } from './machine.ts';
import { newSemaphore, type Semaphore, semaphoreTransition } from './semaphore.ts';
import { acquireTogether, isGrant, type LockAcquire, type Part, type SemaphoreAcquire } from './together.ts';

const at: Moment = { now: 1000, revision: 0, gone: (lease) => lease.endsWith('✝') };

const lockBy = (holder: string, mode: LockMode = 'exclusive', lease = holder): LockAcquire => {
  return { kind: 'acquire', id: `${holder}-${mode}`, holder, lease, priority: 0, mode, wait: true };
};
const slotsFor = (holder: string, weight: number, lease = holder): SemaphoreAcquire => {
  return { kind: 'acquire', id: `${holder}-${weight}`, holder, lease, priority: 0, weight, wait: true };
};
const heldBy = (holder: string): Lock => lockTransition(freeLock, { ...lockBy(holder), id: 'earlier' }, at).state;

describe('several resources', () => {
  it('that are all to be had are granted, in order of their names', () => {
    const together = acquireTogether(
      [
        { name: 'semaphore/agents', state: newSemaphore(3), command: slotsFor('me', 2) },
        { name: 'lock/main', state: freeLock, command: lockBy('me') },
      ],
      at,
    );
    expect(together).toMatchObject({
      kind: 'granted',
      steps: [
        { name: 'lock/main', step: { outcome: { kind: 'acquired' } } },
        { name: 'semaphore/agents', step: { outcome: { kind: 'acquired', hold: { slots: [0, 1] } } } },
      ],
    });
  });

  it('of which some cannot be had are all left alone, and each refusal is reported', () => {
    const together = acquireTogether(
      [
        { name: 'lock/main', state: freeLock, command: lockBy('me') },
        { name: 'lock/docs', state: heldBy('other'), command: lockBy('me') },
        { name: 'semaphore/agents', state: newSemaphore(3), command: slotsFor('me', 4) },
      ],
      at,
    );
    expect(together).toMatchObject({
      kind: 'refused',
      refusals: [
        {
          name: 'lock/docs',
          outcome: { kind: 'busy', holders: [{ holder: 'other' }] },
          events: [{ type: 'lock:denied' }],
        },
        { name: 'semaphore/agents', outcome: { kind: 'impossible' } },
      ],
    });
  });

  it('include what the holder has already', () => {
    const together = acquireTogether(
      [
        { name: 'lock/main', state: heldBy('me'), command: { ...lockBy('me'), id: 'again' } },
        { name: 'lock/docs', state: freeLock, command: lockBy('me') },
      ],
      at,
    );
    expect(together).toMatchObject({
      kind: 'granted',
      steps: [{ step: { outcome: { kind: 'acquired' } } }, { step: { outcome: { kind: 'extended' } } }],
    });
  });

  it('never wait, so that nobody holds a part while it waits for the rest', () => {
    const part: Part = { name: 'lock/main', state: heldBy('other'), command: { ...lockBy('me'), wait: true } };
    expect(acquireTogether([part], at)).toMatchObject({ kind: 'refused', refusals: [{ outcome: { kind: 'busy' } }] });
  });

  it('of the same name are refused, because each would be granted as if the other were not there', () => {
    const part: Part = { name: 'semaphore/s', state: newSemaphore(2), command: slotsFor('me', 2) };
    expect(acquireTogether([part, part], at)).toEqual({
      kind: 'invalid',
      problem: '"semaphore/s" is asked for twice; expected each resource once, with the mode or weight wanted in all',
    });
  });

  it('may be none at all', () => {
    expect(acquireTogether([], at)).toEqual({ kind: 'granted', steps: [] });
  });
});

describe('for any resources', () => {
  it('never some but not all are granted, and all means as if they were asked for one after another', () => {
    let granted = 0;
    fc.assert(
      fc.property(partLists, (parts) => {
        const together = acquireTogether(parts, at);
        const alone = parts.map((part) => ({ name: part.name, step: tryAlone(part) }));
        const refused = alone.filter(({ step }) => !isGrant(step.outcome)).map(({ name }) => name);
        if (together.kind === 'granted') {
          granted++;
          expect(refused).toEqual([]);
          expect(together.steps).toEqual(alone.sort((one, other) => (one.name < other.name ? -1 : 1)));
        } else {
          expect(together.kind === 'refused' && together.refusals.map(({ name }) => name)).toEqual(refused.sort());
          expect(refused).not.toEqual([]);
        }
      }),
      { numRuns: 1000 },
    );
    expect(granted).toBeGreaterThan(100);
  });
});

const holders = fc.constantFrom('a', 'b', 'b✝');

const someLock = fc
  .array(fc.tuple(holders, fc.constantFrom<LockMode>('exclusive', 'shared')), { maxLength: 3 })
  .map((asks) => asks.reduce((lock, [who, mode]) => lockTransition(lock, lockBy(who, mode), earlier).state, freeLock));

const someSemaphore = fc
  .array(fc.tuple(holders, fc.constantFrom(1, 2, 3)), { maxLength: 3 })
  .map((asks) =>
    asks.reduce((s, [who, w]) => semaphoreTransition(s, slotsFor(who, w), earlier).state, newSemaphore(3)),
  );

const earlier: Moment = { now: 0, revision: 0, gone: () => false };

const partLists: fc.Arbitrary<readonly Part[]> = fc
  .array(
    fc.oneof(
      fc.record({ state: someLock, command: fc.constantFrom(lockBy('me'), lockBy('a', 'shared'), lockBy('a')) }),
      fc.record({
        state: someSemaphore,
        command: fc.constantFrom(slotsFor('me', 1), slotsFor('a', 2), slotsFor('a', 9)),
      }),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.map((part, place) => ({ ...part, name: `n${(place * 7) % 5}` }) as Part));

function tryAlone(part: Part) {
  return part.state.record.kind === 'lock'
    ? lockTransition(part.state as Lock, { ...(part.command as LockAcquire), wait: false }, at)
    : semaphoreTransition(part.state as Semaphore, { ...(part.command as SemaphoreAcquire), wait: false }, at);
}
