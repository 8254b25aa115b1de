// What an earlier command of a pipeline left running, wherever it is noted.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'signalbox';
import { openEmbedded, prefixed, type ReadResult, type Store } from 'signalbox/store';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { MARK, type Offspring } from '../../src/host/index.ts';
import { offspringOf } from '../../src/host/offspring.ts';
import type { ChildNote } from '../../src/runtime/child-note.ts';
import { keysOf } from '../../src/runtime/holds/held-records.ts';
import { encode } from '../../src/runtime/layout.ts';
import { isAlive } from '../support/run-processes.ts';
import { book, phase, shell } from './books.ts';
import { left, Stage, until } from './stage.ts';

async function notesOf(store: Store, resource: string): Promise<readonly ChildNote[]> {
  const success = [{ do: 'read' as const, ...prefixed(keysOf(resource).children) }];
  const { results } = await store.transaction({ compare: [], success, failure: [] });
  return (results[0] as ReadResult).pairs.map(({ value }) => value.json as ChildNote);
}

async function straggler(): Promise<Offspring> {
  const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore', env: { ...process.env, [MARK]: 'old' } });
  await once(child, 'spawn');
  onTestFinished(() => void child.kill('SIGKILL'));
  return offspringOf(child.pid as number, true, 'old');
}

async function note(on: Stage, child: Offspring, hold: { id: string; lease: string }): Promise<void> {
  const { id, lease } = hold;
  const value = { hold: id, token: 1, holder: 'old', lease, child, graceMs: 100, outlivesHold: false, at: Date.now() };
  const put = { do: 'put' as const, key: `${keysOf('lock/pipeline:p').children}old`, value: encode(value) };
  await on.fleet.store.transaction({ compare: [], success: [put], failure: [] });
}

describe('what a command left running', () => {
  it('has gone before the next command of the same driver begins', async () => {
    const on = new Stage(true);
    const driver = await on.fleet.start('driver');
    const earlier = await straggler();
    on.does({
      first: async () => {
        const success = [{ do: 'read' as const, key: keysOf('lock/pipeline:p').record }];
        const { results } = await on.fleet.store.transaction({ compare: [], success, failure: [] });
        const { record } = (results[0] as ReadResult).pairs[0]?.value.json as {
          record: { holds: { id: string; lease: string }[] };
        };
        await note(on, earlier, record.holds[0] as { id: string; lease: string });
      },
    });
    // One that has gone, and that its parent has not looked after yet, has no program.
    const line = `readlink /proc/${earlier.pid}/exe && exit 9; true`;
    const record = await left(on.run(driver, book(phase('first'), shell('second', line))));
    expect(record).toMatchObject({ state: 'done' });
    await until(() => !isAlive(earlier.pid));
    expect(await notesOf(on.fleet.store, 'lock/pipeline:p')).toEqual([]);
  });

  it('is told of by the next driver, where it cannot see it', async () => {
    const on = new Stage(true);
    const driver = await on.fleet.start('driver');
    await driver.box.pipelines.start(book(phase('work')), { id: 'p' });
    const here = await straggler();
    const elsewhere = { ...here, process: { ...here.process, boot: 'another' } } as Offspring;
    await note(on, elsewhere, { id: 'gone', lease: 'gone' });
    on.does({ work: () => undefined });
    const told: string[] = [];
    await left(on.resume(driver, { onOutput: (name, text) => void told.push(`${name}: ${text}`) }));
    expect(told).toEqual([
      'work: signalbox: lock/pipeline:p: old may have left a process on another machine or in another container; it cannot be seen from here\n',
    ]);
  });

  it('is told of apart from the output, to a program that takes such messages', async () => {
    const on = new Stage(true);
    const driver = await on.fleet.start('driver');
    await driver.box.pipelines.start(book(phase('work')), { id: 'p' });
    await note(on, await straggler(), { id: 'gone', lease: 'gone' });
    on.does({ work: () => undefined });
    const told: string[] = [];
    const printed: string[] = [];
    await left(
      on.resume(driver, {
        onMessage: (name, message) => void told.push(`${name}: ${message}`),
        onOutput: (_, text) => void printed.push(text),
      }),
    );
    expect(told).toEqual([expect.stringMatching(/^work: lock\/pipeline:p: ending process \d+, left behind by old/)]);
    expect(printed).toEqual([]);
  });

  it('is noted once, and not at all afterwards, although the store did not say that it was', async () => {
    const on = new Stage(false);
    const driver = await on.fleet.start('driver');
    driver.link.next('transaction', 'unanswered', ({ success }) =>
      success.some((operation) => operation.do === 'put' && operation.key.startsWith('c/')),
    );
    const driving = left(on.run(driver, book(shell('work', 'true'))));
    await until(async () => {
      await on.advance(200);
      return (await driver.box.pipelines.show('p'))?.state === 'done';
    });
    await driving;
    expect(await notesOf(on.fleet.store, 'lock/pipeline:p')).toEqual([]);
  });
});

describe('a pipeline inside of a run', () => {
  it('has its commands found by whoever is next to hold what the run holds', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-inside-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
    const url = `file:${directory}`;
    const store = await openEmbedded(directory);
    onTestFinished(() => store.close());
    await using box = await open(url);
    const hold = await box.lock('around').acquire({ holder: 'run:1' });
    const around = { 'lock/around': { holder: 'run:1', token: hold.token, hold: hold.id } };
    vi.stubEnv('SIGNALBOX_URL', url);
    vi.stubEnv('SIGNALBOX_HOLDS', JSON.stringify(around));
    onTestFinished(() => void vi.unstubAllEnvs());
    const stop = new AbortController();
    const runbook = book(shell('work', 'exec sleep 1000'));
    const driving = box.pipelines.run(runbook, { id: 'p', cwd: directory, signal: stop.signal });
    await until(async () => (await notesOf(store, 'lock/pipeline:p')).length === 1);
    const [inner] = await notesOf(store, 'lock/pipeline:p');
    expect(await notesOf(store, 'lock/around')).toMatchObject([{ child: inner?.child, hold: hold.id }]);
    stop.abort();
    await driving;
    expect(await notesOf(store, 'lock/around')).toEqual([]);
  });
});
