/**
 * Frees what the dead left behind, where a guard waits for it. A stale holder still holds until it is reclaimed: by the
 * next one who wants the lock, or by maintenance. Somebody who only waits for it to be free does not ask for it, so
 * without this it would wait until the next round of maintenance, and that of others.
 */
import { Unheard } from '../pending.ts';
import type { Runtime } from '../runtime.ts';

export class LeftBehind {
  readonly #runtime: Runtime;
  readonly #mayReclaim: boolean;
  /** How many watches ask for each lock and semaphore. */
  readonly #watched = new Map<string, number>();
  /** The leases that the holds of these hang on, as they were last read. */
  readonly #leases = new Map<string, readonly string[]>();

  constructor(runtime: Runtime, mayReclaim: boolean) {
    this.#runtime = runtime;
    this.#mayReclaim = mayReclaim;
    runtime.onLeaseGone = () => this.free();
    runtime.onBackstop = () => void this.#keepPresent();
  }

  /** With a session, since only who has one hears of those that end, and takes its turn at maintenance. */
  async watch(resources: readonly string[]): Promise<void> {
    for (const resource of resources) this.#watched.set(resource, (this.#watched.get(resource) ?? 0) + 1);
    if (resources.length > 0) await this.#runtime.ready();
  }

  unwatch(resources: readonly string[]): void {
    for (const resource of resources) {
      const left = (this.#watched.get(resource) ?? 0) - 1;
      if (left > 0) this.#watched.set(resource, left);
      else {
        this.#watched.delete(resource);
        this.#leases.delete(resource);
      }
    }
  }

  readonly saw = (resource: string, leases: readonly string[]): void => {
    if (this.#watched.has(resource)) this.#leases.set(resource, leases);
  };

  /** Once for what was read: what comes of it is told by an event. */
  free(): void {
    const { anchors, session } = this.#runtime;
    if (!this.#mayReclaim || session === undefined) return;
    for (const [resource, leases] of this.#leases) {
      if (leases.every((lease) => anchors.isKnown(lease) && !anchors.isGone(lease))) continue;
      this.#leases.delete(resource);
      this.#runtime.deskOf(resource).submit(new Unheard({ kind: 'maintain' }));
    }
  }

  /** A session that ended while everything only waited is not missed by anybody else. */
  async #keepPresent(): Promise<void> {
    if (this.#watched.size === 0 || this.#runtime.isClosed) return;
    await this.#runtime.ready().catch(() => undefined);
  }
}
