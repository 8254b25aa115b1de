/**
 * A grant: how a request becomes a hold. Locks and semaphores share it, and `Rules` says where they differ.
 *
 *                 nothing live is in its way, and it goes before every waiter
 *      request ───────────────────────────────────────────────────────────────▶ grant
 *         │ │                                                                      ▲
 *         │ └──▶ it may wait: queue ──▶ its turn comes, and nothing is in its way ─┘
 *         └────▶ it may not wait: refused
 */
import {
  type Claim,
  except,
  type Hold,
  type HoldEvents,
  isStale,
  type Leases,
  losses,
  type OnStale,
  ownHold,
  takenBy,
  type Taker,
} from './hold.ts';
import {
  type Event,
  followed,
  type Json,
  type Moment,
  NONE,
  type Request,
  type Step,
  step,
  type Token,
  type Unfinished,
} from './machine.ts';
import {
  answerWithoutTurn,
  budget,
  type Cycle,
  goesAhead,
  type Line,
  LOST,
  type Passed,
  passing,
  placeFor,
  type Queued,
  type Served,
  serveQueue,
  withHolds,
  type Waiting,
  without,
  withWaiting,
} from './queue.ts';
import type { TooLarge } from './record-size.ts';
import type { Limits, Settings } from './settings.ts';

/** What the records of locks and semaphores have in common. */
export interface HoldRecord<H extends Hold = Hold> {
  readonly v: 1;
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
  /** `ttlMs`: the time without a renewal that the holder would like from now on; the answer says what it may have. */
  | (Claim & { readonly kind: 'heartbeat'; readonly ttlMs?: number })
  /** Moves the hold to these leases. */
  | (Claim & Leases & { readonly kind: 'extend' })
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

type Shared<S extends ResourceState> = HoldOutcome<HoldOf<S>, HoldCommand<HoldOf<S>> | Acquire<RequestOf<S>>>;

export type GrantStep<S extends ResourceState, Outcome> = Step<S, Outcome | Shared<S>>;

/** Where locks and semaphores differ. */
export interface Rules<S extends ResourceState, Outcome> extends Line<S, Outcome | Shared<S>> {
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
  /** Undoes the last enlargement; undefined if there is nothing left to undo. */
  giveBack(state: S, hold: HoldOf<S>, at: Moment): Step<S, Outcome> | undefined;

