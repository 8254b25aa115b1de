/** What the commands on pipelines have in common. */
import { InvalidArgumentError } from 'commander';
import { hostname } from 'node:os';
import { outputNameProblem } from '../../core/index.ts';
import { shown } from '../../failure.ts';

/** As it is printed elsewhere, `pipeline/release-7` is the pipeline `release-7`. */
export function pipelineId(text: string): string {
  return text.replace(/^pipeline\/(?=.)/s, '');
}

/** As `status` tells it. */
export function questionArgument(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError(`${shown(text)} is no number of a question. See pipeline status.`);
}

/** Who asks, for people. */
export function askedBy(holder: string | undefined): string {
  return holder ?? (process.env['SIGNALBOX_HOLDER'] || `user:${hostname()}:${process.pid}`);
}

export type Variables = Readonly<Record<string, string>>;

/** `NAME=VALUE`, any number of times. */
export function variable(text: string, before: Variables = {}): Variables {
  const equals = text.indexOf('=');
  if (equals < 0) throw new InvalidArgumentError(`${shown(text)} has no =. Accepted is NAME=VALUE.`);
  const name = text.slice(0, equals);
  const problem = outputNameProblem(name);
  if (problem !== undefined) throw new InvalidArgumentError(`${problem}. Accepted is NAME=VALUE.`);
  return { ...before, [name]: text.slice(equals + 1) };
}
