/** The answers of `tryAcquire`. */
import type { LockHold as LockGrant, SemaphoreHold as SemaphoreGrant } from '../../core/index.ts';
import type { Refused } from '../refusal.ts';
import type { AnyOutcome } from '../write/pending-command.ts';
import type { LockHold, SemaphoreHold } from './public-hold.ts';

/** What `tryAcquire` answers: `ok` says whether there is a hold, `kind` how it came about or why there is none. */
export type LockAttempt =
  | { readonly ok: true; readonly kind: 'acquired'; readonly hold: LockHold }
  /** Taken from holders whose leases had ended. */
  | { readonly ok: true; readonly kind: 'reclaimed'; readonly hold: LockHold; readonly from: readonly LockGrant[] }
  /** The same holder had the lock already; `upgraded` if it had only read. */
  | { readonly ok: true; readonly kind: 'extended' | 'upgraded'; readonly hold: LockHold }
  | Refused<'busy' | 'too-large' | 'upgrade-conflict' | 'lost'>;

/** What `tryAcquire` answers: `ok` says whether there is a hold, `kind` how it came about or why there is none. */
export type SemaphoreAttempt =
  /** `increased`: the same holder had fewer slots. `already-held`: it had as many. */
  | { readonly ok: true; readonly kind: 'acquired' | 'increased' | 'already-held'; readonly hold: SemaphoreHold }
  /** Taken from holders whose leases had ended. */
  | {
      readonly ok: true;
      readonly kind: 'reclaimed';
      readonly hold: SemaphoreHold;
      readonly from: readonly SemaphoreGrant[];
    }
  | Refused<'full' | 'too-large' | 'impossible' | 'capacity-mismatch'>;

/** @internal What a try answers: the outcome, with the hold if there is one. */
export function attemptOf<H, Attempt>(
  outcome: AnyOutcome,
  hold: H | Promise<H> | undefined,
): Attempt | Promise<Attempt> {
  if (hold === undefined) return { ...outcome, ok: false } as Attempt;
  if (hold instanceof Promise) return hold.then((given) => ({ ...outcome, ok: true, hold: given }) as Attempt);
  return { ...outcome, ok: true, hold } as Attempt;
}
