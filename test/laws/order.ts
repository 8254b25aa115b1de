/**
 * Who must be served next: told a second time, in other words than the machines', and followed through a step event by
 * event.
 */
import type { Hold } from '../../src/core/hold.ts';
import type { Event, Moment } from '../../src/core/machine.ts';
import { type Passed, PATIENCE } from '../../src/core/queue.ts';
import { claimed, type Command, grantsOf, holdOf, isGrant, type Resource, type Seen, type Wish } from './law.ts';

/** What the laws have to know about one kind of resource. */
export interface Rules<State extends Resource> {
  /** Whether this request could be granted, were it its turn. `own`: what its holder has already. */
  canHave(state: State, holds: readonly Hold[], wish: Wish, own: Hold | undefined, at: Moment): boolean;
  /** Whether one who has this hold has what is asked. */
  covers(hold: Hold, wish: Wish): boolean;
  /** What a newcomer waits as. */
  wish(command: Command, own: Hold | undefined): Wish;
  /** What is wrong with a grant beside these other holds. */
  wrongWith(state: State, hold: Hold, own: Hold | undefined, others: readonly Hold[]): string | undefined;
  /** Whether a request can never be granted, however long it waits. */
  never(state: State, wish: Wish, at: Moment): boolean;
  /** Whether this is what was asked for, and neither more nor less. */
  isAsked(hold: Hold, wish: Wish): boolean;
  /** Whether nobody could be granted anything now. */
  isClosed(state: State): boolean;
  /** What remains of a hold after an event about a part of it; undefined if the event is about all of it. */
  remains(hold: Hold, event: Event): Hold | undefined;
}

export function nextOf(waiting: readonly Wish[], passed: Passed | null): Wish | undefined {
  const upgrade = waiting.find(({ upgrades }) => upgrades !== undefined);
  if (upgrade !== undefined) return upgrade;
  const [oldest] = waiting;
  if (oldest !== undefined && passed?.id === oldest.id && passed.times >= PATIENCE) return oldest;
  const highest = Math.max(...waiting.map(({ priority }) => priority));
  return waiting.find(({ priority }) => priority === highest);
}

/** Those who are left when the dead at the head have gone. */
export function withoutDeadHeads(waiting: readonly Wish[], passed: Passed | null, at: Moment): readonly Wish[] {
  const head = nextOf(waiting, passed);
  if (head === undefined || !at.gone(head.lease)) return waiting;
  return withoutDeadHeads(
    waiting.filter((other) => other !== head),
    passed,
    at,
  );
}

export interface Order {
  /** The first grant that was out of turn. */
  readonly wrong?: string;
  /** How often the one that has waited longest was passed in a row. */
  readonly passed: Passed | null;
}

export function follow<State extends Resource>(seen: Seen<State>, rules: Rules<State>): Order {
  const { before, step, at, command } = seen;
  const grants = [...grantsOf(seen)];
  let { passed } = seen.past;
  let waiting: readonly Wish[] = before.waiting.filter((waiter) => !left(waiter, seen, rules));
  let holds: readonly Hold[] = before.record.holds;
  // What was there before stale holds made room for the grant that comes next.
  let earlier = holds;

  for (const event of step.events) {
    const what = event.type.split(':')[1] ?? '';
    if (['released', 'forced', 'reclaimed', 'downgraded'].includes(what)) {
      holds = holds.flatMap((hold) => (hold.token === event.token ? (rules.remains(hold, event) ?? []) : hold));
      if (what !== 'reclaimed') earlier = holds;
    }
    if (what !== 'acquired') continue;

    const place = grants.findIndex(({ hold }) => hold.token === event.token && hold.weight === event.weight);
    const [grant] = place < 0 ? [] : grants.splice(place, 1);
    if (grant === undefined) return { wrong: `${event.holder} was told nothing of its grant`, passed };
    const { hold } = grant;
    const isNewcomer = grant.request === command;
    const own = isNewcomer && command.kind === 'upgrade' ? claimed(seen) : holdOf(hold.holder, earlier, at);
    const isForced = isNewcomer && command.force === true;
    const wish = isNewcomer ? rules.wish(command, own) : (grant.request as unknown as Wish);
    // Force goes past everyone, and who upgrades goes before everyone: neither looks who is alive.
    const isFirst = isForced || (isNewcomer && wish.upgrades !== undefined);
    const rest = isFirst ? waiting : withoutDeadHeads(waiting, passed, at);

    const couldHave = (one: Wish): boolean =>
      rules.canHave(step.state, earlier, one, holdOf(one.holder, earlier, at), at);
    if (!isForced && !couldHave(wish)) return { wrong: `${hold.holder} got what it could not have`, passed };
    if (!isFirst) {
      const head = nextOf(rest, passed);
      if (isNewcomer && head !== undefined && couldHave(head)) {
        return { wrong: `${hold.holder} came before ${head.holder}, who could have had it`, passed };
      }
      const next = nextOf(isNewcomer ? [...rest, wish] : rest, passed);
      if (next?.id !== wish.id) return { wrong: `${hold.holder} came before ${next?.holder}`, passed };
    }
    const others = holds.filter((other) => other.id !== own?.id);
    const wrong = rules.wrongWith(step.state, hold, own, others);
    if (wrong !== undefined) return { wrong, passed };

    const [oldest] = rest;
    if (oldest === undefined || oldest.id === wish.id) passed = null;
    else passed = { id: oldest.id, times: passed?.id === oldest.id ? passed.times + 1 : 1 };
    waiting = rest.filter(
      (waiter) => waiter.id !== wish.id && !(waiter.holder === hold.holder && rules.covers(hold, waiter)),
    );
    holds = [...others, hold];
    earlier = holds;
  }
  return grants.length === 0 ? { passed } : { wrong: `nobody heard of ${grants[0]?.hold.holder}'s grant`, passed };
}

/** Whoever gave up, was refused, or has what it asked for already is out of the queue before it is served. */
function left<State extends Resource>(
  waiter: Wish,
  { before, command, step }: Seen<State>,
  rules: Rules<State>,
): boolean {
  if ((command.kind === 'cancel' || command.kind === 'refuse') && command.id === waiter.id) return true;
  const answer = step.answers.find(({ id }) => id === waiter.id);
  if (answer === undefined || isGrant(answer.outcome)) return false;
  const held = before.record.holds.find(({ id }) => id === answer.outcome.hold?.id);
  return answer.outcome.hold === undefined || (held !== undefined && rules.covers(held, waiter));
}
