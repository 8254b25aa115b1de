/** Finds the operation of a method and a path. */
import type { Operation } from './operation.ts';

interface Place {
  readonly below: Map<string, Place>;
  /** Below it, whatever stands for a parameter. */
  any: Place | undefined;
  readonly operations: Map<string, { readonly operation: Operation; readonly names: readonly string[] }>;
}

export interface Route {
  readonly operation: Operation;
  /** Still percent-encoded. */
  readonly params: Readonly<Record<string, string>>;
}

export class RouteTable {
  readonly #root = newPlace();

  constructor(operations: readonly Operation[]) {
    for (const operation of operations) {
      const names: string[] = [];
      let place = this.#root;
      for (const part of operation.path.slice(1).split('/')) {
        const name = /^\{(\w+)\}$/.exec(part)?.[1];
        if (name !== undefined) names.push(name);
        place = name === undefined ? belowOf(place, part) : (place.any ??= newPlace());
      }
      place.operations.set(operation.method.toUpperCase(), { operation, names });
    }
  }

  /** A path that is written in full goes before one with a parameter in that place. */
  find(method: string, path: string): Route | undefined {
    const parts = path.slice(1).split('/');
    const values: string[] = [];
    const found = at(this.#root, parts, 0, values)?.operations.get(method === 'HEAD' ? 'GET' : method);
    if (found === undefined) return undefined;
    const { operation, names } = found;
    return { operation, params: Object.fromEntries(names.map((name, index) => [name, values[index] as string])) };
  }
}

function at(place: Place, parts: readonly string[], index: number, values: string[]): Place | undefined {
  const part = parts[index];
  if (part === undefined) return place.operations.size > 0 ? place : undefined;
  const exact = place.below.get(part);
  const found = exact === undefined ? undefined : at(exact, parts, index + 1, values);
  if (found !== undefined || place.any === undefined || part === '') return found;
  values.push(part);
  const other = at(place.any, parts, index + 1, values);
  if (other === undefined) values.pop();
  return other;
}

function belowOf(place: Place, part: string): Place {
  const known = place.below.get(part) ?? newPlace();
  place.below.set(part, known);
  return known;
}

function newPlace(): Place {
  return { below: new Map(), any: undefined, operations: new Map() };
}
