import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Guard, GuardOutcome } from '../guard/guard.ts';
import type { Moment } from '../machine.ts';
import type { PipelineCommand, PipelineTransition } from './command.ts';
import { pipelineTransition } from './pipeline.ts';
import type { PhaseRecord, PipelineRecord } from './record.ts';
import type { Phase, Runbook } from './runbook.ts';
import { bytesOf, fitted, fittedEvents, LARGEST_EVENTS_BYTES, LARGEST_RECORD_BYTES } from './size.ts';

const at: Moment = { now: 1_763_290_000_000, revision: 1, gone: () => false };

const letters = fc.string({ unit: fc.constantFrom('a', 'é', '→', '🚦', '\u0001', '\ud800', '"'), maxLength: 40 });

const phase: fc.Arbitrary<PhaseRecord> = fc.record(
  {
    name: fc.constantFrom('build', 'deploy'),
    state: fc.constant('done'),
    runs: fc.nat(3),
    ended: letters,
    warnings: fc.array(letters, { minLength: 1, maxLength: 5 }),
    warningsDropped: fc.integer({ min: 1, max: 9 }),
    tokens: fc.dictionary(fc.constantFrom('lock/main', 'lock/docs'), fc.nat()),
  },
  { requiredKeys: ['name', 'state', 'runs'] },
);

const record: fc.Arbitrary<PipelineRecord> = fc.array(phase, { minLength: 1, maxLength: 6 }).map((phases) => ({
  version: 2,
  id: 'p',
  name: 'release',
  state: 'running',
  step: { when: 'before', phase: phases.length - 1, attempt: 1 },
  phases,
  lastToken: 1,
  lastQuestion: 0,
  outputs: {},
  startedBy: 'ann',
  startedAt: at.now,
  last: 'c-1',
}));

const warningsOf = ({ phases }: PipelineRecord): readonly string[] => phases.flatMap(({ warnings = [] }) => warnings);
const droppedOf = ({ phases }: PipelineRecord): number =>
  phases.reduce((sum, { warningsDropped = 0 }) => sum + warningsDropped, 0);

describe('a record that is too large for a store', () => {
  it('counts its bytes as a store does', () => {
    fc.assert(
      fc.property(letters, (text) => {
        expect(bytesOf(text)).toBe(Buffer.byteLength(JSON.stringify(text)));
      }),
    );
  });

  it('loses its oldest warnings, counts them, and nothing else as long as that is enough', () => {
    fc.assert(
      fc.property(record, fc.integer({ min: 0, max: 100 }), (whole, percent) => {
        const bare = {
          ...whole,
          phases: whole.phases.map(({ warnings: _, ...rest }) => ({ ...rest, warningsDropped: 9_999 })),
        };
        const most = bytesOf(bare) + Math.ceil((Math.max(0, bytesOf(whole) - bytesOf(bare)) * percent) / 100);
        const small = fitted(whole, most);
        expect(bytesOf(small)).toBeLessThanOrEqual(Math.max(most, bytesOf(bare)));
        const kept = warningsOf(small);
        expect(kept).toEqual(warningsOf(whole).slice(warningsOf(whole).length - kept.length));
        expect(droppedOf(small) - droppedOf(whole)).toBe(warningsOf(whole).length - kept.length);
        const plain = ({ phases }: PipelineRecord): unknown =>
          phases.map(({ warnings: _, warningsDropped: __, ...rest }) => rest);
        expect(plain(small)).toEqual(plain(whole));
        if (bytesOf(whole) <= most) expect(small).toBe(whole);
      }),
    );
  });
});

// The largest that a runbook allows, in the letters that take the most room.

const WIDE = '\u0001'.repeat(2_000);
const NAME = (at: number): string => `${String(at).padStart(3, '0')}${'🚦'.repeat(97)}`;

function largest(guards: number): Runbook {
  const guard = (id: string, onFailure: Guard['onFailure']): Guard => ({
    id,
    condition: { lockFree: 'main' },
    ...(onFailure && { onFailure }),
  });
  const phases = Array.from({ length: 200 }, (_, place): Phase => ({
    name: NAME(place),
    run: { shell: 'true' },
    pre: Array.from({ length: guards }, (_each, nth) =>
      guard(`${NAME(nth)}${place}`, place < 199 ? 'warn' : undefined),
    ),
    post: [],
    holds: [],
    retries: 0,
    backoffMs: 0,
    idempotent: false,
    env: {},
  }));
  return { name: 'release', env: {}, phases };
}

describe('a pipeline with as many phases, guards and words as there may be', () => {
  it('can always be written, and says how many warnings it has dropped', () => {
    const runbook = largest(100);
    let state: PipelineRecord | undefined;
    let largestRecord = 0;
    let largestEvents = 0;
    let command = 0;
    const tell = (ask: object): PipelineTransition => {
      const step = pipelineTransition(runbook, state, { ...ask, command: `c-${++command}` } as PipelineCommand, at);
      ({ state } = step);
      largestRecord = Math.max(largestRecord, bytesOf(state));
      largestEvents = Math.max(largestEvents, bytesOf(step.events));
      return step;
    };
    const judged = (place: number, turn: number): object => {
      const outcomes = (runbook.phases[place] as Phase).pre.map(({ id, onFailure = 'block' }): GuardOutcome => {
        const reasons = Array.from({ length: 20 }, (_, nth) => `${turn} ${nth} ${WIDE}`);
        return { kind: 'failed', guard: id, action: onFailure, reasons, outlook: 'open' };
      });
      return { kind: 'judged', when: 'before', outcomes, token: 1 };
    };
    tell({ kind: 'start', id: 'p', by: 'ann' });
    tell({ kind: 'drive', holder: 'w', token: 1 });
    tell(judged(0, 0));
    tell({ kind: 'begun', tokens: {}, token: 1 });
    tell({ kind: 'ended', result: { kind: 'succeeded', outputs: { A: '\u0001'.repeat(21_000) } }, token: 1 });
    const tokens = Object.fromEntries(Array.from({ length: 10 }, (_, nth) => [`lock/${NAME(nth)}`, 1e15]));
    const over = { state: 'done', runs: 1, ended: WIDE.slice(0, 500), tokens } as const;
    const warnings = Array.from({ length: 20 }, () => WIDE.slice(0, 500));
    const begun = state as unknown as PipelineRecord;
    const phases = begun.phases.map(({ name }, place) => ({ name, ...over, ...(place < 100 && { warnings }) }));
    state = { ...begun, step: { when: 'during', phase: 198, attempt: 1 }, phases };
    tell({ kind: 'ended', result: { kind: 'succeeded', outputs: {} }, token: 1 });
    expect(tell(judged(199, 1)).effect.kind).toBe('evaluate');
    expect(state).toMatchObject({ state: 'blocked', blocked: { on: 'guard' } });
    expect(largestRecord).toBeLessThanOrEqual(LARGEST_RECORD_BYTES);
    expect(largestEvents).toBeLessThanOrEqual(LARGEST_EVENTS_BYTES);
    expect(droppedOf(state as PipelineRecord)).toBeGreaterThan(0);
    // Looked at again for the same reasons, it is as it was, and nobody is told again.
    const before = state;
    const again = tell(judged(199, 1));
    expect(state).toBe(before);
    expect(again.events.filter(({ type }) => type === 'pipeline:blocked')).toEqual([]);
  });

  it('leaves events alone that fit', () => {
    const events = [{ type: 'guard:failed', at: 1, holder: 'w', reasons: ['a', 'b'] }];
    expect(fittedEvents(events)).toBe(events);
    expect(fittedEvents(events, 10)).toEqual(events);
  });
});
