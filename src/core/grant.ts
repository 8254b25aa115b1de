/**
 * A grant: how a request becomes a hold. Locks and semaphores share it, and `Rules` (`resource.ts`) says where they differ.
 *
 *                 nothing live is in its way, and it goes before every waiter
 *      request ───────────────────────────────────────────────────────────────▶ grant
 *         │ │                                                                      ▲
 *         │ └──▶ it may wait: queue ──▶ its turn comes, and nothing is in its way ─┘
 *         └────▶ it may not wait: refused
 */
import { except, isStale, ownHold } from './hold.ts';
import { losses, takenBy } from './loss.ts';
import { type Event, followed, type Moment, NONE, type Step, step, type Unfinished, withMost } from './machine.ts';
import {
  answerWithoutTurn,
  budget,
  goesAhead,
  LOST,
  nextInLine,
  passing,
  placeFor,
  type Served,
  serveQueue,
  withHolds,
  without,
  withWaiting,
} from './queue.ts';
import {
  type Acquire,
  type GrantStep,
  type HoldOf,
  type HoldRecord,
  holdsOf,
  type Need,
  type RequestOf,
  type ResourceState,
  type Rules,
  type SharedOutcome,
} from './resource.ts';
import type { Limits } from './settings.ts';

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
    if (rules.enlargedBy(hold) === id) return step(state, rules.says.enlarged(hold));
    return step(state, { kind: 'acquired', hold: rules.assured(hold) });
  }
  const place = state.waiting.findIndex((waiter) => waiter.id === id);
  return place < 0 ? undefined : step(state, rules.says.queued(state.record, place + 1));
}

/**
 * Settles the queue before the newcomer joins it: a lease may have ended since the last step, and what that frees belongs to
 * the waiters. `join` answers the newcomer once the waiters are as far as they can get.
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
  const joined = join(settled.state, command, withMost(at, left));
  // A refused try writes nothing, not even on behalf of the waiters.
  switch (joined.outcome.kind) {
    case 'busy':
    case 'full':
      return refused(state, command, rules, at);
    case 'upgrade-conflict':
    case 'too-large':
      return step(state, joined.outcome, joined.events);
    default:
      return followed(settled, joined, joined.outcome);
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
  const { record, waiting } = state;
  const next = waiting[nextInLine(waiting, record.passed)] as RequestOf<S> | undefined;
  return step(state, rules.says.taken(record, command, next), [rules.denied(record, command, at)]);
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
  const granted = grantNow(rest, request, command, own, NONE, rules, withMost(at, most - taken.length));
  return followed(forced, granted, granted.outcome);
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
 * If the second request relies on what the first one enlarged, cancelling the first one no longer undoes the enlargement. If
 * not, the second one does not see the enlargement: it would rely on what the first one may still give back.
 */
export function sharing<S extends ResourceState, Outcome>(
  state: S,
  hold: HoldOf<S>,
  needs: Need,
  { kept, assured, says }: Rules<S, Outcome>,
): { readonly state: S; readonly outcome: Outcome; readonly events: readonly Event[] } {
  const shared = kept(hold, needs);
  const outcome = says.reentered(assured(shared));
  if (shared === hold) return { state, outcome, events: NONE };
  const holds = holdsOf(state);
  return { state: withHolds(state, holds.with(holds.indexOf(hold), shared)), outcome, events: NONE };
}

// Grants

/** Grants a request that goes before every waiter. `command` asks for the rest if one write does not take it all. */
export function grantNow<S extends ResourceState, Outcome, Command>(
  state: S,
  request: RequestOf<S>,
  command: Command,
  own: HoldOf<S> | undefined,
  stale: readonly HoldOf<S>[],
  rules: Rules<S, Outcome>,
  at: Moment,
): Step<S, Outcome | SharedOutcome<S> | Unfinished<Command>> {
  const { most = Number.POSITIVE_INFINITY } = at;
  if (stale.length > most) {
    const part = reclaim(state, stale.slice(0, most), rules, at, request.holder);
    return { ...part, outcome: { kind: 'unfinished', then: command } };
  }
  if (state.waiting.length === 0) return grant(state, request, own, stale, 0, rules, at);
  const settled = step<S, Outcome | SharedOutcome<S>>(state, { kind: 'settled' });
  const first = answerWithoutTurn(settled, rules, at);
  if (budget(first, at) < stale.length) return { ...first, outcome: { kind: 'unfinished', then: command } };
  const granted = grant(first.state, request, own, stale, first.state.waiting.length, rules, at);
  return settle(followed(first, granted, granted.outcome), rules, at);
}

/** Serves the waiter at `place`, whose turn it is; undefined if it has to wait on. */
export function serve<S extends ResourceState, Outcome>(
  state: S,
  place: number,
  rules: Rules<S, Outcome>,
  at: Moment,
): Served<S, Outcome | SharedOutcome<S>> | undefined {
  const { record, waiting } = state;
  const head: RequestOf<S> = waiting[place] as RequestOf<S>;
  // A holder that asked twice may hold since its first request was served: the second one enlarges that hold.
  const own = ownHold(holdsOf(state), head.holder, at);
  const stale = rules.inTheWay(record, head, own, at);
  if (stale === undefined) return undefined;
  const { most = Number.POSITIVE_INFINITY } = at;
  if (stale.length >= most) return reclaim(state, stale.slice(0, most), rules, at, head.holder);
  const refusal = rules.noRoomFor(record, head, own, stale);
  if (refusal !== undefined) {
    // Refused and not left at the head: there it would block all others for as long as the holders stay as they are.
    const answers = [{ id: head.id, outcome: refusal }];
    const left = withWaiting(state, without(waiting, place));
    return { state: left, events: [rules.denied(record, head, at)], answers, losses: NONE };
  }
  const granted = grant(state, head, own, stale, place, rules, at);
  const { state: after, outcome, events, losses: lost } = granted;
  return { state: after, events, answers: [{ id: head.id, outcome }], losses: lost };
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

/** Frees these stale holds. `by`: who gets what they held, if that is certain. */
export function reclaim<S extends ResourceState, Outcome>(
  state: S,
  stale: readonly HoldOf<S>[],
  { told, events }: Rules<S, Outcome>,
  at: Moment,
  by?: string,
): Served<S, Outcome | SharedOutcome<S>> {
  return {
    state: stale.length === 0 ? state : withHolds(state, except(holdsOf(state), stale)),
    events: stale.map((lost) => told(events.reclaimed, lost, at)),
    answers: NONE,
    losses: losses(stale, 'reclaimed', by === undefined ? {} : { by }),
  };
}

// Steps

/** Serves the waiters after what the step did. */
export function settle<S extends ResourceState, Outcome>(
  so: GrantStep<S, NoInfer<Outcome>>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  return so.state.waiting.length === 0 ? so : serveQueue<S, Outcome | SharedOutcome<S>>(so, rules, at);
}

/** The record after a grant. Its own fields come first and in one order: a record without limits has one shape. */
export function withLimits<R extends HoldRecord>(record: R, limits: Limits | undefined): R {
  return limits === undefined ? record : { ...record, limits };
}
