/** Finds the operation of a method and a path. */
import type { Operation } from './operation.ts';

interface Place {
  readonly below: Map<string, Place>;
  /** The branch for a parameter. */
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

  /**
   * Prefers a literal path to one with a parameter, if the literal one has this method: `POST /tasks/claim` claims, while `GET
   * /tasks/claim` shows the task named `claim`.
   */
  find(method: string, path: string): Route | undefined {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const values: string[] = [];
    const place = at(this.#root, path.slice(1).split('/'), 0, values, ({ operations }) => operations.has(wanted));
    const found = place?.operations.get(wanted);
    if (found === undefined) return undefined;
    const { operation, names } = found;
    return { operation, params: Object.fromEntries(names.map((name, index) => [name, values[index] as string])) };
  }

  /** The methods that a path accepts; none if nothing is there. */
  methodsAt(path: string): readonly string[] {
    const methods = new Set<string>();
    at(this.#root, path.slice(1).split('/'), 0, [], ({ operations }) => {
      for (const method of operations.keys()) methods.add(method);
      return false;
    });
    return [...methods];
  }
}

type IsFit = (place: Place) => boolean;

function at(place: Place, parts: readonly string[], index: number, values: string[], isFit: IsFit): Place | undefined {
  const part = parts[index];
  if (part === undefined) return isFit(place) ? place : undefined;
  const exact = place.below.get(part);
  const found = exact === undefined ? undefined : at(exact, parts, index + 1, values, isFit);
  if (found !== undefined || place.any === undefined || part === '') return found;
  values.push(part);
  const other = at(place.any, parts, index + 1, values, isFit);
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
