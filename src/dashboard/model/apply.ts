/**
 * Computes the next state from a state and events: pure, so that it can be tested without a browser and a server.
 * Events do not say everything: a request that gives up causes none. So the resources that they touch are also noted as
 * unread.
 */
import { pipelineAfter, taskAfter, workRead } from './apply-tasks.ts';
import { bound, isKnown, isOutdated, merged, revisionOf } from './as-of.ts';
import { counted, countedBefore, withDenials } from './rates.ts';
import { kindAndName } from './text.ts';
import { holdIn, items, numberIn, resourceIn, textIn, waiterIn } from './read.ts';
import type { Deadlock, Happening, Hold, Kind, Resource, Sample, State, Waiter } from './types.ts';

export const MOST_ENTRIES = 500;
const MOST_SAMPLES = 400;
const MOST_DEADLOCKS = 50;
export const MOST_RESOURCES = 50_000;
export const MOST_TASKS = 2_500;
export const MOST_PIPELINES = 1_000;

export type Draft = ReturnType<typeof draftOf>;

/** Copies each collection once per batch, however many events there are. */
function draftOf({ workRevision, membersRevision, counts, ...state }: State) {
  return {
    ...{ workRevision, membersRevision, counts },
    resources: new Map(state.resources),
    tasks: new Map(state.tasks),
    pipelines: new Map(state.pipelines),
    unread: new Set(state.unread),
    waits: [] as Sample[],
    held: [] as Sample[],
    deadlocks: [] as Deadlock[],
  };
}

/** `now` is the server's time: no event is counted as later than that. */
export function applied(state: State, events: readonly Happening[], now = Infinity): State {
  if (events.length === 0) return state;
  const draft = draftOf(state);
  let { revision } = state;
  for (const event of events) {
    revision = Math.max(revision, revisionOf(event.id));
    applyOne(draft, event, state.snapshotRevision);
  }
  keepWithinBounds(draft);
  const { waits, held, deadlocks, ...next } = draft;
  return {
    ...{ ...state, ...next, revision },
    deadlocks: [...deadlocks.reverse(), ...state.deadlocks].slice(0, MOST_DEADLOCKS),
    entries: [...events.toReversed(), ...state.entries].slice(0, MOST_ENTRIES),
    waits: [...state.waits, ...waits].slice(-MOST_SAMPLES),
    slices: counted(state.slices, { events, waits, holds: held, now }),
  };
}

function keepWithinBounds({ resources, tasks, pipelines, unread }: Draft): void {
  const wereLeftOut = [
    bound(resources, MOST_RESOURCES, isIdle),
    bound(tasks, MOST_TASKS, ({ status }) => status === 'complete'),
    // The server also lists fewer than this, however many are not complete.
    bound(tasks, MOST_TASKS, ({ status }) => status !== 'running'),
    bound(pipelines, MOST_PIPELINES, ({ endedAt }) => endedAt !== null),
  ];
  if (!wereLeftOut.includes(true)) return;
  for (const name of unread) {
    const [kind, id] = kindAndName(name);
    const isListed = kind === 'task' ? tasks.has(id) : kind === 'pipeline' ? pipelines.has(id) : resources.has(name);
    if (!isListed && name !== 'members' && name !== 'witness') unread.delete(name);
  }
}

function applyOne(draft: Draft, event: Happening, snapshot: number): void {
  const [kind, name] = kindAndName(event.resource);
  switch (kind) {
    case 'lock':
    case 'semaphore':
      return applyToResource(draft, kind, name, event, snapshot);
    case 'task':
      return taskAfter(draft, name, event);
    case 'pipeline':
      return pipelineAfter(draft, name, event);
    case 'witness':
      return void draft.unread.add('witness');
    default:
      if (/^(member|coordinator|topology):/.test(event.type)) membersAfter(draft, event);
  }
}

function membersAfter(draft: Draft, event: Happening): void {
  const revision = revisionOf(event.id);
  if (revision <= draft.membersRevision) return;
  draft.membersRevision = revision;
  draft.unread.add('members');
}

function applyToResource(draft: Draft, kind: Kind, name: string, event: Happening, snapshot: number): void {
  const revision = revisionOf(event.id);
  const before = draft.resources.get(event.resource);
  if (isKnown(before, revision, snapshot)) return;
  const known = before ?? unused(kind, name);
  const next = { ...after(known, event, draft), revision, readAt: 0 };
  draft.resources.set(event.resource, next);
  // For a lock that nobody holds or waits for, events have told everything.
  if (kind === 'lock' && isIdle(next)) draft.unread.delete(event.resource);
  else draft.unread.add(event.resource);
}

function isIdle({ holds, waiting }: Resource): boolean {
  return holds.length + waiting.length === 0;
}

export function unused(kind: Kind, name: string): Resource {
  return resourceIn(kind, { name }, 0, 0);
}