  readonly says: {
    /** The request enlarged a hold. */
    enlarged(hold: HoldOf<S>): Outcome;
    /** The holder has as much already. */
    reentered(hold: HoldOf<S>): Outcome;
    queued(record: S['record'], position: number): Outcome;
    /** It is taken, and the request does not wait. */
    taken(record: S['record']): Outcome;
    /** There is no such hold. */
    absent(record: S['record']): Outcome;
    /** There is no hold to break. */
    unbroken(record: S['record']): Outcome;
  };
}

// Requests that have not waited

/** A request that is sent again, because its answer got lost, gets the same answer: nothing is granted twice. */
export function askedBefore<S extends ResourceState, Outcome>(
  state: S,
  id: string,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> | undefined {
  const hold = holdsOf(state).find((held) => held.id === id || rules.enlargedBy(held) === id);
  if (hold !== undefined) {
    if (isStale(hold, at)) return step(state, LOST);
    return step(state, hold.id === id ? { kind: 'acquired', hold } : rules.says.enlarged(hold));
  }
  const place = state.waiting.findIndex((waiter) => waiter.id === id);
  return place < 0 ? undefined : step(state, rules.says.queued(state.record, place + 1));
}

/**
 * Settles the queue before the newcomer joins it: a lease may have ended since the last step, and what that leaves
 * belongs to the waiters. `join` answers the newcomer once the waiters are as far as they can get.
 */
export function joinSettled<S extends ResourceState, Outcome extends { readonly kind: string }>(
  state: S,
  command: Acquire<RequestOf<S>>,
  join: (state: S, command: Acquire<RequestOf<S>>, at: Moment) => GrantStep<S, Outcome>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const settled = settle(step(state, { kind: 'settled' }), rules, at);
  const left = budget(settled, at);
  if (left <= 0) return { ...settled, outcome: { kind: 'unfinished', then: command } };
  const joined = join(settled.state, command, { ...at, most: left });
  // A refused try writes nothing, not even on behalf of the waiters.
  switch (joined.outcome.kind) {
    case 'busy':
    case 'full':
      return refused(state, command, rules, at);
    case 'upgrade-conflict':
    case 'too-large':
      return step(state, joined.outcome, joined.events);
    default:
      return followed(settled, joined);
  }
}

/** Answers a newcomer when the waiters are as far as they can get: with a grant, a place in the queue or a refusal. */
export function takeOrQueue<S extends ResourceState, Outcome>(
  state: S,
  command: Acquire<RequestOf<S>>,
  own: HoldOf<S> | undefined,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const { record, waiting } = state;
  const stale = goesAhead(command, waiting, record.passed) ? rules.inTheWay(record, command, own, at) : undefined;
  if (stale !== undefined) return take(state, command, own, stale, rules, at);
  if (!command.wait) return refused(state, command, rules, at);
  const position = placeFor(waiting, command.priority, record.passed);
  return step(withWaiting(state, [...waiting, rules.ticket(command, own)]), rules.says.queued(record, position), [
    rules.asked(rules.events.queued, command, at, { position }),
  ]);
}

function refused<S extends ResourceState, Outcome>(
  state: S,
  command: Acquire<RequestOf<S>>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  return step(state, rules.says.taken(state.record), [rules.denied(state.record, command, at)]);
}

/** Grants the request if the record has room for it. Only the stale holds are in its way. */
export function take<S extends ResourceState, Outcome>(
  state: S,
  command: Acquire<RequestOf<S>>,
  own: HoldOf<S> | undefined,
  stale: readonly HoldOf<S>[],
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const refusal = rules.noRoomFor(state.record, command, own, stale);
  if (refusal !== undefined) return step(state, refusal, [rules.denied(state.record, command, at)]);
  return grantNow(state, command, command, own, stale, rules, at);
}

/** Takes the holds in `needed` from their holders, past every waiter, and grants the request. */
export function takeByForce<S extends ResourceState, Outcome>(
  state: S,
  command: Acquire<RequestOf<S>>,
  request: RequestOf<S>,
  own: HoldOf<S> | undefined,
  needed: readonly HoldOf<S>[],
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const { most = Number.POSITIVE_INFINITY } = at;
  const refusal = rules.noRoomFor(state.record, command, own, needed);
  if (refusal !== undefined) return step(state, refusal, [rules.denied(state.record, command, at)]);
  const taken = needed.length > most ? needed.slice(0, most) : needed;
  const who = takenBy(command.holder, command.reason ?? '', needed.length);
  const rest = withHolds(state, except(holdsOf(state), taken));
  const events = taken.map((hold) => rules.told(rules.events.forced, hold, at, who));
  const lost = losses(taken, 'forced', who);
  const forced: GrantStep<S, Outcome> = step(rest, { kind: 'unfinished', then: command }, events, lost);
  if (taken.length < needed.length) return forced;
  const left: Moment = { ...at, most: most - taken.length };
  return followed(forced, grantNow(rest, request, command, own, NONE, rules, left));
}

/** Another request of the same holder shares its hold. */
export function reenter<S extends ResourceState, Outcome>(
  state: S,
  hold: HoldOf<S>,
  needs: Need,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const shared = sharing(state, hold, needs, rules);
  const reentered = step(shared.state, shared.outcome);
  return shared.state === state ? reentered : settle(reentered, rules, at);
}

/**
 * If the second request relies on what the first one enlarged, cancelling the first one does not give that back from now on.
 */
export function sharing<S extends ResourceState, Outcome>(
  state: S,
  hold: HoldOf<S>,
  needs: Need,
  { kept, says }: Rules<S, Outcome>,
): { readonly state: S; readonly outcome: Outcome; readonly events: readonly Event[] } {
  const shared = kept(hold, needs);
  const outcome = says.reentered(shared);
  if (shared === hold) return { state, outcome, events: NONE };
  const holds = holdsOf(state);
  return { state: withHolds(state, holds.with(holds.indexOf(hold), shared)), outcome, events: NONE };
}

// Grants

/** Grants what no waiter goes before. `command` asks for the rest if one write does not take it all. */
export function grantNow<S extends ResourceState, Outcome, Command>(
  state: S,
  request: RequestOf<S>,
  command: Command,
  own: HoldOf<S> | undefined,
  stale: readonly HoldOf<S>[],
  rules: Rules<S, Outcome>,
  at: Moment,
): Step<S, Outcome | Shared<S> | Unfinished<Command>> {
  const { most = Number.POSITIVE_INFINITY } = at;
  if (stale.length > most) {
    const part = reclaim(state, stale.slice(0, most), request, rules, at);
    return { ...part, outcome: { kind: 'unfinished', then: command } };
  }
  if (state.waiting.length === 0) return grant(state, request, own, stale, 0, rules, at);
  const settled = step<S, Outcome | Shared<S>>(state, { kind: 'settled' });
  const first = answerWithoutTurn(settled, rules, at);
  if (budget(first, at) < stale.length) return { ...first, outcome: { kind: 'unfinished', then: command } };
  const granted = grant(first.state, request, own, stale, first.state.waiting.length, rules, at);
  return settle(followed(first, granted), rules, at);
}

/** Serves the waiter at `place`, whose turn it is; undefined if it has to wait on. */
export function serve<S extends ResourceState, Outcome>(
  state: S,
  place: number,
  rules: Rules<S, Outcome>,
  at: Moment,
): Served<S, Outcome | Shared<S>> | undefined {
  const { record, waiting } = state;
  const head: RequestOf<S> = waiting[place] as RequestOf<S>;
  // A holder that asked twice may hold since its first request was served: the second one enlarges that hold.
  const own = ownHold(holdsOf(state), head.holder, at);
  const stale = rules.inTheWay(record, head, own, at);
  if (stale === undefined) return undefined;
  const { most = Number.POSITIVE_INFINITY } = at;
  if (stale.length >= most) return reclaim(state, stale.slice(0, most), head, rules, at);
  const refusal = rules.noRoomFor(record, head, own, stale);
  if (refusal !== undefined) {
    // It would wait at the head, and all others behind it, for as long as the holders stay as they are.
    const answers = [{ id: head.id, outcome: refusal }];
    const left = withWaiting(state, without(waiting, place));
    return { state: left, events: [rules.denied(record, head, at)], answers, losses: NONE };
  }
  const granted = grant(state, head, own, stale, place, rules, at);
  return { ...granted, answers: [{ id: head.id, outcome: granted.outcome }] };
}

/** Grants the request, or enlarges `own`, and leaves the other waiters alone. `place`: where the request waited. */
function grant<S extends ResourceState, Outcome>(
  { record, waiting }: S,
  request: RequestOf<S>,
  own: HoldOf<S> | undefined,
  stale: readonly HoldOf<S>[],
  place: number,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const { told, events } = rules;
  const granted = rules.granted(record, request, own, stale, passing(waiting, place, record.passed), at);
  const { hold } = granted;
  const acquired = told(events.acquired, hold, at);
  return {
    state: { record: granted.record, waiting: place < waiting.length ? without(waiting, place) : waiting } as S,
    outcome:
      own !== undefined
        ? rules.says.enlarged(hold)
        : stale.length === 0
          ? { kind: 'acquired', hold }
          : { kind: 'reclaimed', hold, from: stale },
    events: stale.length === 0 ? [acquired] : [...stale.map((lost) => told(events.reclaimed, lost, at)), acquired],
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: hold.holder }),
  };
}

/** Reclaims some of the stale holds that are in the way of a request, if one write does not take them all. */
function reclaim<S extends ResourceState, Outcome>(
  state: S,
  stale: readonly HoldOf<S>[],
  request: RequestOf<S>,
  { told, events }: Rules<S, Outcome>,
  at: Moment,
): Served<S, Outcome | Shared<S>> {
  return {
    state: withHolds(state, except(holdsOf(state), stale)),
    events: stale.map((lost) => told(events.reclaimed, lost, at)),
    answers: NONE,
    losses: losses(stale, 'reclaimed', { by: request.holder }),
  };
}

// Steps

/** Serves the waiters after what the step did. */
export function settle<S extends ResourceState, Outcome>(
  so: GrantStep<S, NoInfer<Outcome>>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  return so.state.waiting.length === 0 ? so : serveQueue<S, Outcome | Shared<S>>(so, rules, at);
}

/** The record after a grant. Its own fields come first and in one order: a record without limits has one shape. */
export function withLimits<R extends HoldRecord>(record: R, limits: Limits | undefined): R {
  return limits === undefined ? record : { ...record, limits };
}

export function holdsOf<S extends ResourceState>(state: S): readonly HoldOf<S>[] {
  return state.record.holds;
}
