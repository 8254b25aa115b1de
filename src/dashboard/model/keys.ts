/** Maps keys to actions. `G` waits for a second letter; inside a text field only Escape acts. */
import type { View } from './route.ts';

export type PlainDeed = 'escape' | (typeof DEEDS)[keyof typeof DEEDS];

export type Deed =
  | { readonly kind: PlainDeed }
  | { readonly kind: 'travel'; readonly by: 1 | -1; readonly minutes: boolean }
  | { readonly kind: 'row'; readonly by: 1 | -1 }
  | { readonly kind: 'go'; readonly view: View };

/** The keys whose deed depends on nothing else. */
const DEEDS = {
  '/': 'palette',
  '?': 'keys',
  n: 'next-matter',
  f: 'filter',
  b: 'break',
  l: 'live',
  ' ': 'freeze',
  d: 'theme',
  y: 'link',
} as const;

const ROWS: Readonly<Record<string, 1 | -1>> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
const TRAVEL: Readonly<Record<string, 1 | -1>> = { ArrowLeft: -1, ArrowRight: 1 };

export interface Pressed {
  readonly key: string;
  readonly isTyping: boolean;
  /** On a button or a link, where Space does what the button does. */
  readonly isOnControl: boolean;
  readonly hasModifier: boolean;
  readonly isCommand: boolean;
  readonly hasShift?: boolean;
}

export interface Read {
  readonly deed: Deed | undefined;
  /** Whether `G` was pressed and its second letter is still missing. */
  readonly isGoing: boolean;
}

const PLACES: Readonly<Record<string, View>> = {
  o: 'overview',
  l: 'locks',
  s: 'semaphores',
  t: 'tasks',
  p: 'pipelines',
  m: 'members',
  w: 'timeline',
  c: 'charts',
};

export function readKey(pressed: Pressed, isGoing: boolean): Read {
  const key = pressed.key.length === 1 ? pressed.key.toLowerCase() : pressed.key;
  const done = (deed: Deed | undefined): Read => ({ deed, isGoing: false });
  if (pressed.isCommand && key === 'k') return done({ kind: 'palette' });
  if (key === 'Escape') return done({ kind: 'escape' });
  if (pressed.isTyping || pressed.isCommand || pressed.hasModifier) return done(undefined);
  if (isGoing) {
    const view = PLACES[key];
    return done(view === undefined ? undefined : { kind: 'go', view });
  }
  if (key === 'g') return { deed: undefined, isGoing: true };
  // On a button, Space does what the button does.
  if (key === ' ' && pressed.isOnControl) return done(undefined);
  const [row, travel] = [ROWS[key], TRAVEL[key]];
  if (row !== undefined) return done({ kind: 'row', by: row });
  if (travel !== undefined) return done({ kind: 'travel', by: travel, minutes: pressed.hasShift === true });
  return done(Object.hasOwn(DEEDS, key) ? { kind: DEEDS[key as keyof typeof DEEDS] } : undefined);
}

/** The list of keys that the page shows. */
export const KEY_MAP: readonly (readonly [string, string])[] = [
  ['/', 'search and commands (⌘K, Ctrl K)'],
  ...Object.entries(PLACES).map(([letter, view]) => [`G ${letter.toUpperCase()}`, view] as const),
  ['N', 'next matter that needs you'],
  ['J K', 'next and previous row'],
  ['↵', 'open the row'],
  ['F', 'filter the list'],
  ['B', 'break the lock'],
  ['← →', 'in the past: one entry back or on; with ⇧ one minute'],
  ['L', 'back to now'],
  ['Space', 'freeze the page, and let it go on'],
  ['Y', 'copy the link'],
  ['D', 'dark or light'],
  ['?', 'this map'],
  ['Esc', 'close, or leave the field'],
];
