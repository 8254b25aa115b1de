/**
 * Frees what the dead left behind, where a guard waits for it. A stale holder still holds until it is reclaimed: by the
 * next one who wants the lock, or by maintenance. Somebody who only waits for it to be free does not ask for it, so
 * without this it would wait until the next round of maintenance, and that of others.
 */
import type { Held, RecordEvent } from '../observe/events.ts';
import { BackgroundCommand } from '../write/pending-command.ts';
import type { RuntimeObserver } from '../observer.ts';
import type { Runtime } from '../runtime.ts';

export class LeftBehind implements RuntimeObserver {
  readonly #runtime: Runtime;
  readonly #mayReclaim: boolean;
  /** How many watches ask for each lock and semaphore. */
  readonly #watched = new Map<string, number>();
  /** The leases that the holds of these hang on, as far as is known. Nothing of those that were seen to. */
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
        this.#held.delete(resource);
      }
    }
  }

  /** Whichever comes last, a read or an event, what is newer counts. */
  readonly saw = (resource: string, held: Held): void => {
    if (!this.#watched.has(resource)) return;
    const before = this.#held.get(resource);
    if (before === undefined || before.revision <= held.revision) this.#held.set(resource, held);
  };

  /** Who was given it by a hand-over wakes nobody, and may die as well; or has, if that was told before. */
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

  /** Once for what is known: what comes of it is told by an event. */
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

  /** A session that ended while everything only waited is not missed by anybody else. */
  async #keepPresent(): Promise<void> {
    if (this.#watched.size === 0 || this.#runtime.isClosed) return;
    await this.#runtime.ready().catch(() => undefined);
    // Those that were heard of while there was no session could not be seen to.
    this.free();
  }
}
