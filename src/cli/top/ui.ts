/**
 * What the user has chosen, and what a key changes about it. Pure: what a key does to the store or to the terminal is answered
 * as a deed, which the loop carries out.
 *
 *     list ──enter──▶ detail        list ──/──▶ filter ──enter──▶ list
 *       │ b                          ? help from anywhere; esc leads back
 *       ▼
 *     reason ──enter──▶ token ──enter──▶ deed: break
 */
import { isIssue } from './github.ts';
import type { Section } from './row.ts';
import { type View, VIEWS } from './views.ts';

export interface Ui {
  readonly view: View;
  readonly mode: 'list' | 'detail' | 'help' | 'filter' | 'break';
  /** The row that is selected in each view. */
  readonly selected: Readonly<Partial<Record<View, string>>>;
  /** The first line that is shown, in each view. */
  readonly offsets: Readonly<Partial<Record<View, number>>>;
  readonly filter: string;
  /** What the page of details or of help is about, and how far it is scrolled. */
  readonly about: string;
  readonly scroll: number;
  readonly breaking: Breaking | undefined;
  /** What the last deed came to; shown until the next key. */
  readonly message: string;
}

/** Pinned when the dialog opens: what changes hands meanwhile is not broken. */
export interface Breaking {
  readonly resource: string;
  /** The newest token of its holds. */
  readonly token: number;
  readonly step: 'reason' | 'token';
  readonly reason: string;
  readonly typed: string;
}

export type Deed =
  | { readonly kind: 'quit' }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'redraw' }
  | { readonly kind: 'break'; readonly resource: string; readonly token: number; readonly reason: string };

/** What a key can refer to: what is on the screen. */
export interface Context {
  readonly sections: readonly Section[];
  /** How many lines of the list or the page are on the screen. */
  readonly page: number;
  /** The length of the page of details or help. */
  readonly length: number;
  /** The newest token of the holds of a resource; undefined if it is not held, or is no resource. */
  readonly tokenOf: (resource: string) => number | undefined;
}

export interface Pressed {
  readonly ui: Ui;
  readonly deed?: Deed;
}

export const FIRST_UI: Ui = {
  view: 'overview',
  mode: 'list',
  selected: {},
  offsets: {},
  filter: '',
  about: '',
  scroll: 0,
  breaking: undefined,
  message: '',
};

const MOST_TYPED = 200;

export function pressed(before: Ui, key: string, context: Context): Pressed {
  const ui = before.message === '' ? before : { ...before, message: '' };
  if (key === 'ctrl-c') return { ui, deed: { kind: 'interrupt' } };
  if (key === 'ctrl-z') return { ui, deed: { kind: 'suspend' } };
  if (key === 'ctrl-l') return { ui, deed: { kind: 'redraw' } };
  switch (ui.mode) {
    case 'list':
      return inList(ui, key, context);
    case 'filter':
      return { ui: inFilter(ui, key) };
    case 'break':
      return inBreak(ui, key);
    case 'detail':
    case 'help':
      return onPage(ui, key, context);
  }
}

function inList(ui: Ui, key: string, context: Context): Pressed {
  const view = VIEWS[Number(key) - 1];
  if (view !== undefined) return { ui: { ...ui, view } };
  const at = VIEWS.indexOf(ui.view);
  switch (key) {
    case 'q':
      return { ui, deed: { kind: 'quit' } };
    case '?':
    case 'h':
      return { ui: { ...ui, mode: 'help', scroll: 0 } };
    case '/':
      return { ui: { ...ui, mode: 'filter' } };
    case 'escape':
      return { ui: { ...ui, filter: '' } };
    case 'tab':
    case 'right':
    case 'l':
      return { ui: { ...ui, view: VIEWS[(at + 1) % VIEWS.length] ?? ui.view } };
    case 'back-tab':
    case 'left':
      return { ui: { ...ui, view: VIEWS[(at + VIEWS.length - 1) % VIEWS.length] ?? ui.view } };
    case 'enter':
      return { ui: opened(ui, context) };
    case 'b':
      return { ui: breakingOf(ui, aboutOf(ui, context), context) };
    default:
      return { ui: moved(ui, key, context) };
  }
}

/** The selected row; the first one if the selected row is gone. */
export function selectedRow(ui: Ui, sections: readonly Section[]): string | undefined {
  const ids = sections.flatMap(({ rows }) => rows.map(({ id }) => id));
  const chosen = ui.selected[ui.view];
  return chosen !== undefined && ids.includes(chosen) ? chosen : ids[0];
}

