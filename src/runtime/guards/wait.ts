/** Waits until a guard passes: looks, and looks again when one of its inputs may have changed. */
import { type Clock, timeLimit, type Timer } from '../../clock.ts';
import type { Condition, Explanation, Guard, GuardOutcome } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { aFunction, millisecondsFromZero, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { CHECK, type CheckOptions, type Executor, WATCH, type WatchOptions } from './executor.ts';
import { anyOf, nextWithin } from './watch.ts';

/** How to wait for a guard. Its commands run only once everything else passes. */
export interface GuardWaitOptions extends Omit<CheckOptions, 'commandsLast'>, WatchOptions {
  /** The limit of the wait. There is always one look; when time is over, the last outcome is the answer. */
  readonly timeoutMs?: number;
  /** Gets the outcome of every look, including looks that do not end the wait. */
  readonly onVerdict?: (look: GuardLook) => void;
}

/** One look at a guard. */
export interface GuardLook {
  /** What became of it. */
  readonly outcome: GuardOutcome;
  /** The same as a tree. */
  readonly explanation: Explanation;
}

const { isQuiet: _, commandsLast: __, ...LOOK } = CHECK;
const OPTIONS = { ...LOOK, ...WATCH, timeoutMs: millisecondsFromZero, onVerdict: aFunction };

export async function waitFor(
  runtime: Runtime,
  executor: Executor,
  guard: Guard,
  options: GuardWaitOptions,
): Promise<GuardOutcome> {
  refuseWrongValues(options, OPTIONS);
  const { signal, timeoutMs, onVerdict } = options;
  signal?.throwIfAborted();
  const time = limitOf(timeoutMs, runtime.clock);
  // One signal for all looks: a new one for each would pile up listeners on a signal that lives long.
  const over = anyOf(signal, time.signal);
  // The watch begins before the first look, so that no change between them is missed.
  const watch = await executor.watch([guard], options);
  try {
    let look = await executor.look(guard, { ...options, commandsLast: true });
    for (;;) {
      onVerdict?.(look);
      if (isFinal(look.outcome)) return look.outcome;
      await nextWithin(watch, retryMs(look.outcome), runtime.clock, over);
      signal?.throwIfAborted();
      runtime.refuseIfClosed();
      if (time.signal?.aborted === true) return look.outcome;
      const next = await lookUntil(executor, guard, options, time, over);
      if (next === undefined) return look.outcome;
      look = next;
    }
  } finally {
    watch.close();
    time.cancel();
  }
}

/** Undefined if time is over before the look ends. */
async function lookUntil(
  executor: Executor,
  guard: Guard,
  options: GuardWaitOptions,
  time: { readonly signal?: AbortSignal },
  over: AbortSignal | undefined,
): Promise<GuardLook | undefined> {
  try {
    return await executor.look(guard, { ...options, commandsLast: true, ...(over !== undefined && { signal: over }) });
  } catch (error) {
    options.signal?.throwIfAborted();
    if (time.signal?.aborted === true) return undefined;
    throw error;
  }
}

/** Whether waiting cannot help, or the guard does not ask for it. */
export function isFinal(outcome: GuardOutcome): boolean {
  if (outcome.kind !== 'failed') return outcome.kind === 'passed';
  return outcome.outlook === 'never' || outcome.action === 'warn' || givesUp(outcome);
}

/** Whether the guard says to fail. */
export function givesUp(outcome: GuardOutcome | undefined): boolean {
  return outcome?.kind === 'failed' && typeof outcome.action === 'object' && 'fail' in outcome.action;
}

/** After how long the guard is looked at again, woken or not, if it says so. */
export function retryMs(outcome: GuardOutcome | undefined): number | undefined {
  const action = outcome?.kind === 'failed' ? outcome.action : undefined;
  return typeof action === 'object' && 'retry' in action ? action.retry : undefined;
}

/** A bare condition is a guard without a name. */
export function asGuard(given: Condition | Guard): Guard {
  if (typeof given !== 'object' || given === null)
    throw new Failure('invalid', `the guard is ${shown(given)}; expected a condition, or a guard with a condition`);
  return 'condition' in given ? given : { id: 'condition', condition: given };
}

/** Aborts after this time: at once if it is zero, never if it is not given. */
function limitOf(ms: number | undefined, clock: Clock): { readonly signal?: AbortSignal } & Timer {
  if (ms !== undefined && ms > 0) return timeLimit(ms, clock);
  return { ...(ms === 0 && { signal: AbortSignal.abort() }), cancel: () => undefined };
}
