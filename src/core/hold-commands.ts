/** The commands that locks and semaphores carry out alike: they end, keep or repair holds, and need no grant of their own. */
import { reclaim, settle, withLimits } from './grant.ts';
import { allClaimed, type Claim, except, isStale, onLeases, placeOf, staleOf, warn } from './hold.ts';
import { losses, takenBy } from './loss.ts';
import { followed, type Moment, NONE, step, unreachable } from './machine.ts';
import { budget, leave, LOST, withHolds, without } from './queue.ts';
import { limitsAfter, shorter } from './settings.ts';
import {
  type Configure,
  type GrantStep,
  type HoldCommand,
  type HoldOf,
  holdsOf,
  type ResourceState,
  type Rules,
  type SharedOutcome,
} from './resource.ts';

type Command<S extends ResourceState, Kind> = Extract<HoldCommand<HoldOf<S>>, { kind: Kind }>;

export function holdTransition<S extends ResourceState, Outcome>(
  state: S,
  command: HoldCommand<HoldOf<S>> | Configure,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  switch (command.kind) {
    case 'release':
      return release(state, command, rules, at);
    case 'break':
      return breakHolds(state, command, rules, at);
    case 'heartbeat':
      return heartbeat(state, command, rules, at);
    case 'extend':
      return extend(state, command, rules, at);
    case 'cancel':
      return cancel(state, command, rules, at);
    case 'refuse':
      return refuse(state, command, rules, at);
    case 'settle':
      return serve(state, rules, at);
    case 'tick':
      return tick(state, rules, at);
    case 'maintain':
      return maintain(state, command, rules, at);
    case 'configure':
      return configure(state, command, rules, at);
    default:
      return unreachable(command);
  }
}

function release<S extends ResourceState, Outcome>(
  state: S,
  claim: Claim & { readonly elsewhere?: true; readonly sole?: true },
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const holds = holdsOf(state);
  const place = placeOf(holds, claim);
  const hold = holds[place];
  if (hold === undefined) return step(state, rules.says.absent(state.record));
  const meant = claim.sole === true ? allClaimed(holds, claim) : NONE;
  if (meant.length > 1) return step(state, { kind: 'ambiguous', holds: meant });
  const freed = withHolds(state, holds.length === 1 ? NONE : without(holds, place));
  const lost = claim.elsewhere === true ? losses([hold], 'released-elsewhere') : NONE;
  return settle(
    step(freed, { kind: 'released', hold }, [rules.told(rules.events.released, hold, at)], lost),
    rules,
    at,
  );
}

function breakHolds<S extends ResourceState, Outcome>(
  state: S,
  command: Command<S, 'break'>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const holds = holdsOf(state);
  const { broken = NONE, upTo = state.record.token } = command;
  const meant = holds.filter((hold) => hold.token <= upTo);
  if (meant.length === 0) {
    return step(state, broken.length === 0 ? rules.says.unbroken(state.record) : { kind: 'broken', holds: broken });
  }
  const taken = meant.slice(0, at.most);
  const who = takenBy(command.holder, command.reason, meant.length);
  const events = taken.map((hold) => rules.told(rules.events.forced, hold, at, who));
  const freed = withHolds(state, except(holds, taken));
  const all = [...broken, ...taken];
  const lost = losses(taken, 'forced', who);
  if (taken.length < meant.length) {
    return step(freed, { kind: 'unfinished', then: { ...command, upTo, broken: all } }, events, lost);
  }
  return settle(step(freed, { kind: 'broken', holds: all }, events, lost), rules, at);
}

/** Writes nothing. The lease was renewed in the store; this only checks that the hold still exists. */
function heartbeat<S extends ResourceState, Outcome>(
  state: S,
  { ttlMs: asked, maxHoldMs: askedInAll, ...claim }: Command<S, 'heartbeat'>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const holds = holdsOf(state);
  const hold = holds[placeOf(holds, claim)];
  if (hold === undefined) return step(state, rules.says.absent(state.record));
  if (isStale(hold, at)) return step(state, LOST);
  if (asked === undefined) return step(state, { kind: 'refreshed', hold });
  const { limits } = state.record;
  const ttlMs = shorter(asked, limits?.ttlMs) ?? asked;
  const maxHoldMs = askedInAll === undefined ? undefined : shorter(askedInAll, limits?.maxHoldMs);
  return step(state, { kind: 'refreshed', hold, ttlMs, ...(maxHoldMs !== undefined && { maxHoldMs }) });
}

