/** Phases that are functions of the program that drives the pipeline. */
import type { Phase, Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { pipelineResource } from './keys.ts';

export interface PhaseContext {
  readonly pipeline: string;
  readonly phase: string;
  /** 1 for the first, 2 after it has failed once. */
  readonly attempt: number;
  /** Aborts when the phase is to end: time is over, a hold was lost, the pipeline was cancelled. It must be heeded. */
  readonly signal: AbortSignal;
  /** What the runbook and the earlier phases say. */
  readonly env: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
  /** Of the driver: larger for every driver of this pipeline. */
  readonly token: Token;
  /** Of what the phase holds, by resource. */
  readonly tokens: Readonly<Record<string, Token>>;
  /** Kept with the pipeline, like what a command prints. */
  log(text: string): void;
}

/** What it returns is passed on to the phases after it, as text. */
export type PhaseFunction = (phase: PhaseContext) => unknown;

/** A function that this program does not have has not failed: it is for another program to run. */
export function refuseUnlessRunnable(
  pipeline: string,
  { name, run }: Phase,
  functions: ReadonlyMap<string, PhaseFunction>,
): void {
  if ('shell' in run || functions.has(name)) return;
  const where = `phase ${name} is a function of the program that started the pipeline; resume it from there`;
  throw new Failure('invalid', `${pipelineResource(pipeline)}: ${where}`);
}
