import { describe, expect, it } from 'vitest';
import { all, branchMerged, command, lockFree, not } from '../guard/constructors.ts';
import type { Phase, Runbook } from './runbook.ts';
import { parseRunbook } from './parse.ts';
import { runbookVariables, withVariables } from './variables.ts';

const phase: Phase = {
  name: 'merge',
  run: { shell: 'git merge "${BRANCH}"' },
  pre: [
    {
      id: 'g',
      condition: all([not(branchMerged('${BRANCH}', 'main')), command('test -n "${BRANCH}"'), lockFree('a$${B}')]),
    },
  ],
  post: [],
  holds: [{ lock: 'deploy-${TARGET}' }, { semaphore: '${BRANCH}', weight: 2 }],
  retries: 0,
  backoffMs: 1,
  idempotent: false,
  env: {},
};
const runbook: Runbook = { name: 'r', env: { TARGET: 'staging' }, phases: [phase] };

it('one runbook serves many branches: conditions and names of holds take what it was started with', () => {
  const filled = withVariables(runbook, { BRANCH: 'agent-1' });
  expect(filled).toMatchObject({
    ok: true,
    runbook: {
      phases: [
        {
          run: phase.run,
          pre: [
            {
              condition: all([not(branchMerged('agent-1', 'main')), command('test -n "${BRANCH}"'), lockFree('a${B}')]),
            },
          ],
          holds: [{ lock: 'deploy-staging' }, { semaphore: 'agent-1', weight: 2 }],
        },
      ],
    },
  });
});

it('a variable without a value is reported before anything runs', () => {
  expect(withVariables(runbook, {})).toEqual({ ok: false, problem: expect.stringContaining('"BRANCH"') as string });
});

it('a variable is never looked for in the prototype of all objects', () => {
  const sly = { ...runbook, phases: [{ ...phase, holds: [{ lock: '${constructor}' }] }] };
  expect(withVariables(sly, { BRANCH: 'x' })).toMatchObject({ ok: false });
});

it.each([
  ['no name at all', { A: '', B: 'x' }, 'phase merge holds what is no name'],
  ['one that is too long', { A: 'x'.repeat(201), B: 'x' }, 'phase merge holds what is no name'],
  ['the same name twice', { A: 'x', B: 'x' }, 'phase merge holds the lock "x" twice; name it once'],
])('holds that come to %s are told before anything runs', (_, given, problem) => {
  const both = { ...runbook, phases: [{ ...phase, pre: [], holds: [{ lock: '${A}' }, { lock: '${B}' }] }] };
  expect(withVariables(both, given)).toEqual({ ok: false, problem: expect.stringContaining(problem) as string });
});

it('a long value in many places is refused, and not written out', () => {
  const many = Array.from({ length: 5_000 }, (_, at) => ({ id: `g${at}`, condition: lockFree('${BRANCH}') }));
  const bomb = { ...runbook, phases: [{ ...phase, pre: many, holds: [] }] };
  expect(withVariables(bomb, { BRANCH: 'x'.repeat(65_536) })).toMatchObject({
    ok: false,
    problem: 'the variables in guards and holds have more than 131072 characters',
  });
});

describe('the variables of a runbook', () => {
  it('are those of its env, of guards and holds, and those that its commands read', () => {
    const parsed = parseRunbook({
      name: 'release',
      env: { TARGET: 'staging' },
      phases: [
        {
          name: 'build',
          holds: { locks: ['env-${TARGET}', 'for-${ENVIRONMENT}'] },
          pre: [{ branchClean: '${BRANCH}' }, { command: { cmd: 'make "$WHAT"' } }],
          run: 'DIR=$(mktemp -d); cd "$DIR" && deploy ${VERSION:-1} "$SIGNALBOX_TOKEN" "$HOME" \\$PLAIN "$PHASE_OWN"',
          env: { PHASE_OWN: '1' },
        },
      ],
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(runbookVariables(parsed.runbook)).toEqual([
      { name: 'BRANCH', value: undefined, isRequired: true },
      { name: 'ENVIRONMENT', value: undefined, isRequired: true },
      { name: 'TARGET', value: 'staging', isRequired: false },
      { name: 'VERSION', value: undefined, isRequired: false },
      { name: 'WHAT', value: undefined, isRequired: false },
    ]);
  });
});
