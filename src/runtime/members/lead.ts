/**
 * Leads: runs work in one process of many, and moves it when that process dies. The leader holds the lock `lead:NAME`, so it is
 * exactly one at a time, and its epoch (the token of the lock) is larger than that of every leader before it.
 *
 *     wait for the lock ──▶ lead: run the work ──▶ the work returns: release, done
 *             ▲                     │
 *             └──── hold lost: the signal aborts, wait until the work has stopped
 */
import { type Json, LONGEST_NAME, type Token } from '../../core/index.ts';
import { keepingAlive } from '../subscription.ts';
import type { Lock, LockHold } from '../holds/lock.ts';
import { traceOf } from '../holds/hold.ts';
import { runUnder } from '../holds/hold-set.ts';
import { NotAcquired } from '../refusal.ts';
import { abortSignal, aFunction, aName, anything, refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { persistently } from '../write/write-once.ts';

/** The time for which one process leads. */
export interface Term {
  /** What is led. */
  readonly name: string;
  /** Grows with every leader. Pass it to what you write to, which can then refuse an earlier leader. */
  readonly epoch: Token;
  /** Aborts when this process no longer leads, before another one can begin; or when the caller's signal aborts. */
  readonly signal: AbortSignal;
  /** The hold of the lock `lead:NAME`: `check` it before a step that cannot be undone. */
  readonly hold: LockHold;
}

/** How to lead. */
export interface LeadOptions {
  /** Ends the wait, and asks the work to stop. */
  readonly signal?: AbortSignal;
  /**
   * How the name of the candidate begins, as `who` shows it. What follows is new for every turn, so that candidates with the
   * same name exclude each other.
   */
  readonly holder?: string;
  /** The reason, shown to those who wait. */
  readonly reason?: string;
  /** What others get to see of the leader. */
  readonly metadata?: Json;
  /** Called when another process leads, and this one waits. */
  readonly onWaiting?: () => void;
}

export type Lead = <T>(name: string, work: (term: Term) => T | Promise<T>, options?: LeadOptions) => Promise<T>;

export const LEADERS = 'lead:';

/** A holder of its own for every turn: a holder that has the lock re-enters it, and then two would lead at once. */
export function candidateOf(holder: string, id: string): string {
  const begin = [...holder].slice(0, LONGEST_NAME - id.length - 1).join('');
  return `${begin}:${id}`;
}

const OPTIONS = { signal: abortSignal, holder: aName, reason: anything, metadata: anything, onWaiting: aFunction };

export function leadOn(runtime: Runtime, lockOf: (name: string) => Lock): Lead {
  return async (name, work, options = {}) => {
    refuseUnlessFunction('the work', work);
    refuseWrongValues(options, OPTIONS);
    const lock = lockOf(LEADERS + name);
    // The process must not end while it waits as a candidate, nor while it leads.
    const release = keepingAlive(runtime, {});
    try {
      for (;;) {
        const hold = await elected(runtime, lock, options);
        try {
          return await runUnder(hold, () => work(termOf(name, hold, options.signal)), traceOf(hold));
        } catch (error) {
          // What the work threw after it lost the lead counts as its way to stop.
          if (hold.lost === undefined || runtime.isClosed || options.signal?.aborted === true) throw error;
        }
      }
    } finally {
      release();
    }
  };
}

/** Waits for as long as it takes: over a store that cannot be reached, and over lost sessions of this process. */
async function elected(runtime: Runtime, lock: Lock, options: LeadOptions): Promise<LockHold> {
  const { signal = NEVER, holder } = options;
  const asked = (): LeadOptions =>
    holder === undefined ? options : { ...options, holder: candidateOf(holder, runtime.options.newId()) };
  for (;;) {
    try {
      return await persistently(runtime, signal, () => lock.acquire(asked()));
    } catch (error) {
      const isLost = error instanceof NotAcquired && error.refusal.kind === 'session-lost';
      if (!isLost || runtime.isClosed) throw error;
    }
  }
}

const NEVER = new AbortController().signal;

function termOf(name: string, hold: LockHold, signal: AbortSignal | undefined): Term {
  const over = signal === undefined ? hold.signal : AbortSignal.any([hold.signal, signal]);
  return { name, epoch: hold.token, signal: over, hold };
}
