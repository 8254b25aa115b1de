// Tasks among real processes: who gets one, and what becomes of those whose workers are killed.

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Signalbox } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { built } from '../support/run-processes.ts';
import { type EtcdServer, startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { Family } from './family.ts';

/** A worker is killed at its second task, and no more than twelve are: what is left after them is drained in peace. */
const engines = [
  { engine: 'the embedded engine', rounds: 200, tasks: 1000, isMissing: false },
  { engine: 'etcd', rounds: 200, tasks: 1000, isMissing: isMissing('etcd') },
] as const;

const PROCESSES = 10;

describe.each(engines)('on $engine', ({ engine, rounds, tasks, isMissing: isOut }) => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-tasks-'));
  let server: EtcdServer | undefined;
  let url = `file:${directory}`;
  let box: Signalbox;

  beforeAll(async () => {
    if (isOut) return;
    built();
    if (engine === 'etcd') {
      server = await startEtcd();
      url = `etcd://127.0.0.1:${server.port}`;
    }
    box = await open(url, { requestTimeoutMs: 20_000 });
  });

  afterAll(async () => {
    await box?.close();
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  interface Answers {
    readonly id: string;
    readonly answers: readonly { readonly kind: string; readonly owner?: string }[];
  }

  /** How many claimers there are in each of the ten processes, how often they compete, and under which name. */
  const CONTESTS = [
    { name: 'ten', claimersEach: 1, times: rounds },
    { name: 'hundred', claimersEach: 10, times: 3 },
  ] as const;

  /** One after the other by the same processes: to start those takes longer than to compete. */
  async function compete(): Promise<void> {
    const open = new Map<string, { answers: Answers['answers'][number][]; wanted: number; done: () => void }>();
    const family = new Family<Answers>(({ id, answers }) => {
      const round = open.get(id);
      round?.answers.push(...answers);
      if (round?.answers.length === round?.wanted) round?.done();
    });
    try {
      await Promise.all(Array.from({ length: PROCESSES }, (_, n) => family.start('claimer', url, `p${n}`)));
      for (const { name, claimersEach, times } of CONTESTS) await contest(name, claimersEach, times);
    } finally {
      await family.killAll();
    }

    async function contest(name: string, claimersEach: number, times: number): Promise<void> {
      for (let n = 0; n < times; n++) {
        const id = `${name}/${n}`;
        const answers: Answers['answers'][number][] = [];
        const wanted = PROCESSES * claimersEach;
        const all = new Promise<void>((done) => open.set(id, { answers, wanted, done }));
        await box.tasks.publish(id, claimersEach);
        await all;
        const winners = answers.filter(({ kind }) => kind === 'claimed');
        expect(winners).toHaveLength(1);
        const refused = answers.filter(({ kind }) => kind !== 'claimed');
        expect(refused).toHaveLength(wanted - 1);
        // One that is late finds it complete already; all others are told who has it.
        for (const { kind, owner } of refused) {
          expect(['taken', 'finished']).toContain(kind);
          if (kind === 'taken') expect(owner).toBe(winners[0]?.owner);
        }
        expect((await box.tasks.show(id))?.result).toBe(winners[0]?.owner);
      }
    }
  }

  it.skipIf(isOut)(
    `of ten claimers in ten processes exactly one gets a task, ${rounds} times, and of a hundred, too`,
    compete,
  );

  it.skipIf(isOut)(
    `${tasks} tasks are done by 16 processes of which some are killed: each exactly once, none lost`,
    async () => {
      const completed = new Map<string, number>();
      const told = new Map<string, number>();
      const count = (counts: Map<string, number>, id: string): void => void counts.set(id, (counts.get(id) ?? 0) + 1);
      const isMine = (id: string): boolean => id.startsWith('drain/');
      let allDone = (): void => undefined;
      const done = new Promise<void>((resolve) => (allDone = resolve));
      const subscription = await box.on('task:completed', ({ resource }) => {
        const id = resource.slice('task/'.length);
        if (isMine(id)) count(completed, id);
        if (completed.size === tasks) allDone();
      });
      for (let first = 0; first < tasks; first += 100) {
        const some = Array.from({ length: 100 }, (_, n) => box.tasks.publish(`drain/${first + n}`, { n: first + n }));
        await Promise.all(some);
      }
      let kills = 0;
      let started = 0;
      const busy = new Map<ChildProcess, number>();
      const victims = new Set<ChildProcess>();
      let lost = 0;
      const family: Family<{ completed: string } | { lost: true }> = new Family((message, child) => {
        if ('lost' in message) return void (lost += 1);
        count(told, message.completed);
        const times = (busy.get(child) ?? 0) + 1;
        busy.set(child, times);
        // Every second worker is killed in the middle of its work, and another one comes.
        // Early, because on a busy machine those that start first may leave little to the others.
        if (times < 2 || kills >= 12 || !victims.has(child) || isOver) return;
        busy.delete(child);
        kills += 1;
        coming.push(family.kill(child).then(begin));
      });
      const coming: Promise<void>[] = [];
      let isOver = false;
      const begin = async (): Promise<void> => {
        const nth = started++;
        const child = await family.start('drainer', url, `w${nth}`);
        if (nth % 2 === 1) victims.add(child);
      };
      try {
        await Promise.all(Array.from({ length: 16 }, begin));
        await done;
        isOver = true;
        await Promise.all(coming);
        family.tellAll('enough');
        await family.ended();
        const list = (await box.tasks.list()).filter(({ id }) => isMine(id));
        expect(kills).toBeGreaterThan(0);
        expect(list).toHaveLength(tasks);
        expect(list.filter(({ status }) => status !== 'complete').map(({ id }) => id)).toEqual([]);
        await expect.poll(() => completed.size).toBe(tasks);
        // Nobody was told twice that a task is complete, and no completion was recorded twice.
        expect([...completed].filter(([, times]) => times !== 1)).toEqual([]);
        expect([...told].filter(([, times]) => times !== 1)).toEqual([]);
        // Those that were killed in the middle left tasks behind, which others have done.
        expect(list.filter(({ attempts }) => attempts > 1).length).toBeLessThanOrEqual(kills + lost);
      } finally {
        subscription.unsubscribe();
        await family.killAll();
      }
    },
  );
});
