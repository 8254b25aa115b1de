// Twelve real processes that join, leave, are killed and paused: all of them see the same views in the same order.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'signalbox';
import { type ClusterProcess, type SeenView, TestCluster } from 'signalbox/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Random } from '../../src/testing/simulation/random.ts';
import { startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { built } from '../support/run-processes.ts';
import { SEED } from '../support/seed.ts';
import { viewFaults } from './same-views.ts';

const PROCESSES = 12;
const STEPS = 100;
/** Each costs a start of Node. */
const MOST_KILLS = 6;

async function storeOf(engine: 'file' | 'etcd'): Promise<string> {
  if (engine === 'etcd') {
    const server = await startEtcd();
    onTestFinished(() => server.stop());
    return `etcd://127.0.0.1:${server.port}`;
  }
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-cluster-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return `file:${directory}`;
}

/** Random steps on random processes. Gives the ids of those that may be members in the end. */
async function disturb(cluster: TestCluster, random: Random): Promise<readonly string[]> {
  const members = new Set(cluster.processes.map(({ id }) => id));
  let kills = 0;
  const step = async (process: ClusterProcess): Promise<void> => {
    if (process.pid === undefined) return process.start();
    if (!process.isRunning) return process.resume();
    const chance = random.whole(1, 10);
    if (chance === 1 && kills < MOST_KILLS) {
      kills += 1;
      members.delete(process.id);
      return process.kill();
    }
    if (chance <= 3) return process.pause();
    const isMember = members.has(process.id);
    try {
      // A killed process is still a member on etcd until its lease ends.
      const outcome = await (isMember ? process.leave() : process.join());
      if (isMember) members.delete(process.id);
      else if (outcome === 'joined') members.add(process.id);
    } catch {
      // One that stands still in the middle of a write keeps the others of its file from writing. What came of it is open.
      members.add(process.id);
      for (const each of cluster.processes) each.resume();
    }
  };
  for (let n = 0; n < STEPS; n++) await step(random.pick(cluster.processes));
  for (const process of cluster.processes) process.resume();
  return [...members];
}

describe.each(['file', 'etcd'] as const)('twelve processes on %s', (engine) => {
  it(`see the same views in the same order through ${STEPS} random steps`, async () => {
    if (engine === 'etcd' && isMissing('etcd')) return;
    built();
    const store = await storeOf(engine);
    await using cluster = await new TestCluster({
      processes: PROCESSES,
      assetsEach: 2,
      store,
      sessionTtlMs: 4000,
    }).start();
    const members = await disturb(cluster, new Random(SEED));
    await using box = await open(store, { maintains: false });
    // One that stood still for longer than its lease is no member any more, though it never left: the store knows.
    const running = cluster.processes.filter(({ isRunning }) => isRunning);
    const agreement = async (): Promise<boolean> => {
      const ids = (await box.members.list()).map(({ id }) => id);
      if (ids.some((id) => !members.includes(id))) return false;
      return running.every((process) => process.members.join() === ids.join());
    };
    await expect.poll(agreement, { interval: 200 }).toBe(true);
    expect(viewFaults(cluster.processes)).toEqual([]);
    expect(cluster.processes.reduce((sum, { views }) => sum + views.length, 0)).toBeGreaterThan(STEPS);
    // The checker catches what it is for: see `planted` below.
    for (const [bug, plant] of Object.entries(planted)) expect(plant(cluster.processes), bug).not.toEqual([]);
  });
});

describe('a process that is cut off', () => {
  it.skipIf(isMissing('etcd'))('is seen to leave, and joins again when it is no longer cut off', async () => {
    built();
    await using cluster = await new TestCluster({
      processes: 2,
      store: await storeOf('etcd'),
      sessionTtlMs: 2000,
    }).start();
    const [near, far] = cluster.processes as [ClusterProcess, ClusterProcess];
    await cluster.agreed(['m1', 'm2']);
    far.partition();
    await near.until(() => near.members.join() === 'm1');
    // It hears nothing of that, and knows by its own clock that its time is up.
    await far.said(({ kind }) => kind === 'lost');
    expect(far.members).toEqual(['m1', 'm2']);
    await far.heal();
    await near.until(() => near.members.join() === 'm1,m2');
    await cluster.agreed(['m1', 'm2']);
    expect(viewFaults(cluster.processes)).toEqual([]);
  });

  it('needs a network: a file has none', () => {
    const [process] = new TestCluster({ processes: 1, store: 'file:nowhere' }).processes;
    expect(() => process?.partition()).toThrow('a file: store has no network that could be cut');
  });
});

/** What the processes saw, with a bug in one of them. */
const withBug = (
  processes: readonly ClusterProcess[],
  bug: (view: SeenView, place: number, all: readonly SeenView[]) => SeenView | undefined,
): readonly string[] => {
  const [longest] = [...processes].sort((one, other) => other.reports.length - one.reports.length);
  return viewFaults(
    processes.map((process) => {
      if (process !== longest) return process;
      const views = process.reports.filter((report): report is SeenView => report.kind === 'view');
      const reports = process.reports
        .map((report) => (report.kind === 'view' ? bug(report, views.indexOf(report), views) : report))
        .filter((report) => report !== undefined);
      return { id: process.id, reports };
    }),
  );
};

/** A view whose absence must be noticed: one more follows, and says of itself that it is the next. */
const noticedBy = (all: readonly SeenView[]): number =>
  all.findIndex(({ version, joined, left }, place) => {
    const next = all[place + 1];
    const isChange = joined.length + left.length > 0;
    return place > 0 && isChange && next !== undefined && next.version > version && !next.isResync;
  });

const planted = {
  'a view that skips a change': (processes: readonly ClusterProcess[]) =>
    withBug(processes, (view, place, all) => (place === noticedBy(all) ? undefined : view)),
  'a coordinator by join order': (processes: readonly ClusterProcess[]) =>
    withBug(processes, (view) => ({ ...view, coordinator: view.ids.at(-1) ?? null })),
  'an asset that outlives its member': (processes: readonly ClusterProcess[]) =>
    withBug(processes, (view, place, all) => ({ ...view, assets: all[place - 1]?.assets ?? view.assets })),
};
