/** Wakes the guard watches of this process: one subscription to the store serves all of them. */
import { type Guard, matches, requiredInputs, wakesOn } from '../../core/index.ts';
import type { Events, EventSource, RevisionListener } from '../observe/events.ts';
import type { Runtime } from '../runtime.ts';
import type { StaleHolds } from './stale-holds.ts';
import { Watch, type WatchSettings } from './watch.ts';

export class WakeHub {
  readonly #runtime: Runtime;
  readonly #events: Events;
  readonly #watches: Readonly<Record<EventSource, Set<Watch>>> = { records: new Set(), tasks: new Set() };
  readonly #all = new Set<Watch>();
  readonly #listening: Partial<Record<EventSource, Promise<unknown>>> = {};
  readonly #staleHolds: StaleHolds;

  constructor(runtime: Runtime, events: Events, staleHolds: StaleHolds) {
    this.#runtime = runtime;
    this.#events = events;
    this.#staleHolds = staleHolds;
  }

  /** Resolves once the watch misses nothing any more. */
  async watch(guards: readonly Guard[], settings: WatchSettings): Promise<Watch> {
    const sources = sourcesFor(guards);
    const held = heldFor(guards);
    const watch: Watch = new Watch(this.#runtime, guards, settings, {
      waits: () => this.#staleHolds.free(),
      closed: () => {
        this.#all.delete(watch);
        for (const source of sources) this.#watches[source].delete(watch);
        this.#staleHolds.unwatch(held);
      },
    });
    this.#all.add(watch);
    for (const source of sources) this.#watches[source].add(watch);
    try {
      await Promise.all([this.#staleHolds.watch(held), ...sources.map((source) => this.#listen(source))]);
    } catch (error) {
      watch.close();
      throw error;
    }
    return watch;
  }

  /** These inputs could not be read. */
  failed(keys: readonly string[]): void {
    for (const watch of this.#all) watch.failed(keys);
  }

  async #listen(source: EventSource): Promise<void> {
    const watches = this.#watches[source];
    const listener: RevisionListener = {
      told: (events) => {
        this.#staleHolds.told(events);
        for (const watch of watches) watch.told(events);
      },
      missed: () => {
        for (const watch of watches) watch.missed();
      },
    };
    try {
      await (this.#listening[source] ??= this.#events.listen(source, listener));
    } catch (error) {
      delete this.#listening[source];
      throw error;
    }
  }
}

/** The event sources that can wake a watch of these inputs. */
function sourcesFor(guards: readonly Guard[]): readonly EventSource[] {
  const patterns = guards.flatMap((guard) => wakesOn(guard));
  const ofTasks = (pattern: string): boolean => pattern.startsWith('task:') || matches(pattern, 'task:');
  const sources: EventSource[] = [];
  if (patterns.some((pattern) => !pattern.startsWith('task:'))) sources.push('records');
  if (patterns.some(ofTasks)) sources.push('tasks');
  return sources;
}

/** The locks and semaphores among these inputs. */
function heldFor(guards: readonly Guard[]): readonly string[] {
  const inputs = guards.flatMap(({ condition }) => requiredInputs(condition));
  const held = inputs.filter((input) => input.kind === 'lock' || input.kind === 'semaphore');
  return [...new Set(held.map(({ kind, name }) => `${kind}/${name}`))];
}
