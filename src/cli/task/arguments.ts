/** The arguments that task commands share. */
import { InvalidArgumentError } from 'commander';
import { readFileSync } from 'node:fs';
import type { Json } from '../../core/index.ts';

/** Accepts `task/build-7`, as other commands print it, for the task `build-7`. */
export function taskId(text: string): string {
  return text.replace(/^task\/(?=.)/s, '');
}

/** JSON itself, `@FILE` for that of a file, or `-` for that of stdin. */
export function jsonArgument(text: string): Json {
  const [from, json] = textArgument(text);
  try {
    return JSON.parse(json) as Json;
  } catch (error) {
    throw new InvalidArgumentError(`${from ?? 'this'} is not JSON: ${(error as Error).message}`);
  }
}

/** The text itself, or what `@FILE` or `-` (stdin) holds, and where it comes from. */
export function textArgument(text: string): readonly [from: string | undefined, text: string] {
  if (text !== '-' && !text.startsWith('@')) return [undefined, text];
  const from = text === '-' ? 'stdin' : text.slice(1);
  try {
    return [from, readFileSync(text === '-' ? 0 : from, 'utf8')];
  } catch (error) {
    throw new InvalidArgumentError(`${from} cannot be read: ${(error as Error).message}`);
  }
}
