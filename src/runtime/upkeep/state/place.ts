/** A place in a file, for messages: `locks.json: locks[3].holds[0].token`. */
import { Failure, shown } from '../../../failure.ts';

export type Fields = { readonly [key: string]: unknown };

export class Place {
  readonly file: string;
  readonly path: string;

  constructor(file: string, path = '') {
    this.file = file;
    this.path = path;
  }

  at(key: string | number): Place {
    if (typeof key === 'number') return new Place(this.file, `${this.path}[${key}]`);
    return new Place(this.file, this.path === '' ? key : `${this.path}.${key}`);
  }

  problem(what: string): Failure {
    return new Failure('corrupt', `${this.file}: ${this.path === '' ? '' : `${this.path}: `}${what}`);
  }

  check(problem: string | undefined): void {
    if (problem !== undefined) throw this.problem(problem);
  }

  /** Refuses the value of a field that is not what it should be. */
  expect(isRight: boolean, key: string, value: unknown, words: string): void {
    if (!isRight) throw this.at(key).problem(`${shown(value)}; expected ${words}`);
  }

  list(value: unknown): readonly (readonly [unknown, Place])[] {
    if (!Array.isArray(value)) throw this.problem(`${shown(value)}; expected a list`);
    return value.map((item: unknown, index) => [item, this.at(index)]);
  }

  /** All keys must exist, except optional ones, and no other keys. */
  fields(value: unknown, known: readonly string[], mayLack: readonly string[] = []): Fields {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw this.problem(`${shown(value)}; expected an object`);
    }
    const unknown = Object.keys(value).find((key) => !known.includes(key));
    if (unknown !== undefined) {
      throw this.at(unknown).problem(`nobody knows this key; there are ${known.join(', ')}`);
    }
    const missing = known.find((key) => !mayLack.includes(key) && !(key in value));
    if (missing !== undefined) throw this.problem(`${missing} is missing`);
    return value as Fields;
  }
}
