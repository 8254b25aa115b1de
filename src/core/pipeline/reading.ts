/** Reads what people write: each part becomes a value for the machine, or a problem with its place and what is accepted. */
import { isRecord, type Path, type Problem, type Shape, unaccepted, unknown } from '../shape.ts';

/**
 * `text` is what can be written in a file. `code` may bring functions along and says durations as text or, with `Ms` in
 * the name, in milliseconds; a bare number would mean seconds to one reader and milliseconds to another.
 */
export type Dialect = 'text' | 'code';

export class Reading {
  readonly dialect: Dialect;
  readonly problems: Problem[] = [];

  constructor(dialect: Dialect) {
    this.dialect = dialect;
  }

  refuse(path: Path, message: string): undefined {
    this.problems.push({ path, message });
  }

  unaccepted(value: unknown, path: Path, accepted: string): undefined {
    this.problems.push(unaccepted(value, path, accepted, 'the runbook'));
  }

  /** The fields of an object; undefined if it is none. Reports each required field that is missing, and each unknown one. */
  fields(value: unknown, path: Path, required: readonly string[], optional: readonly string[]): Fields | undefined {
    const accepted = [...required, ...optional];
    if (!isRecord(value)) return this.unaccepted(value, path, `an object with ${accepted.join(', ')}`);
    for (const key of required) {
      if (!Object.hasOwn(value, key)) {
        this.refuse([...path, key], `${key} is missing; expected ${accepted.join(', ')}`);
      }
    }
    for (const key of Object.keys(value)) {
      if (!accepted.includes(key)) this.refuse([...path, key], unknown(key, accepted));
    }
    return value;
  }

  /** What `read` makes of the field, if it is there. */
  field<T>(fields: Fields, key: string, path: Path, read: Read<T>): T | undefined {
    return Object.hasOwn(fields, key) ? read(this, fields[key], [...path, key]) : undefined;
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/** Undefined if it was refused. */
export type Read<T> = (reading: Reading, value: unknown, path: Path) => T | undefined;

/** A value of this shape. */
export function shaped<T>(shape: Shape): Read<T> {
  return (reading, value, path) => {
    const problems = shape(value, path);
    reading.problems.push(...problems);
    return problems.length === 0 ? (value as T) : undefined;
  };
}

/** One, or a list of them. */
export function oneOrMore<T>(what: string, read: Read<T>): Read<readonly T[]> {
  return (reading, value, path) => {
    if (!Array.isArray(value)) return present([read(reading, value, path)]);
    if (value.length > MOST_ITEMS)
      return reading.refuse(path, `${value.length} are too many; expected at most ${MOST_ITEMS}`);
    if (value.length === 0) return reading.unaccepted(value, path, `${what}, or a list of them`);
    return present(Array.from(value, (item, at) => read(reading, item, [...path, at])));
  };
}

export const MOST_ITEMS = 100;

export function present<T>(values: readonly (T | undefined)[]): readonly T[] {
  return values.filter((value) => value !== undefined);
}
