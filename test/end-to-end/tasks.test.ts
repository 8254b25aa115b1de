// Tasks by hand, as scripts and agents use them; on both engines that several processes can share.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { type Ended, inResident, Scratch, signalbox, start } from '../support/cli.ts';
import { built } from '../support/run-processes.ts';

const engines = [
  { engine: 'the embedded engine', isOut: false },
  { engine: 'etcd', isOut: isMissing('etcd') },
];

describe.each(engines)('signalbox task on $engine', ({ engine, isOut }) => {
  const scratch = new Scratch();
  let server: EtcdServer | undefined;
  let store = scratch.store;

  beforeAll(async () => {
    built();
    if (engine !== 'etcd' || isOut) return;
    server = await startEtcd();
    store = `etcd://127.0.0.1:${server.port}`;
  });

  afterAll(async () => {
    await server?.stop();
    scratch.remove();
  });

  const run = (...args: readonly string[]): Promise<Ended> => {
    // A claim has to outlive its process.
    const runs = args[0] === 'claim' ? signalbox : inResident;
    return runs(['task', ...args], { env: { SIGNALBOX_URL: store }, cwd: scratch.dir });
  };
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { code, stdout, stderr } = await run(...args, '--json');
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as T;
  };

  it.skipIf(isOut)('takes a task from published to complete', async () => {
    expect(await run('publish', 'b7', '--data', '{"commit":"abc"}')).toMatchObject({
      code: 0,
      stdout: 'task/b7: published\n',
    });
    expect((await run('list', '--status', 'failed')).stdout).toBe('No task is failed.\n');
    expect(await run('publish', 'b7', '--data', '{}', '--priority', '7')).toMatchObject({
      code: 1,
      stderr:
        'signalbox: task/b7: there is one already, which is pending; its data, priority and other options stay as they were; signalbox task forget b7 makes room for another one\n',
    });
    const claimed = await run('claim', 'b7', '--holder', 'agent:7', '--ttl', '60s');
    expect(claimed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) as unknown });
    const token = claimed.stdout.trim();
    expect(await run('claim', 'b7', '--holder', 'agent:8', '--ttl', '60s')).toMatchObject({
      code: 75,
      stdout: '',
      stderr: 'signalbox: task/b7: claimed by agent:7\n',
    });
    expect(await run('renew', 'b7', '--token', token)).toMatchObject({
      code: 0,
      stdout: 'task/b7: renewed for 60 s\n',
    });
    expect((await run('renew', 'b7', '--holder', 'agent:8')).code).toBe(77);
    expect(await run('complete', 'b7', '--token', '1')).toMatchObject({
      code: 77,
      stderr: 'signalbox: task/b7: not yours; agent:7 has it, and it is running\n',
    });
    expect(await json('show', 'b7')).toMatchObject({
      status: 'running',
      owner: 'agent:7',
      isLeased: true,
      attempts: 1,
    });
    expect(await json('complete', 'task/b7', '--token', token, '--result', '[1]')).toEqual({
      task: 'b7',
      outcome: 'completed',
    });
    expect(await json('show', 'b7')).toMatchObject({ status: 'complete', result: [1], owner: 'agent:7' });
    expect((await run('claim', 'b7', '--holder', 'agent:8')).code).toBe(1);
    expect((await run('complete', 'b7', '--holder', 'agent:7')).code).toBe(77);
    expect((await run('renew', 'b7', '--token', token)).code).toBe(76);
    expect((await run('show', 'nothing')).code).toBe(1);
  });

  it.skipIf(isOut)('claims the next one that fits, with its data, and waits if asked', async () => {
    expect((await run('claim', '--holder', 'w')).code).toBe(1);
    const waiting = start(['task', 'claim', '--holder', 'w', '--wait', '60s', '--json'], {
      env: { SIGNALBOX_URL: store },
      cwd: scratch.dir,
    });
    await run('publish', 'low', '--data', '{}', '--priority', '-1', '--capability', 'gpu');
    await run('publish', 'high', '--data', '{"x":1}', '--priority', '9');
    const first = JSON.parse((await waiting.ended).stdout) as { task: string; token: number };
    expect(first).toMatchObject({ task: 'high', holder: 'w', ttlMs: 60_000, attempt: 1, data: { x: 1, priority: 9 } });
    expect((await run('claim', '--holder', 'w')).code).toBe(1);
    expect((await run('claim', 'low', '--holder', 'w')).code).toBe(75);
    const second = await run('claim', '--holder', 'w', '--capability', 'gpu', '--capability', 'more');
    expect(second.stdout).toMatch(/^\d+ low\n$/);
    expect(await run('release', 'low', '--holder', 'w')).toMatchObject({ code: 0, stdout: 'task/low: released\n' });
    expect((await run('release', 'low', '--holder', 'w')).code).toBe(77);
    expect(await run('fail', 'high', '--holder', 'w', '--reason', 'no')).toMatchObject({
      stdout: 'task/high: failed\n',
    });
  });

  it.skipIf(isOut)('shows what blocks a task, and tries again what failed', async () => {
    await run('publish', 'deploy', '--depends-on', 'tests', '--retries', '1');
    expect((await run('show', 'deploy')).stdout).toContain('blocked by  task tests does not exist');
    expect(await run('claim', 'deploy', '--holder', 'w')).toMatchObject({
      code: 75,
      stderr: 'signalbox: task/deploy: it cannot be claimed yet: task tests does not exist\n',
    });
    await run('publish', 'tests');
    const token = (await run('claim', 'tests', '--holder', 'w')).stdout.trim();
    await run('complete', 'tests', '--token', token);
    await run('claim', 'deploy', '--holder', 'w');
    expect(await json('fail', 'deploy', '--holder', 'w', '--reason', 'net')).toEqual({
      task: 'deploy',
      outcome: 'retried',
      attempts: 1,
      retriesLeft: 1,
      backoffMs: 0,
    });
    await run('claim', 'deploy', '--holder', 'w');
    expect((await run('fail', 'deploy', '--holder', 'w', '--reason', 'net')).stdout).toBe('task/deploy: failed\n');
    const { tasks } = await json<{ tasks: { task: string }[] }>('list', '--status', 'failed');
    expect(tasks.map(({ task }) => task)).toContain('deploy');
    expect((await run('list', '--status', 'failed', '--names')).stdout.split('\n')).toContain('deploy');
    expect((await run('list')).stdout).toMatch(/^TASK +STATUS +PRIORITY +OWNER/);
  });

  it.skipIf(isOut)('takes a task away by force only with a reason', async () => {
    await run('publish', 'stuck');
    await run('claim', 'stuck', '--holder', 'w:gone', '--ttl', '1h');
    expect((await run('release', 'stuck', '--force')).code).toBe(64);
    expect(await json('release', 'stuck', '--force', '--reason', 'off', '--holder', 'user:anna')).toEqual({
      task: 'stuck',
      outcome: 'released',
      owner: 'w:gone',
      by: 'user:anna',
      reason: 'off',
    });
    expect((await run('release', 'stuck', '--force', '--reason', 'off')).code).toBe(1);
    expect((await run('complete', 'stuck', '--holder', 'w:gone')).code).toBe(77);
  });

  it.skipIf(isOut)('prints what happens as it happens, and so does events tail', async () => {
    const options = { env: { SIGNALBOX_URL: store }, cwd: scratch.dir };
    const watching = start(['task', 'watch', '--json', '--for', '60s'], options);
    const tailing = start(['events', 'tail', 'task:*', '--for', '60s'], options);
    // They say nothing until something happens: so something happens until they have heard of it.
    let heard = false;
    void Promise.all([watching.printed('task:claimed'), tailing.printed('task:claimed')]).then(() => (heard = true));
    for (let n = 0; !heard; n++) {
      await run('publish', `w${n}`);
      await run('claim', `w${n}`, '--holder', 'w');
    }
    watching.child.kill('SIGINT');
    tailing.child.kill('SIGINT');
    const lines = (await watching.ended).stdout.trim().split('\n');
    const events = lines.map((line) => JSON.parse(line) as { type: string; task: string; holder: string });
    expect(events.filter(({ type }) => type === 'task:claimed')[0]).toMatchObject({
      holder: 'w',
      token: expect.any(Number) as unknown,
    });
    expect((await tailing.ended).stdout).toMatch(/task:claimed +task\/w\d+ +w /);
  });

  it.skipIf(isOut).each([
    [['publish', 'x', '--data', '{nope'], /is not JSON/],
    [['publish', 'x', '--priority', '1000'], /priority is 1000/],
    [['publish', 'x', '--data', '5', '--retries', '1'], /has to be an object/],
    [['claim', 'x'], /--holder is missing/],
    [['complete', 'x'], /--token or --holder is missing/],
    [['fail', 'x', '--token', '1'], /--reason/],
    [['release', 'x', '--token', '1', '--reason', 'y'], /--reason needs --force/],
    [['list', '--status', 'done'], /--status is "done"; expected pending, running, complete, failed/],
    [['cliam', 'x'], /did you mean claim/],
  ])('says what is wrong with %j', async (args, message) => {
    const { code, stderr } = await run(...args);
    expect(stderr).toMatch(message);
    expect(code).toBe(64);
  });
});
