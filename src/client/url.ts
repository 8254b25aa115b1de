/** Makes the URL of a request. */
import type { Ask } from './requests.ts';

export function urlAt(server: string, { path, query = {} }: Pick<Ask, 'path' | 'query'>): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const text = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
  return `${server}${path}${text}`;
}
