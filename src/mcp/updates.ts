/** Announces changed resources. It follows the events of the store, so it announces changes by other processes too. */
import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Clock, pause } from '../clock.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Subscription } from '../runtime/subscription.ts';
import { BOARD, changedBy } from './resources.ts';

type Listener = (event: ServerEvent) => void;
/** The resources that a listener follows at the moment. */
type Followed = () => Iterable<string>;

/** How long to wait before asking a store again that did not confirm the watch. */
const AGAIN_MS = 1_000;

/** Follows the store's events once there is a listener; without one it costs nothing. */
export class Updates implements ServerEventBus {
  readonly #box: Signalbox;
  readonly #clock: Clock;
  readonly #listeners = new Map<Listener, Followed>();
  readonly #closed = new AbortController();
  #following: Promise<Subscription> | undefined;
  /** Whether the store has confirmed the watch. */
  #isFollowing = false;

  constructor(box: Signalbox, clock: Clock) {
    this.#box = box;
    this.#clock = clock;
  }

  subscribe(listener: Listener, followed: Followed = () => [BOARD]): () => void {
    this.#listeners.set(listener, followed);
    if (!this.#isFollowing) void this.#catchUp(listener);
    return () => void this.#listeners.delete(listener);
  }

  publish(event: ServerEvent): void {
    for (const listener of this.#listeners.keys()) listener(event);
  }

  /** Resolves once the store has confirmed the watch: a listener hears of every change after that. */
  async ready(): Promise<void> {
    const following = (this.#following ??= this.#follow());
    try {
      await following;
      this.#isFollowing = true;
    } catch (error) {
      // The next caller tries again.
      if (this.#following === following) this.#following = undefined;
      throw error;
    }
  }

  /** Serves a listener that came before the watch, and so may have missed changes: its client has to read again. */
  async #catchUp(listener: Listener): Promise<void> {
    while (!this.#closed.signal.aborted && this.#listeners.has(listener)) {
      try {
        await this.ready();
        return this.#announceAll(listener);
      } catch {
        await pause(AGAIN_MS, this.#closed.signal, this.#clock);
      }
    }
  }

  #follow(): Promise<Subscription> {
    return this.#box.on('*', ({ type, resource }) => {
      // After missed events any resource may have changed, also one that the store no longer has.
      if (type === 'resync') for (const listener of this.#listeners.keys()) this.#announceAll(listener);
      else for (const uri of changedBy(resource)) this.publish({ kind: 'resource_updated', uri });
    });
  }

  #announceAll(listener: Listener): void {
    for (const uri of new Set(this.#listeners.get(listener)?.())) listener({ kind: 'resource_updated', uri });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#listeners.clear();
    (await this.#following?.catch(() => undefined))?.unsubscribe();
  }
}

/** The resources that a `subscriptions/listen` names; undefined for any other message. */
export function listenedIn(message: unknown): readonly string[] | undefined {
  return listen.safeParse(message).data?.params.notifications.resourceSubscriptions;
}

const listen = z.looseObject({
  method: z.literal('subscriptions/listen'),
  params: z.looseObject({
    notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()).default([]) }),
  }),
});
