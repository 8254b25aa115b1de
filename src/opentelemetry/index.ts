/**
 * Spans and metrics for OpenTelemetry, through its API package alone: the program that uses it chooses an SDK and registers it.
 * Nothing of this is loaded unless a program imports it, and it does nothing unless an SDK is registered.
 */
import {
  type Attributes,
  context,
  type Context,
  metrics,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer as SpanTracer,
} from '@opentelemetry/api';
import type { Metrics } from '../runtime/observe/metrics.ts';
import { type Subscription, subscription } from '../runtime/subscription.ts';
import type { StepFields, StepName, Trace, Tracer } from '../runtime/tracer.ts';
import { countWith, recorderOf } from './instruments.ts';
import { isRegistered } from './registered.ts';

/** What is observed of a signalbox. */
export interface Observable {
  /** What this process has counted. */
  getMetrics(): Metrics;
  /** Hears of every step. */
  trace(tracer: Tracer): Subscription;
}

const NAME = 'signalbox';

/**
 * From now on every acquire, hold, claim, task and phase of this process is a span, and what it counts and measures is read by
 * the meter. Register the SDK first: where there is none, this does nothing. `unsubscribe` ends it.
 */
export function instrument(box: Observable): Subscription {
  if (!isRegistered()) return subscription(() => undefined);
  const meter = metrics.getMeter(NAME);
  const stopCounting = countWith(meter, box);
  const record = recorderOf(meter);
  const spans = spansOf(trace.getTracer(NAME));
  const tracing = box.trace({
    begin: (step, fields) => spans(step, fields, context.active()),
    measured: record,
  });
  return subscription(() => {
    tracing.unsubscribe();
    stopCounting();
  });
}

/** A refusal is an answer of these, not an error. */
const MAY_BE_REFUSED: readonly StepName[] = ['acquire', 'claim'];

function spansOf(tracer: SpanTracer): (step: StepName, fields: StepFields, parent: Context) => Trace {
  const begin = (step: StepName, fields: StepFields, parent: Context): Trace => {
    const span = tracer.startSpan(`${NAME} ${step}`, { attributes: attributesOf(fields) }, parent);
    return {
      end: (outcome, isFailure, more = {}) => ended(span, step, outcome, isFailure, more),
      within: (work) => context.with(trace.setSpan(parent, span), work),
      next: (following, about) => begin(following, about, parent),
    };
  };
  return begin;
}

function ended(span: Span, step: StepName, outcome: string, isFailure: boolean, more: StepFields): void {
  span.setAttributes({ ...attributesOf(more), [`${NAME}.outcome`]: outcome });
  const isError = isFailure && (outcome === 'error' || !MAY_BE_REFUSED.includes(step));
  if (isError) span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
  span.end();
}

function attributesOf(fields: StepFields): Attributes {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [`${NAME}.${name}`, value]));
}
