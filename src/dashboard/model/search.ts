/** What the palette finds: views, names, holders, tokens and commands. */
import { KEY_MAP } from './keys.ts';
import { routeOf } from './needs.ts';
import type { State } from './types.ts';

export interface Found {
  readonly group: string;
  readonly label: string;
  readonly detail: string;
  /** Where it leads, or what it does. */
  readonly leads: string;
}

const MOST = 8;

const PLACES: readonly Found[] = KEY_MAP.filter(([key]) => key.startsWith('G ')).map(([detail, view]) => ({
  ...{ group: 'Go to', label: `${view[0]?.toUpperCase()}${view.slice(1)}`, detail, leads: `/${view}` },
}));

const DEEDS: readonly Found[] = [
  ['Dark or light', 'D', 'do:theme'],
  ['Copy the link to this view', 'Y', 'do:link'],
  ['Keys', '?', 'do:keys'],
  ['Sign out', '', 'do:leave'],
].map(([label = '', detail = '', leads = '']) => ({ group: 'Commands', label, detail, leads }));

export function searched(state: State | undefined, text: string): readonly Found[] {
  const wanted = text.trim().toLowerCase();
  const has = (value: string): boolean => value.toLowerCase().includes(wanted);
  const fixed = [...PLACES, ...DEEDS].filter(({ label }) => has(label));
  if (wanted === '' || state === undefined) return fixed;
  const found: Found[] = [];
  const add = (group: string, label: string, detail: string, resource: string): void => {
    if (found.filter((one) => one.group === group).length < MOST) {
      found.push({ group, label, detail, leads: routeOf(resource) });
    }
  };
  for (const one of state.resources.values()) {
    if (has(one.name))
      add(one.kind === 'lock' ? 'Locks' : 'Semaphores', one.name, told(one.holds.length), one.resource);
    for (const { holder, token } of one.holds) {
      if (has(holder)) add('Holders', holder, `holds ${one.resource}`, one.resource);
      if (String(token) === wanted) add('Tokens', String(token), `${holder} holds ${one.resource}`, one.resource);
    }
    for (const { holder } of one.waiting) {
      if (has(holder)) add('Holders', holder, `waits for ${one.resource}`, one.resource);
    }
  }
  for (const { id, status } of state.tasks.values()) if (has(id)) add('Tasks', id, status, `task/${id}`);
  for (const { id, state: is } of state.pipelines.values()) if (has(id)) add('Pipelines', id, is, `pipeline/${id}`);
  for (const { id } of state.members.values()) if (has(id)) add('Members', id, '', `member/${id}`);
  return [...found.sort((one, other) => rank(one, wanted) - rank(other, wanted)), ...fixed];
}

function rank({ label }: Found, wanted: string): number {
  const name = label.toLowerCase();
  if (name === wanted) return 0;
  return name.startsWith(wanted) ? 1 : 2;
}

function told(holds: number): string {
  return holds === 0 ? 'free' : 'held';
}
