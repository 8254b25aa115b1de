/** The arguments that pipeline commands share. */
import { InvalidArgumentError } from 'commander';
import { hostname } from 'node:os';
import { outputNameProblem } from '../../core/index.ts';

/** Accepts `pipeline/release-7`, as other commands print it, for the pipeline `release-7`. */
export function pipelineId(text: string): string {
  return text.replace(/^pipeline\/(?=.)/s, '');
}

/** The number that `status` prints. */
export function questionArgument(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected the number of a question; signalbox pipeline status prints it');
}

/** The user's name, for people. */
export function askedBy(holder: string | undefined): string {
  return holder ?? (process.env['SIGNALBOX_HOLDER'] || `user:${hostname()}:${process.pid}`);
}

export const GRACE = ['--grace', 'time between TERM and KILL when a command is stopped (default: 5s)'] as const;

export type Variables = Readonly<Record<string, string>>;

/** `NAME=VALUE`, any number of times. */
export function variable(text: string, before: Variables = {}): Variables {
  const equals = text.indexOf('=');
  if (equals < 0) throw new InvalidArgumentError('expected NAME=VALUE');
  const name = text.slice(0, equals);
  const problem = outputNameProblem(name);
  if (problem !== undefined) throw new InvalidArgumentError(`${problem}; expected NAME=VALUE`);
  return { ...before, [name]: text.slice(equals + 1) };
}
