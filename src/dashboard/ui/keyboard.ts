/** Does what a key means. */
import { type Deed, type PlainDeed, readKey } from '../model/keys.ts';
import { HOME } from '../model/route.ts';
import { rebuilt } from '../live/travel.ts';
import { MINUTE_MS } from '../model/time.ts';
import { timeText } from '../model/travel.ts';
import { address, backToNow, copy, currentOverlay, show, store, whyNot } from './app.ts';
import { askToBreak } from './breaking.ts';
import { toggleTheme } from './shell.tsx';

let isGoing = false;
let forget = 0;

export function listenToKeys(): void {
  addEventListener('keydown', (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const pressed = {
      key: event.key,
      isTyping: target?.closest('input, textarea, select') !== null && target !== null,
      isOnControl: target?.closest('a, button') !== null && target !== null,
      hasModifier: event.altKey,
      isCommand: event.metaKey || event.ctrlKey,
      hasShift: event.shiftKey,
    };
    const { deed, isGoing: goes } = readKey(pressed, isGoing);
    isGoing = goes;
    clearTimeout(forget);
    if (goes) forget = window.setTimeout(() => (isGoing = false), 1500);
    if (deed === undefined) return;
    if (currentOverlay().kind !== 'none' && deed.kind !== 'escape' && deed.kind !== 'palette') return;
    if (carryOut(deed)) event.preventDefault();
  });
}

/** Carries out the deeds that need nothing but their name. One that returns false did not use the key. */
const DEEDS: Readonly<Record<PlainDeed, () => boolean | void>> = {
  palette: () => show({ kind: 'palette' }),
  keys: () => show({ kind: 'keys' }),
  theme: toggleTheme,
  link: () => void copy(address.link, 'Link'),
  filter: () => focusOn(document.querySelector<HTMLElement>('[data-filter]')),
  break: breakFocused,
  live: () => store.snapshot.past !== undefined && backToNow(),
  freeze: () => (store.snapshot.past?.is === 'frozen' ? store.thaw() : store.freeze()),
  'next-matter': nextMatter,
  escape,
};

/** Returns whether the key was used. */
function carryOut(deed: Deed): boolean {
  if (deed.kind === 'row') return focusRow(deed.by);
  if (deed.kind === 'travel') return travel(deed.by, deed.minutes);
  if (deed.kind !== 'go') return DEEDS[deed.kind]() !== false;
  address.go({ ...HOME, view: deed.view });
  document.getElementById('main')?.focus();
  return true;
}

/** Moves through the past, and only there: elsewhere the arrows belong to the element with the focus. */
function travel(by: 1 | -1, minutes: boolean): boolean {
  const past = rebuilt(store.snapshot.past);
  if (past === undefined) return false;
  const to = minutes ? past.at + by * MINUTE_MS : store.travel.stepFrom(past.at, by);
  if (to !== undefined) address.filter({ at: timeText(to) });
  return true;
}

function escape(): boolean {
  if (currentOverlay().kind !== 'none') {
    show({ kind: 'none' });
    return true;
  }
  const { activeElement } = document;
  if (activeElement instanceof HTMLElement && activeElement.matches('input')) activeElement.blur();
  return false;
}

function focusOn(element: HTMLElement | null | undefined): boolean {
  if (element === null || element === undefined) return false;
  element.focus();
  element.scrollIntoView({ block: 'nearest' });
  return true;
}

function focusRow(by: number): boolean {
  const all = [...document.querySelectorAll<HTMLElement>('main [data-row]')];
  const at = all.findIndex((row) => row === document.activeElement);
  return focusOn(at < 0 ? all[0] : all[Math.max(0, Math.min(all.length - 1, at + by))]);
}

function nextMatter(): boolean {
  if (store.snapshot.route.view !== 'overview') {
    address.go(HOME);
    requestAnimationFrame(() => nextMatter());
    return true;
  }
  const all = [...document.querySelectorAll<HTMLElement>('main [data-matter]')];
  const at = all.findIndex((one) => one === document.activeElement);
  return focusOn(all[(at + 1) % Math.max(1, all.length)]);
}

function breakFocused(): boolean {
  const { route, state } = store.snapshot;
  const kind = route.view === 'locks' ? 'lock' : route.view === 'semaphores' ? 'semaphore' : undefined;
  const focused = document.activeElement?.closest<HTMLElement>('[data-row]')?.dataset['row'];
  const resource = kind !== undefined && route.name !== undefined ? `${kind}/${route.name}` : focused;
  const of = resource === undefined ? undefined : state?.resources.get(resource);
  if (of === undefined || of.holds.length === 0 || whyNot(store.snapshot, 'administrator') !== undefined) return false;
  askToBreak(of.resource);
  return true;
}
