/**
 * Reports single steps as they happen: OpenTelemetry and the log listen here. By default nobody does, and a step costs one
 * comparison.
 */

/** The steps with a beginning and an end; `task` is the work on a task, from its claim to its end. */
export type StepName = 'acquire' | 'hold' | 'claim' | 'task' | 'phase';

/** What is known of a step: names and numbers. Never the data, metadata or reasons that users give. */
export type StepFields = Readonly<Record<string, string | number | boolean>>;

/** The steps that have no duration. */
export type Occurrence = 'opened' | 'session-ended' | 'renewal-failed' | 'resync' | 'transaction-failed';

/** The histograms of `Metrics`, by name. */
export type Measured = 'wait' | 'hold' | 'watchLag' | 'claim' | 'publishToCallback' | 'transactions';

/** One step that has begun. */
export interface Trace {
  /** The step is over: `acquired`, `released`, `expired`; `isFailure` if it did not get what it wanted. */
  end(outcome: string, isFailure: boolean, more?: StepFields): void;
  /** Runs `work` as a part of this step, so that what it traces is inside. */
  within<T>(work: () => T): T;
  /** Begins a step where this one began, not inside it: a hold follows its acquire. */
  next(step: StepName, fields: StepFields): Trace;
}

/** Hears of the steps of a process. Must neither throw nor wait: the path of a lock calls it. */
export interface Tracer {
  /** A step begins, in the context of the caller. */
  begin(step: StepName, fields: StepFields): Trace;
  /** Something happened that has no duration. */
  happened?(what: Occurrence, fields: StepFields): void;
  /** A duration was measured; `kind` is `lock` or `semaphore` for waits and holds. */
  measured?(what: Measured, ms: number, kind?: string): void;
}

/** Calls each tracer for everything, in the order given. A tracer that throws does not disturb the step. */
export function tracerOf(tracers: readonly Tracer[]): Tracer | undefined {
  if (tracers.length === 0) return undefined;
  const each = (tell: (tracer: Tracer) => void): void =>
    tracers.forEach((tracer) => void attempted(() => tell(tracer)));
  return {
    begin: (step, fields) => traceOf(begunBy(tracers, (tracer) => tracer.begin(step, fields))),
    happened: (what, fields) => each((tracer) => tracer.happened?.(what, fields)),
    measured: (what, ms, kind) => each((tracer) => tracer.measured?.(what, ms, kind)),
  };
}

function traceOf(traces: readonly Trace[]): Trace {
  return {
    end: (outcome, isFailure, more) =>
      traces.forEach((trace) => void attempted(() => trace.end(outcome, isFailure, more))),
    within: (work) => traces.reduce((inner, trace) => () => trace.within(inner), work)(),
    next: (step, fields) => traceOf(begunBy(traces, (trace) => trace.next(step, fields))),
  };
}

function begunBy<From>(all: readonly From[], begin: (one: From) => Trace): readonly Trace[] {
  return all.map((one) => attempted(() => begin(one))).filter((trace) => trace !== undefined);
}

function attempted<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}

/** Runs `work` within the step, which ends with it. */
export async function traced<T extends { readonly kind: string }>(
  trace: Trace | undefined,
  work: () => Promise<T>,
  succeeds: (result: T) => boolean,
): Promise<T> {
  if (trace === undefined) return work();
  let result: T;
  try {
    result = await trace.within(work);
  } catch (error) {
    trace.end('error', true);
    throw error;
  }
  trace.end(result.kind, !succeeds(result));
  return result;
}
