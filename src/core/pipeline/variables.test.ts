import { expect, it } from 'vitest';
import { all, branchMerged, command, lockFree, not } from '../guard/index.ts';
import type { Phase, Runbook } from './runbook.ts';
import { withVariables } from './variables.ts';

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

it('what nobody says is told before anything runs', () => {
  expect(withVariables(runbook, {})).toEqual({ ok: false, problem: expect.stringContaining('"BRANCH"') as string });
});

it('a variable is never looked for in the prototype of all objects', () => {
  const sly = { ...runbook, phases: [{ ...phase, holds: [{ lock: '${constructor}' }] }] };
  expect(withVariables(sly, { BRANCH: 'x' })).toMatchObject({ ok: false });
});
