/** One who waits for guards to be worth another look, and the board that tells all of those in this process. */
import {
  type Guard,
  matches,
  polledInputs,
  requiredInputs,
  type ToldEvent,
  type Waking,
  wakesOn,
  wakingOf,
} from '../../core/index.ts';
import type { Events, EventSource, RevisionListener } from '../events.ts';
import type { Runtime } from '../runtime.ts';

export interface GuardWatch {
  /**
   * Resolves with why when one of the guards is worth another look. However much happened since the last call, one look
   * is owed.
   */
  next(signal?: AbortSignal): Promise<'event' | 'poll' | 'resync' | 'aborted'>;
  close(): void;
}

type Why = 'event' | 'poll' | 'resync' | 'aborted';

/** One subscription to the store for all watches of a process. */
export class Board {
  readonly #runtime: Runtime;
  readonly #events: Events;
  readonly #watches: Readonly<Record<EventSource, Set<Watch>>> = { records: new Set(), tasks: new Set() };
  readonly #listening: Partial<Record<EventSource, Promise<unknown>>> = {};

  constructor(runtime: Runtime, events: Events) {
    this.#runtime = runtime;
    this.#events = events;
  }

  /** Resolves once nothing can be missed any more. */
  async watch(guards: readonly Guard[], pollMs: number, isFailing: (key: string) => boolean): Promise<Watch> {
    const sources = sourcesFor(guards);
    const watch: Watch = new Watch(this.#runtime, guards, pollMs, isFailing, () => {
      for (const source of sources) this.#watches[source].delete(watch);
    });
    for (const source of sources) this.#watches[source].add(watch);
    try {
      await Promise.all(sources.map((source) => this.#listen(source)));
    } catch (error) {
      watch.close();
      throw error;
    }
    return watch;
  }

  async #listen(source: EventSource): Promise<void> {
    const watches = this.#watches[source];
    const listener: RevisionListener = {
      told: (events) => {
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

/** Where the events come from that wake these. */
function sourcesFor(guards: readonly Guard[]): readonly EventSource[] {
  const patterns = guards.flatMap((guard) => wakesOn(guard));
  const ofTasks = (pattern: string): boolean => pattern.startsWith('task:') || matches(pattern, 'task:');
  const sources: EventSource[] = [];
  if (patterns.some((pattern) => !pattern.startsWith('task:'))) sources.push('records');
  if (patterns.some(ofTasks)) sources.push('tasks');
  return sources;
}

export class Watch implements GuardWatch {
  readonly #runtime: Runtime;
  readonly #guards: readonly Guard[];
  readonly #wakings: readonly Waking[];
  readonly #pollMs: number;
  readonly #isFailing: (key: string) => boolean;
  readonly #onClose: () => void;
  readonly #waiting = new Set<(why: Why) => void>();
  #owed: 'event' | 'resync' | undefined;
  #closed = false;

  constructor(
    runtime: Runtime,
    guards: readonly Guard[],
    pollMs: number,
    isFailing: (key: string) => boolean,
    onClose: () => void,
  ) {
    this.#runtime = runtime;
    this.#guards = guards;
    this.#wakings = guards.map(({ condition, wakeOn }) => wakingOf(condition, wakeOn));
    this.#pollMs = pollMs;
    this.#isFailing = isFailing;
    this.#onClose = onClose;
  }

  told(events: readonly ToldEvent[]): void {
    if (this.#owed !== undefined) return;
    const isWoken = this.#wakings.some(
      ({ resources, isWokenBy }) =>
        (resources === undefined || events.some(({ resource }) => resources.has(resource))) && isWokenBy(events),
    );
    if (isWoken) this.#wake('event');
  }

  missed(): void {
    this.#wake('resync');
  }

  next(signal?: AbortSignal): Promise<Why> {
    const { stopped, clock } = this.#runtime;
    if (this.#closed || stopped.aborted || signal?.aborted === true) return Promise.resolve('aborted');
    const owed = this.#owed;
    this.#owed = undefined;
    if (owed !== undefined) return Promise.resolve(owed);
    return new Promise((resolve) => {
      const alive = clock.keepAlive?.();
      const settle = (why: Why): void => {
        this.#waiting.delete(settle);
        alive?.cancel();
        timer?.cancel();
        for (const one of [stopped, signal]) one?.removeEventListener('abort', abort);
        resolve(why);
      };
      const abort = (): void => settle('aborted');
      const timer = this.#mustPoll() ? clock.timer(this.#pollMs, () => settle('poll')) : undefined;
      for (const one of [stopped, signal]) one?.addEventListener('abort', abort);
      this.#waiting.add(settle);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onClose();
    for (const settle of [...this.#waiting]) settle('aborted');
  }

  #wake(why: 'event' | 'resync'): void {
    if (this.#waiting.size === 0) this.#owed = why;
    else for (const settle of [...this.#waiting]) settle(why);
  }

  /** What nobody announces; and what could not be looked at, since a store that comes back announces nothing either. */
  #mustPoll(): boolean {
    return this.#guards.some(
      ({ condition }) =>
        polledInputs(condition).length > 0 || requiredInputs(condition).some(({ key }) => this.#isFailing(key)),
    );
  }
}