function extend<S extends ResourceState, Outcome>(
  state: S,
  command: Command<S, 'extend'>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const holds = holdsOf(state);
  const place = placeOf(holds, command);
  const hold = holds[place];
  if (hold === undefined) return step(state, rules.says.absent(state.record));
  if (isStale(hold, at) || (command.from !== undefined && command.from !== hold.lease)) return step(state, LOST);
  const longer = onLeases(hold, command);
  const extended = longer === hold ? state : withHolds(state, holds.with(place, longer));
  return step(extended, { kind: 'refreshed', hold: longer });
}

function cancel<S extends ResourceState, Outcome>(
  state: S,
  { id }: Command<S, 'cancel'>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const holds = holdsOf(state);
  const hold = holds.find((held) => held.id === id);
  const enlarged = hold ?? holds.find((held) => rules.enlargedBy(held) === id);
  if (enlarged !== undefined) {
    const { holder } = enlarged;
    const given = hold === undefined ? rules.giveBack(state, enlarged, at) : release(state, { holder, id }, rules, at);
    if (given !== undefined) return { ...given, outcome: { kind: 'cancelled', gaveBack: true } };
  }
  // The waiters behind this request may have waited for nothing else.
  return settle(step(leave(state, id), { kind: 'cancelled', gaveBack: false }), rules, at);
}

function refuse<S extends ResourceState, Outcome>(
  state: S,
  { id, cycle }: Command<S, 'refuse'>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const victim = state.waiting.find((waiter) => waiter.id === id);
  if (victim === undefined) return step(state, { kind: 'unchanged' });
  // A request that needs no turn waits for nobody, so it is no part of the cycle.
  const settled = rules.withoutTurn(state, victim, at) ?? {
    state,
    outcome: { kind: 'deadlock', cycle } as const,
    events: [rules.asked(rules.events.deadlock, victim, at, { cycle })],
  };
  const left = step(leave(settled.state, id), { kind: 'settled' } as const, settled.events);
  return settle({ ...left, answers: [{ id, outcome: settled.outcome }] }, rules, at);
}

/**
 * Serves the queue. While the next in line has to wait for living holders, it frees the stale holds beside them: their holders
 * may release before they hear of the ended leases, and would not serve a request that still finds no room.
 */
function serve<S extends ResourceState, Outcome>(
  state: S,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const served = settle(step<S, Outcome | SharedOutcome<S>>(state, { kind: 'settled' }), rules, at);
  const { record, waiting } = served.state;
  if (waiting.length === 0 || record.onStale !== 'reclaim') return served;
  const stale = staleOf(holdsOf(served.state), at).slice(0, Math.max(0, budget(served, at)));
  return stale.length === 0 ? served : followed(served, reclaim(served.state, stale, rules, at), served.outcome);
}

/** Warns once of every stale hold. */
function tick<S extends ResourceState, Outcome>(state: S, rules: Rules<S, Outcome>, at: Moment): GrantStep<S, Outcome> {
  const { holds, stale } = warn(holdsOf(state), at);
  const events = stale.map((hold) => rules.told(rules.events.stale, hold, at));
  return step(stale.length === 0 ? state : withHolds(state, holds), { kind: 'unchanged' }, events);
}

function maintain<S extends ResourceState, Outcome>(
  state: S,
  command: Command<S, 'maintain'>,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const stale = state.record.onStale === 'reclaim' ? staleOf(holdsOf(state), at) : NONE;
  const taken = stale.slice(0, at.most);
  const { state: freed, events, losses: lost } = reclaim(state, taken, rules, at);
  const reclaimed = [...(command.reclaimed ?? NONE), ...taken];
  if (taken.length < stale.length) {
    return step(freed, { kind: 'unfinished', then: { kind: 'maintain', reclaimed } }, events, lost);
  }
  return settle(step(freed, { kind: 'maintained', reclaimed }, events, lost), rules, at);
}

function configure<S extends ResourceState, Outcome>(
  state: S,
  command: Configure,
  rules: Rules<S, Outcome>,
  at: Moment,
): GrantStep<S, Outcome> {
  const { record, waiting } = state;
  const { limits: before, ...rest } = record;
  const { onStale = record.onStale } = command;
  const limits = limitsAfter(before, command);
  if (onStale === record.onStale && limits === before) return step(state, { kind: 'configured' });
  const configured = { record: withLimits({ ...rest, onStale }, limits), waiting } as S;
  // The waiters behind a stale hold may have it now.
  return settle(step(configured, { kind: 'configured' }), rules, at);
}
