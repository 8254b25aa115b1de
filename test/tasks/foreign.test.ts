// A worker that is no signalbox: nothing but etcdctl, with the commands of docs/task.md as they are printed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox, type SignalboxEvent } from 'signalbox';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { blocksOf } from '../docs/blocks.ts';
import { root } from '../house/sources.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';

const PAGE = 'docs/task.md';
const recipes = new Map(
  blocksOf(PAGE, readFileSync(join(root, PAGE), 'utf8')).flatMap(({ language, code }) => {
    const name = /^sh recipe foreign-(\S+)$/.exec(language)?.[1];
    return name === undefined ? [] : [[name, code] as const];
  }),
);

const isOut = isMissing('etcd') || isMissing('etcdctl');

describe.skipIf(isOut)('a worker that has nothing but etcdctl', () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-foreign-'));
  const running: ChildProcess[] = [];
  let server: EtcdServer;
  let box: Signalbox;
  let events: SignalboxEvent[] = [];

  beforeAll(async () => {
    server = await startEtcd();
    box = await open(`etcd://127.0.0.1:${server.port}`, { requestTimeoutMs: 20_000 });
    await box.on('task:*', (event) => void events.push(event));
    await box.tasks.subscribe(() => undefined);
  });

  beforeEach(async () => {
    await etcdctl('etcdctl del --prefix /tasks/report/');
    events = [];
  });

  afterAll(async () => {
    await box?.close();
    for (const child of running) await endOf(child);
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** With what it has started in the background, which may outlive it. */
  async function endOf(child: ChildProcess): Promise<void> {
    const gone = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // Nobody of them is left.
    }
    await gone;
  }

  /** A shell of its own; resolves with all that it printed, or, given a text, as soon as it has printed that. */
  async function etcdctl(
    code: string,
    until?: string,
  ): Promise<{ readonly text: string; readonly child: ChildProcess }> {
    const child = spawn('bash', ['-c', code], {
      cwd: directory,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: `127.0.0.1:${server.port}` },
    });
    running.push(child);
    let text = '';
    await new Promise<void>((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (some: string) => {
        text += some;
        if (until !== undefined && text.includes(until)) resolve();
      });
      // What it printed last may still be in the pipe.
      if (until === undefined) child.on('exit', () => setImmediate(() => setImmediate(resolve)));
      child.stdout.on('end', () => resolve());
    });
    return { text, child };
  }

  const recipe = (name: string): string => {
    const code = recipes.get(name);
    if (code === undefined) throw new Error(`${PAGE} has no recipe foreign-${name}`);
    return code;
  };
  const told = (): string[] => events.map(({ type, holder }) => `${type} ${holder}`.trim());

  it('publishes: workers of signalbox are told, and get the task by its priority', async () => {
    const claiming = box.tasks.claimNext();
    await etcdctl(recipe('publish'));
    const claim = await claiming;
    expect(claim).toMatchObject({ id: 'report', data: { month: '2026-01', priority: 3 } });
    // What signalbox has claimed, it does not get.
    expect((await etcdctl(recipe('claim'), claim.holder)).text).toContain('FAILURE');
    await claim.complete('done');
    const { text } = await etcdctl('etcdctl get --prefix /tasks/report/ --print-value-only');
    expect(text.split('\n')).toEqual(expect.arrayContaining(['complete', claim.holder]));
  });

  it('claims, keeps what it has, and completes it for good', async () => {
    await box.tasks.publish('report', {});
    const { text } = await etcdctl(recipe('claim'), 'SUCCESS');
    expect(text).toContain('SUCCESS');
    expect(await box.tasks.show('report')).toMatchObject({ status: 'running', owner: 'py:1', isLeased: true });
    expect(await box.tasks.tryClaim('report')).toMatchObject({ kind: 'taken', owner: 'py:1' });
    expect((await etcdctl(recipe('complete'))).text).toContain('SUCCESS');
    expect(await box.tasks.tryClaim('report')).toEqual({ ok: false, kind: 'finished', status: 'complete' });
    expect(await box.tasks.show('report')).toMatchObject({ status: 'complete', owner: 'py:1' });
    // Nobody, by whichever means, makes the owner again.
    expect((await etcdctl(recipe('claim'), 'FAILURE')).text).toContain('FAILURE');
    await expect.poll(told).toEqual(['task:published', 'task:claimed py:1', 'task:completed py:1']);
  });

  it('gives back what it has, and only that', async () => {
    await box.tasks.publish('report', {});
    const waiting = box.tasks.claim('report', { holder: 'ours' });
    const early = await waiting;
    expect((await etcdctl(recipe('release'))).text).toContain('FAILURE');
    expect((await etcdctl(recipe('complete'))).text).toContain('FAILURE');
    expect(early.isValid).toBe(true);
    await early.release();
    await etcdctl(recipe('claim'), 'SUCCESS');
    const next = box.tasks.claim('report', { holder: 'ours' });
    expect((await etcdctl(recipe('release'))).text).toContain('SUCCESS');
    expect(await (await next).complete()).toEqual({ kind: 'completed' });
    await expect
      .poll(told)
      .toEqual([
        'task:published',
        'task:claimed ours',
        'task:released ours',
        'task:claimed py:1',
        'task:released py:1',
        'task:claimed ours',
        'task:completed ours',
      ]);
  });

  it('loses its task when it dies, and signalbox takes it over', async () => {
    await box.tasks.publish('report', {});
    const short = recipe('claim').replace('grant 30', 'grant 2');
    const { child } = await etcdctl(short, 'SUCCESS');
    const waiting = box.tasks.claimNext({ holder: 'ours' });
    await endOf(child);
    expect((await waiting).id).toBe('report');
    expect((await etcdctl(recipe('complete'))).text).toContain('FAILURE');
  });

  it('hears of everything by watching the keys', async () => {
    const watching = etcdctl(recipe('watch'), 'complete');
    // A watch says nothing until something happens: so something happens until it has heard of it.
    let heard = false;
    void watching.then(() => (heard = true));
    for (let n = 0; !heard; n++) {
      await box.tasks.publish(`seen/${n}`, { n });
      await (await box.tasks.claim(`seen/${n}`)).complete();
    }
    expect((await watching).text).toMatch(/\/tasks\/seen\/\d+\/status/);
  });

  it('finds every recipe tried here', () => {
    expect([...recipes.keys()].sort()).toEqual(['claim', 'complete', 'publish', 'release', 'watch']);
  });
});
