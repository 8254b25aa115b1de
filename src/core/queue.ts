/**
 * Who is next. Requests wait in order of arrival; a higher priority goes first, but the one that has
 * waited longest is passed at most `PATIENCE` times in a row, so that nobody starves.
 *
 *     arrival  →  a(0)  b(0)  c(5)  d(5)      grants: c  d …  and after eight that passed a: a
 *
 * Being passed is counted in grants and not in time, because no clock is shared.
 */
import { type Hold, isStale } from './hold.ts';
import type { Answer, Moment, Request, Step } from './machine.ts';

export interface Waiting extends Request {
  /** Goes before everyone: a reader who already holds and waits to become the writer. */
  readonly upgrades?: string;
  /** The id of the hold that waits for more slots. */
  readonly grows?: string;
}

/** What is granted, and the requests that wait for it in order of arrival. */
export interface Queued {
  readonly record: { readonly holds: readonly Hold[]; readonly passed: Passed | null };
  readonly waiting: readonly Waiting[];
}

/** What a grant brings about. */
export type Served<State, Outcome> = Omit<Step<State, Outcome>, 'outcome'>;

/** How a machine grants the request at `place`, and `undefined` if that one has to wait. */
export type Serve<State, Outcome> = (state: State, place: number, at: Moment) => Served<State, Outcome> | undefined;

/** One step of a deadlock: `holder` waits for `resource`, which `blockedBy` holds, or waits for ahead of it. */
export type WaitsFor = {
  readonly holder: string;
  readonly resource: string;
  readonly blockedBy: string;
};

/** Each waits for the next, and the last for the first. */
export type Cycle = readonly WaitsFor[];

/** How often in a row the request that has waited longest was passed; kept with the grants. */
export interface Passed {
  readonly id: string;
  readonly times: number;
}

export const PATIENCE = 8;

/** The place in `waiting` of the one to be served next; -1 if nobody waits. */
export function nextInLine(waiting: readonly Waiting[], passed: Passed | null): number {
  if (waiting.length === 0) return -1;
  const patient = isPatient(waiting, passed);
  let next = 0;
  for (let place = 0; place < waiting.length; place++) {
    const candidate = waiting[place] as Waiting;
    if (candidate.upgrades !== undefined) return place;
    if (patient && candidate.priority > (waiting[next] as Waiting).priority) next = place;
  }
  return next;
}

/** Whether one that arrives now would be served before all who wait already. */
export function goesAhead(newcomer: Waiting, waiting: readonly Waiting[], passed: Passed | null): boolean {
  if (waiting.length === 0) return true;
  const next = waiting[nextInLine(waiting, passed)] as Waiting;
  return next.upgrades === undefined && isPatient(waiting, passed) && newcomer.priority > next.priority;
}

function isPatient(waiting: readonly Waiting[], passed: Passed | null): boolean {
  return passed === null || passed.id !== waiting[0]?.id || passed.times < PATIENCE;
}

/** What is remembered of being passed once the one at `place` is served. */
export function passing(waiting: readonly Waiting[], place: number, passed: Passed | null): Passed | null {
  const oldest = waiting[0];
  if (oldest === undefined || place === 0) return null;
  return { id: oldest.id, times: passed?.id === oldest.id ? passed.times + 1 : 1 };
}

/** How many would be served before one that arrives now with this priority, plus one. */
export function placeFor(waiting: readonly Waiting[], priority: number, passed: Passed | null): number {
  let place = 1;
  for (let ahead = 0; ahead < waiting.length; ahead++) {
    const other = waiting[ahead] as Waiting;
    if (other.upgrades !== undefined || other.priority >= priority) place++;
  }
  const [oldest] = waiting;
  const overtakes = oldest !== undefined && oldest.upgrades === undefined && oldest.priority < priority;
  return overtakes && !isPatient(waiting, passed) ? place + 1 : place;
}

