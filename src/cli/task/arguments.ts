/** The arguments that task commands share. */
import { InvalidArgumentError } from 'commander';
import { shown } from '../../failure.ts';
import type { Json } from '../../core/index.ts';

/** Accepts `task/build-7`, as other commands print it, for the task `build-7`. */
export function taskId(text: string): string {
  return text.replace(/^task\/(?=.)/s, '');
}

export function jsonArgument(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new InvalidArgumentError(`${shown(text)} is not JSON: ${(error as Error).message}.`);
  }
}

/** Collects an option that may be given several times. */
export function all(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

export const none: readonly string[] = [];
