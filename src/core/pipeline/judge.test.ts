import { describe, expect, it } from 'vitest';
import type { Guard, GuardOutcome } from '../guard/guard.ts';
import type { Moment } from '../machine.ts';
import { judge, type Judgement } from './judge.ts';
import type { Phase } from './runbook.ts';

const at: Moment = { now: 1, revision: 1, gone: () => false };

function judged(guards: readonly Guard[], outcomes: readonly GuardOutcome[]): Judgement {
  const phase: Phase = {
    name: 'merge',
    run: { shell: 'true' },
    pre: guards,
    post: [],
    holds: [],
    retries: 0,
    backoffMs: 0,
    idempotent: false,
    env: {},
  };
  return judge(phase, 'before', outcomes, 'w1', at);
}

function failing(guard: string, reasons: readonly string[]): GuardOutcome {
  return { kind: 'failed', guard, action: 'block', reasons, outlook: 'open' };
}

const issues: Guard = { id: 'issues', condition: { issuesComplete: {} } };
const quiet: Guard = { id: 'quiet', condition: { lockFree: 'main' } };

describe('what a blocked pipeline says about its guards', () => {
  it('is every reason; of very many and of very long ones as much as a record can keep', () => {
    const reasons = Array.from({ length: 23 }, (_, nth) => `${nth} ${'x'.repeat(nth === 0 ? 1_000 : 3)}`);
    const { kind, ...rest } = judged([issues], [failing('issues', reasons)]);
    expect(kind).toBe('blocks');
    const told = 'blocked' in rest ? (rest.blocked.guards[0]?.reasons ?? []) : [];
    expect(told).toHaveLength(21);
    expect(told[0]).toHaveLength(501);
    expect(told.slice(1, 3)).toEqual(['1 xxx', '2 xxx']);
    expect(told.at(-1)).toBe('and 3 more');
  });

  it('is what wakes any of them, each once, and nothing of those that pass', () => {
    const again: Guard = { ...quiet, id: 'again' };
    const passed: Guard = { id: 'passed', condition: { taskDone: 't' } };
    const verdict = judged(
      [quiet, again, issues, passed],
      [failing('quiet', ['a']), failing('again', ['b']), failing('issues', ['c']), { kind: 'passed', guard: 'passed' }],
    );
    expect(verdict).toMatchObject({
      blocked: { wakeOn: ['lock:released', 'lock:reclaimed', 'lock:forced'], polled: ['issues:{}'] },
    });
  });

  it('is nothing about a guard that was judged and is not one of its own', () => {
    expect(judged([], [failing('quiet', ['a'])])).toEqual({ kind: 'passes', warnings: [], events: [] });
  });
});
