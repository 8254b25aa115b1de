/**
 * What locks and semaphores have in common: the shape of their records, commands and outcomes. `Rules` says where they
 * differ; `grant.ts` and `hold-commands.ts` decide for both by these rules.
 */
import type { Claim, Hold, HoldEvents, Leases, OnStale } from './hold.ts';
import type { Taker } from './loss.ts';
import type { Event, Json, Moment, Request, Step, Token, Unfinished } from './machine.ts';
import type { Cycle, Line, Passed, Queued, Waiting } from './queue.ts';
import type { TooLarge } from './record-size.ts';
import type { Limits, Settings } from './settings.ts';

/** What the records of locks and semaphores have in common. */
export interface HoldRecord<H extends Hold = Hold> {
  /** 2 if the record has something that version 1 does not know and must not ignore. */
  readonly v: 1 | 2;
  /** The last token given out; outlives its hold. */
  readonly token: Token;
  /** In the order of their grants, the youngest last. */
  readonly holds: readonly H[];
  readonly onStale: OnStale;
  /** What every holder is bound by; absent if nothing limits them. */
  readonly limits?: Limits;
  /** Null, and not absent, if no waiter was passed: every record has the same shape. */
  readonly passed: Passed | null;
}

export interface ResourceState<R extends HoldRecord = HoldRecord, W extends Waiting = Waiting> extends Queued {
  readonly record: R;
  readonly waiting: readonly W[];
}

/** How much of a hold a request relies on: its mode, or its weight. */
export interface Need {
  readonly mode?: string;
  readonly weight?: number;
}

export type HoldOf<S extends ResourceState> = S['record']['holds'][number];
export type RequestOf<S extends ResourceState> = S['waiting'][number];

/** `wait`: queue if it cannot be granted now. `force`: an administrator takes it from its holders. */
export type Acquire<R extends Request> = R & {
  readonly kind: 'acquire';
  readonly wait: boolean;
  readonly force?: true;
  /** The request may have been sent before, and its answer lost. */
  readonly again?: true;
};

/** The commands that locks and semaphores carry out alike. */
export type HoldCommand<H extends Hold> =
  /**
   * `elsewhere`: not sent by the process that uses the hold, which must learn of its loss. `sole`: only if the claim names
   * one hold; otherwise nothing is released.
   */
  | (Claim & { readonly kind: 'release'; readonly elsewhere?: true; readonly sole?: true })
  /** An administrator ends every hold. `upTo` and `broken` continue a break that one write did not finish. */
  | {
      readonly kind: 'break';
      readonly holder: string;
      readonly reason: string;
      /** Spares holds with a larger token: they were granted after the break was asked for. */
      readonly upTo?: Token;
      readonly broken?: readonly H[];
    }
  /** `ttlMs`, `maxHoldMs`: the times that the holder would like from now on; the answer says what it may have. */
  | (Claim & { readonly kind: 'heartbeat'; readonly ttlMs?: number; readonly maxHoldMs?: number })
  /** Moves the hold to these leases. `from`: only if it rests on this one, so that of two movers one succeeds. */
  | (Claim & Leases & { readonly kind: 'extend'; readonly from?: string })
  /** The requester gives up. If the request was granted meanwhile, the grant goes back. */
  | { readonly kind: 'cancel'; readonly id: string }
  /** The victim of a deadlock stops waiting. */
  | { readonly kind: 'refuse'; readonly id: string; readonly cycle: Cycle }
  /** Grants what can be granted to waiters, after a lease ended. */
  | { readonly kind: 'settle' }
  | { readonly kind: 'tick' }
  /** `reclaimed`: what earlier writes reclaimed, if one write did not reclaim every stale hold. */
  | { readonly kind: 'maintain'; readonly reclaimed?: readonly H[] };

export interface Configure extends Settings {
  readonly kind: 'configure';
  /** Who configures it; for the witness. */
  readonly holder?: string;
}

