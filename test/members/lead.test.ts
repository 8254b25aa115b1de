// Leaders under pauses, partitions and kill -9: an earlier one is never accepted after a later one.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ClusterProcess, type ClusterReport, TestCluster } from 'signalbox/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isMissing } from '../support/programs.ts';
import { built } from '../support/run-processes.ts';
import { Namespaces } from './namespaces.ts';

/** Long, so that a busy machine does not keep the old leader from its own deadline, which is a tenth earlier. */
const TTL_MS = 10_000;
const missing = isMissing('etcd') ? 'needs etcd' : Namespaces.missing();

/** Three etcds, one on each machine. */
async function startEtcds(machines: Namespaces): Promise<readonly ChildProcess[]> {
  const url = (place: number, port: number): string => `http://${machines.address(place)}:${port}`;
  const all = [0, 1, 2].map((place) => `n${place}=${url(place, 2380)}`).join(',');
  const etcds = [0, 1, 2].map((place) => {
    const data = mkdtempSync(join(tmpdir(), 'signalbox-etcd-'));
    const [command = '', ...words] = machines.on(place);
    const child = spawn(
      command,
      [
        ...[...words, 'etcd', '--name', `n${place}`, '--data-dir', data, '--unsafe-no-fsync', '--log-level', 'error'],
        ...['--listen-client-urls', url(place, 2379), '--advertise-client-urls', url(place, 2379)],
        ...['--listen-peer-urls', url(place, 2380), '--initial-advertise-peer-urls', url(place, 2380)],
        ...['--initial-cluster', all, '--heartbeat-interval', '100', '--election-timeout', '1000'],
      ],
      { stdio: 'ignore' },
    );
    onTestFinished(async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      }
      rmSync(data, { recursive: true, force: true });
    });
    return child;
  });
  return Promise.resolve(etcds);
}

type Turn = Extract<ClusterReport, { readonly kind: 'leads' | 'stops' }>;

const turnsOf = ({ reports }: ClusterProcess): readonly Turn[] =>
  reports.filter((report): report is Turn => report.kind === 'leads' || report.kind === 'stops');
const lastTerm = (process: ClusterProcess): Turn => turnsOf(process).at(-1) as Turn;
const isLeading = (process: ClusterProcess): boolean => turnsOf(process).at(-1)?.kind === 'leads';

describe.skipIf(missing !== undefined)(`lead on three machines${missing === undefined ? '' : ` (${missing})`}`, () => {
  it('moves when the leader is cut off, paused or killed; epochs only grow, and the old one stops before', async () => {
    built();
    const machines = Namespaces.make(3);
    onTestFinished(() => machines.remove());
    await startEtcds(machines);
    const endpoints = [0, 1, 2].map((place) => `${machines.address(place)}:2379`).join(',');
    const prefix = (place: number): readonly string[] => machines.on(place);
    const cluster = new TestCluster({ processes: 3, store: `etcd://${endpoints}`, sessionTtlMs: TTL_MS, prefix });
    onTestFinished(() => cluster.stop());
    await started(cluster);
    for (const process of cluster.processes) process.lead('shop');
    const order: string[] = [];
    let last = 0;
    const nextLeader = async (except?: ClusterProcess): Promise<ClusterProcess> => {
      for (;;) {
        const leader = cluster.processes.find((process) => process !== except && isLeading(process));
        if (leader !== undefined) return leader;
        await sleep(5);
      }
    };
    const took = (leader: ClusterProcess): void => {
      const { epoch } = lastTerm(leader);
      order.push(`${leader.id} ${epoch}`);
      // The resource accepts an epoch only if it is larger than every one before.
      expect(epoch).toBeGreaterThan(last);
      last = epoch;
    };
    let leader = await nextLeader();
    took(leader);
    for (const trouble of ['unplug', 'pause', 'kill'] as const) {
      const old = leader;
      const place = cluster.processes.indexOf(old);
      if (trouble === 'unplug') machines.unplug(place);
      if (trouble === 'pause') old.pause();
      if (trouble === 'kill') await old.kill();
      leader = await nextLeader(old);
      // It was cut off, and knew by its own clock that its time was up: its signal fired before.
      if (trouble === 'unplug') {
        await old.until(() => !isLeading(old));
        expect(lastTerm(old).at).toBeLessThan(lastTerm(leader).at);
        machines.plug(place);
      }
      if (trouble === 'pause') {
        old.resume();
        await old.until(() => !isLeading(old));
      }
      took(leader);
    }
    expect(order).toHaveLength(4);
    const epochs = cluster.processes.flatMap(turnsOf).flatMap(({ kind, epoch }) => (kind === 'leads' ? [epoch] : []));
    expect(new Set(epochs).size).toBe(epochs.length);
  });
});

/** The etcds need a moment to find each other. */
async function started(cluster: TestCluster): Promise<void> {
  await Promise.all(
    cluster.processes.map(async (process) => {
      for (;;) {
        try {
          return await process.start();
        } catch {
          // Not yet. A start takes long enough to ask again at once.
        }
      }
    }),
  );
}
