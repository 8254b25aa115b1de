/** One watch: waits until its guards are worth another look. */
import { type Clock, timeLimit } from '../../clock.ts';
import {
  type Guard,
  type Own,
  polledInputs,
  requiredInputs,
  type ToldEvent,
  type Waking,
  wakingOf,
} from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';

type Why = 'event' | 'poll' | 'resync' | 'aborted';

/** Tells when guards are worth another look. */
export interface GuardWatch {
  /**
   * Resolves with the reason when one of the guards is worth another look. Any number of changes since the last call make
   * one look.
   */
  next(signal?: AbortSignal): Promise<Why>;
  /** Ends the watch. */
  close(): void;
}

/** The next reason for a look, which is at the latest a poll after `ms`, if that is given. */
export function nextWithin(
  watch: GuardWatch,
  ms: number | undefined,
  clock: Clock,
  signal?: AbortSignal,
): Promise<Why> {
  if (ms === undefined) return watch.next(signal);
  const limit = timeLimit(ms, clock);
  return watch.next(anyOf(signal, limit.signal)).then((why) => {
    limit.cancel();
    return why === 'aborted' && limit.signal.aborted ? 'poll' : why;
  });
}

export function anyOf(...signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((signal) => signal !== undefined);
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}

export interface WatchSettings {
  readonly pollMs: number;
  /** Holds of these holders do not count. */
  readonly own?: Own | undefined;
  /** Whether this watch alone keeps the process running. */
  readonly keepsAlive: boolean;
}

/** Gets what a watch reports. */
export interface WatchCalls {
  /** The watch has looked, and only waits now. */
  waits(): void;
  closed(): void;
}

export class Watch implements GuardWatch {
  readonly #runtime: Runtime;
  readonly #wakings: readonly Waking[];
  /** The keys of all inputs of the guards. */
  readonly #inputs: ReadonlySet<string>;
  readonly #isPolled: boolean;
  readonly #settings: WatchSettings;
  readonly #calls: WatchCalls;
  readonly #waiting = new Set<(why: Why) => void>();
  #owed: 'event' | 'resync' | undefined;
  /** One of the inputs could not be read since the last wake. */
  #hasFailed = false;
  #closed = false;

  constructor(runtime: Runtime, guards: readonly Guard[], settings: WatchSettings, calls: WatchCalls) {
    this.#runtime = runtime;
    const conditions = { all: guards.map(({ condition }) => condition) };
    this.#wakings = guards.map(({ condition, wakeOn }) => wakingOf(condition, wakeOn, settings.own));
    this.#inputs = new Set(requiredInputs(conditions).map(({ key }) => key));
    this.#isPolled = polledInputs(conditions).length > 0;
    this.#settings = settings;
    this.#calls = calls;
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

  /**
   * These inputs could not be read. A store that comes back announces nothing, so a watch that needs them must try again;
   * even if another watch has read them since, because only that watch got the answer.
   */
  failed(keys: readonly string[]): void {
    if (keys.some((key) => this.#inputs.has(key))) this.#hasFailed = true;
  }

  next(signal?: AbortSignal): Promise<Why> {
    const { stopped, clock } = this.#runtime;
    if (this.#closed || stopped.aborted || signal?.aborted === true) return Promise.resolve('aborted');
    const owed = this.#owed;
    this.#owed = undefined;
    if (owed !== undefined) {
      this.#hasFailed = false;
      return Promise.resolve(owed);
    }
    this.#calls.waits();
    return new Promise((resolve) => {
      const alive = this.#settings.keepsAlive ? clock.keepAlive?.() : undefined;
      const settle = (why: Why): void => {
        this.#waiting.delete(settle);
        alive?.cancel();
        timer?.cancel();
        for (const one of [stopped, signal]) one?.removeEventListener('abort', abort);
        if (why !== 'aborted') this.#hasFailed = false;
        resolve(why);
      };
      const abort = (): void => settle('aborted');
      const timer =
        this.#isPolled || this.#hasFailed ? clock.timer(this.#settings.pollMs, () => settle('poll')) : undefined;
      for (const one of [stopped, signal]) one?.addEventListener('abort', abort);
      this.#waiting.add(settle);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#calls.closed();
    for (const settle of [...this.#waiting]) settle('aborted');
  }

  #wake(why: 'event' | 'resync'): void {
    if (this.#waiting.size === 0) this.#owed = why;
    else for (const settle of [...this.#waiting]) settle(why);
  }
}
