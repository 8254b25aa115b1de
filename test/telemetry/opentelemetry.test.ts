// OpenTelemetry as a program sees it that registers an SDK: here one that only remembers what the API gives it.

import {
  type Attributes,
  context,
  type Context,
  type ContextManager,
  type Meter,
  type MeterProvider,
  metrics,
  type Observable,
  type ObservableCallback,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  trace,
  type TracerProvider,
} from '@opentelemetry/api';
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open, type Signalbox } from 'signalbox';
import { instrument } from 'signalbox/opentelemetry';
import { COUNTERS, HISTOGRAMS } from '../../src/opentelemetry/instruments.ts';
import { prometheusText } from '../../src/metrics/index.ts';

/** A span that has ended. */
interface Told {
  readonly name: string;
  readonly parent: string | undefined;
  readonly attributes: Attributes;
  readonly status: SpanStatusCode | undefined;
}

let spans: Told[];
let recorded: { name: string; value: number; attributes: Attributes }[];
let callbacks: Map<string, Set<ObservableCallback>>;
let running = 0;

function startSpan(name: string, given: Attributes, parent: Context): Span {
  running += 1;
  const attributes = { ...given };
  let status: SpanStatusCode | undefined;
  const span = {
    named: name,
    spanContext: (): SpanContext => ({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }),
    setAttributes: (more: Attributes) => void Object.assign(attributes, more),
    setStatus: ({ code }: { code: SpanStatusCode }) => void (status = code),
    isRecording: () => true,
    end: () => {
      running -= 1;
      const above = trace.getSpan(parent) as unknown as { named?: string } | undefined;
      spans.push({ name, parent: above?.named, attributes, status });
    },
  };
  return span as unknown as Span;
}

const tracers = {
  getTracer: () => ({
    startSpan: (name: string, { attributes = {} }: { attributes?: Attributes } = {}, parent = context.active()) =>
      startSpan(name, attributes, parent),
  }),
} as unknown as TracerProvider;

const meters = {
  getMeter: (): Partial<Meter> => ({
    createHistogram: (name) => ({
      record: (value: number, attributes: Attributes = {}) => void recorded.push({ name, value, attributes }),
    }),
    createObservableCounter: (name) => {
      const of = new Set<ObservableCallback>();
      callbacks.set(name, of);
      const counter = { addCallback: of.add.bind(of), removeCallback: of.delete.bind(of) };
      return counter as unknown as Observable as never;
    },
  }),
} as unknown as MeterProvider;

const storage = new AsyncLocalStorage<Context>();
const contexts: ContextManager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active: Context, work: () => unknown) => storage.run(active, work),
  bind: (_: Context, target: unknown) => target,
  enable: () => contexts,
  disable: () => contexts,
} as unknown as ContextManager;

function register(): void {
  trace.setGlobalTracerProvider(tracers);
  metrics.setGlobalMeterProvider(meters);
  context.setGlobalContextManager(contexts);
}

function collected(name: string): readonly (readonly [value: number, attributes: Attributes])[] {
  const values: (readonly [number, Attributes])[] = [];
  const result = { observe: (value: number, attributes: Attributes = {}) => void values.push([value, attributes]) };
  for (const callback of callbacks.get(name) ?? []) void callback(result);
  return values;
}

let box: Signalbox;
beforeEach(async () => {
  [spans, recorded, callbacks, running] = [[], [], new Map(), 0];
  box = await open('memory:');
});
afterEach(async () => {
  await box.close();
  trace.disable();
  metrics.disable();
  context.disable();
});

