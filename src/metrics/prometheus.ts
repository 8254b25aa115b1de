/** Writes metrics for Prometheus: counts and timings of a process, and the holds of the whole store. */
import type { Denials } from '../runtime/observe/denials.ts';
import type { LockMetrics, Metrics, ResourceMetrics } from '../runtime/observe/metrics.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';
import { counter, type Families, gauge, histogram, labelled, type Labels, rendered, type Samples } from './families.ts';

/** The methods of a signalbox that its metrics need. */
export interface MeasuredBox {
  /** The counts and timings of this process. */
  getMetrics(): Metrics;
  /** How often requests were denied in the whole fleet. */
  denials(): Promise<Denials>;
  /** Shows who holds what in the whole store, and who waits. */
  survey(): Promise<Survey>;
}

/** The sources of metrics; at least one of these. */
export interface MetricsSources {
  /** An open store. */
  readonly box?: MeasuredBox | undefined;
  /** Managers of locks on GitHub Issues, each under the name of its repository. */
  readonly lockManagers?: Readonly<Record<string, { getMetrics(): LockMetrics }>> | undefined;
}

/** The `Content-Type` that Prometheus expects. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Answers a scrape of Prometheus. Reads the store twice: the denials, and the holds and queues. */
export async function prometheusText(sources: MetricsSources): Promise<string> {
  return rendered(await familiesOf(sources));
}

export async function familiesOf({ box, lockManagers = {} }: MetricsSources): Promise<Families> {
  const managed = Object.entries(lockManagers).map(([name, manager]) => [name, manager.getMetrics()] as const);
  const onGithub = managed.length === 0 ? {} : githubFamilies(managed);
  if (box === undefined) return onGithub;
  const [denials, survey] = await Promise.all([box.denials(), box.survey()]);
  return { ...processFamilies(box.getMetrics()), ...storeFamilies(denials, survey), ...onGithub };
}

function processFamilies(metrics: Metrics): Families {
  const byKind = <T>(figure: (of: ResourceMetrics) => T): readonly (readonly [Labels, T])[] => [
    [{ kind: 'lock' }, figure(metrics.locks)],
    [{ kind: 'semaphore' }, figure(metrics.semaphores)],
  ];
  const { lostHolds, leaseRenewals, resyncs, watchLag, claim, publishToCallback } = metrics;
  return {
    signalbox_acquisitions_total: counter(
      'Calls of this process that got their lock or slots.',
      byKind((of) => of.acquisitions),
    ),
    signalbox_conflicts_total: counter(
      'Calls of this process that met another holder.',
      byKind((of) => of.conflicts),
    ),
    signalbox_failed_acquisitions_total: counter(
      'Calls of this process that did not get their lock or slots.',
      byKind((of) => of.failed),
    ),
    signalbox_stale_reclaims_total: counter(
      'Stale holds that this process took over.',
      byKind((of) => of.staleClaimed),
    ),
    signalbox_acquire_wait_seconds: histogram(
      'Time from the call to the hold.',
      byKind((of) => of.wait),
    ),
    signalbox_hold_seconds: histogram(
      'Time from the grant to its release or loss.',
      byKind((of) => of.hold),
    ),
    signalbox_lost_holds_total: counter(
      'Holds and claims of this process that ended without a release.',
      labelled('reason', lostHolds),
    ),
    signalbox_lease_renewals_total: counter("Renewals of the session's lease.", labelled('outcome', leaseRenewals)),
    signalbox_watch_resyncs_total: counter('Times that a watch missed history and read the state again.', resyncs),
    signalbox_watch_lag_seconds: histogram('Time from the decision to write an event to its delivery.', watchLag),
    signalbox_task_claim_seconds: histogram('Time from the first attempt at a task to the claim.', claim),
    signalbox_task_publish_to_callback_seconds: histogram(
      'Time from the publication of a task to its first worker.',
      publishToCallback,
    ),
    signalbox_store_transaction_seconds: histogram(
      "Time from sending a transaction to the store's answer.",
      metrics.transactions,
    ),
    signalbox_store_transactions_failed_total: counter(
      'Transactions without an answer, or refused by the store.',
      metrics.failedTransactions,
    ),
  };
}

type Surveyed = Survey['locks'][number] | Survey['semaphores'][number];

function storeFamilies(denials: Denials, { locks, semaphores }: Survey): Families {
  const sum = (all: readonly Surveyed[], count: (of: Surveyed) => number): number =>
    all.reduce((total, resource) => total + count(resource), 0);
  const inStore = (count: (of: Surveyed) => number): Samples => [
    [{ kind: 'lock' }, sum(locks, count)],
    [{ kind: 'semaphore' }, sum(semaphores, count)],
  ];
  const stale = ({ holds }: Surveyed): number => holds.filter(({ isStale }) => isStale).length;
  return {
    signalbox_denials_total: counter(
      'Requests denied in the whole fleet, as far as processes have reported them.',
      denials.total,
    ),
    signalbox_holds: gauge(
      'Holds in the whole store.',
      inStore(({ holds }) => holds.length),
    ),
    signalbox_stale_holds: gauge('Holds in the whole store whose lease has ended.', inStore(stale)),
    signalbox_queue_length: gauge(
      'Requests that wait in the whole store.',
      inStore(({ waiting }) => waiting.length),
    ),
  };
}

function githubFamilies(managed: readonly (readonly [name: string, metrics: LockMetrics])[]): Families {
  const each = <T>(figure: (of: LockMetrics) => T): readonly (readonly [Labels, T])[] =>
    managed.map(([repository, metrics]) => [{ repository }, figure(metrics)]);
  return {
    signalbox_github_acquisitions_total: counter(
      'Calls that got their lock on GitHub.',
      each((of) => of.totalAcquisitions),
    ),
    signalbox_github_conflicts_total: counter(
      'Calls that met another holder on GitHub.',
      each((of) => of.totalConflicts),
    ),
    signalbox_github_failed_acquisitions_total: counter(
      'Calls that did not get their lock on GitHub.',
      each((of) => of.failedAcquisitions),
    ),
    signalbox_github_stale_reclaims_total: counter(
      'Stale locks on GitHub that were taken over.',
      each((of) => of.staleLocksClaimed),
    ),
    signalbox_github_acquire_seconds: {
      help: 'Time from the call to the lock on GitHub.',
      type: 'summary',
      samples: each(({ totalAcquisitions: count, averageAcquisitionTimeMs }) => ({
        ...{ count, sumMs: count * averageAcquisitionTimeMs },
      })),
    },
  };
}