function moved(ui: Ui, key: string, { sections, page }: Context): Ui {
  const ids = sections.flatMap(({ rows }) => rows.map(({ id }) => id));
  const by = STEPS[key]?.(page, ids.length);
  const selected = selectedRow(ui, sections);
  if (by === undefined || selected === undefined) return ui;
  const to = Math.min(ids.length - 1, Math.max(0, ids.indexOf(selected) + by));
  return { ...ui, selected: { ...ui.selected, [ui.view]: ids[to] } };
}

const STEPS: Readonly<Record<string, (page: number, all: number) => number>> = {
  j: () => 1,
  down: () => 1,
  k: () => -1,
  up: () => -1,
  'page-down': (page) => Math.max(1, page - 1),
  ' ': (page) => Math.max(1, page - 1),
  'page-up': (page) => -Math.max(1, page - 1),
  g: (_, all) => -all,
  home: (_, all) => -all,
  G: (_, all) => all,
  end: (_, all) => all,
};

function aboutOf(ui: Ui, { sections }: Context): string | undefined {
  const selected = selectedRow(ui, sections);
  return sections.flatMap(({ rows }) => rows).find(({ id }) => id === selected)?.about;
}

function opened(ui: Ui, context: Context): Ui {
  const about = aboutOf(ui, context);
  return about === undefined ? ui : { ...ui, mode: 'detail', about, scroll: 0 };
}

function breakingOf(ui: Ui, resource: string | undefined, { tokenOf }: Context): Ui {
  if (resource !== undefined && isIssue(resource)) {
    return {
      ...ui,
      message: 'A lock on GitHub cannot be broken from here. Press enter: its page says how to take it over.',
    };
  }
  if (resource === undefined || !/^(?:lock|semaphore)\//.test(resource)) {
    return { ...ui, message: 'Only locks and semaphores can be broken: select one of them first.' };
  }
  const token = tokenOf(resource);
  if (token === undefined) return { ...ui, message: `${resource} is not held, so there is nothing to break.` };
  return { ...ui, mode: 'break', breaking: { resource, token, step: 'reason', reason: '', typed: '' } };
}

function inFilter(ui: Ui, key: string): Ui {
  if (key === 'enter' || key === 'down' || key === 'up') return { ...ui, mode: 'list' };
  if (key === 'escape') return { ...ui, mode: 'list', filter: '' };
  return { ...ui, filter: typed(ui.filter, key) };
}

function typed(text: string, key: string): string {
  if (key === 'backspace') return [...text].slice(0, -1).join('');
  if (key === 'ctrl-u') return '';
  if (key === 'ctrl-w') return text.replace(/\S*\s*$/, '');
  return [...key].length === 1 && text.length < MOST_TYPED ? text + key : text;
}

function inBreak(ui: Ui, key: string): Pressed {
  const { breaking } = ui;
  if (breaking === undefined || key === 'escape') {
    return { ui: { ...ui, mode: 'list', breaking: undefined, message: 'Nothing was broken.' } };
  }
  if (key !== 'enter') {
    const field = breaking.step === 'reason' ? 'reason' : 'typed';
    return { ui: { ...ui, breaking: { ...breaking, [field]: typed(breaking[field], key) } } };
  }
  if (breaking.step === 'reason') {
    if (breaking.reason.trim() === '')
      return { ui: { ...ui, message: 'A reason is needed: the holders get to see it.' } };
    return { ui: { ...ui, breaking: { ...breaking, step: 'token' } } };
  }
  const { resource, token, reason } = breaking;
  if (breaking.typed.trim() !== String(token)) {
    return { ui: { ...ui, message: `That is not the token: type ${token} to break ${resource}, or esc to leave it.` } };
  }
  const deed = { kind: 'break' as const, resource, token, reason: reason.trim() };
  return { ui: { ...ui, mode: 'list', breaking: undefined, message: `Breaking ${resource} …` }, deed };
}

function onPage(ui: Ui, key: string, context: Context): Pressed {
  const { page, length } = context;
  if (key === 'q' && ui.mode === 'detail') return { ui: { ...ui, mode: 'list' } };
  if (['escape', 'enter', 'backspace', 'left', 'q', '?'].includes(key)) return { ui: { ...ui, mode: 'list' } };
  if (key === 'b' && ui.mode === 'detail') return { ui: breakingOf(ui, ui.about, context) };
  const view = VIEWS[Number(key) - 1];
  if (view !== undefined) return { ui: { ...ui, mode: 'list', view } };
  const by = STEPS[key]?.(page, length) ?? 0;
  return { ui: { ...ui, scroll: Math.min(Math.max(0, length - page), Math.max(0, ui.scroll + by)) } };
}
