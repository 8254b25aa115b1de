/** Laws about what is held. */
import { isStale } from '../../src/core/hold.ts';
import {
  claimed,
  type Command,
  type Enlarged,
  eventsOf,
  grantsOf,
  isGrant,
  isIdle,
  type Laws,
  same,
  type Seen,
  touched,
} from './law.ts';

export const holdLaws: Laws = {
  'no change is the same object, and a change is another': ({ before, step }) => {
    if (step.state === before) return step.answers.length + step.losses.length === 0 ? undefined : 'somebody was told';
    return same(step.state, before) ? 'an equal copy came back' : undefined;
  },

  'a request that is refused, and a look, change nothing': (seen) =>
    isIdle(seen) && seen.step.state !== seen.before ? seen.step.outcome.kind : undefined,

  'a state survives a journey through JSON': ({ step }) => notJson(step.state, ''),

  'a step touches no more than one write takes': (seen) => {
    const { most = Number.POSITIVE_INFINITY } = seen.at;
    return touched(seen) > most ? `${touched(seen)} of ${most}` : undefined;
  },

  'tokens only grow, and no two grants share one': (seen) => {
    const { before, step, past } = seen;
    let largest = past.largestToken;
    let last = before.record.token;
    const held = new Set(before.record.holds.map(({ token }) => token));
    for (const { token } of eventsOf(seen, 'acquired')) {
      // Growing is not a new grant: what was held before is held on.
      if (before.record.kind === 'semaphore' && held.has(Number(token))) continue;
      if (Number(token) <= largest) return `#${String(token)} after #${largest}`;
      largest = Number(token);
      last = largest;
      held.add(largest);
    }
    return step.state.record.token < last ? `the record forgot #${last}` : undefined;
  },

  'nothing is granted to the dead': (seen) =>
    grantsOf(seen).find(({ request, hold }) => seen.at.gone(request.lease ?? '') || isStale(hold, seen.at))?.hold
      .holder,

  'a hold ends only by its holder, by force, or because it was stale': (seen) => {
    const left = seen.before.record.holds.filter(
      (hold) => !seen.step.state.record.holds.some(({ id }) => id === hold.id),
    );
    const lost = seen.step.losses.filter(({ hold }) => !left.some(({ id }) => id === hold.id));
    if (lost.length > 0) return `${lost[0]?.hold.holder} is said to have lost what it did not`;
    return left.find((hold) => !mayEnd(hold.id, seen))?.holder;
  },

  'where a person must decide, only one who steals or forces takes a stale hold': (seen) => {
    const reclaimed = seen.step.losses.filter(({ why }) => why === 'reclaimed');
    if (reclaimed.length === 0 || seen.step.state.record.onStale === 'reclaim') return undefined;
    const thieves: readonly Command[] = [seen.command, ...seen.before.waiting.map((one) => ({ ...one, kind: '' }))];
    return reclaimed.find(({ by }) => !thieves.some(({ holder, steal }) => steal === true && holder === by))?.hold
      .holder;
  },

  'a grant has the shorter of the times that were asked for and that the resource allows': (seen) => {
    const { limits } = seen.step.state.record;
    const wrong = grantsOf(seen).find(({ request, hold }) => {
      // A request that enlarges a hold does not change its times.
      if (hold.id !== request.id || request.kind === 'upgrade') return false;
      const { maxHoldMs, ttlMs, detached } = request;
      if (hold.maxHoldMs !== shortest(maxHoldMs, limits?.maxHoldMs)) return true;
      return hold.ttlMs !== (detached === true ? (shortest(ttlMs, limits?.ttlMs) ?? DEFAULT_TTL_MS) : undefined);
    });
    return wrong && `${wrong.hold.holder}: ${JSON.stringify([wrong.request, wrong.hold, limits])}`;
  },

  'a renewal that asks for another time gets no more than the resource allows': ({ before, command, step }) => {
    const { outcome } = step;
    if (command.kind !== 'heartbeat' || outcome.kind !== 'refreshed') return undefined;
    const expected = command.ttlMs === undefined ? undefined : shortest(command.ttlMs, before.record.limits?.ttlMs);
    return outcome.ttlMs === expected ? undefined : `${outcome.ttlMs} instead of ${expected}`;
  },

  'only configure changes the rules, each as it says, and no hold along with them': ({ before, command, step }) => {
    const [was, is] = [before.record, step.state.record];
    const after = (name: 'maxHoldMs' | 'ttlMs'): number | undefined =>
      command.kind !== 'configure' || command[name] === undefined ? was.limits?.[name] : (command[name] ?? undefined);
    for (const name of ['maxHoldMs', 'ttlMs'] as const) {
      if (is.limits?.[name] !== after(name)) return `${name} is ${is.limits?.[name]}`;
    }
    return is.onStale === (command.onStale ?? was.onStale) ? undefined : is.onStale;
  },

  'a hold changes only by what its own holder asks': (seen) => {
    const changed = seen.step.state.record.holds.find((hold) => {
      const was = seen.before.record.holds.find(({ id }) => id === hold.id);
      return was !== undefined && !same(was, hold) && !mayChange(hold.id, seen);
    });
    return changed?.holder;
  },

  'a claim that no hold answers to does nothing': (seen) => {
    if (!CLAIMS.includes(seen.command.kind) || claimed(seen) !== undefined) return undefined;
    const { kind } = seen.step.outcome;
    const refused = kind === 'not-owner' || kind === 'not-holder' || kind === 'already-free';
    return refused && seen.step.state === seen.before ? undefined : kind;
  },

  'a stale holder cannot revive': (seen) => {
    const { before, command, at, step } = seen;
    const hold = claimed(seen);
    const renews = CLAIMS.includes(command.kind) && command.kind !== 'release';
    if (renews && hold !== undefined && isStale(hold, at) && step.outcome.kind !== 'lost') return step.outcome.kind;
    const stale = before.record.holds.filter((held) => isStale(held, at)).map(({ id }) => id);
    return step.state.record.holds.find((held) => stale.includes(held.id) && !isStale(held, at))?.holder;
  },

  'a request that is granted does hold': ({ step }) => {
    const told = [step.outcome, ...step.answers.map(({ outcome }) => outcome)].filter(({ kind }) =>
      HAVING.includes(kind),
    );
    const ids = step.state.record.holds.map(({ id }) => id);
    return told.find(({ hold }) => !ids.includes(hold?.id ?? ''))?.hold?.holder;
  },

  'events tell of every grant and every end': (seen) => {
    const { before, step } = seen;
    const told = new Set(eventsOf(seen, 'acquired').map(({ token }) => token));
    const ended = new Set(
      ['released', 'reclaimed', 'forced'].flatMap((what) => eventsOf(seen, what).map((e) => e.token)),
    );
    const tokens = before.record.holds.map(({ token }) => token);
    const silent = step.state.record.holds.find(({ token }) => !tokens.includes(token) && !told.has(token));
    if (silent !== undefined) return `nobody heard that ${silent.holder} got #${silent.token}`;
    const after = step.state.record.holds.map(({ id }) => id);
    const gone = before.record.holds.find(({ id, token }) => !after.includes(id) && !ended.has(token));
    return gone === undefined ? undefined : `nobody heard that ${gone.holder} left`;
  },

  'a hold is warned of once, and only when stale': (seen) => {
    for (const { holder, token } of eventsOf(seen, 'stale')) {
      const hold = seen.before.record.holds.find((held) => held.token === token);
      if (hold === undefined || !isStale(hold, seen.at)) return `${holder} is not stale`;
      if (seen.past.warned.has(`${hold.id}#${hold.token}`)) return `${holder} again`;
    }
    const unwarned = seen.before.record.holds.filter((hold) => hold.warned !== true && isStale(hold, seen.at));
    return seen.command.kind === 'tick' && eventsOf(seen, 'stale').length !== unwarned.length ? 'not all' : undefined;
  },
};

