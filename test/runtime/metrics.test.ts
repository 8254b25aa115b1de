// What a process counts and measures, and how Prometheus reads it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { BOUNDS_MS, Measures } from '../../src/runtime/observe/measures.ts';
import { prometheusText } from '../../src/metrics/index.ts';
import { DEADLINE_MS, Fleet, transports, TTL_MS } from '../support/fleet.ts';
import { newStoreOf, stores } from '../support/stores.ts';

const kinds = [{ on: 'memory', kind: undefined }, ...stores] as const;

describe.each(kinds)('getMetrics on $on', ({ kind }) => {
  const newStore = kind === undefined ? () => 'memory:' : newStoreOf(kind);
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-metrics-'));
  let url: string;
  beforeEach(() => void (url = newStore(directory)));
  afterAll(() => rmSync(directory, { recursive: true }));

  it('counts an acquire that waits as one conflict, a refused try as one more, and a free lock as none', async () => {
    await using box = await open(url);
    const lock = box.lock('main');
    const first = await lock.acquire();
    expect(box.getMetrics()).toMatchObject({ totalAcquisitions: 1, totalConflicts: 0, failedAcquisitions: 0 });
    expect((await lock.tryAcquire()).ok).toBe(false);
    const second = lock.acquire();
    await first.release();
    await (await second).release();
    const { locks, semaphores, ...all } = box.getMetrics();
    expect(all).toMatchObject({ totalAcquisitions: 2, totalConflicts: 2, failedAcquisitions: 1, staleLocksClaimed: 0 });
    expect(locks).toMatchObject({ acquisitions: 2, wait: { count: 2 }, hold: { count: 2 } });
    expect(semaphores.acquisitions).toBe(0);
    expect(all.averageAcquisitionTimeMs).toBeGreaterThanOrEqual(0);
  });

  it('counts a lost hold by its reason, and no hold as lost that close releases', async () => {
    const box = await open(url);
    await box.lock('taken').acquire();
    await box.semaphore('kept', { capacity: 1 }).acquire();
    await box.lock('taken').break({ holder: 'admin', reason: 'test' });
    await box.close();
    expect(box.getMetrics().lostHolds).toMatchObject({ forced: 1, 'released-elsewhere': 0 });
    expect(box.getMetrics().semaphores.hold.count).toBe(1);
  });

  it('measures a claim, and the way of a task from its publication to the callback', async () => {
    await using box = await open(url);
    await new Promise<void>((resolve) => {
      void box.tasks.subscribe(() => resolve()).then(() => box.tasks.publish('t', {}));
    });
    // The watch may be faster than the answer to the one who published.
    await expect.poll(() => box.getMetrics().publishToCallback.count).toBe(1);
    await box.tasks.claim('t');
    expect(box.getMetrics()).toMatchObject({ claim: { count: 1 }, publishToCallback: { count: 2 } });
  });

  it('measures how late its own writes come back as events', async () => {
    await using box = await open(url);
    const events: string[] = [];
    await box.on('lock:*', ({ type }) => void events.push(type));
    await (await box.lock('seen').acquire()).release();
    await expect.poll(() => events).toEqual(['lock:acquired', 'lock:released']);
    await expect.poll(() => box.getMetrics().watchLag.count).toBe(2);
  });
});

describe.each(transports)('measured by the clock, on $transport', ({ atOnce }) => {
  it('a wait and a hold take as long as they took, and the average is over both acquires', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    const hold = await one!.box.lock('main').acquire();
    const waiting = other!.box.lock('main').acquire();
    await fleet.advance(3000);
    await hold.release();
    await fleet.advance(0);
    await (await waiting).release();
    expect(one!.box.getMetrics().locks.hold).toMatchObject({ count: 1, sumMs: 3000 });
    const { totalConflicts, averageAcquisitionTimeMs, locks } = other!.box.getMetrics();
    expect([totalConflicts, averageAcquisitionTimeMs]).toEqual([1, 3000]);
    expect(locks.wait.buckets.find(({ atMostMs }) => atMostMs === 2500)?.count).toBe(0);
    expect(locks.wait.buckets.find(({ atMostMs }) => atMostMs === 5000)?.count).toBe(1);
  });

  it('a stale hold that is taken over counts as claimed, and the renewals of a live session are counted', async () => {
    const fleet = new Fleet(atOnce);
    const [one, other] = await fleet.startAll('one', 'other');
    await one!.box.lock('main').acquire();
    one!.crash();
    await fleet.advance(TTL_MS + 1);
    await other!.box.lock('main').acquire();
    const { staleLocksClaimed, leaseRenewals } = other!.box.getMetrics();
    expect([staleLocksClaimed, leaseRenewals.failed]).toEqual([1, 0]);
    expect(leaseRenewals.succeeded).toBeGreaterThan(0);
  });

  it('a process that is cut off counts the renewals that failed, and its hold as lost', async () => {
    const fleet = new Fleet(atOnce);
    const [one] = await fleet.startAll('one');
    await one!.box.semaphore('slots', { capacity: 1 }).acquire();
    one!.link.cutOff('refusing');
    await fleet.advance(DEADLINE_MS + 1);
    const { lostHolds, leaseRenewals, semaphores } = one!.box.getMetrics();
    expect(lostHolds).toMatchObject({ disconnected: 1 });
    expect(leaseRenewals.failed).toBeGreaterThan(0);
    expect(semaphores.hold.count).toBe(1);
  });
});

describe('the text for Prometheus', () => {
  it('shows held and waiting of the whole store, and the figures of this process', async () => {
    await using box = await open('memory:');
    const lock = box.lock('main');
    const hold = await lock.acquire();
    const waiting = lock.acquire();
    const text = await prometheusText({ box });
    expect(text).toContain('signalbox_holds{kind="lock"} 1\n');
    expect(text).toContain('signalbox_queue_length{kind="lock"} 1\n');
    expect(text).toContain('signalbox_acquisitions_total{kind="lock"} 1\n');
    await hold.release();
    await (await waiting).release();
  });

  it('writes a histogram as the text format of Prometheus wants it: rising buckets, +Inf, sum and count, in seconds', async () => {
    const measures = new Measures();
    for (const ms of [0.1, 0.25, 3, 77, 5_000, 4_000_000]) measures.took('watchLag', ms);
    await using box = await open('memory:');
    const text = await prometheusText({
      box: { getMetrics: () => measures.view(), denials: () => box.denials(), survey: () => box.survey() },
    });
    const name = 'signalbox_watch_lag_seconds';
    const block = text.split('\n\n').find((one) => one.startsWith(`# HELP ${name} `));
    const [, type, ...lines] = (block ?? '').split('\n');
    expect(type).toBe(`# TYPE ${name} histogram`);
    const below = (ms: number): number => [0.1, 0.25, 3, 77, 5_000, 4_000_000].filter((one) => one <= ms).length;
    expect(lines).toEqual([
      ...BOUNDS_MS.map((ms) => `${name}_bucket{le="${ms / 1000}"} ${below(ms)}`),
      `${name}_bucket{le="+Inf"} 6`,
      `${name}_sum 4005.08035`,
      `${name}_count 6`,
    ]);
  });
});
