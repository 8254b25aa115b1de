import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FIRST_TIME_SPACE } from '../../host/index.ts';
import { BACK_TOLERANCE_MS, clockRelation, isSameClock, type Reading, SUSPENDED_TOLERANCE_MS } from './shared-clock.ts';

const HOUR_MS = 3_600_000;

const machine: Reading = { boot: 'a', timeSpace: FIRST_TIME_SPACE, suspendedMs: 0, monotonicMs: 10 * HOUR_MS };
const later: Reading = { ...machine, monotonicMs: machine.monotonicMs + 5000 };

const readings = fc.record<Reading>({
  boot: fc.constantFrom('a', 'b', 'faked:a'),
  timeSpace: fc.constantFrom(FIRST_TIME_SPACE, 'time:[4026532000]', 'none'),
  suspendedMs: fc.oneof(fc.constant(null), fc.double({ min: -1e12, max: 1e12, noNaN: true })),
  monotonicMs: fc.double({ min: 0, max: 1e12, noNaN: true }),
});

describe('the clock of another process', () => {
  it.each<[what: string, own: Reading, theirs: Reading, relation: string]>([
    ['of the same machine is shared', later, machine, 'shared'],
    ['of the same machine is shared, though its reading was written a little late', machine, later, 'shared'],
    ['of an earlier boot is gone', { ...machine, boot: 'b', monotonicMs: HOUR_MS }, machine, 'rebooted'],
    ['with another boot id may run beside ours, in a container', { ...later, boot: 'faked:b' }, machine, 'apart'],
    ['of an earlier boot that was shorter cannot be told from such a one', { ...later, boot: 'b' }, machine, 'apart'],
    [
      'in another container is apart, though lxcfs shows it a longer time since boot than ours',
      { ...later, boot: 'faked:b', suspendedMs: -9 * HOUR_MS },
      { ...machine, boot: 'faked:a', suspendedMs: 240 * HOUR_MS },
      'apart',
    ],
    [
      'in another container is apart, though its clock, shifted by a library, is ahead as well',
      { ...machine, boot: 'faked:b', monotonicMs: HOUR_MS },
      { ...machine, boot: 'faked:a' },
      'apart',
    ],
    ['in another time namespace is apart', { ...later, timeSpace: 'time:[4026532000]' }, machine, 'apart'],
    [
      'seen from a time namespace proves no reboot',
      { ...machine, boot: 'b', timeSpace: 'x', monotonicMs: 0 },
      machine,
      'apart',
    ],
    ['under faketime, ahead, is apart', later, { ...machine, monotonicMs: 1e12, suspendedMs: 36e6 - 1e12 }, 'apart'],
    [
      'seen from under faketime, ahead, is apart',
      { ...later, monotonicMs: 1e12, suspendedMs: 36e6 - 1e12 },
      machine,
      'apart',
    ],
    ['before the machine was suspended is apart', { ...later, suspendedMs: HOUR_MS }, machine, 'apart'],
    [
      'that is ahead of ours in the same boot is apart: a snapshot was restored',
      machine,
      { ...machine, monotonicMs: 20 * HOUR_MS },
      'apart',
    ],
    [
      'of a store that was copied to a younger machine is gone',
      { ...machine, boot: 'c', monotonicMs: HOUR_MS },
      machine,
      'rebooted',
    ],
    [
      'of a store that was copied to an older machine is apart',
      { ...machine, boot: 'c', monotonicMs: 99 * HOUR_MS },
      machine,
      'apart',
    ],
  ])('%s', (_what, own, theirs, relation) => {
    expect(clockRelation(own, theirs)).toBe(relation);
  });

  it('is shared only where boot, time namespace and time in suspend are the same, and time did not go back', () => {
    fc.assert(
      fc.property(readings, readings, (own, theirs) => {
        if (clockRelation(own, theirs) !== 'shared') return;
        expect([theirs.boot, theirs.timeSpace]).toEqual([own.boot, own.timeSpace]);
        expect(Math.abs((own.suspendedMs ?? 0) - (theirs.suspendedMs ?? 0))).toBeLessThanOrEqual(
          SUSPENDED_TOLERANCE_MS,
        );
        expect(own.monotonicMs).toBeGreaterThanOrEqual(theirs.monotonicMs - BACK_TOLERANCE_MS);
      }),
    );
  });

  it('is never taken for one of an earlier boot while the machine runs, whatever boot ids its containers show', () => {
    const elapsed = fc.double({ min: 0, max: 1e12, noNaN: true });
    fc.assert(
      fc.property(readings, elapsed, readings, fc.string(), (theirs, passedMs, { suspendedMs }, boot) => {
        // Whatever time since boot they show, too.
        const own = { ...theirs, boot, suspendedMs, monotonicMs: theirs.monotonicMs + passedMs };
        expect(clockRelation(own, theirs)).not.toBe('rebooted');
      }),
    );
  });

  it('shares a deadline to within the tolerance, whatever a library does to the clocks of both', () => {
    // The kernel's clock, which counts suspend, is the true one; each process sees its monotonic clock shifted by something.
    const shifts = fc.double({ min: -200, max: 200, noNaN: true });
    fc.assert(
      fc.property(shifts, shifts, fc.double({ min: 0, max: 1e6, noNaN: true }), (mine, theirs, passedMs) => {
        const writing: Reading = { ...machine, suspendedMs: -theirs, monotonicMs: machine.monotonicMs + theirs };
        const looking: Reading = { ...machine, suspendedMs: -mine, monotonicMs: machine.monotonicMs + mine + passedMs };
        if (clockRelation(looking, writing) !== 'shared') return;
        const seemsMs = looking.monotonicMs - writing.monotonicMs;
        expect(seemsMs - passedMs).toBeLessThanOrEqual(SUSPENDED_TOLERANCE_MS + 1e-3);
      }),
    );
  });

  it('is the same one seen from either side', () => {
    fc.assert(fc.property(readings, readings, (one, other) => isSameClock(one, other) === isSameClock(other, one)));
  });
});
