/** The address bar: the token leaves it at once, and every view has a link of its own. */
import { fragmentOf, type Route, routeIn, tokenIn, withFilters } from '../model/route.ts';
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
    this.#read();
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

  go(route: Route | string): void {
    const fragment = typeof route === 'string' ? `#${route}` : fragmentOf(route);
    if (fragment !== location.hash) history.pushState(null, '', fragment);
    this.#read();
  }

  /** A filter that is being typed makes no new step for the way back. */
  filter(changes: Readonly<Record<string, string | undefined>>): void {
    const next = fragmentOf(withFilters(this.#store.snapshot.route, changes));
    history.replaceState(null, '', next);
    this.#read();
  }

  /** Without the token: its reader needs one of their own. */
  get link(): string {
    return `${location.origin}${location.pathname}${fragmentOf(this.#store.snapshot.route)}`;
  }
}
