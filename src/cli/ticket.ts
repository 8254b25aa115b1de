/**
 * A wait that keeps its place: when the time is up, the request stays in line for a while, and the next call goes on with its
 * ticket. The ticket is the id of the request, or of several, in the order of the resources that they are for.
 */
import { systemClock } from '../clock.ts';
import { DETACHED_TTL_MS, isAbout, spoken, TICKET_MS } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import type { DetachedHold, DetachedOptions } from '../runtime/holds/terms.ts';
import type { Collected, CollectOptions, TicketAnswer, TicketClaim, Waiting } from '../runtime/holds/tickets.ts';
import { NotAcquired } from '../runtime/refusal.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { ResourceArgument } from './arguments.ts';
import { CliExit } from './exit-code.ts';

/** A session of 16 hexadecimal digits, and the number of a request. */
const FORM = /^[0-9a-f]{16}\.\d{1,10}$/;
const BETWEEN = ',';
/** No call waits for more than this many. */
const MOST = 50;

/** A lock or a semaphore, as far as tickets go. */
export interface Ticketed<H extends DetachedHold> {
  readonly resource: string;
  askDetached(options: DetachedOptions): Promise<TicketAnswer<H>>;
  collect(claim: TicketClaim, options: CollectOptions): Promise<Collected<H>>;
  withdraw(claim: TicketClaim): Promise<{ readonly kind: 'withdrawn' | 'gone' }>;
}

/** The ids in the value of `--ticket`. */
export function ticketsIn(text: string): readonly string[] {
  const ids = text.split(BETWEEN);
  if (ids.length <= MOST && ids.every((id) => FORM.test(id))) return ids;
  const what = `--ticket is ${shown(text)}, which is no ticket`;
  throw new Failure('invalid', `${what}; for a new one, write --ticket before another option or before --`);
}

export function ticketOf(ids: readonly string[]): string {
  return ids.join(BETWEEN);
}

/** The requests that wait for a resource, and those that have it: these have a token. Their ids are tickets. */
export async function requestsFor(
  box: Signalbox,
  resource: ResourceArgument,
): Promise<readonly { readonly id: string; readonly holder: string; readonly token?: number }[]> {
  const { locks, semaphores } = await box.survey({ resource, leases: false });
  return [...locks, ...semaphores].flatMap(({ holds, waiting }) => [...holds, ...waiting]);
}

/** What `collectOrAsk` needs in addition to the request. */
export interface TicketTerms {
  readonly options: DetachedOptions;
  /** The store is behind a server, which keeps a ticket for at most `TICKET_MS`. */
  readonly isRemote?: boolean;
  /** The id of an earlier request. */
  readonly ticket: string | undefined;
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
  /** Called when the request has to wait. */
  onWaiting(): void;
  /** Called if the earlier request is not there any more. */
  onGone(): void;
}

/** Goes on with an earlier request, or makes a new one; waits for at most `waitMs`. An abort gives up the place. */
export async function collectOrAsk<H extends DetachedHold>(
  one: Ticketed<H>,
  { options, isRemote = false, ticket, waitMs, signal, onWaiting, onGone }: TicketTerms,
): Promise<TicketAnswer<H>> {
  const { holder } = options;
  const until = waitMs === undefined ? undefined : systemClock.monotonic() + waitMs;
  let known = ticket;
  for (;;) {
    let answer: Collected<H>;
    if (known === undefined) {
      answer = await one.askDetached({ ...options, ticketMs: isRemote ? TICKET_MS : ticketMsFor(options) });
      if (answer.kind === 'acquired') return answer;
      known = (answer as Waiting).ticket;
    }
    onWaiting();
    answer = await one.collect({ ticket: known, holder }, { waitMs: leftUntil(until), signal });
    if (answer.kind === 'gone') {
      onGone();
      known = undefined;
      continue;
    }
    if (answer.kind === 'waiting' && signal.aborted) {
      await one.withdraw({ ticket: known, holder });
      throw signal.reason;
    }
    return answer;
  }
}

/**
 * Only the time of its lease shows whether a grant was collected, so the ticket must not last as long as the hold: others would
 * take a turn that nobody uses for work.
 */
function ticketMsFor({ ttlMs = DETACHED_TTL_MS }: DetachedOptions): number {
  return isAbout(TICKET_MS, ttlMs) ? TICKET_MS + 1000 : TICKET_MS;
}

function leftUntil(until: number | undefined): number {
  return until === undefined ? LONGEST_MS : Math.max(0, until - systemClock.monotonic());
}

/** For a wait without a limit: longer than any process lives. */
const LONGEST_MS = 2 ** 31 - 1;

/** The time is up, and the request keeps its place for a while. */
export class PlaceKept extends NotAcquired {
  readonly ticket: string;

  constructor(resource: string, waitedMs: number, { holders }: Pick<Waiting, 'holders'>, ticket: string) {
    super(resource, { kind: 'timed-out', waitedMs, holders });
    this.ticket = ticket;
  }
}

/** Adds to a refusal how to continue, for people and for programs. */
export function withTicket({ exitCode, message, details }: CliExit, ticket: string): CliExit {
  const kept = `your place in line is kept for ${spoken(TICKET_MS)}; go on with the same command and --ticket ${ticket}`;
  return new CliExit(exitCode, `${message}\n  ${kept}`, { ...details, ticket, ticketMs: TICKET_MS });
}

/** The message for a ticket that came too late. */
export function goneTold(resource: string): string {
  return `${resource}: this ticket has ended, because it was not used for ${spoken(TICKET_MS)}; waiting at the end of the line`;
}
