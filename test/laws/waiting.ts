/** Laws about those who wait. */
import { isStale } from '../../src/core/hold.ts';
import {
  grantsOf,
  holdOf,
  isExhausted,
  isGrant,
  isIdle,
  isRepeated,
  type Laws,
  type Resource,
  type Seen,
} from './law.ts';
import { follow, nextOf, type Rules, withoutDeadHeads } from './order.ts';

export function waitingLaws<State extends Resource>(rules: Rules<State>): Laws<State> {
  return {
    'nobody who waits is forgotten': ({ before, command, at, step }) => {
      const forgotten = before.waiting.find(({ id, lease }) => {
        const hasGone = at.gone(lease) || (command.kind === 'cancel' && command.id === id);
        return !hasGone && !isIn(id, step.state.waiting) && !isIn(id, step.answers);
      });
      return forgotten?.holder;
    },

    'a request that was answered waits no more, and is answered once': ({ before, step }) => {
      const ids = step.answers.map(({ id }) => id);
      if (new Set(ids).size < ids.length) return 'answered twice';
      return ids.find((id) => isIn(id, step.state.waiting) || !isIn(id, before.waiting));
    },

    'a request that comes again changes nothing': (seen) =>
      isRepeated(seen) && seen.step.state !== seen.before ? seen.command.holder : undefined,

    'a request that is answered with queued, and no other, joins at the end': (seen) => {
      const { before, command, step } = seen;
      const known = step.state.waiting.filter(({ id }) => isIn(id, before.waiting));
      const inOrder = before.waiting.filter(({ id }) => isIn(id, known));
      if (known.some(({ id }, place) => id !== inOrder[place]?.id)) return 'the order changed';
      const joined = step.state.waiting.slice(known.length).map(({ id }) => id);
      const told = step.outcome.kind === 'queued' && !isRepeated(seen) ? [command.request ?? command.id] : [];
      return joined.join() === told.join() ? undefined : `${joined.join()} joined, ${told.join()} was told so`;
    },

    'a request that is given up leaves no trace': ({ command, step }) => {
      if (command.kind !== 'cancel' && command.kind !== 'refuse') return undefined;
      const { record, waiting } = step.state;
      const isDelegated =
        isIn(command.id ?? '', waiting) || (command.kind === 'cancel' && isIn(command.id ?? '', record.holds));
      return isDelegated ? command.id : undefined;
    },

    'a request that is given up takes nothing from another request of the same holder': ({ command, step, past }) => {
      if (command.kind !== 'cancel') return undefined;
      for (const hold of step.state.record.holds) {
        for (const [id, wish] of past.told.get(hold.id) ?? []) {
          if (id !== command.id && !rules.covers(hold, wish)) return `${id} was told that it has ${hold.id}`;
        }
      }
      return undefined;
    },

    'a wish for more ends with its hold': (seen) => {
      if (isExhausted(seen)) return undefined;
      const { before, step } = seen;
      const ended = before.record.holds.filter(({ id }) => !isIn(id, step.state.record.holds));
      return step.state.waiting.find(({ upgrades, grows }) => isIn(upgrades ?? grows ?? '', ended))?.holder;
    },

    'who serves the queue leaves no stale hold in it, for its holders may leave without knowing of it': (seen) => {
      const { command, at, step } = seen;
      const { record, waiting } = step.state;
      if (command.kind !== 'settle' || isExhausted(seen)) return undefined;
      if (waiting.length === 0 || record.onStale !== 'reclaim') return undefined;
      return record.holds.find((hold) => isStale(hold, at))?.holder;
    },

    'nobody waits for what it can never have, or has already': (seen) => {
      if (!settles(seen) || isExhausted(seen)) return undefined;
      const { at, step } = seen;
      return step.state.waiting.find((waiter) => {
        const own = holdOf(waiter.holder, step.state.record.holds, at);
        const waits = !at.gone(waiter.lease);
        return waits && (rules.never(step.state, waiter, at) || (own !== undefined && rules.covers(own, waiter)));
      })?.holder;
    },

    'nothing is granted that was not asked, nor what can never be had': (seen) => {
      const { at, step } = seen;
      for (const { request, hold } of grantsOf(seen)) {
        const wish = rules.wish(request, undefined);
        if (hold.holder !== request.holder) return `${hold.holder} got what ${request.holder} asked for`;
        if (!rules.isAsked(hold, wish)) return `${hold.holder} got something else`;
        if (rules.never({ ...step.state, record: { ...step.state.record, holds: [hold] } }, wish, at)) {
          return `${hold.holder} got what cannot be had`;
        }
      }
      for (const { id, outcome } of step.answers) {
        const request = seen.before.waiting.find((waiter) => waiter.id === id);
        const { hold } = outcome;
        if (hold === undefined || request === undefined || isGrant(outcome)) continue;
        if (hold.holder !== request.holder || !rules.covers(hold, request)) return `${id} was answered with another's`;
      }
      return undefined;
    },

    'nobody waits in front of something it could have': (seen) => {
      if (!settles(seen) || isExhausted(seen)) return undefined;
      const { at, step } = seen;
      const { passed } = follow(seen, rules);
      const head = nextOf(withoutDeadHeads(step.state.waiting, passed, at), passed);
      if (head === undefined) return undefined;
      const { holds } = step.state.record;
      return rules.canHave(step.state, holds, head, holdOf(head.holder, holds, at), at) ? head.holder : undefined;
    },

    'the queue is served in order, and no newcomer before one who could have it': (seen) => follow(seen, rules).wrong,
  };
}

/** A step that changed something leaves nothing undone; one that was refused may. */
function settles(seen: Seen): boolean {
  const { kind } = seen.command;
  if (kind === 'settle' || kind === 'maintain') return true;
  return kind !== 'tick' && kind !== 'extend' && !isIdle(seen) && seen.step.state !== seen.before;
}

function isIn(id: string, list: readonly { readonly id: string }[]): boolean {
  return list.some((other) => other.id === id);
}
