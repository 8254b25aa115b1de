/**
 * The guard API of a signalbox: check once, wait, or register. Registered guards belong to this process: it checks them
 * for as long as it runs, and no other process knows of them.
 */
import { given } from '../../core/given.ts';
import { any, type Condition, type Guard, type GuardOutcome, guardProblem, not } from '../../core/index.ts';
import { refuseInvalid } from '../../failure.ts';
import { refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { CHECK, type CheckOptions, type Executor, type GuardExecutor, WATCH, type WatchOptions } from './executor.ts';
import { Registered, type RegisteredGuard } from './registered.ts';
import { asGuard, type GuardWaitOptions, waitFor } from './wait.ts';
import type { GuardWatch } from './watch.ts';

/** Called when the outcome differs from the one before. */
export type GuardHandler = (outcome: GuardOutcome) => void | Promise<void>;

/** Guards that are checked, waited for, or registered. */
export class Guards implements GuardExecutor {
  readonly #runtime: Runtime;
  readonly #executor: Executor;
  readonly #registered = new Map<string, Registered>();

  /** @internal */
  constructor(runtime: Runtime, executor: Executor) {
    this.#runtime = runtime;
    this.#executor = executor;
  }

  /** Gathers what all of these guards need, each input once and concurrently, and judges each guard. */
  async check(guards: readonly Guard[], options?: CheckOptions): Promise<readonly GuardOutcome[]> {
    for (const guard of guards) refuseUnlessGuard(guard);
    if (options !== undefined) refuseWrongValues(options, CHECK);
    return this.#executor.check(guards, options);
  }

  /** Tells when one of the guards is worth another look. Resolves once the watch misses nothing any more. */
  async watch(guards: readonly Guard[], options?: WatchOptions): Promise<GuardWatch> {
    for (const guard of guards) refuseUnlessGuard(guard);
    if (options !== undefined) refuseWrongValues(options, WATCH);
    return this.#executor.watch(guards, options);
  }

  /**
   * Waits until the guard passes, and answers the last outcome. A guard that can never pass ends the wait at once, as does
   * one whose `onFailure` is `warn` or `fail`. Throws the signal's reason if that aborts.
   */
  async wait(what: Condition | Guard, options: GuardWaitOptions = {}): Promise<GuardOutcome> {
    const guard = asGuard(what);
    refuseUnlessGuard(guard);
    if (options.onVerdict !== undefined) refuseUnlessFunction('onVerdict', options.onVerdict);
    return waitFor(this.#runtime, this.#executor, guard, options);
  }

  /**
   * Checks the guard now, and whenever its inputs may have changed, until it is unregistered. Replaces a guard of the same
   * id. Resolves after the first look.
   */
  async register(guard: Guard, handler?: GuardHandler, options: WatchOptions = {}): Promise<RegisteredGuard> {
    refuseUnlessGuard(guard);
    if (handler !== undefined) refuseUnlessFunction('the handler', handler);
    refuseWrongValues(options, WATCH);
    // A copy, because the caller may go on changing its own.
    const own = structuredClone(guard);
    // A registered guard also reports when it stops passing.
    const watched: Guard = { ...own, condition: any([own.condition, not(own.condition)]) };
    const watch = await this.#executor.watch([watched], options, false);
    const ended = (): void => {
      if (this.#registered.get(own.id) === registered) this.#registered.delete(own.id);
    };
    const { adapters } = options;
    const parts = { runtime: this.#runtime, executor: this.#executor, watch, handler, options: given({ adapters }) };
    const registered = new Registered(own, { ...parts, ended });
    this.#registered.get(own.id)?.unregister();
    this.#registered.set(own.id, registered);
    await registered.begin();
    return registered;
  }

  /** The registered guard of this id, if there is one. */
  get(id: string): RegisteredGuard | undefined {
    return this.#registered.get(id);
  }

  /** By id. */
  list(): readonly RegisteredGuard[] {
    return [...this.#registered.values()].sort((one, other) => (one.guard.id < other.guard.id ? -1 : 1));
  }

  /** Answers whether there was one. */
  unregister(id: string): boolean {
    const registered = this.#registered.get(id);
    registered?.unregister();
    return registered !== undefined;
  }
}

function refuseUnlessGuard(guard: Guard): void {
  refuseInvalid(guardProblem(guard));
}
