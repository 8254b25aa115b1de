/** `signalbox/metrics`: the figures of a process for Prometheus, for programs that answer scrapes themselves. */

export { type MeasuredBox, type MetricsSources, PROMETHEUS_TYPE, prometheusText } from './prometheus.ts';
