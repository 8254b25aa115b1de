/** Maps keys to actions. `G` waits for a second letter; inside a text field only Escape acts. */
import type { View } from './route.ts';

export type Deed =
  | {
      readonly kind:
        | 'palette'
        | 'keys'
        | 'theme'
        | 'link'
        | 'escape'
        | 'next-matter'
        | 'open'
        | 'filter'
        | 'break'
        | 'live'
        | 'freeze';
    }
  | { readonly kind: 'travel'; readonly by: 1 | -1; readonly minutes: boolean }
  | { readonly kind: 'row'; readonly by: 1 | -1 }
  | { readonly kind: 'go'; readonly view: View };

export interface Pressed {
  readonly key: string;
  readonly isTyping: boolean;
  /** On a button or a link, where Enter and Space do what the button does. */
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
  switch (key) {
    case 'g':
      return { deed: undefined, isGoing: true };
    case '/':
      return done({ kind: 'palette' });
    case '?':
      return done({ kind: 'keys' });
    case 'n':
      return done({ kind: 'next-matter' });
    case 'j':
    case 'ArrowDown':
      return done({ kind: 'row', by: 1 });
    case 'k':
    case 'ArrowUp':
      return done({ kind: 'row', by: -1 });
    case 'Enter':
      return done(pressed.isOnControl ? undefined : { kind: 'open' });
    case 'f':
      return done({ kind: 'filter' });
    case 'b':
      return done({ kind: 'break' });
    case 'l':
      return done({ kind: 'live' });
    case ' ':
      return done(pressed.isOnControl ? undefined : { kind: 'freeze' });
    case 'ArrowLeft':
    case 'ArrowRight':
      return done({ kind: 'travel', by: key === 'ArrowLeft' ? -1 : 1, minutes: pressed.hasShift === true });
    case 'd':
      return done({ kind: 'theme' });
    case 'y':
      return done({ kind: 'link' });
    default:
      return done(undefined);
  }
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
