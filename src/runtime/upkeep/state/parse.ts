/** Parses the files, and refuses anything malformed with its place: a state is loaded whole or not at all. */
import { type Asked, isCount, isDrain, nameProblem, requestProblem } from '../../../core/index.ts';
import { Failure, shown } from '../../../failure.ts';
import {
  type SavedHold,
  type SavedKind,
  type SavedLock,
  type SavedSemaphore,
  type SavedState,
  STATE_VERSION,
} from './document.ts';
import { type Fields, Place } from './place.ts';

export function parseLocks(file: string, text: string): SavedState['locks'] {
  const named = namesOnce();
  return listIn(file, text, 'locks').map(([value, place]) => {
    const fields = place.fields(value, ['name', 'token', 'onStale', 'limits', 'holds'], ['limits']);
    const lock = { ...common(place, fields, named), holds: holdsOf(place, fields, [...HOLD, 'mode']) };
    checkHolds(place, lock);
    if (lock.holds.length > 1 && lock.holds.some(({ mode }) => mode === 'exclusive')) {
      throw place.at('holds').problem('an exclusive hold beside others');
    }
    return lock as unknown as SavedLock;
  });
}

export function parseSemaphores(file: string, text: string): SavedState['semaphores'] {
  const named = namesOnce();
  return listIn(file, text, 'semaphores').map(([value, place]) => {
    const known = ['name', 'capacity', 'token', 'onStale', 'limits', 'drained', 'holds'];
    const fields = place.fields(value, known, ['limits', 'drained']);
    const { capacity, drained } = fields as { capacity: number; drained?: unknown };
    if (drained !== undefined && !isDrain(drained)) throw place.at('drained').problem(shown(drained));
    // Zero is accepted: a semaphore that was only configured has no capacity yet.
    place.expect(isCount(capacity), 'capacity', capacity, 'a whole number from 0');
    const holds = holdsOf(place, fields, [...HOLD, 'weight', 'slots']);
    const more = drained === undefined ? {} : { drained };
    const semaphore = { ...common(place, fields, named), capacity, ...more, holds };
    checkHolds(place, semaphore);
    checkSlots(place, semaphore.holds as unknown as SavedSemaphore['holds']);
    return semaphore as unknown as SavedSemaphore;
  });
}

const HOLD = ['holder', 'token', 'acquiredAt', 'ttlMs', 'maxHoldMs', 'reason', 'metadata', 'isStale', 'isWarned'];
/** Tokens only grow, and numbers beyond 2^53 are not exact. No store grants even half of this limit. */
const LARGEST_TOKEN = 2 ** 52;
const MAY_LACK = ['ttlMs', 'maxHoldMs', 'reason', 'metadata', 'isStale', 'isWarned'];

type Listed = { readonly token: number; readonly holds: readonly (SavedHold & Fields)[] };

/** The list of a file, each of its items with its place. */
export function listIn(file: string, text: string, kind: SavedKind): readonly (readonly [unknown, Place])[] {
  const { place, value } = documentIn(file, text, kind);
  return place.list(value);
}

export function documentIn(
  file: string,
  text: string,
  kind: SavedKind,
  beside: readonly string[] = [],
): { readonly place: Place; readonly value: unknown; readonly fields: Fields } {
  const whole = new Place(file);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new Failure('corrupt', `${file} is not JSON: ${cause instanceof Error ? cause.message : ''}`, { cause });
  }
  const version = (document as { version?: unknown } | null)?.version;
  // The version is checked first: a newer one may have keys that this one does not know.
  if (typeof version === 'number' && version > STATE_VERSION) {
    throw whole
      .at('version')
      .problem(`version ${version}, and this signalbox reads ${STATE_VERSION}: update signalbox`);
  }
  const fields = whole.fields(document, ['version', kind, ...beside], beside);
  whole.expect(version === STATE_VERSION, 'version', version, String(STATE_VERSION));
  return { place: whole.at(kind), value: fields[kind], fields };
}

function common(place: Place, fields: Fields, named: (name: string, place: Place) => void): Omit<SavedLock, 'holds'> {
  const { name, token, onStale, limits } = fields;
  place.check(nameProblem(name));
  place.check(requestProblem({ onStale }, ['onStale']));
  if (limits !== undefined) {
    const { maxHoldMs, ttlMs } = place.at('limits').fields(limits, ['maxHoldMs', 'ttlMs'], ['maxHoldMs', 'ttlMs']);
    place.at('limits').check(requestProblem({ maxHoldMs, ttlMs }));
  }
  place.expect(isCount(token), 'token', token, 'a whole number of at least 0');
  if ((token as number) > LARGEST_TOKEN) {
    throw place.at('token').problem(`${shown(token)} is too large: there would be no room for larger ones after it`);
  }
  named(name as string, place);
  return { name, token, onStale, ...(limits !== undefined && { limits }) } as Omit<SavedLock, 'holds'>;
}

export function namesOnce(): (name: string, place: Place) => void {
  const seen = new Map<string, Place>();
  return (name, place) => {
    const before = seen.get(name);
    if (before !== undefined) throw place.at('name').problem(`${shown(name)} is named already, at ${before.path}`);
    seen.set(name, place);
  };
}

function holdsOf(place: Place, fields: Fields, known: readonly string[]): readonly (SavedHold & Fields)[] {
  return place
    .at('holds')
    .list(fields['holds'])
    .map(([value, at]) => {
      const hold = at.fields(value, known, MAY_LACK);
      const { holder, token, ttlMs, maxHoldMs, reason, metadata, mode, weight } = hold;
      const asked: Asked = { holder, token, ttlMs, maxHoldMs, reason, metadata, mode, weight };
      at.check(requestProblem(asked, ['holder', 'token']));
      for (const flag of ['isStale', 'isWarned']) {
        if (hold[flag] !== undefined && hold[flag] !== true) throw at.at(flag).problem('expected true, or nothing');
      }
      const { acquiredAt } = hold;
      const isTime = typeof acquiredAt === 'string' && new Date(acquiredAt).getTime() === Date.parse(acquiredAt);
      at.expect(isTime, 'acquiredAt', acquiredAt, 'a time as 2026-01-31T12:00:00.000Z');
      return hold as unknown as SavedHold & Fields;
    });
}

function checkHolds(place: Place, { token, holds }: Listed): void {
  const tokens = new Set<number>();
  const live = new Set<string>();
  for (const [index, hold] of holds.entries()) {
    const at = place.at('holds').at(index);
    if (hold.token > token) throw at.at('token').problem(`${hold.token}, above the last token given out, ${token}`);
    if (tokens.has(hold.token)) throw at.at('token').problem(`${hold.token} is the token of another hold`);
    tokens.add(hold.token);
    if (hold.isStale === true) continue;
    if (live.has(hold.holder)) throw at.at('holder').problem(`${shown(hold.holder)} has a hold already`);
    live.add(hold.holder);
  }
}

function checkSlots(place: Place, holds: SavedSemaphore['holds']): void {
  const taken = new Set<number>();
  for (const [index, { weight, slots }] of holds.entries()) {
    const at = place.at('holds').at(index).at('slots');
    if (!Array.isArray(slots) || slots.length !== weight || !slots.every(isCount)) {
      throw at.problem(`${shown(slots)}; expected as many whole numbers from 0 as the weight says, ${weight}`);
    }
    for (const slot of slots) {
      if (taken.has(slot)) throw at.problem(`slot ${slot} is held already`);
      taken.add(slot);
    }
  }
}
