// What a killed process worked on is picked up by a living one, which only waits for it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'signalbox';
import type { PipelineRecord } from 'signalbox/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../pipelines/stage.ts';
import { built } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

const BUSY = fileURLToPath(new URL('programs/busy.mjs', import.meta.url));

describe.each(stores)('on $on, a process that is killed', ({ kind }) => {
  const newStore = newStoreOf(kind);

  it('leaves its tasks and its pipelines to a living one, without any command', async () => {
    built();
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-busy-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const url = newStore(directory);
    await using box = await open(url);
    await box.tasks.publish('job', null);
    const busy = spawn(process.execPath, [BUSY, url, directory], { stdio: ['ignore', 'ignore', 'inherit'] });
    const gone = once(busy, 'exit');
    onTestFinished(() => void busy.kill('SIGKILL'));
    await until(() => existsSync(join(directory, 'again')));
    const over = new AbortController();
    const seen: PipelineRecord[] = [];
    const standing = box.pipelines.driveAll({
      signal: over.signal,
      graceMs: 30_000,
      onChange: (record) => void seen.push(record),
    });
    const claimed = box.tasks.claimNext({ holder: 'living' });
    await until(async () => (await box.lock('pipeline:p').inspect()).waiting.length === 1);
    busy.kill('SIGKILL');
    await gone;
    expect(await claimed).toMatchObject({ id: 'job', attempt: 2 });
    await until(() => seen.at(-1)?.endedAt !== undefined);
    expect(seen.at(-1)).toMatchObject({ state: 'done', phases: [{ name: 'work', runs: 2 }] });
    over.abort();
    await standing;
    expect(readFileSync(join(directory, 'did'), 'utf8').trim().split('\n')).toHaveLength(2);
  });
});
