/**
 * A standing driver: drives every pipeline without a driver, and stands by for the pipelines of other drivers.
 *
 *     a record appears or changes ──▶ one line of work for its pipeline ──▶ waits for the driver's lock ──▶ drives
 *
 * It has no way of its own to find out that a driver is gone: the queue of the driver's lock says so, as in `resume --wait`.
 */
import { existsSync } from 'node:fs';
import { pause, whenAborted } from '../../clock.ts';
import { given } from '../../core/given.ts';
import { canBeDriven, type PipelineRecord } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Driving } from './driving.ts';
import type { PipelineFeed } from './feed.ts';
import { readPipeline, readRecords } from './reading.ts';
import type { RunSpec } from './run-spec.ts';
import type { DriveAllOptions } from './terms.ts';

/** The pause after an error that passes: the store was away, or this process was asleep. */
const PASSING_MS = 1_000;
/** The pause after any other error, such as a leftover command that this user may not end. */
const LASTING_MS = 30_000;
const PASSING = ['unavailable', 'outcome-unknown', 'hold-lost'] as const;

/** What this process does about one pipeline. */
interface Line {
  /** Ends the wait for the driver's lock when the pipeline no longer needs a driver. */
  readonly unneeded: AbortController;
  /** From here on only the end of this process, or of the pipeline, stops it. */
  isDriving: boolean;
  /** Its record changed since it was read. */
  hasChanged: boolean;
}

export class StandingDriver {
  readonly #runtime: Runtime;
  readonly #feed: PipelineFeed;
  readonly #driving: Driving;
  readonly #options: DriveAllOptions;
  /** Aborts when a callback of the caller throws: that ends this driver as the caller's signal does. */
  readonly #broken = new AbortController();
  /** Aborts with the caller's signal, and when the signalbox is closed. */
  readonly #over: AbortSignal;
  readonly #lines = new Map<string, Line>();
  readonly #working = new Set<Promise<void>>();
  /** Pipelines that this process cannot drive. */
  readonly #skipped = new Set<string>();

  constructor(runtime: Runtime, feed: PipelineFeed, driving: Driving, options: DriveAllOptions) {
    this.#runtime = runtime;
    this.#feed = feed;
    this.#driving = driving;
    this.#options = options;
    this.#over = AbortSignal.any([options.signal, runtime.stopped, this.#broken.signal]);
  }

  /** Resolves after the signal has aborted, once nothing that it drove runs any more. */
  async drive(): Promise<void> {
    const over = whenAborted(this.#over);
    const alive = this.#runtime.clock.keepAlive?.();
    const unlisten = await this.#feed.listenToAll({
      saw: (id, record) => this.#saw(id, record),
      missed: () => void this.#readAll().catch(() => undefined),
    });
    try {
      if (!this.#over.aborted) await this.#readAll();
      await over;
    } finally {
      unlisten();
      await Promise.all(this.#working);
      alive?.cancel();
    }
    if (this.#broken.signal.aborted) throw this.#broken.signal.reason;
  }

  async #readAll(): Promise<void> {
    for (const record of await readRecords(this.#runtime, () => undefined)) this.#saw(record.id, record);
  }

  #saw(id: string, record: PipelineRecord | undefined): void {
    const line = this.#lines.get(id);
    const isToDrive = record !== undefined && canBeDriven(record);
    // The id may be used again, for a pipeline that can be driven here.
    if (record === undefined) this.#skipped.delete(id);
    if (line !== undefined) {
      line.hasChanged = true;
      // Late news of an earlier state must not stop what runs now.
      if (!isToDrive && !line.isDriving) line.unneeded.abort();
    } else if (isToDrive && !this.#skipped.has(id) && !this.#over.aborted) {
      const work = this.#work(id).finally(() => this.#working.delete(work));
      this.#working.add(work);
    }
  }

  /** Never rejects. */
  async #work(id: string): Promise<void> {
    for (let again = true; again && !this.#over.aborted;) {
      const line: Line = { unneeded: new AbortController(), isDriving: false, hasChanged: false };
      this.#lines.set(id, line);
      const pauseMs = await this.#driveOnce(id, line).catch((error: unknown) => this.#troubled(id, line, error));
      if (pauseMs > 0) await pause(pauseMs, this.#over, this.#runtime.clock);
      again = pauseMs > 0 || line.hasChanged;
      this.#lines.delete(id);
    }
  }

  /** The time to wait before it is tried again; 0 if there is nothing to do until the record changes. */
  async #driveOnce(id: string, line: Line): Promise<number> {
    const { record, spec } = await readPipeline(this.#runtime, id);
    if (record === undefined || spec === undefined || !canBeDriven(record)) return 0;
    const why = whyNotHere(spec);
    if (why !== undefined) {
      this.#skipped.add(id);
      this.#safely(() => this.#options.onSkipped?.(id, why));
      return 0;
    }
    const { graceMs, hurrying, adapters, onChange, onOutput, onMessage, onStandBy } = this.#options;
    const left = await this.#driving.drive(id, {
      ...given({ graceMs, hurrying, adapters }),
      signal: AbortSignal.any([this.#over, line.unneeded.signal]),
      standsBy: true,
      onChange: (changed) => {
        line.isDriving = true;
        this.#safely(() => onChange?.(changed));
      },
      onOutput: (phase, text) => this.#safely(() => onOutput?.(id, phase, text)),
      ...(onMessage !== undefined && {
        onMessage: (phase, message) => this.#safely(() => onMessage(id, phase, message)),
      }),
      onStandBy: (other) => {
        if (other.isGone) this.#safely(() => onStandBy?.(id, other));
      },
    });
    // The drive ended although the pipeline could go on: another driver took over, and this one stands by for it.
    return left.kind === 'left' && canBeDriven(left.record) ? PASSING_MS : 0;
  }

  #troubled(id: string, { unneeded }: Line, error: unknown): number {
    if (this.#over.aborted || unneeded.signal.aborted) return 0;
    const told = error instanceof Error ? error : new Error(String(error));
    this.#safely(() => this.#options.onTrouble?.(id, told));
    return isPassing(error) ? PASSING_MS : LASTING_MS;
  }

  #safely(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#broken.abort(error);
    }
  }
}

/** Why this process cannot drive it; undefined if it can. */
function whyNotHere({ runbook, cwd, host }: RunSpec): string | undefined {
  const own = runbook.phases.find(({ run }) => !('shell' in run));
  if (own !== undefined)
    return `its phase ${own.name} is a function of the program that started it; resume it with that program`;
  return existsSync(cwd) ? undefined : `its directory ${cwd} (on ${host}) does not exist on this machine`;
}

function isPassing(error: unknown): boolean {
  if (error instanceof NotAcquired) return true;
  return PASSING.some((code) => Failure.is(error, code));
}