function after(known: Resource, event: Happening, draft: Draft): Resource {
  const { holds, waiting } = known;
  const what = event.type.slice(event.type.indexOf(':') + 1);
  const token = numberIn(event['token']);
  switch (what) {
    case 'queued':
      return { ...known, waiting: inLine([...waiting, waiterIn(event, event.at)]) };
    case 'acquired': {
      const place = waiting.findIndex(({ holder }) => holder === event.holder);
      const waited = waiting[place];
      if (waited !== undefined) draft.waits.push(sample(event, waited.since));
      // A reader that became the writer, or a holder that has more slots now, has one hold.
      const others = holds.filter(({ holder, isStale }) => holder !== event.holder || isStale);
      return {
        ...known,
        token: Math.max(known.token, token),
        holds: [...others, { ...holdIn(event, event.at), slots: slotNumbers(event['slots']) }],
        waiting: place < 0 ? waiting : waiting.toSpliced(place, 1),
      };
    }
    case 'released':
    case 'reclaimed':
    case 'forced': {
      const ended = holds.find((hold) => hold.token === token);
      if (ended !== undefined) draft.held.push(sample(event, ended.acquiredAt));
      return { ...known, token: Math.max(known.token, token), holds: holds.filter((hold) => hold !== ended) };
    }
    case 'stale':
      return { ...known, holds: changed(holds, token, { isStale: true, health: 'silent' }) };
    case 'downgraded':
      return { ...known, holds: changed(holds, token, { mode: 'shared' }) };
    case 'resized':
      return { ...known, capacity: numberIn(event['capacity'], known.capacity) };
    case 'drained': {
      const drained = { by: event.holder, at: event.at, reason: textIn(event['reason']), revision: 0 };
      return { ...known, isDrained: true, drained };
    }
    case 'undrained':
      return { ...known, isDrained: false, drained: null };
    case 'deadlock': {
      draft.deadlocks.push(deadlockOf(event));
      const place = waiting.findIndex(({ holder }) => holder === event.holder);
      return place < 0 ? known : { ...known, waiting: waiting.toSpliced(place, 1) };
    }
    default:
      return known;
  }
}

function changed(holds: readonly Hold[], token: number, change: Partial<Hold>): readonly Hold[] {
  return holds.map((hold) => (hold.token === token ? { ...hold, ...change } : hold));
}

function sample({ resource, at }: Happening, since: number): Sample {
  return { resource, at, ms: Math.max(0, at - since) };
}

/** Higher priorities first, then in order of arrival. */
function inLine(waiting: readonly Waiter[]): readonly Waiter[] {
  return [...waiting].sort((one, other) => other.priority - one.priority || one.since - other.since);
}

/** Numbers, and runs from a first to a last number. */
export function slotNumbers(slots: unknown): readonly number[] {
  return items(slots).flatMap((slot) => {
    if (typeof slot === 'number') return [slot];
    const [first, last] = items(slot);
    if (typeof first !== 'number' || typeof last !== 'number' || last - first > 100_000) return [];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => first + place);
  });
}

export function deadlockOf(event: Happening): Deadlock {
  const cycle = items(event['cycle']) as Deadlock['cycle'];
  return { id: event.id, at: event.at, resource: event.resource, victim: event.holder, cycle };
}

/** Takes over the server's answer to a second reading. An answer that is older than what is known changes nothing. */
export function refreshed(
  state: State,
  found: readonly Resource[],
  at: number,
  unreadable: readonly string[] = [],
): State {
  if (found.length === 0 && unreadable.length === 0) return state;
  const resources = new Map(state.resources);
  const unread = new Set(state.unread);
  for (const one of found) {
    if (isOutdated(one, resources.get(one.resource))) continue;
    unread.delete(one.resource);
    // A resource that nobody ever used, or that the store has forgotten, is not listed.
    if (one.token === 0 && one.capacity === 0 && isIdle(one)) resources.delete(one.resource);
    else resources.set(one.resource, { ...one, readAt: at });
  }
  // Unreadable resources stay as they were, and are not read again at once.
  for (const name of unreadable) {
    unread.delete(name);
    const known = resources.get(name);
    if (known !== undefined) resources.set(name, { ...known, readAt: at });
  }
  return { ...state, resources, unread };
}

/** Adds the deadlocks before this page was opened: only events tell of them. */
export function remembered(state: State, past: readonly Happening[]): State {
  const ids = new Set(state.deadlocks.map(({ id }) => id));
  const older = past.filter(({ type, id }) => type.endsWith(':deadlock') && !ids.has(id)).map(deadlockOf);
  const all = [...state.deadlocks, ...older].sort((one, other) => revisionOf(other.id) - revisionOf(one.id));
  return { ...state, deadlocks: all.slice(0, MOST_DEADLOCKS) };
}

/**
 * Counts the events before this page was opened, or while it missed events. With `from`, everything since then is
 * counted afterwards; without it, everything since the time from which it was counted before.
 */
export function countedPast(
  state: State,
  past: readonly Happening[],
  { from = state.countedFrom, now }: { readonly from: number | undefined; readonly now: number },
): State {
  return { ...state, slices: countedBefore(state.slices, past, now), countedFrom: from };
}

/** Counts requests that were denied without a wait; the store tells only their total. */
export function deniedUpTo(state: State, denials: number, at: number): State {
  const more = denials - (state.denials ?? denials);
  return { ...state, denials, slices: more > 0 ? withDenials(state.slices, more, at) : state.slices };
}

/**
 * Takes over a board that was read while events went on. What they have told since stays; resources that the store has
 * forgotten go, and no event tells of that.
 */
export function boardRead(state: State, board: State): State {
  const { snapshotRevision: revision } = board;
  const rest = workRead(state, board);
  if (revision < state.snapshotRevision) return rest;
  const resources = merged(state.resources, board.resources, revision);
  const isUnread = (name: string): boolean => !isHeld(name) || isOutdated({ revision }, resources.get(name));
  return { ...rest, snapshotRevision: revision, resources, unread: new Set([...rest.unread].filter(isUnread)) };
}

export const isHeld = (name: string): boolean => /^(lock|semaphore)\//.test(name);

/** Takes over a new snapshot, and keeps what only events tell. */
export function resynced(before: State | undefined, board: State): State {
  if (before === undefined) return board;
  const { deadlocks, entries, waits, slices, countedFrom, denials } = before;
  return { ...board, deadlocks, entries, waits, slices, countedFrom, denials };
}