/**
 * Serves the queue, after what `so` already did, until the next in line has to wait. Nobody behind it is
 * served in its place: a writer would starve behind readers that keep coming, and a heavy request behind light ones.
 */
export function serveQueue<State extends Queued, Outcome>(
  so: Step<State, Outcome>,
  serve: Serve<State, Outcome>,
  isFull: (state: State, at: Moment) => boolean,
  at: Moment,
): Step<State, Outcome | Lost> {
  if (so.state.waiting.length === 0) return so;
  const events = [...so.events];
  const answers: Answer<Outcome | Lost>[] = [...so.answers];
  const losses = [...so.losses];
  let state = dropOrphans(so.state, answers, at);
  const most = at.most ?? Number.POSITIVE_INFINITY;
  for (let served = 0; served < most && !isFull(state, at);) {
    const place = nextInLine(state.waiting, state.record.passed);
    const head = state.waiting[place];
    if (head === undefined) break;
    if (at.gone(head.lease)) {
      // The dead leave the queue by themselves; granting to one would hold up everybody else.
      state = withWaiting(state, without(state.waiting, place));
      continue;
    }
    const grant = serve(state, place, at);
    if (grant === undefined) break;
    served += 1;
    events.push(...grant.events);
    answers.push(...grant.answers);
    losses.push(...grant.losses);
    state = grant.losses.length === 0 ? grant.state : dropOrphans(grant.state, answers, at);
  }
  return { state, outcome: so.outcome, events, answers, losses };
}

/** What a request for more is answered when there is nothing left that could become more. */
export type Lost = { readonly kind: 'lost' };

/** Whoever leaves, or went stale, takes its wish for more along. */
function dropOrphans<State extends Queued, Outcome>(
  state: State,
  answers: Answer<Outcome | Lost>[],
  at: Moment,
): State {
  const { record, waiting } = state;
  if (!someWantMore(waiting)) return state;
  const orphans = waiting.filter((waiter) => isOrphan(waiter, record.holds, at));
  if (orphans.length === 0) return state;
  for (const { id } of orphans) answers.push({ id, outcome: { kind: 'lost' } });
  return withWaiting(
    state,
    waiting.filter((waiter) => !orphans.includes(waiter)),
  );
}

function someWantMore(waiting: readonly Waiting[]): boolean {
  for (let place = 0; place < waiting.length; place++) {
    const { upgrades, grows } = waiting[place] as Waiting;
    if (upgrades !== undefined || grows !== undefined) return true;
  }
  return false;
}

/** The hold that it wants more of has gone. */
export function isOrphan(waiter: Waiting, holds: readonly Hold[], at: Moment): boolean {
  const wish = waiter.upgrades ?? waiter.grows;
  return wish !== undefined && !holds.some((hold) => hold.id === wish && !isStale(hold, at));
}

/** The step in which one request was both asked and answered, if it was. */
export function answeredAtOnce<State, Outcome>(
  step: Step<State, Outcome>,
  id: string,
): Step<State, Outcome> | undefined {
  const answer = step.answers.find((other) => other.id === id);
  if (answer === undefined) return undefined;
  return { ...step, outcome: answer.outcome, answers: step.answers.filter((other) => other !== answer) };
}

/** Takes one request out of the queue; the very same state if it does not wait there. */
export function leave<State extends Queued>(state: State, id: string): State {
  const place = state.waiting.findIndex((waiter) => waiter.id === id);
  return place < 0 ? state : withWaiting(state, without(state.waiting, place));
}

export function withWaiting<State extends Queued>(state: State, waiting: State['waiting']): State {
  return { record: state.record, waiting } as State;
}

export function withHolds<State extends Queued>(state: State, holds: State['record']['holds']): State {
  return { record: { ...state.record, holds }, waiting: state.waiting } as State;
}

export function without<T>(list: readonly T[], place: number): readonly T[] {
  // Nearly always the first; a queue may be long, and this is the fastest way to copy one.
  if (place === 0) return list.slice(1);
  return list.toSpliced(place, 1);
}
