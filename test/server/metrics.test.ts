// What Prometheus reads of a server.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockMetrics } from 'signalbox';
import type { LockedIssue } from 'signalbox/github';
import { systemClock } from '../../src/clock.ts';
import { GitHubBoard } from '../../src/github/board.ts';
import { root } from '../house/sources.ts';
import { TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  const github = { totalAcquisitions: 4, totalConflicts: 3, averageAcquisitionTimeMs: 500 };
  const getMetrics = (): LockMetrics => ({ ...github, failedAcquisitions: 2, staleLocksClaimed: 1 });
  server = await TestServer.on('memory:', {
    lockManagers: { 'acme/app': { getMetrics } },
    github: new GitHubBoard('acme/app', { listLocks: () => Promise.resolve([{} as LockedIssue]) }, systemClock),
  });
});
afterAll(() => server.close());

/** By name and labels, as they stand in the text. */
async function scraped(): Promise<Map<string, number>> {
  const { body } = await server.get('/metrics');
  const lines = (body as string).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

describe('GET /metrics', () => {
  it('answers a viewer in the text format of Prometheus, and nobody without a token', async () => {
    const { status, headers } = await server.get('/metrics', { token: await server.token('viewer') });
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect((await server.get('/metrics', { token: '' })).status).toBe(401);
  });

  it('counts what clients do over HTTP: a grant, a refusal, a wait with a ticket, and how long each hold lasted', async () => {
    const acquire = (holder: string, more: object = {}) =>
      server.post('/v1/locks/main/acquire', { holder, waitMs: 0, ...more });
    const before = await scraped();
    const told = '{operation="lock.acquire",status="409"}';
    const one = await acquire('a');
    expect((await acquire('b', { wait: false })).status).toBe(409);
    const { ticket } = (await acquire('c')).body;
    const during = await scraped();
    await server.post('/v1/locks/main/release', { holder: 'a', token: one.body.token });
    const other = await acquire('c', { ticket });
    expect(other.status).toBe(200);
    await server.post('/v1/locks/main/release', { holder: 'c', token: other.body.token });
    const after = await scraped();
    const grown = (name: string): number => (after.get(name) ?? Number.NaN) - (before.get(name) ?? Number.NaN);
    expect(grown('signalbox_acquisitions_total{kind="lock"}')).toBe(2);
    expect(grown('signalbox_conflicts_total{kind="lock"}')).toBe(2);
    expect(grown('signalbox_failed_acquisitions_total{kind="lock"}')).toBe(1);
    expect(grown('signalbox_acquire_wait_seconds_count{kind="lock"}')).toBe(2);
    expect(grown('signalbox_hold_seconds_count{kind="lock"}')).toBe(2);
    expect(grown('signalbox_denials_total')).toBe(1);
    expect([during.get('signalbox_holds{kind="lock"}'), during.get('signalbox_queue_length{kind="lock"}')]).toEqual([
      1, 1,
    ]);
    expect(after.get('signalbox_queue_length{kind="lock"}')).toBe(0);
    expect([
      after.get(`signalbox_http_requests_total${told}`),
      before.get(`signalbox_http_requests_total${told}`),
    ]).toEqual([1, undefined]);
  });

  it('counts the events of the whole fleet, waits among them, and measures how late they come', async () => {
    await scraped();
    const hold = await server.box.lock('busy').acquire();
    const waiting = server.box.lock('busy').acquire();
    await hold.release();
    await (await waiting).release();
    await expect.poll(async () => (await scraped()).get('signalbox_events_total{type="lock:queued"}')).toBe(2);
    expect((await scraped()).get('signalbox_watch_lag_seconds_count')).toBeGreaterThan(0);
  });

  it('shows the locks on GitHub of the managers that it was given', async () => {
    const all = await scraped();
    const of = (name: string): number | undefined => all.get(`signalbox_github_${name}{repository="acme/app"}`);
    expect(of('locks')).toBe(1);
    expect([of('acquisitions_total'), of('conflicts_total'), of('failed_acquisitions_total')]).toEqual([4, 3, 2]);
    expect([of('stale_reclaims_total'), of('acquire_seconds_sum'), of('acquire_seconds_count')]).toEqual([1, 2, 4]);
  });

  /** By name: the type that the server prints, and the labels of its samples. */
  async function printed(): Promise<Map<string, { type: string; labels: string[] }>> {
    const { body } = await server.get('/metrics');
    const blocks = (body as string).split('# HELP ').slice(1);
    return new Map(
      blocks.map((block) => {
        const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)$/m.exec(block) ?? [];
        const samples = block.split('\n').filter((line) => line.startsWith('signalbox_') && line.includes('{'));
        const labels = samples.flatMap((line) => [...line.matchAll(/(\w+)="/g)].map(([, label = '']) => label));
        return [name, { type, labels: [...new Set(labels)].filter((label) => label !== 'le').sort() }];
      }),
    );
  }

  it('prints exactly the metrics that docs/metrics.md lists, each of that type and with those labels', async () => {
    const rows = readFileSync(join(root, 'docs/metrics.md'), 'utf8').matchAll(
      /^\| `(signalbox_\w+)` \| (\w+) \|([^|]*)\|/gm,
    );
    const listed = [...rows].map(([, name = '', type = '', labels = '']) => {
      const named = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label);
      return [name, { type, labels: named.sort() }] as const;
    });
    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(await printed()));
  });

  it('names units and counters as Prometheus does', async () => {
    for (const [name, { type }] of await printed()) {
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
      expect([name, name.endsWith('_seconds')]).toEqual([name, type === 'histogram' || type === 'summary']);
    }
  });

  it('has what the Grafana dashboard asks for: rates of counters, quantiles of histograms, labels that there are', async () => {
    const all = await printed();
    const { panels } = JSON.parse(readFileSync(join(root, 'examples/grafana-dashboard.json'), 'utf8')) as {
      panels: { title: string; fieldConfig: { defaults: { unit: string } }; targets: { expr: string }[] }[];
    };
    const UNITS: Readonly<Record<string, string>> = { counter: 'ops', histogram: 's', gauge: 'short' };
    const asked = panels.flatMap(({ title, fieldConfig, targets }) =>
      targets.map(({ expr }) => ({ title, expr, unit: fieldConfig.defaults.unit })),
    );
    expect(asked.length).toBeGreaterThan(25);
    for (const { title, expr, unit } of asked) {
      const named = expr.match(/signalbox_\w+/)?.[0] ?? '';
      const name = named.replace(/_bucket$/, '');
      const { type = 'unknown', labels = [] } = all.get(name) ?? {};
      expect({ title, name, unit }).toEqual({ title, name, unit: UNITS[type] });
      expect({ expr, isRate: expr.includes('rate(') }).toEqual({ expr, isRate: type !== 'gauge' });
      expect({ expr, isBucket: named !== name }).toEqual({ expr, isBucket: type === 'histogram' });
      const used = [
        ...(/by \(([^)]*)\)/.exec(expr)?.[1]?.split(', ') ?? []),
        ...[...expr.matchAll(/[{,](\w+)=/g)].map(([, label = '']) => label),
      ];
      expect([...labels, 'le'], expr).toEqual(expect.arrayContaining(used));
    }
  });
});
