/** Phases that are functions in the program that drives the pipeline. */
import type { Phase, Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { pipelineResource } from './keys.ts';

/** What a function gets when it runs as a phase. */
export interface PhaseContext {
  /** The id of the pipeline. */
  readonly pipeline: string;
  /** The name of the phase. */
  readonly phase: string;
  /** 1 for the first attempt, 2 after one failure. */
  readonly attempt: number;
  /** Aborts when the phase must end: time is over, a hold was lost, the pipeline was cancelled. The function must obey it. */
  readonly signal: AbortSignal;
  /** The variables of the runbook and of earlier phases. */
  readonly env: Readonly<Record<string, string>>;
  /** What earlier phases put out. */
  readonly outputs: Readonly<Record<string, string>>;
  /** The token of the driver: every later driver of this pipeline has a larger one. */
  readonly token: Token;
  /** The tokens of the holds of the phase, by resource. */
  readonly tokens: Readonly<Record<string, Token>>;
  /** Adds to the log of the phase, like the output of a command. */
  log(text: string): void;
}

/** Returns outputs, which later phases get as text. */
export type PhaseFunction = (phase: PhaseContext) => unknown;

/** Refuses to drive a function phase that this program does not have. It has not failed: another program can run it. */
export function refuseUnlessRunnable(
  pipeline: string,
  { name, run }: Phase,
  functions: ReadonlyMap<string, PhaseFunction>,
): void {
  if ('shell' in run || functions.has(name)) return;
  const where = `phase ${name} is a function of the program that started the pipeline; resume it from there`;
  throw new Failure('invalid', `${pipelineResource(pipeline)}: ${where}`);
}
