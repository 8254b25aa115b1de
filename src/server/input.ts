/** Parses path, query and body of a request, and refuses those that do not fit their schema. */
import type { z } from 'zod';
import type { Asked } from './asked.ts';
import { Problem } from './problem.ts';

/** Refuses a path that is wrongly encoded: no name can be read from it. */
export function refuseUnlessDecodable(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw new WrongInput('the path', [{ where: '', problem: 'it is not percent-encoded UTF-8' }]);
  }
}

/** A repeated parameter becomes a list. */
export function queryOf({ query }: Asked): Record<string, string | readonly string[]> {
  if (query === '') return {};
  const given = new URLSearchParams(query);
  return Object.fromEntries(
    [...new Set(given.keys())].map((name) => {
      const values = given.getAll(name);
      return [name, values.length === 1 ? (values[0] as string) : values];
    }),
  );
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text) as unknown;
  } catch (error) {
    throw new WrongInput('the body', [{ where: '', problem: `it is not JSON: ${(error as Error).message}` }]);
  }
}

export function checked(schema: z.ZodType | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues
    .slice(0, 10)
    .map(({ path, message }) => ({ where: path.join('.'), problem: message }));
  throw new WrongInput(what, problems);
}

class WrongInput extends Problem {
  constructor(what: string, problems: readonly { readonly where: string; readonly problem: string }[]) {
    const told = problems.map(({ where, problem }) => (where === '' ? problem : `${where}: ${problem}`)).join('; ');
    super('invalid-input', `${what} is wrong: ${told}`, { problems });
  }
}
