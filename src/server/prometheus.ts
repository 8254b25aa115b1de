/** Renders the figures of a process, and what the whole store holds, in the text format of Prometheus. */
import type { Durations, Metrics, ResourceMetrics } from '../runtime/observe/metrics.ts';
import type { Denials } from '../runtime/observe/denials.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';

/** What a scrape reads. */
interface Box {
  getMetrics(): Metrics;
  denials(): Promise<Denials>;
  survey(): Promise<Survey>;
}

/** What Prometheus expects of a scrape. */
export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];
type Family =
  | { readonly type: 'counter' | 'gauge'; readonly samples: readonly Sample[] }
  | { readonly type: 'histogram'; readonly samples: readonly (readonly [labels: Labels, value: Durations])[] };

/** Every metric, with its help: docs/metrics.md lists the same names. */
export const HELP = {
  signalbox_acquisitions_total: 'Calls of this process that got their lock or slots.',
  signalbox_conflicts_total: 'Calls of this process that met another holder.',
  signalbox_failed_acquisitions_total: 'Calls of this process that did not get their lock or slots.',
  signalbox_stale_reclaims_total: 'Stale holds that this process took over.',
  signalbox_acquire_wait_seconds: 'Time from the call to the hold.',
  signalbox_hold_seconds: 'Time from the grant to its release or loss.',
  signalbox_lost_holds_total: 'Holds and claims of this process that ended without a release.',
  signalbox_lease_renewals_total: "Renewals of the session's lease.",
  signalbox_watch_resyncs_total: 'Times that a watch missed history and read the state again.',
  signalbox_watch_lag_seconds: 'Time from the decision to write an event to its delivery.',
  signalbox_task_claim_seconds: 'Time from the first attempt at a task to the claim.',
  signalbox_task_publish_to_callback_seconds: 'Time from the publication of a task to its first worker.',
  signalbox_store_transaction_seconds: "Time from sending a transaction to the store's answer.",
  signalbox_store_transactions_failed_total: 'Transactions without an answer, or refused by the store.',
  signalbox_denials_total: 'Requests denied in the whole fleet, as far as processes have reported them.',
  signalbox_holds: 'Holds in the whole store.',
  signalbox_stale_holds: 'Holds in the whole store whose lease has ended.',
  signalbox_queue_length: 'Requests that wait in the whole store.',
} as const;

/** Reads the store once: the figures of this process, the fleet's denials, and who holds and waits. */
export async function prometheusText(box: Box): Promise<string> {
  const [denials, survey] = await Promise.all([box.denials(), box.survey()]);
  return rendered(familiesOf(box.getMetrics(), denials, survey));
}

function familiesOf(metrics: Metrics, denials: Denials, survey: Survey): Readonly<Record<keyof typeof HELP, Family>> {
  const byKind = <T>(figure: (of: ResourceMetrics) => T): readonly (readonly [Labels, T])[] => [
    [{ kind: 'lock' }, figure(metrics.locks)],
    [{ kind: 'semaphore' }, figure(metrics.semaphores)],
  ];
  const counter = (samples: readonly Sample[]): Family => ({ type: 'counter', samples });
  const one = (value: number): Family => counter([[{}, value]]);
  const time = (durations: Durations): Family => ({ type: 'histogram', samples: [[{}, durations]] });
  const inStore = (count: (of: Survey['locks'][number] | Survey['semaphores'][number]) => number): Family => {
    const sum = (all: readonly (Survey['locks'][number] | Survey['semaphores'][number])[]): number =>
      all.reduce((total, resource) => total + count(resource), 0);
    return {
      type: 'gauge',
      samples: [
        [{ kind: 'lock' }, sum(survey.locks)],
        [{ kind: 'semaphore' }, sum(survey.semaphores)],
      ],
    };
  };
  return {
    signalbox_acquisitions_total: counter(byKind((of) => of.acquisitions)),
    signalbox_conflicts_total: counter(byKind((of) => of.conflicts)),
    signalbox_failed_acquisitions_total: counter(byKind((of) => of.failed)),
    signalbox_stale_reclaims_total: counter(byKind((of) => of.staleClaimed)),
    signalbox_acquire_wait_seconds: { type: 'histogram', samples: byKind((of) => of.wait) },
    signalbox_hold_seconds: { type: 'histogram', samples: byKind((of) => of.hold) },
    signalbox_lost_holds_total: counter(
      Object.entries(metrics.lostHolds).map(([reason, value]) => [{ reason }, value]),
    ),
    signalbox_lease_renewals_total: counter(
      Object.entries(metrics.leaseRenewals).map(([outcome, value]) => [{ outcome }, value]),
    ),
    signalbox_watch_resyncs_total: one(metrics.resyncs),
    signalbox_watch_lag_seconds: time(metrics.watchLag),
    signalbox_task_claim_seconds: time(metrics.claim),
    signalbox_task_publish_to_callback_seconds: time(metrics.publishToCallback),
    signalbox_store_transaction_seconds: time(metrics.transactions),
    signalbox_store_transactions_failed_total: one(metrics.failedTransactions),
    signalbox_denials_total: one(denials.total),
    signalbox_holds: inStore(({ holds }) => holds.length),
    signalbox_stale_holds: inStore(({ holds }) => holds.filter(({ isStale }) => isStale).length),
    signalbox_queue_length: inStore(({ waiting }) => waiting.length),
  };
}

function rendered(families: Readonly<Record<string, Family>>): string {
  const blocks = Object.entries(families).map(([name, family]) => {
    const head = [`# HELP ${name} ${HELP[name as keyof typeof HELP]}`, `# TYPE ${name} ${family.type}`];
    const lines =
      family.type === 'histogram'
        ? family.samples.flatMap(([labels, durations]) => histogramLines(name, labels, durations))
        : family.samples.map(([labels, value]) => line(name, labels, value));
    return [...head, ...lines].join('\n');
  });
  return `${blocks.join('\n\n')}\n`;
}

/** In seconds, as Prometheus wants all times. */
function histogramLines(name: string, labels: Labels, { buckets, sumMs, count }: Durations): readonly string[] {
  return [
    ...buckets.map(({ atMostMs, count: below }) =>
      line(`${name}_bucket`, { le: String(atMostMs / 1000), ...labels }, below),
    ),
    line(`${name}_bucket`, { le: '+Inf', ...labels }, count),
    line(`${name}_sum`, labels, sumMs / 1000),
    line(`${name}_count`, labels, count),
  ];
}

/** The values of our labels are our own words, so none needs to be escaped. */
function line(name: string, labels: Labels, value: number): string {
  const inside = Object.entries(labels).map(([label, word]) => `${label}="${word}"`);
  return `${name}${inside.length === 0 ? '' : `{${inside.join(',')}}`} ${value}`;
}
