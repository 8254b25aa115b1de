/** One test's pipelines: what their phases did is written down here, with whose token. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PipelineRecord, Runbook } from 'signalbox/core';
import { onTestFinished } from 'vitest';
import type { PhaseContext, PhaseFunction } from '../../src/runtime/pipelines/functions.ts';
import type { DriveOutcome, ResumeOptions, RunOptions } from '../../src/runtime/pipelines/terms.ts';
import { Fleet, type Process } from '../support/fleet.ts';
import { settled } from '../support/outcome.ts';

/** What is told to end does so long before, also where the machine is busy. */
const GRACE_MS = 30_000;

type Work = (phase: PhaseContext) => unknown;

export class Stage {
  readonly fleet: Fleet;
  readonly directory = mkdtempSync(join(tmpdir(), 'signalbox-stage-'));
  /** The functions that began, in order. */
  readonly ran: string[] = [];
  readonly functions = new Map<string, PhaseFunction>();

  constructor(atOnce: boolean) {
    this.fleet = new Fleet(atOnce);
    onTestFinished(() => rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 }));
  }

  /** Phases of these names are functions; those that nothing is said of just end. */
  does(phases: Readonly<Record<string, Work>>): void {
    for (const [name, work] of Object.entries(phases)) {
      this.functions.set(name, (context) => {
        this.ran.push(name);
        return work(context);
      });
    }
  }

  /** Lets time pass, for those who wait by then; and all that follows from it happen. */
  async advance(ms: number): Promise<void> {
    await rest();
    await this.fleet.advance(ms);
    await rest();
  }

  run({ box }: Process, runbook: Runbook, options: RunOptions = {}): Promise<DriveOutcome> {
    for (const { name, run } of runbook.phases) {
      if ('function' in run && !this.functions.has(name)) this.does({ [name]: () => undefined });
    }
    const { functions } = this;
    return box.pipelines.run({ runbook, functions }, { id: 'p', cwd: this.directory, graceMs: GRACE_MS, ...options });
  }

  resume({ box }: Process, options: ResumeOptions = {}): Promise<DriveOutcome> {
    return box.pipelines.resume('p', { functions: this.functions, graceMs: GRACE_MS, ...options });
  }
}

/** How it stood when its driver left it. */
export async function left(driving: Promise<DriveOutcome>): Promise<PipelineRecord> {
  const outcome = await driving;
  if (outcome.kind !== 'left') throw new TypeError(`it was not driven to an end, but ${outcome.kind}`);
  return outcome.record;
}

/** Guards are looked at in turns of the event loop: so many lie between two things that a driver waits for. */
const TURNS = 30;

async function rest(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await settled();
}

/** Looks until it is so: for what happens by itself, in real processes too. */
export { until } from '../support/until.ts';
