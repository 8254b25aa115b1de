/** The one page: its state, its connection and its address, and what lies over it. */
import { useEffect, useState } from 'preact/hooks';
import { Address } from '../live/address.ts';
import { keepToken } from '../live/api.ts';
import { Connection } from '../live/connection.ts';
import { type Snapshot, Store } from '../live/store.ts';
import type { Will } from '../model/breaking.ts';
import { mattersOf, type Matter } from '../model/needs.ts';
import { ROLES } from '../model/read.ts';
import type { Role } from '../model/types.ts';

export const store = new Store();
export const connection = new Connection(store);
export const address = new Address(store, begin);

/** An action that a dialog asks about before it is done: what it does to whom, and the request that does it. */
export interface AskedDeed {
  /** `Cancel pipeline/release-7?` */
  readonly title: string;
  /** A function says it as things are now, so that the text follows changes while the dialog is open. */
  readonly will: readonly Will[] | ((snapshot: Snapshot) => readonly Will[]);
  /** Why the action no longer makes sense; undefined as long as it does. */
  readonly changed?: (snapshot: Snapshot) => string | undefined;
  /** A token that has to be typed, and what happens to holds that are granted meanwhile. */
  readonly token?: { readonly meant: number; readonly note: string };
  /** Who may do it; administrators if not given. */
  readonly role?: Role;
  /** The request: `POST /v1/tasks/build-1/retry` for `task/build-1` and `retry`. */
  readonly resource: string;
  readonly action: string;
  readonly method?: 'PUT';
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether a reason must be given, which the body then carries. */
  readonly needsReason?: boolean;
  /** A number that is asked for, and the field that gets it. */
  readonly number?: { readonly field: string; readonly label: string; readonly now: number };
  /** The label of the button that does it. */
  readonly label: string;
  /** The label of the other button; “Leave it” if not given. */
  readonly keep?: string;
  /** The message when it is done; a function gets the server's answer. */
  readonly done: string | ((answer: unknown) => string);
}

export type Overlay =
  | { readonly kind: 'none' | 'palette' | 'keys' }
  | { readonly kind: 'ask'; readonly deed: AskedDeed };

let overlay: Overlay = { kind: 'none' };
let returnTo: Element | null = null;

export function currentOverlay(): Overlay {
  return overlay;
}

/** Shows an overlay. When it closes, the element that had the focus gets it back. */
export function show(next: Overlay): void {
  if (overlay.kind === 'none' && next.kind !== 'none') returnTo = document.activeElement;
  overlay = next;
  store.draw();
  if (next.kind === 'none' && returnTo instanceof HTMLElement) {
    returnTo.focus();
    returnTo = null;
  }
}

export function ask(deed: AskedDeed): void {
  show({ kind: 'ask', deed });
}

export function useSnapshot(): Snapshot {
  const [, again] = useState(0);
  useEffect(() => {
    const redraw = (): void => again((times) => times + 1);
    // The state may have changed since the first render.
    redraw();
    return store.subscribe(redraw);
  }, []);
  return store.snapshot;
}

/** Why our own token may not do something that needs this role; undefined if it may. */
export function whyNot({ state, link, past }: Snapshot, needed: Role): string | undefined {
  if (past !== undefined) return past.is === 'frozen' ? 'The page is frozen' : 'You look at the past';
  if (link.kind !== 'live') return 'The page is not live';
  const role = state?.token.role ?? 'viewer';
  if (ROLES.indexOf(role) >= ROLES.indexOf(needed)) return undefined;
  return `Needs the role ${needed}; your token is of a ${role}`;
}

const THEME = 'signalbox.theme';

export function currentTheme(): 'dark' | 'light' {
  return document.documentElement.dataset['theme'] === 'light' ? 'light' : 'dark';
}

export function setTheme(theme?: 'dark' | 'light'): void {
  const kept = localStorage.getItem(THEME);
  const preferred = matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark';
  document.documentElement.dataset['theme'] = theme ?? (kept === 'light' || kept === 'dark' ? kept : preferred);
  if (theme !== undefined) localStorage.setItem(THEME, theme);
}

/** Returns to the present from the past, or from a frozen page. */
export function backToNow(): void {
  if (store.snapshot.past?.is === 'frozen') store.thaw();
  else address.goTo(undefined);
}

/** Begins anew with another token; without one, the page asks for it. */
export function signIn(token: string): void {
  keepToken(token);
  begin();
}

function begin(): void {
  store.reset();
  connection.start();
}

/** How long a message is shown. A long one takes longer to read. */
const SHOWN_MS = 4_000;
const SHOWN_PER_CHARACTER_MS = 60;

/** The last message; screen readers can still read it after it has gone. */
let said: { readonly what: string; isShown: boolean } = { what: '', isShown: false };

export function saidLast(): { readonly what: string; readonly isShown: boolean } {
  return said;
}

export function say(what: string): void {
  const message = { what, isShown: true };
  said = message;
  store.draw();
  setTimeout(
    () => {
      message.isShown = false;
      if (said === message) store.draw();
    },
    Math.max(SHOWN_MS, SHOWN_PER_CHARACTER_MS * what.length),
  );
}

/** Copies a text, and returns whether it could: without TLS, a browser has no clipboard for pages of other machines. */
export async function copy(text: string, what: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
    return true;
  } catch {
    say(`This page may not copy. Copy it by hand: ${text}`);
    return false;
  }
}

const DISMISSED = 'signalbox.dismissed';

function dismissed(): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(DISMISSED) ?? '[]') as readonly string[]);
  } catch {
    return new Set();
  }
}

export function dismiss(key: string): void {
  localStorage.setItem(DISMISSED, JSON.stringify([...dismissed(), key].slice(-100)));
  store.draw();
}

let kept: { readonly of: Snapshot; readonly matters: readonly Matter[] } | undefined;

/** Remembered, because several parts of the page ask for it in one render. */
export function matters(snapshot: Snapshot): readonly Matter[] {
  if (kept?.of !== snapshot) {
    const { state, now } = snapshot;
    kept = { of: snapshot, matters: state === undefined ? [] : mattersOf(state, now, dismissed()) };
  }
  return kept.matters;
}
