/**
 * TEST_TIMES=FILE: appends a line for each file of tests, with the seconds that it took and the processor time of its process and
 * of those that it started. A file that waits is sped up in another way than one that computes.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { afterAll, expect } from 'vitest';

const file = process.env['TEST_TIMES'];

if (file !== undefined && process.platform === 'linux') {
  const begun = { at: performance.now(), own: ownSeconds(), started: startedSeconds() };
  afterAll(() => {
    const times = {
      file: relative(process.cwd(), expect.getState().testPath ?? ''),
      seconds: rounded((performance.now() - begun.at) / 1000),
      own: rounded(ownSeconds() - begun.own),
      started: rounded(startedSeconds() - begun.started),
    };
    appendFileSync(file, `${JSON.stringify(times)}\n`);
  });
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Of those that have ended, and of all that these have waited for. The system counts in hundredths of a second. */
function startedSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}