/** The outcomes that locks and semaphores share; each has more of its own. */
export type HoldOutcome<H extends Hold, Command> =
  | { readonly kind: 'acquired'; readonly hold: H }
  /** Granted by reclaiming holds whose leases had ended. */
  | { readonly kind: 'reclaimed'; readonly hold: H; readonly from: readonly H[] }
  | TooLarge
  | { readonly kind: 'released'; readonly hold: H }
  /** The claim names several holds, and was to name one. */
  | { readonly kind: 'ambiguous'; readonly holds: readonly H[] }
  /** `ttlMs`: the time without a renewal that it may have, if the holder asked for another one. */
  | { readonly kind: 'refreshed'; readonly hold: H; readonly ttlMs?: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'cancelled'; readonly gaveBack: boolean }
  | { readonly kind: 'deadlock'; readonly cycle: Cycle }
  | { readonly kind: 'settled' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'broken'; readonly holds: readonly H[] }
  | { readonly kind: 'maintained'; readonly reclaimed: readonly H[] }
  | { readonly kind: 'configured' }
  | Unfinished<Command>;

export type SharedOutcome<S extends ResourceState> = HoldOutcome<
  HoldOf<S>,
  HoldCommand<HoldOf<S>> | Acquire<RequestOf<S>>
>;

export type GrantStep<S extends ResourceState, Outcome> = Step<S, Outcome | SharedOutcome<S>>;

/** Where locks and semaphores differ. */
export interface Rules<S extends ResourceState, Outcome> extends Line<S, Outcome | SharedOutcome<S>> {
  readonly events: HoldEvents;
  /** An event about a hold. */
  told(type: string, hold: HoldOf<S>, at: Moment, who?: Taker): Event;
  /** An event about a request. */
  asked(type: string, request: RequestOf<S>, at: Moment, detail: { readonly [key: string]: Json }): Event;
  denied(record: S['record'], request: RequestOf<S>, at: Moment): Event;

  /**
   * The stale holds that granting this request would reclaim; undefined if live ones are in its way. `own`: the hold
   * that the same holder has already, which is never in its way.
   */
  inTheWay(
    record: S['record'],
    request: RequestOf<S>,
    own: HoldOf<S> | undefined,
    at: Moment,
  ): readonly HoldOf<S>[] | undefined;
  /** The refusal if the record would become too large to be written, once the holds in `gone` have left it. */
  noRoomFor(
    record: S['record'],
    request: RequestOf<S>,
    own: HoldOf<S> | undefined,
    gone: readonly HoldOf<S>[],
  ): TooLarge | undefined;
  /** The record with the new hold in it, or with `own` enlarged, and without the stale ones. */
  granted(
    record: S['record'],
    request: RequestOf<S>,
    own: HoldOf<S> | undefined,
    stale: readonly HoldOf<S>[],
    passed: Passed | null,
    at: Moment,
  ): { readonly record: S['record']; readonly hold: HoldOf<S> };
  /** The request as it waits. */
  ticket(command: Acquire<RequestOf<S>>, own: HoldOf<S> | undefined): RequestOf<S>;

  /** The request that enlarged the hold last, as long as its cancelling would undo that. */
  enlargedBy(hold: HoldOf<S>): string | undefined;
  /**
   * The hold without a memory of that request, if `needs` relies on the enlargement; otherwise the very same one. A request
   * that needs less must not keep the enlargement from going back.
   */
  kept(hold: HoldOf<S>, needs: Need): HoldOf<S>;
  /** The part of the hold that no cancel takes away: the hold without its last enlargement, if that may still go back. */
  assured(hold: HoldOf<S>): HoldOf<S>;
  /** Undoes the last enlargement; undefined if there is nothing left to undo. */
  giveBack(state: S, hold: HoldOf<S>, at: Moment): Step<S, Outcome> | undefined;

  readonly says: {
    /** The request enlarged a hold. */
    enlarged(hold: HoldOf<S>): Outcome;
    /** The holder has as much already. */
    reentered(hold: HoldOf<S>): Outcome;
    queued(record: S['record'], position: number): Outcome;
    /** It is taken, and the request does not wait. `next`: the request that is served next, if one waits. */
    taken(record: S['record'], request: RequestOf<S>, next: RequestOf<S> | undefined): Outcome;
    /** There is no such hold. */
    absent(record: S['record']): Outcome;
    /** There is no hold to break. */
    unbroken(record: S['record']): Outcome;
  };
}

export function holdsOf<S extends ResourceState>(state: S): readonly HoldOf<S>[] {
  return state.record.holds;
}
