/**
 * Frees holds of dead processes that a guard waits for. A stale hold lasts until the next acquirer or maintenance reclaims
 * it. A guard that waits for a lock to be free does not acquire it, so without this it would wait for the next round of
 * maintenance.
 */
import type { Held, RecordEvent } from '../observe/events.ts';
import { BackgroundCommand } from '../write/pending-command.ts';
import type { RuntimeObserver, Runtime } from '../runtime.ts';

export class StaleHolds implements RuntimeObserver {
  readonly #runtime: Runtime;
  readonly #mayReclaim: boolean;
  /** The number of watches that ask for each lock and semaphore. */
  readonly #watched = new Map<string, number>();
  /** The leases that keep the holds of these, as far as is known. A resource that was freed has none. */
  readonly #held = new Map<string, Held>();

  constructor(runtime: Runtime, mayReclaim: boolean) {
    this.#runtime = runtime;
    this.#mayReclaim = mayReclaim;
  }

  leasesEnded(): void {
    this.free();
  }

  backstop(): void {
    void this.#keepPresent();
  }

  /** Needs a session: only a process with one hears of sessions that end, and takes part in maintenance. */
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
        this.#held.delete(resource);
      }
    }
  }

  /** The newer revision counts: a read and an event may arrive in either order. */
  readonly saw = (resource: string, held: Held): void => {
    if (!this.#watched.has(resource)) return;
    const before = this.#held.get(resource);
    if (before === undefined || before.revision <= held.revision) this.#held.set(resource, held);
  };

  /** A hand-over wakes no guard, but the new holder may die too, or has already died. */
  told(events: readonly RecordEvent[]): void {
    let isNews = false;
    for (const { resource, held } of events) {
      if (held === undefined || !this.#watched.has(resource)) continue;
      this.saw(resource, held);
      isNews = true;
    }
    const { anchors } = this.#runtime;
    if (isNews) this.#freeIf((lease) => anchors.isGone(lease));
  }

  /** Tries once for each known state: an event reports the result. */
  free(): void {
    const { anchors } = this.#runtime;
    this.#freeIf((lease) => anchors.isGone(lease) || !anchors.isKnown(lease));
  }

  #freeIf(mayBeGone: (lease: string) => boolean): void {
    if (!this.#mayReclaim || this.#runtime.session === undefined) return;
    for (const [resource, { leases }] of this.#held) {
      if (!leases.some(mayBeGone)) continue;
      this.#held.delete(resource);
      this.#runtime.writerFor(resource).submit(new BackgroundCommand({ kind: 'maintain' }));
    }
  }

  /** Renews our session if it ended while this process only waited: nothing else would notice. */
  async #keepPresent(): Promise<void> {
    if (this.#watched.size === 0 || this.#runtime.isClosed) return;
    await this.#runtime.ready().catch(() => undefined);
    // Leases that ended while there was no session could not be handled then.
    this.free();
  }
}
