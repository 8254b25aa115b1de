/** The names of the instruments, and the source of their values. */
import type { Attributes, Meter, ObservableResult } from '@opentelemetry/api';
import { BOUNDS_MS } from '../runtime/observe/measures.ts';
import type { Metrics, ResourceMetrics } from '../runtime/observe/metrics.ts';
import type { Measured } from '../runtime/tracer.ts';

type Count = readonly [value: number, attributes?: Attributes];

const byKind =
  (figure: (of: ResourceMetrics) => number) =>
  ({ locks, semaphores }: Metrics): readonly Count[] => [
    [figure(locks), { kind: 'lock' }],
    [figure(semaphores), { kind: 'semaphore' }],
  ];

const by =
  (label: string, figures: (of: Metrics) => Readonly<Record<string, number>>) =>
  (all: Metrics): readonly Count[] =>
    Object.entries(figures(all)).map(([word, value]) => [value, { [label]: word }]);

/** An exporter for Prometheus turns these names into those of `/metrics`: dots become `_`, a counter gets `_total`. */
export const COUNTERS: Readonly<Record<string, (all: Metrics) => readonly Count[]>> = {
  'signalbox.acquisitions': byKind((of) => of.acquisitions),
  'signalbox.conflicts': byKind((of) => of.conflicts),
  'signalbox.failed.acquisitions': byKind((of) => of.failed),
  'signalbox.stale.reclaims': byKind((of) => of.staleClaimed),
  'signalbox.lost.holds': by('reason', ({ lostHolds }) => lostHolds),
  'signalbox.lease.renewals': by('outcome', ({ leaseRenewals }) => leaseRenewals),
  'signalbox.watch.resyncs': ({ resyncs }) => [[resyncs]],
  'signalbox.store.transactions.failed': ({ failedTransactions }) => [[failedTransactions]],
};

/** The names of the histograms, whose unit is seconds. */
export const HISTOGRAMS: Readonly<Record<Measured, string>> = {
  wait: 'signalbox.acquire.wait',
  hold: 'signalbox.hold',
  watchLag: 'signalbox.watch.lag',
  claim: 'signalbox.task.claim',
  publishToCallback: 'signalbox.task.publish.to.callback',
  transactions: 'signalbox.store.transaction',
};

/** Reads the counts only when the SDK collects, so counting itself costs nothing extra. */
export function countWith(meter: Meter, box: { getMetrics(): Metrics }): () => void {
  const stops = Object.entries(COUNTERS).map(([name, read]) => {
    const counter = meter.createObservableCounter(name);
    const observe = (result: ObservableResult): void => {
      for (const [value, attributes] of read(box.getMetrics())) result.observe(value, attributes);
    };
    counter.addCallback(observe);
    return () => counter.removeCallback(observe);
  });
  return () => stops.forEach((stop) => stop());
}

export function recorderOf(meter: Meter): (what: Measured, ms: number, kind?: string) => void {
  const advice = { explicitBucketBoundaries: BOUNDS_MS.map((ms) => ms / 1000) };
  const made = Object.fromEntries(
    Object.entries(HISTOGRAMS).map(([what, name]) => [what, meter.createHistogram(name, { unit: 's', advice })]),
  );
  return (what, ms, kind) => made[what]?.record(ms / 1000, kind === undefined ? {} : { kind });
}
