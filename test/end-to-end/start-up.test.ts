// What a start costs: every part of Node takes time to load, and each start pays for it anew.

import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { CLI, Scratch, startProgram } from '../support/cli.ts';
import { built } from '../support/run-processes.ts';

let scratch: Scratch;
beforeAll(built);
beforeEach(() => void (scratch = new Scratch()));
afterEach(() => scratch.remove());

it('run loads none of the parts of Node that it has no use for', async () => {
  const [spy, list] = [scratch.path('spy.cjs'), scratch.path('loaded')];
  const writeList = `require('fs').writeFileSync(${JSON.stringify(list)}, process.moduleLoadList.join('\\n'))`;
  writeFileSync(spy, `process.on('exit', () => ${writeList});`);
  const args = ['--require', spy, CLI, '--store', scratch.store, 'run', '--lock', 'x', '--', 'true'];
  expect(await startProgram(process.execPath, args).ended).toMatchObject({ code: 0, stderr: '' });
  const loaded = readFileSync(list, 'utf8').split('\n');
  expect(loaded).toContain('NativeModule child_process');
  const heavy = ['crypto', 'fs/promises', 'perf_hooks', 'timers/promises', 'readline', 'http', 'tls', 'http2'];
  expect(loaded.filter((name) => heavy.some((one) => name === `NativeModule ${one}`))).toEqual([]);
});
