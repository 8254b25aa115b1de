/** Announces changed resources. It follows the events of the store, so it announces changes by other processes too. */
import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Subscription } from '../runtime/subscription.ts';
import { changedBy } from './resources.ts';

type Listener = (event: ServerEvent) => void;

/** Follows the store's events once there is a listener; without one it costs nothing. */
export class Updates implements ServerEventBus {
  readonly #box: Signalbox;
  readonly #listeners = new Set<Listener>();
  #following: Promise<Subscription | undefined> | undefined;

  constructor(box: Signalbox) {
    this.#box = box;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    this.#following ??= this.#follow();
    return () => void this.#listeners.delete(listener);
  }

  publish(event: ServerEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  async #follow(): Promise<Subscription | undefined> {
    try {
      return await this.#box.on('*', ({ type, resource }) => {
        // Plain keys have no resource, and after missed events any resource may have changed.
        const uris = type === 'resync' ? changedBy('*') : changedBy(resource);
        for (const uri of uris) this.publish({ kind: 'resource_updated', uri });
      });
    } catch {
      // The next listener tries again.
      this.#following = undefined;
      return undefined;
    }
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    (await this.#following)?.unsubscribe();
  }
}
