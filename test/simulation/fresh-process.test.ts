// A seed gives the same run in every process, also in one that has loaded nothing yet: else no failure could be looked at again.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../../dist/testing/simulation/main.js', import.meta.url));

it('a seed with the witness gives the same trace in two fresh processes', async () => {
  const inFreshProcess = async (): Promise<readonly string[]> => {
    const args = [MAIN, '--seed', '3', '--workload', 'witness', '--trace'];
    return (await promisify(execFile)(process.execPath, args)).stdout.split('\n');
  };
  const [first, second] = await Promise.all([inFreshProcess(), inFreshProcess()]);
  expect(second).toEqual(first);
  expect(first.length).toBeGreaterThan(100);
});
