import { describe, expect, it } from 'vitest';
import { faultOf } from './fault.ts';
import type { Moment } from './machine.ts';
import { availableSlots, canAcquire, newSemaphore, type Semaphore, type SemaphoreCommand } from './semaphore.ts';
import { semaphoreTransition, type SemaphoreStep } from './semaphore.ts';

const at = (revision: number): Moment => ({ now: 1000 + revision, revision, gone: () => false });
const DRAIN: SemaphoreCommand = { kind: 'drain', holder: 'ops', reason: 'the database moves' };
const UNDRAIN: SemaphoreCommand = { kind: 'undrain', holder: 'ops' };

function acquiring(holder: string, weight: number, more: object = {}): SemaphoreCommand {
  return {
    kind: 'acquire',
    id: `${holder}#${weight}`,
    holder,
    lease: holder,
    priority: 0,
    weight,
    wait: false,
    ...more,
  };
}

/** The step that the last command takes, after those before it. */
function after(semaphore: Semaphore, ...commands: readonly SemaphoreCommand[]): SemaphoreStep {
  let step: SemaphoreStep = { state: semaphore, outcome: { kind: 'settled' }, events: [], answers: [], losses: [] };
  for (const [revision, command] of commands.entries()) step = semaphoreTransition(step.state, command, at(revision));
  return step;
}

describe('a drained semaphore', () => {
  it('remembers who drained it, when and why, in a record that older versions refuse', () => {
    const { state, outcome, events } = after(newSemaphore(2), acquiring('a', 1), DRAIN);
    const drained = { by: 'ops', at: 1001, reason: 'the database moves', revision: 1 };
    expect(outcome).toEqual({ kind: 'drained', drain: drained });
    expect(state.record).toMatchObject({ v: 2, drained, holds: [{ holder: 'a' }] });
    expect(events).toEqual([{ type: 'semaphore:drained', at: 1001, holder: 'ops', reason: 'the database moves' }]);
    expect([availableSlots(state), canAcquire(state, 1)]).toEqual([0, false]);
  });

  it('refuses a try and says who drained it and why, also by force', () => {
    for (const more of [{}, { force: true, reason: 'mine' }, { steal: true }]) {
      const { outcome, state } = after(newSemaphore(2), DRAIN, acquiring('b', 1, more));
      expect(outcome).toMatchObject({ kind: 'full', free: 0, drained: { by: 'ops', reason: 'the database moves' } });
      expect(state.waiting).toEqual([]);
    }
  });

  it('lets requests wait, and serves them in order once it is undone', () => {
    const wait = { wait: true };
    const drained = after(newSemaphore(3), acquiring('a', 1), DRAIN, acquiring('b', 2, wait), acquiring('c', 1, wait));
    expect(drained.outcome).toMatchObject({ kind: 'queued', position: 2 });
    const undone = semaphoreTransition(drained.state, UNDRAIN, at(9));
    expect(undone.outcome).toMatchObject({ kind: 'undrained', drain: { by: 'ops' } });
    expect(undone.answers).toMatchObject([{ id: 'b#2', outcome: { kind: 'acquired' } }]);
    expect(undone.state.record).not.toHaveProperty('drained');
    expect(undone.state.record.v).toBe(1);
    expect(undone.state.waiting).toMatchObject([{ holder: 'c' }]);
    expect(undone.events.map(({ type }) => type)).toEqual(['semaphore:undrained', 'semaphore:acquired']);
  });

  it('leaves holders what they have: they renew, release and ask again for as much, but do not grow', () => {
    const drained = after(newSemaphore(3), acquiring('a', 2), DRAIN).state;
    expect(after(drained, acquiring('a', 2)).outcome.kind).toBe('already-held');
    expect(after(drained, acquiring('a', 3)).outcome).toMatchObject({ kind: 'full', drained: { by: 'ops' } });
    const released = after(drained, { kind: 'release', holder: 'a' });
    expect(released.outcome.kind).toBe('released');
    expect(released.state.record.drained).toBe(drained.record.drained);
  });

  it('keeps its first drain, and is undone only if the drain is the one that was named', () => {
    const drained = after(newSemaphore(1), acquiring('a', 1), DRAIN).state;
    const again = semaphoreTransition(drained, { ...DRAIN, holder: 'another' } as SemaphoreCommand, at(5));
    expect(again.state).toBe(drained);
    expect(again.outcome).toMatchObject({ kind: 'already-drained', drain: { by: 'ops' } });
    const other = semaphoreTransition(drained, { ...UNDRAIN, revision: 7 } as SemaphoreCommand, at(6));
    expect(other.state).toBe(drained);
    expect(other.outcome).toMatchObject({ kind: 'another-drain', drain: { revision: 1 } });
    const named = semaphoreTransition(drained, { ...UNDRAIN, revision: 1 } as SemaphoreCommand, at(6));
    expect(named.outcome.kind).toBe('undrained');
    expect(semaphoreTransition(named.state, UNDRAIN, at(7)).outcome).toEqual({ kind: 'not-drained' });
  });

  it('is at fault if a request got slots meanwhile', () => {
    const before = after(newSemaphore(2), DRAIN).state.record;
    const granted = after(newSemaphore(2), acquiring('b', 1)).state.record;
    expect(faultOf({ ...before, token: granted.token, holds: granted.holds }, before)).toBe(
      'b got slots, and ops had drained it',
    );
  });
});
