/** One registered guard: checks it again whenever its inputs may have changed. */
import { isDeepStrictEqual } from 'node:util';
import type { Guard, GuardOutcome } from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';
import type { CheckOptions, Executor } from './executor.ts';
import { givesUp, retryMs } from './wait.ts';
import { type GuardWatch, nextWithin } from './watch.ts';

/** A guard that is looked at whenever its inputs may have changed. */
export interface RegisteredGuard extends Disposable {
  /** The guard. */
  readonly guard: Guard;
  /** The outcome of the last look. */
  readonly outcome: GuardOutcome | undefined;
  /** Ends the looks at the guard. */
  unregister(): void;
}

/** What a registered guard needs. */
export interface RegisteredParts {
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly watch: GuardWatch;
  readonly handler: ((outcome: GuardOutcome) => void | Promise<void>) | undefined;
  readonly options: Pick<CheckOptions, 'adapters'>;
  /** Called when the guard is unregistered. */
  readonly ended: () => void;
}

export class Registered implements RegisteredGuard {
  readonly guard: Guard;
  readonly #parts: RegisteredParts;
  readonly #over = new AbortController();
  #outcome: GuardOutcome | undefined;

  constructor(guard: Guard, parts: RegisteredParts) {
    this.guard = guard;
    this.#parts = parts;
  }

  get outcome(): GuardOutcome | undefined {
    return this.#outcome;
  }

  unregister(): void {
    this.#over.abort();
    this.#parts.watch.close();
    this.#parts.ended();
  }

  [Symbol.dispose](): void {
    this.unregister();
  }

  /** Resolves after the first look. */
  async begin(): Promise<void> {
    await this.#look();
    void this.#goOn();
  }

  async #goOn(): Promise<void> {
    while (!givesUp(this.#outcome)) {
      const why = await this.#next();
      if (why === 'aborted' || this.#over.signal.aborted) return;
      try {
        await this.#look();
      } catch {
        // The guard was unregistered, or the signalbox closed.
        return;
      }
    }
    this.#parts.watch.close();
  }

  /** Waits for an event, a poll, or the time that the guard names. */
  async #next(): ReturnType<GuardWatch['next']> {
    return nextWithin(this.#parts.watch, retryMs(this.#outcome), this.#parts.runtime.clock);
  }

  async #look(): Promise<void> {
    const { executor, options, handler } = this.#parts;
    const [outcome] = await executor.check([this.guard], { signal: this.#over.signal, ...options });
    if (outcome === undefined || isDeepStrictEqual(outcome, this.#outcome)) return;
    this.#outcome = outcome;
    try {
      await handler?.(outcome);
    } catch (error) {
      // Reports a bug in the handler as Node reports one in an event listener. The guard is still checked.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
