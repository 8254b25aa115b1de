/** One run of a phase: its command or its function, with its environment, its log and its outputs. */
import { outputNameProblem, type Phase, type PhaseResult } from '../../core/index.ts';
import { randomHex } from '../../host/index.ts';
import type { Children } from '../processes/children.ts';
import { asTold, type OuterHolds } from '../processes/environment.ts';
import type { Hold } from '../holds/hold.ts';
import type { Runtime } from '../runtime.ts';
import { type RunSpec, variablesOf } from './run-spec.ts';
import { PhaseCommand } from './command.ts';
import type { PhaseFunction } from './functions.ts';
import { callInside } from './inside.ts';
import { pipelineKeys } from './keys.ts';
import { phaseEnvironment } from './phase-environment.ts';
import type { RecordStore } from './record-store.ts';
import { PhaseLogWriter } from './log.ts';
import { Spool, spoolName } from './spool.ts';
import { Stop } from './stop.ts';

export interface RunParts {
  readonly runtime: Runtime;
  readonly children: Children;
  /** The URL of the store, for the command; undefined if no other process could open it. */
  readonly url: string | undefined;
  /** The environment of this process, without the variables that a pipeline sets. */
  readonly env: NodeJS.ProcessEnv;
  readonly outer: OuterHolds;
  readonly graceMs: number;
  /** When it aborts, a command that has to end is killed at once. */
  readonly hurrying: AbortSignal | undefined;
  readonly functions: ReadonlyMap<string, PhaseFunction>;
  /** The holders around this process, which wait for it to end. */
  around(): readonly string[];
  readonly onOutput: (phase: string, text: string) => void;
  readonly onMessage: (phase: string, message: string) => void;
}

export interface RunPlace {
  /** The index of the phase. */
  readonly place: number;
  /** The number of times that its command has begun, this one included. */
  readonly run: number;
  readonly attempt: number;
}

export class PhaseRun {
  readonly #parts: RunParts;
  readonly #records: RecordStore;
  readonly #spec: RunSpec;
  readonly #phase: Phase;
  readonly #at: RunPlace;
  /** The driver's hold comes first. */
  readonly #holds: readonly Hold[];
  readonly #command: PhaseCommand | undefined;
  #isOver = false;

  /** Starts a command already, behind its gate. */
  constructor(
    parts: RunParts,
    records: RecordStore,
    spec: RunSpec,
    phase: Phase,
    at: RunPlace,
    holds: readonly Hold[],
  ) {
    this.#parts = parts;
    this.#records = records;
    this.#spec = spec;
    this.#phase = phase;
    this.#at = at;
    this.#holds = holds;
    if (!('shell' in phase.run)) return;
    const mark = randomHex(8);
    const environment = phaseEnvironment(parts, records.id, phase, this.#variables(), at.attempt, holds, mark);
    this.#command = new PhaseCommand(phase.run.shell, environment, mark, spec.cwd);
  }

  /** Does nothing after `run`. */
  async abandon(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#command?.abandon();
  }

  async run(stop: AbortSignal): Promise<PhaseResult> {
    this.#isOver = true;
    const { runtime, onOutput, onMessage, children, outer, graceMs, hurrying } = this.#parts;
    const { name } = this.#phase;
    const at = { place: this.#at.place, phase: name, run: this.#at.run };
    const { record } = this.#records;
    // A store that no other process can open needs no spool: no other process could read it.
    const isShared = this.#parts.url !== undefined && record !== undefined;
    const spool = isShared ? Spool.open(spoolName(record, at.place, at.run)) : undefined;
    const log = new PhaseLogWriter(runtime, pipelineKeys(this.#records.id), at, (text) => onOutput(name, text), spool);
    try {
      if (this.#command === undefined) return await this.#call(stop, log);
      return await this.#command.run({
        children,
        holds: this.#holds,
        outer: asTold(outer),
        graceMs,
        hurrying,
        stop,
        output: () => log.stream(),
        tell: (line) => log.add(`signalbox: ${line}\n`, () => onMessage(name, line)),
      });
    } finally {
      await log.close();
    }
  }

  /** A function cannot be ended from outside: the driver waits for it, however long it takes to obey its signal. */
  async #call(stop: AbortSignal, log: PhaseLogWriter): Promise<PhaseResult> {
    const { name } = this.#phase;
    const call = this.#parts.functions.get(name);
    if (call === undefined)
      throw new TypeError(`the function of phase ${name} is missing, and nothing checked for it before the run`);
    // After a stall of the event loop, this check is the first to notice that another process drives the pipeline now.
    const lost = this.#holds.find((hold) => !hold.isValid);
    if (lost !== undefined) return { kind: 'failed', why: `${lost.resource} was lost before it could begin` };
    try {
      const pipeline = this.#records.id;
      const token = this.#holds[0]?.token ?? 0;
      const context = {
        pipeline,
        phase: name,
        attempt: this.#at.attempt,
        signal: stop,
        env: this.#variables(),
        outputs: this.#records.record?.outputs ?? {},
        token,
        tokens: Object.fromEntries(this.#holds.slice(1).map(({ resource, token }) => [resource, token])),
        log: (text: string) => log.add(text.endsWith('\n') ? text : `${text}\n`),
      };
      const given = await callInside({ pipeline, token, stop }, () => call(context));
      if (stop.aborted) return Stop.of(stop).result;
      return outputsOf(given);
    } catch (error) {
      if (stop.aborted) return Stop.of(stop).result;
      return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
    }
  }

  #variables(): Readonly<Record<string, string>> {
    return variablesOf(this.#spec, this.#records.record, this.#phase);
  }
}

function outputsOf(given: unknown): PhaseResult {
  if (given === undefined || given === null) return { kind: 'succeeded', outputs: {} };
  if (typeof given !== 'object') return { kind: 'failed', why: 'it returned something that is no object of outputs' };
  const outputs = new Map<string, string>();
  for (const [name, value] of Object.entries(given as Record<string, unknown>)) {
    if (value === undefined) continue;
    const problem = outputNameProblem(name);
    if (problem !== undefined) return { kind: 'failed', why: `its outputs: ${problem}` };
    const text = typeof value === 'string' ? value : (JSON.stringify(value) as string | undefined);
    if (text === undefined)
      return {
        kind: 'failed',
        why: `its outputs: ${name} is a ${typeof value}; expected text, a number or a boolean`,
      };
    outputs.set(name, text);
  }
  // An assignment would lose a key named `__proto__`.
  return { kind: 'succeeded', outputs: Object.fromEntries(outputs) };
}
