/**
 * Who is next. Requests wait in order of arrival; a higher priority goes first, but the longest waiter is passed at most
 * `PATIENCE` times in a row, so that nobody starves.
 *
 *     arrival  →  a(0)  b(0)  c(5)  d(5)      grants: c  d …  and after eight that passed a: a
 *
 * Being passed is counted in grants and not in time, because no clock is shared.
 */
import { type Hold, isStale } from './hold.ts';
import {
  type Answer,
  type Event,
  followed,
  joined,
  type Moment,
  NONE,
  type Request,
  type Step,
  withMost,
} from './machine.ts';

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

/** One step of a deadlock: `holder` waits for `resource`, which `blockedBy` holds, or waits for ahead of it. */
export type WaitsFor = {
  readonly holder: string;
  readonly resource: string;
  readonly blockedBy: string;
  /** The holder around this one that waits with it: an outer run waits for the runs inside it. */
  readonly inside?: string;
};

/** Each waits for the next, and the last for the first. */
export type Cycle = readonly WaitsFor[];

/** How often in a row the request that has waited longest was passed; kept with the grants. */
export interface Passed {
  readonly id: string;
  readonly times: number;
}

export const PATIENCE = 8;

/** The place in `waiting` of the request that is served next; -1 if nobody waits. */
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

/** Whether a request that arrives now would be served before all waiters. */
export function goesAhead(newcomer: Waiting, waiting: readonly Waiting[], passed: Passed | null): boolean {
  if (waiting.length === 0) return true;
  const next = waiting[nextInLine(waiting, passed)] as Waiting;
  return next.upgrades === undefined && isPatient(waiting, passed) && newcomer.priority > next.priority;
}

function isPatient(waiting: readonly Waiting[], passed: Passed | null): boolean {
  return passed === null || passed.id !== waiting[0]?.id || passed.times < PATIENCE;
}

/** How often the longest waiter was passed, once the request at `place` is served. */
export function passing(waiting: readonly Waiting[], place: number, passed: Passed | null): Passed | null {
  const oldest = waiting[0];
  if (oldest === undefined || place === 0) return null;
  return { id: oldest.id, times: passed?.id === oldest.id ? passed.times + 1 : 1 };
}

/** The position of a request that arrives now with this priority, counted from 1. */
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

/** The requests in the order of service, as of now: a later one with a higher priority may still go first. */
export function inLine<W extends Waiting>(waiting: readonly W[], passed: Passed | null): readonly W[] {
  const rest = [...waiting];
  const line: W[] = [];
  while (rest.length > 0) {
    const place = nextInLine(rest, passed);
    passed = passing(rest, place, passed);
    line.push(...rest.splice(place, 1));
  }
  return line;
}

/** How a machine treats those who wait. */
export interface Line<State extends Queued, Outcome> {
  /** The answer to a request that needs no turn to be answered: it holds already, or can never hold. */
  withoutTurn(state: State, request: State['waiting'][number], at: Moment): Settled<State, Outcome> | undefined;
  /** Grants the request at `place`, whose turn it is; `undefined` if it has to wait. Touches at most `at.most` others. */
  serve(state: State, place: number, at: Moment): Served<State, Outcome> | undefined;
}

export interface Settled<State, Outcome> {
  /** The very same if the answer changes nothing but the queue. */
  readonly state: State;
  readonly outcome: Outcome;
  readonly events: readonly Event[];
}

/**
 * Serves the queue, after what `so` already did, until the next in line has to wait or the step has done as much as
 * one write takes (`at.most`). Nobody behind the next in line is served in its place: a writer would starve behind
 * readers that keep coming, and a heavy request behind light ones.
 */
export function serveQueue<State extends Queued, Outcome>(
  so: Step<State, Outcome>,
  line: Line<State, Outcome>,
  at: Moment,
): Step<State, Outcome> {
  let step = answerWithoutTurn(so, line, at);
  for (let left = budget(step, at); left > 0; left = budget(step, at)) {
    const { state } = step;
    const place = nextInLine(state.waiting, state.record.passed);
    const head = state.waiting[place];
    if (head === undefined) break;
    if (at.gone(head.lease)) {
      // A request of a dead process leaves the queue anyway; a grant to it would hold up everybody else.
      step = { ...step, state: withWaiting(state, without(state.waiting, place)), dropped: (step.dropped ?? 0) + 1 };
      continue;
    }
    const served = line.serve(state, place, withMost(at, left));
    if (served === undefined) break;
    step = followed(step, served, so.outcome);
    // A grant turns other requests of its holder into re-entries, a loss ends requests for more of the lost hold, and the
    // request that names the first capacity names it for all.
    if (head.holder !== head.id || served.losses.length > 0 || served.answers.length === 0)
      step = answerWithoutTurn(step, line, at);
  }
  return step;
}

/**
 * Answers the requests that need no turn. Of a queue only the front may be known, so some may be left: the step that sees a
 * request further behind answers it, at the latest when its turn comes.
 */
export function answerWithoutTurn<State extends Queued, Outcome>(
  so: Step<State, Outcome>,
  line: Line<State, Outcome>,
  at: Moment,
): Step<State, Outcome> {
  let { state } = so;
  let left = budget(so, at);
  let answered: Set<Waiting> | undefined;
  let events: readonly Event[] = NONE;
  const answers: Answer<Outcome>[] = [];
  for (let place = 0; place < state.waiting.length && left > 0; place++) {
    const request = state.waiting[place] as Waiting;
    const settled = line.withoutTurn(state, request, at);
    if (settled === undefined) continue;
    (answered ??= new Set()).add(request);
    state = settled.state;
    left--;
    answers.push({ id: request.id, outcome: settled.outcome });
    events = joined(events, settled.events);
  }
  if (answered === undefined) return so;
  const waiting = state.waiting.filter((waiter) => !answered.has(waiter));
  return followed(so, { state: withWaiting(state, waiting), events, answers, losses: NONE }, so.outcome);
}

/** How many more requests and holds of others this step may touch. */
export function budget({ answers, losses, dropped = 0 }: Step<unknown, unknown>, { most }: Moment): number {
  return most === undefined ? Number.POSITIVE_INFINITY : most - answers.length - losses.length - dropped;
}

/** The answer to a request for more of a hold that is gone. */
export const LOST: { readonly kind: 'lost' } = { kind: 'lost' };

/**
 * Every form in which a request may wait: a reader's request to become the writer goes before everyone, unless an earlier one
 * of the same hold does already. A withdrawal takes back every form.
 */
export function formsOf(request: Waiting): readonly Waiting[] {
  const { upgrades = '', ...plain } = request;
  return [plain, { ...plain, upgrades }];
}

/** Whether the request wants more of a hold that is gone. */
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
