/**
 * The state of the page and its listeners. Events are gathered and applied together, at most four times a second: one
 * render for all of them. All times tick by one clock, which stops when nothing more is heard from the server.
 */
import { applied, resynced } from '../model/apply.ts';
import { type Link, linkAfter, type LinkNews } from '../model/link.ts';
import { HOME, type Route } from '../model/route.ts';
import { frozenAt, type Past, Travel } from './travel.ts';
import type { Happening, State } from '../model/types.ts';

export interface Snapshot {
  readonly state: State | undefined;
  readonly link: Link;
  /** The time by the server's clock; it stands still while the page is not live. */
  readonly now: number;
  readonly route: Route;
  /** Set while the page shows an earlier time: `state` and `now` are of that time then. */
  readonly past: Past | undefined;
}

/** A snapshot once the board has been read. */
export type Loaded = Snapshot & { readonly state: State };

const SHORTEST_PAUSE_MS = 250;

export class Store {
  #state: State | undefined;
  #link: Link = { kind: 'loading', since: Date.now() };
  #route: Route = HOME;
  /** How far the server's clock is ahead of ours. */
  #ahead = 0;
  #gathered: Happening[] = [];
  #drawnAt = 0;
  #isDue = false;
  #frozen: Snapshot | undefined;
  #snapshot: Snapshot = { state: undefined, link: this.#link, now: Date.now(), route: HOME, past: undefined };
  readonly travel = new Travel(this);
  readonly #listeners = new Set<() => void>();

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  get link(): Link {
    return this.#link;
  }

  get state(): State | undefined {
    return this.#state;
  }

  get serverTime(): number {
    return Date.now() + this.#ahead;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  begin(board: State, serverTime: number): void {
    this.#ahead = serverTime - Date.now();
    this.#gathered = [];
    this.#state = resynced(this.#state, board);
    this.draw();
  }

  tell(events: readonly Happening[]): void {
    this.#gathered.push(...events);
    this.drawSoon();
  }

  /** Applies the server's answer as a change to the state that is known by then. */
  learned(change: (state: State) => State): void {
    if (this.#state === undefined) return;
    // The gathered events came before the answer that is applied now.
    this.#state = change(this.#caughtUp(this.#state));
    this.drawSoon();
  }

  /** The state with the events that were gathered since. */
  #caughtUp(state: State): State {
    const events = this.#gathered;
    this.#gathered = [];
    return applied(state, events, this.serverTime);
  }

  news(news: LinkNews): void {
    const next = linkAfter(this.#link, news);
    const isSame = next.kind === this.#link.kind;
    this.#link = next;
    if (!isSame || next.kind === 'failed') this.draw();
  }

  go(route: Route): void {
    this.#route = route;
    // A time in the address is another moment than the one that was frozen.
    if (route.filters['at'] !== undefined) this.#frozen = undefined;
    this.draw();
  }

  /** Freezes the page, so that it can be read in peace; events are still applied behind it. */
  freeze(): void {
    const { state, now, past } = this.#snapshot;
    if (state === undefined || past !== undefined) return;
    this.#frozen = { ...this.#snapshot, past: frozenAt(now) };
    this.draw();
  }

  thaw(): void {
    this.#frozen = undefined;
    this.draw();
  }

  reset(): void {
    this.#state = this.#frozen = undefined;
    this.#gathered = [];
    this.#link = { kind: 'loading', since: Date.now() };
    this.draw();
  }

  /** Renders now, with everything that was gathered. */
  draw(): void {
    if (this.#state !== undefined) this.#state = this.#caughtUp(this.#state);
    this.#drawnAt = performance.now();
    const at = this.#link.kind === 'reconnecting' ? this.#link.heardAt : Date.now();
    const now = at + this.#ahead;
    const live = { state: this.#state, link: this.#link, now, route: this.#route, past: undefined };
    this.#snapshot = this.#frozen === undefined ? this.travel.seen(live) : { ...this.#frozen, route: this.#route };
    for (const listener of this.#listeners) listener();
  }

  /** Renders with the next frame, or when the last one was long enough ago: once, however often it is called. */
  drawSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const draw = (): void => {
      this.#isDue = false;
      this.draw();
    };
    const left = SHORTEST_PAUSE_MS - (performance.now() - this.#drawnAt);
    // A page in the background gets no frames, and need not be drawn before somebody sees it.
    const frame = (): void => void (document.hidden ? setTimeout(draw, 1000) : requestAnimationFrame(draw));
    if (left > 0) setTimeout(frame, left);
    else frame();
  }
}
