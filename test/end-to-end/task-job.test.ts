// The command of a worker has ended: whatever the store says to that, the claim must not stay.

import { open, type TaskClaim } from 'signalbox';
import { openMemory } from 'signalbox/store';
import { expect, it, onTestFinished } from 'vitest';
import { type JobEnd, runJob } from '../../src/cli/task/job.ts';
import { Voice } from '../../src/cli/run/voice.ts';
import { Failure } from '../../src/failure.ts';

const never = new AbortController().signal;
const SIGNALS = {
  ...{ left: undefined, leaving: never, hurrying: never, wasInterrupted: false },
  running: (): void => undefined,
  losing: (): void => undefined,
  ending: (): void => undefined,
};

async function claimed() {
  const box = await open(openMemory());
  onTestFinished(() => box.close());
  await box.tasks.publish('a', null);
  const claim = await box.tasks.claim('a');
  const run = (script: string): Promise<JobEnd> => {
    const command = { program: '/bin/sh', argv: ['sh', '-c', script], env: process.env, url: 'memory:', outer: {} };
    const terms = { ttlMs: 15_000, graceMs: 1_000, onLost: 'term', given: [], leads: true, onOutput: () => undefined };
    return runJob(box, claim, { ...command, ...terms } as never, SIGNALS, new Voice('now-and-then'));
  };
  return { box, claim, run };
}

/** The store answers the end of this claim with an error, so many times. */
function refuse(claim: TaskClaim, times: number, error: Failure): void {
  const complete = claim.complete.bind(claim);
  let refused = 0;
  claim.complete = (result) => (refused++ < times ? Promise.reject(error) : complete(result));
}

it.each(['unavailable', 'outcome-unknown'] as const)(
  'an end that met %s is repeated until it is written',
  async (code) => {
    const { box, claim, run } = await claimed();
    refuse(claim, 2, new Failure(code, 'the store is busy'));
    expect(await run('echo 7')).toMatchObject({ outcome: { kind: 'completed' } });
    expect(await box.tasks.show('a')).toMatchObject({ status: 'complete', result: 7 });
  },
);

it('an end that the store never accepts fails the task, so that it is not done for ever', async () => {
  const { box, claim, run } = await claimed();
  refuse(claim, Number.POSITIVE_INFINITY, new Failure('invalid', 'the result is too large'));
  expect(await run('echo 7')).toMatchObject({ outcome: { kind: 'failed', attempts: 1 } });
  expect(await box.tasks.show('a')).toMatchObject({
    status: 'failed',
    reason: 'the store refused how the command ended: the result is too large',
  });
});

it('an end is given up once the claim is lost', async () => {
  const { box, claim, run } = await claimed();
  refuse(claim, Number.POSITIVE_INFINITY, new Failure('unavailable', 'the store is busy'));
  const isRefused = new Promise<void>((resolve) => {
    const { complete } = claim;
    claim.complete = (result) => {
      resolve();
      return complete(result);
    };
  });
  const running = run('echo 7');
  await isRefused;
  await box.tasks.forceRelease('a', { holder: 'admin', reason: 'not now' });
  expect(await running).toMatchObject({ outcome: undefined, error: { message: 'the store is busy' } });
});

it.each(['1e999', `${'['.repeat(200)}${']'.repeat(200)}`])(
  'JSON that cannot be stored (%s) is a result all the same, as text',
  async (printed) => {
    const { box, run } = await claimed();
    expect(await run(`echo '${printed}'`)).toMatchObject({ outcome: { kind: 'completed' } });
    expect(await box.tasks.show('a')).toMatchObject({ status: 'complete', result: { output: printed } });
  },
);