/** Another request of the same holder has the hold too. */
const SHARES = ['extended', 'already-held'];

const DEFAULT_TTL_MS = 60_000;

function shortest(...times: readonly (number | null | undefined)[]): number | undefined {
  const given = times.filter((time) => typeof time === 'number');
  return given.length === 0 ? undefined : Math.min(...given);
}

const CLAIMS = ['release', 'heartbeat', 'extend', 'upgrade', 'downgrade'];
const HAVING = [
  'acquired',
  'reclaimed',
  'upgraded',
  'increased',
  'extended',
  'already-held',
  'refreshed',
  'downgraded',
];

function mayEnd(id: string, seen: Seen): boolean {
  const { before, command, at, step } = seen;
  if (command.kind === 'release' && claimed(seen)?.id === id) return true;
  if (command.kind === 'cancel' && command.id === id) return true;
  const loss = step.losses.find(({ hold }) => hold.id === id);
  if (loss?.why === 'forced') return command.kind === 'break' || command.force === true;
  const hold = before.record.holds.find((held) => held.id === id);
  return loss?.why === 'reclaimed' && hold !== undefined && isStale(hold, at);
}

function mayChange(id: string, seen: Seen): boolean {
  const { before, command, step } = seen;
  const was = before.record.holds.find((hold) => hold.id === id) as Enlarged | undefined;
  const asked = was?.upgradedBy ?? was?.grown?.by;
  if (['extend', 'downgrade'].includes(command.kind) && claimed(seen)?.id === id) return true;
  if (command.kind === 'cancel' && asked === command.id) return true;
  if (command.kind === 'tick') return step.state.record.holds.find((hold) => hold.id === id)?.warned === true;
  return [step.outcome, ...step.answers.map(({ outcome }) => outcome)].some(
    (outcome) => (isGrant(outcome) || SHARES.includes(outcome.kind)) && outcome.hold?.id === id,
  );
}

/** States share what did not change: most of it was looked at before. */
const isJson = new WeakSet<object>();

/** Where a value has something that JSON cannot express, or leaves out. */
function notJson(value: unknown, where: string): string | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${where} is ${value}`;
  if (typeof value !== 'object') return `${where} is ${typeof value}`;
  if (isJson.has(value)) return undefined;
  for (const [key, part] of Object.entries(value)) {
    const found = notJson(part, `${where}.${key}`);
    if (found !== undefined) return found;
  }
  isJson.add(value);
  return undefined;
}
