/** What the commands on tasks have in common. */
import { InvalidArgumentError } from 'commander';
import { shown } from '../../failure.ts';
import type { Json } from '../../core/index.ts';

/** As it is printed elsewhere, `task/build-7` is the task `build-7`. */
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

/** For options that may be said several times. */
export function all(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

export const none: readonly string[] = [];
