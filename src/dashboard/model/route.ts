/** The address of a page: view, name and filters. It is in the fragment, which no server and no proxy sees. */

export const VIEWS = [
  'overview',
  'locks',
  'semaphores',
  'tasks',
  'pipelines',
  'members',
  'timeline',
  'charts',
  'deadlocks',
  'github',
] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  /** One lock, one task …; undefined for the list. */
  readonly name: string | undefined;
  readonly filters: Readonly<Record<string, string>>;
}

export const HOME: Route = { view: 'overview', name: undefined, filters: {} };

/** Parses `#/locks/main?sort=name`. An unknown address leads to the overview. */
export function routeIn(fragment: string): Route {
  const [, view = '', name = '', query = ''] = /^#?\/([a-z]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(fragment) ?? [];
  if (!VIEWS.includes(view as View)) return HOME;
  const filters = Object.fromEntries([...new URLSearchParams(query)].filter(([key]) => key !== ''));
  return { view: view as View, name: name === '' ? undefined : decodedName(name), filters };
}

export function fragmentOf({ view, name, filters }: Route): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== '')).toString();
  const path = `#/${view}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
  return query === '' ? path : `${path}?${query}`;
}

export function withFilters(route: Route, changes: Readonly<Record<string, string | undefined>>): Route {
  const filters = Object.entries({ ...route.filters, ...changes }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  return { ...route, filters: Object.fromEntries(filters) };
}

/** Reads `#token=…`, with `view=/locks/main` after it if the link leads to a view. Undefined if there is no token. */
export function tokenIn(fragment: string): { readonly token: string; readonly rest: string } | undefined {
  const text = fragment.replace(/^#/, '');
  if (!/^token=/.test(text)) return undefined;
  const fields = new URLSearchParams(text);
  return { token: fields.get('token') ?? '', rest: `#${fields.get('view') ?? '/overview'}` };
}

function decodedName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
