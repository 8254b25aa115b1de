/** One registered guard: checks it again whenever its inputs may have changed. */
import { isDeepStrictEqual } from 'node:util';
import type { Adapters } from '../../adapters/adapters.ts';
import type { Guard, GuardOutcome } from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';
import type { Executor } from './executor.ts';
import type { GuardWatch } from './watch.ts';

/** A guard that is looked at whenever its inputs may have changed. */
export interface RegisteredGuard extends Disposable {
  /** The guard. */
  readonly guard: Guard;
  /** The outcome of the last look. */
  readonly outcome: GuardOutcome | undefined;
  /** Ends the looks at the guard. */
  unregister(): void;
}

export class Registered implements RegisteredGuard {
  readonly guard: Guard;
  readonly #runtime: Runtime;
  readonly #executor: Executor;
  readonly #watch: GuardWatch;
  readonly #handler: ((outcome: GuardOutcome) => void | Promise<void>) | undefined;
  readonly #adapters: Adapters | undefined;
  readonly #onEnd: () => void;
  readonly #over = new AbortController();
  #outcome: GuardOutcome | undefined;

  constructor(
    runtime: Runtime,
    executor: Executor,
    guard: Guard,
    watch: GuardWatch,
    handler: ((outcome: GuardOutcome) => void | Promise<void>) | undefined,
    adapters: Adapters | undefined,
    onEnd: () => void,
  ) {
    this.#runtime = runtime;
    this.#executor = executor;
    this.guard = guard;
    this.#watch = watch;
    this.#handler = handler;
    this.#adapters = adapters;
    this.#onEnd = onEnd;
  }

  get outcome(): GuardOutcome | undefined {
    return this.#outcome;
  }

  unregister(): void {
    this.#over.abort();
    this.#watch.close();
    this.#onEnd();
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
    while (!this.#hasGivenUp()) {
      const why = await this.#next();
      if (why === 'aborted' || this.#over.signal.aborted) return;
      try {
        await this.#look();
      } catch {
        // The guard was unregistered, or the signalbox closed.
        return;
      }
    }
    this.#watch.close();
  }

  /** Waits for an event, a poll, or the time that the guard names. */
  async #next(): Promise<'event' | 'poll' | 'resync' | 'aborted'> {
    const action = this.#outcome?.kind === 'failed' ? this.#outcome.action : undefined;
    if (typeof action !== 'object' || !('retry' in action)) return this.#watch.next();
    const retry = new AbortController();
    const timer = this.#runtime.clock.timer(action.retry, () => retry.abort());
    const why = await this.#watch.next(retry.signal);
    timer.cancel();
    return why === 'aborted' && retry.signal.aborted ? 'poll' : why;
  }

  async #look(): Promise<void> {
    const { signal } = this.#over;
    const adapters = this.#adapters === undefined ? {} : { adapters: this.#adapters };
    const [outcome] = await this.#executor.check([this.guard], { signal, ...adapters });
    if (outcome === undefined || isDeepStrictEqual(outcome, this.#outcome)) return;
    this.#outcome = outcome;
    try {
      await this.#handler?.(outcome);
    } catch (error) {
      // Reports a bug in the handler as Node reports one in an event listener. The guard is still checked.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #hasGivenUp(): boolean {
    const outcome = this.#outcome;
    if (outcome?.kind !== 'failed') return false;
    return typeof outcome.action === 'object' && 'fail' in outcome.action;
  }
}
