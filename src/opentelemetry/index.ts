/**
 * Spans and metrics for OpenTelemetry. Uses only the API package: your program chooses and registers an SDK. Loaded only if a
 * program imports it, and does nothing unless an SDK is registered.
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

/** The methods of a signalbox that this needs. */
export interface Observable {
  /** The counts of this process. */
  getMetrics(): Metrics;
  /** Subscribes a tracer to every step. */
  trace(tracer: Tracer): Subscription;
}

const NAME = 'signalbox';

/**
 * Makes a span of every acquire, hold, claim, task and phase of this process from now on, and exposes its counts and timings to
 * the meter. Register the SDK first: without one, this does nothing. `unsubscribe` ends it.
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

/** Steps for which a refusal is an answer, not an error. */
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
