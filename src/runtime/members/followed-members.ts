/** The members as a program follows them. Every look-up is answered from the last view, without asking the store. */
import {
  type Asset,
  changeBetween,
  coordinatorOf,
  type Member,
  ownerOf,
  type Topology,
  topologyOf,
  type View,
  type ViewChange,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { keepingAlive, type ListenOptions, type Subscription, subscription } from '../subscription.ts';
import { abortSignal, refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { iterated } from '../subscriber-iterator.ts';
import { SubscriberQueue } from '../subscriber-queue.ts';
import type { MemberFeed } from './feed.ts';

/** The coordinator is another member now. */
export interface HandOver {
  /** Null: there was no member. */
  readonly from: string | null;
  /** Null: there is no member any more. */
  readonly to: string | null;
  /** The view since then. */
  readonly view: View<Member>;
}

type Handler = (change: ViewChange<Member>) => void | Promise<void>;
type IsOwn = (id: string, incarnation: number) => boolean;

/** The members, as this process follows them. */
export class FollowedMembers implements AsyncDisposable {
  readonly #feed: MemberFeed;
  readonly #isOwn: IsOwn;
  readonly #over = new AbortController();
  readonly #stopped: AbortSignal;
  readonly #failed: AbortSignal | undefined;
  readonly #release: () => void;
  readonly #listeners = new Set<Listener>();
  #subscription: Subscription | undefined;
  #seen: View<Member>;
  /** The owners of each asset, in the order in which they registered it; made when first asked for. */
  #owners: { readonly view: View<Member>; readonly byAsset: ReadonlyMap<string, readonly Owned[]> } | undefined;

  private constructor(runtime: Runtime, feed: MemberFeed, isOwn: IsOwn, options: ListenOptions) {
    this.#feed = feed;
    this.#isOwn = isOwn;
    this.#seen = feed.view;
    this.#stopped = AbortSignal.any([runtime.stopped, this.#over.signal]);
    this.#failed = runtime.store.over;
    this.#release = keepingAlive(runtime, options);
  }

  /** @internal */
  static async begin(
    runtime: Runtime,
    feed: MemberFeed,
    isOwn: IsOwn,
    options: ListenOptions,
  ): Promise<FollowedMembers> {
    const members = new FollowedMembers(runtime, feed, isOwn, options);
    try {
      members.#subscription = await feed.listen((change) => members.#changed(change));
      members.#seen = feed.view;
      return members;
    } catch (error) {
      members.stop();
      throw error;
    }
  }

  /** The live members in id order, and the version of this view. */
  view(): View<Member> {
    return this.#view;
  }

  /** Throws once the store is over: another one may be in its place, with other members. */
  get #view(): View<Member> {
    this.#failed?.throwIfAborted();
    return this.#seen;
  }

  /** The first member in id order; null without members. Another process may see another one for a moment: see `lead`. */
  coordinator(): string | null {
    return coordinatorOf(this.#view);
  }

  /** Whether the coordinator is a member that this signalbox joined; or this id, for a view of your own. */
  isCoordinator(id?: string): boolean {
    const [first] = this.#view.members;
    if (first === undefined) return false;
    return id === undefined ? this.#isOwn(first.id, first.incarnation) : first.id === id;
  }

  /** The members that registered the asset, in the order in which they did. */
  ownersOf(asset: string): readonly string[] {
    return (this.#index().get(asset) ?? []).map(({ id }) => id);
  }

  /** The assets of a member, in the order in which it registered them; none if there is no such member. */
  assetsOf(id: string): readonly Asset[] {
    return this.#view.members.find((member) => member.id === id)?.assets ?? [];
  }

  /** Places any key on a member, by rendezvous hashing: when members change, only their keys move. Null without members. */
  ownerOf(key: string): string | null {
    return ownerOf(key, this.#view.members);
  }

  /** The topology as this process sees it now. */
  topology(): Topology {
    return topologyOf(this.#view);
  }

  /** Calls `listener` for every change from now on, in order. One that falls far behind gets a change with `isResync`. */
  onChange(listener: Handler): Subscription {
    refuseUnlessFunction('the listener', listener);
    if (this.#stopped.aborted) throw new Failure('closed', 'these members are no longer followed; follow them again');
    const own = new Listener(listener, this.#seen, () => this.#seen);
    this.#listeners.add(own);
    return subscription(() => {
      own.stop();
      this.#listeners.delete(own);
    });
  }

  /** Calls `listener` whenever the coordinator is another member. */
  onHandOver(listener: (handOver: HandOver) => void | Promise<void>): Subscription {
    refuseUnlessFunction('the listener', listener);
    let from = this.coordinator();
    return this.onChange(({ view }) => {
      const to = coordinatorOf(view);
      if (to === from) return undefined;
      const handOver = { from, to, view };
      from = to;
      return listener(handOver);
    });
  }

  /** The same changes as an async iterator, from this call on; ends with `stop`, or when `signal` aborts. */
  changes(options: { readonly signal?: AbortSignal } = {}): AsyncIterable<ViewChange<Member>> {
    refuseWrongValues(options, { signal: abortSignal });
    const { signal } = options;
    // Listens now: a change before the first step of the loop must not be missed.
    let handle: ((change: ViewChange<Member>) => Promise<void>) | undefined;
    let ready = (): void => undefined;
    const isRead = new Promise<void>((resolve) => (ready = resolve));
    const own = this.onChange(async (change) => {
      await isRead;
      await handle?.(change);
    });
    const over = signal === undefined ? this.#stopped : AbortSignal.any([signal, this.#stopped]);
    return iterated(
      (given) => {
        handle = given;
        ready();
        return own;
      },
      over,
      this.#failed,
    );
  }

  /** Ends all listeners and iterators, and lets the process end. */
  stop(): void {
    this.#over.abort();
    for (const listener of this.#listeners) listener.stop();
    this.#listeners.clear();
    this.#subscription?.unsubscribe();
    this.#release();
  }

  /** Stops at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  #changed(change: ViewChange<Member>): void {
    this.#seen = change.view;
    for (const listener of this.#listeners) listener.add(change);
  }

  #index(): ReadonlyMap<string, readonly Owned[]> {
    if (this.#owners?.view === this.#view) return this.#owners.byAsset;
    const byAsset = new Map<string, Owned[]>();
    for (const { id, assets } of this.#view.members) {
      for (const { id: asset, since } of assets) {
        const owners = byAsset.get(asset);
        if (owners === undefined) byAsset.set(asset, [{ id, since }]);
        else owners.push({ id, since });
      }
    }
    for (const owners of byAsset.values()) owners.sort((one, other) => one.since - other.since);
    this.#owners = { view: this.#view, byAsset };
    return byAsset;
  }
}

interface Owned {
  readonly id: string;
  readonly since: number;
}

/** One listener, with the last view that it was given. */
class Listener {
  readonly #queue: SubscriberQueue<{ readonly change: ViewChange<Member>; readonly place: number }>;
  #given: View<Member>;
  /** How many changes there were, and up to which the listener was given them. */
  #added = 0;
  #upTo = 0;

  constructor(handler: Handler, view: View<Member>, current: () => View<Member>) {
    this.#given = view;
    this.#queue = new SubscriberQueue(
      ({ change, place }) => {
        // After an overflow, the queue still has changes that the newest view includes.
        if (place <= this.#upTo) return undefined;
        this.#upTo = place;
        this.#given = change.view;
        return handler(change);
      },
      () => this.#overflown(current),
    );
  }

  add(change: ViewChange<Member>): void {
    this.#added += 1;
    this.#queue.add({ change, place: this.#added });
  }

  stop(): void {
    this.#queue.stop();
  }

  /** One change from the last view that it was given to the newest, in place of all that the queue has no room for. */
  *#overflown(current: () => View<Member>): Iterable<{ change: ViewChange<Member>; place: number }> {
    yield { change: changeBetween(this.#given, current(), true), place: this.#added };
  }
}
