/** The address bar: the token leaves it at once, and every view has a link of its own. */
import { fragmentOf, type Route, routeIn, tokenIn, withFilters } from '../model/route.ts';
import { timeText } from '../model/travel.ts';
import { keepToken } from './api.ts';
import type { Store } from './store.ts';

export class Address {
  readonly #store: Store;
  readonly #onToken: () => void;

  constructor(store: Store, onToken: () => void) {
    this.#store = store;
    this.#onToken = onToken;
    addEventListener('popstate', () => this.#read());
    addEventListener('hashchange', () => this.#read());
    addEventListener('click', (event) => this.#clicked(event));
    this.#read();
  }

  #clicked(event: MouseEvent): void {
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const { past } = this.#store.snapshot;
    if (past === undefined || !isPlain || event.defaultPrevented || !(event.target instanceof Element)) return;
    const link = event.target.closest<HTMLAnchorElement>('a[href^="#/"]');
    if (link === null) return;
    event.preventDefault();
    this.go(link.hash.slice(1));
  }

  #read(): void {
    const found = tokenIn(location.hash);
    if (found !== undefined) {
      keepToken(found.token);
      history.replaceState(null, '', `${location.pathname}${found.rest}`);
      this.#onToken();
    }
    this.#store.go(routeIn(location.hash));
  }

  /** Shows another view, and keeps the time of a look back. */
  go(route: Route | string): void {
    const { at } = this.#store.snapshot.route.filters;
    const next = typeof route === 'string' ? routeIn(`#${route}`) : route;
    this.#push(at === undefined || next.filters['at'] !== undefined ? next : withFilters(next, { at }));
  }

  /** Shows the page at an earlier time, or at the present. */
  goTo(at: number | undefined): void {
    const text = at === undefined ? undefined : timeText(at);
    this.#push(withFilters(this.#store.snapshot.route, { at: text }));
  }

  #push(route: Route): void {
    const fragment = fragmentOf(route);
    if (fragment !== location.hash) history.pushState(null, '', fragment);
    this.#read();
  }

  /** Replaces the address: a filter that is being typed adds no step to the browser's history. */
  filter(changes: Readonly<Record<string, string | undefined>>): void {
    const next = fragmentOf(withFilters(this.#store.snapshot.route, changes));
    history.replaceState(null, '', next);
    this.#read();
  }

  /** The link to this view, without the token: its reader needs a token of their own. */
  get link(): string {
    return `${location.origin}${location.pathname}${fragmentOf(this.#store.snapshot.route)}`;
  }
}
