// The users of the simulator in real processes, on one store of the machine, in real time.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { open } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Belief, meetings } from './beliefs.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = join(ROOT, '.cache/believer.mjs');
const AT_ONCE = 3;
/** So many of each: killed, and stopped for longer than their lease lasts. */
const KILLS = 6;
const STOPS = 6;
const LEASE_MS = 2000;

const use: Belief = { what: 'uses', at: 0, believer: '', resource: 'lock/a', id: '' };

describe('beliefs of several processes', () => {
  const one = { ...use, believer: 'one', id: '1' };
  const other = { ...use, believer: 'other', id: '2' };

  it('meet where one acts between two acts of another', () => {
    expect(
      meetings([
        { ...one, at: 1 },
        { ...other, at: 2 },
        { ...one, at: 3 },
      ]),
    ).toHaveLength(1);
  });

  it('do not meet where the other has left, may read too, has other slots, or hears late', () => {
    const left: Belief = { ...one, at: 2, what: 'left' };
    expect(meetings([{ ...one, at: 1 }, left, { ...other, at: 3 }])).toEqual([]);
    const between = (change: Partial<Belief>): readonly string[] =>
      meetings([1, 2, 3].map((at) => ({ ...(at === 2 ? other : one), at, ...change })));
    expect(between({})).toHaveLength(1);
    expect(between({ isShared: true })).toEqual([]);
    expect(between({ hearsLate: true })).toEqual([]);
    const slots = [[0, 1], [2], [0, 1]].map((slots, at) => ({ ...(at === 1 ? other : one), at, slots }));
    expect(meetings(slots)).toEqual([]);
  });
});

describe('processes on one machine that are killed, stopped and stalled', () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-beliefs-'));
  const store = join(directory, 'store');
  const running = new Set<ChildProcess>();
  const logs: string[] = [];
  let granted = 0;

  async function start(): Promise<ChildProcess> {
    const name = `p${logs.length}`;
    const log = join(directory, `${name}.log`);
    logs.push(log);
    const child = fork(PROGRAM, [store, log, name, String(logs.length)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    running.add(child);
    const ready = new Promise<void>((resolve) => {
      child.on('message', (message) => {
        if (message === 'granted') granted += 1;
        else resolve();
      });
    });
    await Promise.race([ready, once(child, 'exit')]);
    return child;
  }

  async function end(child: ChildProcess): Promise<void> {
    running.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Until somebody was granted something: what is done to a process that does nothing shows nothing. */
  async function busy(): Promise<void> {
    const before = granted;
    while (granted < before + 5) await pause(10);
  }

  beforeAll(async () => {
    const made = await rolldown({
      input: join(ROOT, 'test/embedded/programs/believer.ts'),
      platform: 'node',
      external: /^[a-z@]/,
    });
    await made.write({ file: PROGRAM, format: 'esm', codeSplitting: false });
    await made.close();
    await Promise.all(Array.from({ length: AT_ONCE }, start));
    for (let harm = 0; harm < KILLS + STOPS; harm++) {
      await busy();
      const [victim] = running;
      if (victim === undefined) throw new Error('nobody is there');
      if (harm % 2 === 0) {
        await end(victim);
        await start();
      } else {
        victim.kill('SIGSTOP');
        await pause(LEASE_MS * 1.5);
        victim.kill('SIGCONT');
      }
    }
    await busy();
    await Promise.all([...running].map(end));
  });

  afterAll(async () => {
    await Promise.all([...running].map(end));
    rmSync(directory, { recursive: true, force: true });
  });

  function told(): readonly Belief[] {
    const lines = logs.filter(existsSync).flatMap((log) => readFileSync(log, 'utf8').split('\n').slice(0, -1));
    return lines.map((line) => JSON.parse(line) as Belief);
  }

  it('never believe at once in what excludes each other', () => {
    const beliefs = told();
    expect(new Set(beliefs.map(({ resource }) => resource)).size).toBeGreaterThan(3);
    expect(beliefs.filter(({ what }) => what === 'uses').length).toBeGreaterThan(100);
    expect(meetings(beliefs)).toEqual([]);
  });

  it('meet nothing that users do not expect', () => {
    const failed = told().filter(({ what }) => what === 'failed');
    expect(failed.map(({ resource }) => resource)).toEqual([]);
  });

  it('leave nothing held', async () => {
    const box = await open(`file:${store}`);
    for (const name of ['a', 'b']) await box.lock(name).configure({ onStale: 'reclaim' });
    for (const name of ['a', 'b']) await (await box.lock(name).acquire({ waitMs: 60_000 })).release();
    await box.close();
  });
});
