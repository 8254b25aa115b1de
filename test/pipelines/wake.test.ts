// A pipeline that waits for a lock goes on when another process lets go of it, because it is told: nobody looks again.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { open } from 'signalbox';
import { TestClock } from 'signalbox/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import { built } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';
import { book, guard, phase } from './books.ts';
import { Crew } from './crew.ts';
import { left, until } from './stage.ts';

const HOLDER = fileURLToPath(new URL('programs/holder.mjs', import.meta.url));
const NEVER_MS = 3_600_000;
const waiting = book(phase('work', { pre: [guard({ lockFree: 'main' })] }));

it('a pipeline on one handle of memory:NAME goes on when the other lets go, though no time passes', async () => {
  const clock = new TestClock();
  const boxes = [await open('memory:wake', { clock }), await open('memory:wake', { clock })] as const;
  onTestFinished(async () => void (await Promise.all(boxes.map((box) => box.close()))));
  const hold = await boxes[1].lock('main').acquire();
  const functions = new Map([['work', () => undefined]]);
  const driving = boxes[0].pipelines.run({ runbook: waiting, functions }, { id: 'p', pollMs: NEVER_MS });
  await until(async () => (await boxes[1].pipelines.show('p'))?.blocked?.on === 'guard');
  await hold.release();
  expect((await left(driving)).state).toBe('done');
});

describe.each(stores)('on $on, in real processes, a pipeline', ({ kind }) => {
  built();
  const newStore = newStoreOf(kind);

  it.each(['lets go', 'is killed'])('goes on when the holder %s', async (how) => {
    const crew = await Crew.of(waiting, newStore);
    onTestFinished(() => crew.leave());
    const holder: ChildProcess = fork(HOLDER, [crew.url, 'main'], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    });
    onTestFinished(() => void holder.kill('SIGKILL'));
    await once(holder, 'message');
    const { told } = crew.drive();
    await until(() => crew.record?.blocked?.on === 'guard');
    if (how === 'is killed') holder.kill('SIGKILL');
    else holder.send('let go');
    expect((await told).outcome).toMatchObject({ kind: 'left', record: { state: 'done' } });
    expect(crew.did.map(({ phase: name }) => name)).toEqual(['work']);
  });
});

describe.each([4, 40])('200 pipelines in %i processes that wait for one lock', (HANDLES) => {
  const PIPELINES = 200;
  const EACH = PIPELINES / HANDLES;

  async function herd(
    holds: readonly { readonly lock: string }[],
  ): Promise<{ before: number; after: number; reads: number }> {
    const fleet = new Fleet(false);
    const processes = await fleet.startAll(...Array.from({ length: HANDLES }, (_, n) => `handle${n}`));
    const holder = await fleet.start('holder');
    const hold = await holder.box.lock('m').acquire();
    let evaluations = 0;
    let inside = 0;
    let most = 0;
    const runbook = book(phase('work', { pre: [guard({ lockFree: 'm' })], holds }));
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise(setImmediate);
      inside -= 1;
    };
    for (const { box } of processes) await box.on('guard:evaluating', () => void (evaluations += 1));
    const functions = new Map([['work', work]]);
    const driving = processes.flatMap(({ box }, n) =>
      Array.from({ length: EACH }, (_, each) =>
        box.pipelines.run({ runbook, functions }, { id: `p${n}-${each}`, pollMs: NEVER_MS }),
      ),
    );
    const blocked = async (): Promise<number> =>
      (await holder.box.pipelines.list({ state: 'blocked' })).filter(({ blocked: on }) => on?.on === 'guard').length;
    await until(async () => (await blocked()) === PIPELINES);
    const queue = async (): Promise<number> => (await holder.box.lock('m').inspect()).waiting.length;
    if (holds.length > 0) await until(async () => (await queue()) === PIPELINES);
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    for (const { link } of processes) link.asked.length = 0;
    const before = evaluations;
    await hold.release();
    for (const record of await Promise.all(driving.map(left))) expect(record.state).toBe('done');
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    if (holds.length > 0) expect(most).toBe(1);
    const reads = processes
      .flatMap(({ link }) => link.asked)
      .filter(({ transaction: { compare, success } }) =>
        [...(compare.length === 0 ? success : [])].some((each) => each.do === 'read' && each.key === 'r/lock/m'),
      ).length;
    console.log(
      `200 blocked pipelines, ${holds.length === 0 ? 'free' : 'held'}: ${before} looks until all waited, ${evaluations - before} after the release, ${reads} reads of the lock`,
    );
    return { before, after: evaluations - before, reads };
  }

  it('are looked at once each when it becomes free, and read it once for each process', async () => {
    const { before, after, reads } = await herd([]);
    expect({ before, after }).toEqual({ before: 2 * PIPELINES, after: PIPELINES });
    expect(reads).toBeLessThanOrEqual(2 * HANDLES);
  });

  it('and hold it in turn are looked at once each, when it is theirs', async () => {
    const { before, after, reads } = await herd([{ lock: 'm' }]);
    expect({ before, after }).toEqual({ before: PIPELINES, after: PIPELINES });
    expect(reads).toBeLessThanOrEqual(3 * PIPELINES);
  });
});
