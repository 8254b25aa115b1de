// Tasks that no worker has, in a shell: retried, requeued, forgotten, listed; and the bus, counts and `who` beside them.

import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Scratch } from '../support/cli.ts';
import { built } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

beforeAll(built);

describe.each(stores)('in a shell on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let scratch: Scratch;
  afterEach(() => scratch.remove());

  it('a failed task is retried, a complete one requeued, and any forgotten that no worker has', async () => {
    scratch = new Scratch(newStore);
    writeFileSync(scratch.path('data.json'), '{"from":"a file"}');
    await scratch.run('task', 'publish', 'x', '--data', '@data.json', '--retries', '1', '--backoff', '1h');
    expect(await scratch.json('task', 'show', 'x')).toMatchObject({ data: { from: 'a file', backoffMs: 3_600_000 } });
    await scratch.run('task', 'run', 'x', '--', 'false');
    expect((await scratch.run('task', 'show', 'x')).stdout).toMatch(
      /^attempts {4}1 \(1 failed\)\nretries {5}0 of 1 left, 60 min after the first failure and twice as long after each later one\nnext try {4}in (60|59) min$/m,
    );
    expect(await scratch.run('task', 'retry', 'x')).toMatchObject({
      code: 0,
      stdout: 'task/x: can be claimed at once\n',
    });
    expect(await scratch.run('task', 'retry', 'x')).toMatchObject({
      code: 1,
      stderr: 'signalbox: task/x: it is pending already\n',
    });
    await scratch.run('task', 'run', 'x', '--', 'true');
    expect(await scratch.run('task', 'retry', 'x', 'nothing')).toMatchObject({
      code: 1,
      stderr:
        'signalbox: task/x: it is complete, not failed; task requeue has it done again\nsignalbox: task/nothing: there is no such task\n',
    });
    expect(await scratch.json('task', 'requeue', 'x')).toEqual({ task: 'x', outcome: 'requeued', was: 'complete' });
    await scratch.run('task', 'claim', 'x', '--holder', 'w');
    expect(await scratch.run('task', 'forget', 'x')).toMatchObject({
      code: 1,
      stderr: 'signalbox: task/x: w has it; nothing was changed\n',
    });
    expect((await scratch.run('who')).stdout).toMatch(/^task\/x +w .* task +attempt 3$/m);
    expect(await scratch.json('who')).toMatchObject({ tasks: [{ task: 'x', owner: 'w' }] });
    await scratch.run('task', 'fail', 'x', '--holder', 'w', '--reason', 'red', '--no-retry');
    await scratch.run('task', 'publish', 'y', '--depends-on', 'x');
    expect(await scratch.run('task', 'forget', 'x')).toMatchObject({
      code: 1,
      stderr: 'signalbox: task/x: tasks that are not complete depend on it: y; nothing was changed\n',
    });
    const page = await scratch.json<{ tasks: readonly { task: string }[] }>('task', 'list', '--limit', '1');
    expect(page).toMatchObject({ tasks: [{ task: 'x' }], next: 'x' });
    expect((await scratch.run('task', 'list', '--names', '--limit', '5', '--after', 'x')).stdout).toBe('y\n');
    expect((await scratch.run('task', 'forget', 'y', 'x')).stdout).toBe('task/y: forgotten\ntask/x: forgotten\n');
    expect((await scratch.run('task', 'list')).stdout).toBe('There are no tasks.\n');
    expect((await scratch.run('task', 'configure', '--keep', '30d', '--keep-most', '5')).stdout).toBe(
      'finished tasks are kept for 30 d, and at most 5 of them\n',
    );
    expect(await scratch.json('task', 'configure')).toEqual({ keepMs: 30 * 86_400_000, keepMost: 5 });
  });

  it('keys of the bus are put, compared, read and watched', async () => {
    scratch = new Scratch(newStore);
    const watching = scratch.start('bus', 'watch', 'config/', '-n', '2', '--json');
    await scratch.run('bus', 'put', 'config/ready', 'no');
    // The watch may begin after the first put, but not after one that it has answered.
    const putting = async (): Promise<void> => {
      while (watching.child.exitCode === null) await scratch.run('bus', 'put', 'config/ready', 'yes');
    };
    await Promise.all([putting(), watching.ended]);
    const lines = (await watching.ended).stdout.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { key: string }).key)).toEqual(['config/ready', 'config/ready']);
    expect(await scratch.run('bus', 'get', 'config/ready')).toMatchObject({ code: 0, stdout: 'yes' });
    expect(await scratch.run('bus', 'get', 'config/none')).toMatchObject({ code: 1, stdout: '' });
    expect(await scratch.run('bus', 'put', 'config/ready', 'x', '--if-absent')).toMatchObject({
      code: 1,
      stderr: 'signalbox: config/ready is yes; nothing was changed\n',
    });
    expect((await scratch.run('bus', 'put', 'config/ready', 'x', '--if-value', 'yes')).code).toBe(0);
    expect(await scratch.json('bus', 'get', 'config/ready')).toMatchObject({ key: 'config/ready', value: 'x' });
  });

  it('requests that were denied are counted over all processes', async () => {
    scratch = new Scratch(newStore);
    await scratch.run('lock', 'acquire', 'main', '--holder', 'a');
    for (const holder of ['b', 'c']) await scratch.run('lock', 'acquire', 'main', '--holder', holder, '--no-wait');
    await scratch.run('run', '--lock', 'main', '--no-wait', '--', 'true');
    expect(await scratch.json('events', 'denied')).toEqual({ total: 3, byResource: { 'lock/main': 3 } });
    expect((await scratch.run('events', 'denied')).stdout).toBe('       3  lock/main\n       3  in all\n');
  });
});
