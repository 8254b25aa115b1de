/** The settings of a phase: how long, how often, in which environment, and what if it fails. */
import { DURATIONS, durationMs, LONGEST_MS } from '../duration.ts';
import { patternProblem } from '../event-names.ts';
import type { OnFailure } from '../guard/guard.ts';
import { boolean, isRecord, type Path, text } from '../shape.ts';
import { shown } from '../shown.ts';
import { outputNameProblem } from './outputs.ts';
import { type Fields, oneOrMore, type Read, type Reading, shaped } from './reading.ts';
import { DEFAULT_BACKOFF_MS } from './runbook.ts';

const MOST_RETRIES = 1_000;
const MOST_VARIABLES = 1_000;
const LONGEST_VALUE = 65_536;

/** `key: 30s`; in code also `keyMs: 30_000`. */
export function duration(reading: Reading, fields: Fields, key: string, path: Path, least: number): number | undefined {
  const inMs = `${key}Ms`;
  if (reading.dialect === 'code' && Object.hasOwn(fields, inMs)) {
    if (Object.hasOwn(fields, key))
      return reading.refuse([...path, inMs], `${key} and ${inMs} are both there; expected one`);
    const ms = fields[inMs];
    if (Number.isSafeInteger(ms) && (ms as number) >= least && (ms as number) <= LONGEST_MS) return ms as number;
    return reading.unaccepted(ms, [...path, inMs], `a whole number of milliseconds, ${least} or more`);
  }
  return reading.field(fields, key, path, (_, value, at) => durationOf(reading, value, at, least));
}

function durationOf(reading: Reading, value: unknown, path: Path, least: number): number | undefined {
  if (typeof value === 'number' && reading.dialect === 'code') {
    return reading.unaccepted(
      value,
      path,
      `text such as "30s" or "5m"; milliseconds go under ${String(path.at(-1))}Ms`,
    );
  }
  const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
  const ms = typeof text === 'string' ? durationMs(text) : undefined;
  if (ms === undefined) return reading.unaccepted(value, path, DURATIONS);
  if (ms > LONGEST_MS) return reading.unaccepted(value, path, 'at most a hundred years');
  if (ms < least) return reading.unaccepted(value, path, `${least} ms or more`);
  return Math.round(ms);
}

/** A phase needs some time: zero is refused. */
export function timeout(reading: Reading, fields: Fields, path: Path): number | undefined {
  return duration(reading, fields, 'timeout', path, 1);
}

export interface Retries {
  readonly retries: number;
  readonly backoffMs: number;
}

export const retries: Read<Retries> = (reading, value, path) => {
  if (isRecord(value)) {
    const optional = reading.dialect === 'code' ? ['backoff', 'backoffMs'] : ['backoff'];
    const fields = reading.fields(value, path, ['times'], optional);
    if (fields === undefined) return undefined;
    const times = reading.field(fields, 'times', path, retryCount);
    const backoffMs = duration(reading, fields, 'backoff', path, 0) ?? DEFAULT_BACKOFF_MS;
    return times === undefined ? undefined : { retries: times, backoffMs };
  }
  const times = retryCount(reading, value, path);
  return times === undefined ? undefined : { retries: times, backoffMs: DEFAULT_BACKOFF_MS };
};

const retryCount: Read<number> = (reading, value, path) => {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_RETRIES) return value as number;
  const also = path.at(-1) === 'times' ? '' : ', or {times: 2, backoff: 5s}';
  return reading.unaccepted(value, path, `a whole number from 0 to ${MOST_RETRIES}${also}`);
};

const message = shaped<string>(text('a message', 1, 1_000));
const ON_FAILURE = 'block, warn, {retry: 30s} or {fail: a message}';

export const onFailure: Read<OnFailure> = (reading, value, path) => {
  if (value === 'block' || value === 'warn') return value;
  if (!isRecord(value) || Object.keys(value).length !== 1) return reading.unaccepted(value, path, ON_FAILURE);
  const [key = ''] = Object.keys(value);
  if (key === 'fail') {
    const fail = reading.field(value, key, path, message);
    return fail === undefined ? undefined : { fail };
  }
  if (key === 'retry' || (key === 'retryMs' && reading.dialect === 'code')) {
    const retry = duration(reading, value, 'retry', path, 1);
    return retry === undefined ? undefined : { retry };
  }
  return reading.unaccepted(value, path, ON_FAILURE);
};

export const wakeOn: Read<readonly string[]> = oneOrMore('an event such as lock:released', (reading, value, path) => {
  const last = path.at(-1);
  const problem = patternProblem(value, typeof last === 'number' ? `wakeOn[${last}]` : 'wakeOn');
  return problem === undefined ? (value as string) : reading.refuse(path, problem);
});

export const idempotent = shaped<boolean>(boolean);

export const environment: Read<Readonly<Record<string, string>>> = (reading, value, path) => {
  if (!isRecord(value)) return reading.unaccepted(value, path, 'an object of variables, such as {TARGET: staging}');
  const entries = Object.entries(value);
  if (entries.length > MOST_VARIABLES) {
    return reading.refuse(path, `${entries.length} variables are too many; expected at most ${MOST_VARIABLES}`);
  }
  const read = entries.map(([name, content]) => [name, variable(reading, name, content, [...path, name])] as const);
  return Object.fromEntries(read.filter((entry): entry is [string, string] => entry[1] !== undefined));
};

function variable(reading: Reading, name: string, value: unknown, path: Path): string | undefined {
  const problem = outputNameProblem(name);
  if (problem !== undefined) return reading.refuse(path, problem);
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  if (!isPlain) {
    const empty = value === null ? '; an empty one is ""' : '';
    return reading.refuse(path, `${name} is ${shown(value)}; expected text, a number, true or false${empty}`);
  }
  const content = String(value);
  if (content.includes('\0')) return reading.refuse(path, `${name} has a NUL in it, which no variable can have`);
  if (content.length <= LONGEST_VALUE) return content;
  return reading.refuse(path, `${name} has ${content.length} characters; expected at most ${LONGEST_VALUE}`);
}