describe('instrument', () => {
  it('makes spans of an acquire and its hold, beside each other under the span of the caller', async () => {
    register();
    instrument(box);
    const caller = startSpan('caller', {}, ROOT_CONTEXT);
    await context.with(trace.setSpan(ROOT_CONTEXT, caller), async () => {
      const hold = await box.lock('main').acquire({ holder: 'me' });
      expect((await box.lock('main').tryAcquire()).ok).toBe(false);
      await hold.release();
    });
    expect(spans).toMatchObject([
      { name: 'signalbox acquire', parent: 'caller', attributes: { 'signalbox.outcome': 'acquired' } },
      // A refusal is an answer, no error.
      { name: 'signalbox acquire', parent: 'caller', status: undefined, attributes: { 'signalbox.outcome': 'busy' } },
      {
        ...{ name: 'signalbox hold', parent: 'caller', status: undefined },
        attributes: {
          'signalbox.resource': 'lock/main',
          'signalbox.holder': 'me',
          'signalbox.token': expect.any(Number),
          'signalbox.outcome': 'released',
        },
      },
    ]);
  });

  it('puts the spans of work under a hold into the span of the hold, and marks one that was lost', async () => {
    register();
    instrument(box);
    await box.lock('main').run(() => startSpan('work', {}, context.active()).end());
    expect(spans.map(({ name, parent }) => [name, parent])).toEqual([
      ['signalbox acquire', undefined],
      ['work', 'signalbox hold'],
      ['signalbox hold', undefined],
    ]);
    await box.semaphore('slots', { capacity: 1 }).acquire();
    await box.semaphore('slots').break({ holder: 'admin', reason: 'test' });
    expect(spans.at(-1)).toMatchObject({
      ...{ name: 'signalbox hold', status: SpanStatusCode.ERROR, attributes: { 'signalbox.outcome': 'forced' } },
    });
  });

  it('makes spans of a claim, of the work on the task, and of the phases of a pipeline', async () => {
    register();
    instrument(box);
    await box.tasks.publish('t', { secret: 'hunter2' });
    await (await box.tasks.claim('t')).fail('no', { retry: false });
    const runbook = { name: 'release', phases: [{ name: 'build', run: () => Promise.resolve() }] };
    await box.pipelines.run(runbook);
    const about = ({ name, status, attributes }: Told): unknown => [name, status, attributes['signalbox.outcome']];
    const told = spans.filter(({ name }) => ['signalbox claim', 'signalbox task', 'signalbox phase'].includes(name));
    expect(told.map(about)).toEqual([
      ['signalbox claim', undefined, 'claimed'],
      ['signalbox task', SpanStatusCode.ERROR, 'failed'],
      ['signalbox phase', undefined, 'succeeded'],
    ]);
    expect(told[2]?.attributes).toMatchObject({ 'signalbox.phase': 'build' });
    expect(JSON.stringify(spans)).not.toContain('hunter2');
    await box.close();
    expect(running).toBe(0);
  });

  it('gives the meter what was measured in seconds, and what was counted when it collects', async () => {
    register();
    const telling = instrument(box);
    const hold = await box.lock('main').acquire();
    await box.lock('main').tryAcquire();
    await hold.release();
    expect(recorded.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['signalbox.acquire.wait', { kind: 'lock' }],
      ['signalbox.hold', { kind: 'lock' }],
    ]);
    expect(collected('signalbox.conflicts')).toEqual([
      [1, { kind: 'lock' }],
      [0, { kind: 'semaphore' }],
    ]);
    telling.unsubscribe();
    await (await box.lock('main').acquire()).release();
    expect([recorded.length, spans.length, collected('signalbox.conflicts').length]).toEqual([2, 3, 0]);
  });

  it('does nothing while no SDK is registered', async () => {
    const heard: unknown[] = [];
    const observed = { getMetrics: () => box.getMetrics(), trace: (...given: unknown[]) => heard.push(given) };
    instrument(observed as never).unsubscribe();
    expect(heard).toEqual([]);
  });

  it('has the names that Prometheus has, so that a dashboard fits both', async () => {
    const text = await prometheusText({ box });
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    const asPrometheus = [
      ...Object.keys(COUNTERS).map((name) => `${name.replaceAll('.', '_')}_total`),
      ...Object.values(HISTOGRAMS).map((name) => `${name.replaceAll('.', '_')}_seconds`),
    ];
    expect(asPrometheus.filter((name) => !names.includes(name))).toEqual([]);
  });
});

describe('a tracer that throws', () => {
  it('does not get in the way of a lock', async () => {
    const bad = (): never => {
      throw new Error('broken');
    };
    box.trace({ begin: bad, measured: bad, happened: bad });
    box.trace({ begin: () => ({ end: bad, within: (work) => work(), next: bad }) });
    expect(await (await box.lock('main').acquire()).release()).toEqual({ kind: 'released' });
  });
});
