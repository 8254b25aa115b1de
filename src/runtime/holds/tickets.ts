/**
 * Tickets: a request for a detached hold that keeps its place in the queue while its caller is away. The ticket is the id of
 * the request. It lies in the store on a lease of its own, so any process on the store can continue with it:
 *
 *     askWithTicket ──▶ the hold, or a ticket ──collect──▶ the hold, or: still waiting, or: gone
 *                                      └─────withdraw──▶ the next in line moves up
 *
 * Every `collect` renews the lease. A ticket that nobody asks for leaves the queue when its time is over, and a grant that
 * nobody collects goes to the next in line in the same way.
 */
import { type Hold as Grant, type Request, requestProblem } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { processOf, resourceKeys } from '../layout.ts';
import { onAbort } from './wait-limits.ts';
import type { HeldBy, Refusal } from '../refusal.ts';
import { NotAcquired } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import type { AnyOutcome } from '../write/pending-command.ts';
import { ticketOf } from '../write/pending-command.ts';
import type { Snapshot } from '../write/snapshot.ts';
import type { Coordinated, ResourceKind } from '../../core/machines.ts';
import { acquireOrPark, boundAgain, release } from './detached.ts';
import type { AnyResource } from './resource.ts';
import type { DetachedHold, DetachedOptions } from './terms.ts';
import type { Waiter } from './lookout.ts';

/** A request waits, and keeps its place. */
export interface Waiting {
  /** What happened. */
  readonly kind: 'waiting';
  /** Asks for the answer later, from any process on the store. */
  readonly ticket: string;
  /** The place in the queue, from 1, if it is known. */
  readonly position: number | undefined;
  /** Who holds it. */
  readonly holders: readonly HeldBy[];
}

/** What a request with a ticket answers. */
export type TicketAnswer<H> = { readonly kind: 'acquired'; readonly hold: H } | Waiting;

/** What `collect` answers. */
export type Collected<H> =
  | TicketAnswer<H>
  /**
   * Nobody asked for it in time, it was withdrawn, or it was collected and released; or its holder has the resource by another
   * request. Ask without a ticket.
   */
  | { readonly kind: 'gone' };

/** Names a request that waits. */
export interface TicketClaim {
  /** The ticket. */
  readonly ticket: string;
  /** Who asked. */
  readonly holder: string;
}

/** How long `collect` waits. */
export interface CollectOptions {
  /** The longest time; not at all, if not given. */
  readonly waitMs?: number;
  /** Ends the wait; the request keeps its place. */
  readonly signal?: AbortSignal;
}

/** How often to look without being woken, in case a wake-up was missed. */
const LOOK_AGAIN_MS = 5_000;

interface Given {
  readonly grant: Grant;
  readonly detached: DetachedHold;
}

export async function askWithTicket(
  of: AnyResource,
  options: DetachedOptions<unknown>,
): Promise<TicketAnswer<Given> | Waiting> {
  const answer = await acquireOrPark(of, options);
  if ('grant' in answer) return { kind: 'acquired', hold: answer };
  const { id, status } = answer;
  const holders = (status.holders ?? []).filter(({ holder }) => holder !== options.holder);
  // The place that the write was decided on may be old; `collect` reads it.
  return { kind: 'waiting', ticket: id, position: undefined, holders: holders.map(shownHolder) };
}

export async function collect(
  of: AnyResource,
  claim: TicketClaim,
  { waitMs = 0, signal }: CollectOptions,
): Promise<Collected<Given>> {
  refuseUnlessTicket(of, claim);
  const { runtime } = of;
  const session = await runtime.ready();
  const until = runtime.clock.monotonic() + waitMs;
  // Nothing is done for a ticket that is not this holder's: its id may have been guessed.
  const isOwn = runtime.remembered.isParked(claim.ticket, of.resource, claim.holder);
  if (!isOwn && (await look(of, claim)).kind === 'gone') return { kind: 'gone' };
  const wake = new TicketWaiter(of, claim);
  const isRegistered = runtime.waiters.get(claim.ticket) === undefined;
  if (isRegistered) runtime.awaits(claim.ticket, wake);
  const over = new AbortController();
  const stop = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  const notYet: Waiting = { kind: 'waiting', ticket: claim.ticket, position: undefined, holders: [] };
  try {
    // A lease may have ended while nobody here waited.
    of.writer.settle(true);
    let isFollowing = false;
    for (;;) {
      const found = await look(of, claim);
      if (found.kind === 'granted') {
        // Nobody hears the answer: the grant keeps the lease of its ticket, and is collected later or goes back.
        if (signal?.aborted === true) return notYet;
        // A process that went on with this ticket has made the hold its own: it is not handed out twice.
        if (processOf(found.grant.lease) === found.grant.lease) throw new NotAcquired(of.resource, { kind: 'lost' });
        const now = runtime.clock.monotonic();
        const isNew = runtime.remembered.collectedAt(found.grant.id) === undefined;
        runtime.remembered.collected(found.grant.id, now);
        const since = runtime.remembered.unpark(claim.ticket, of.resource, claim.holder);
        const detached = await boundAgain(of, session, found.grant);
        if (detached === undefined) return { kind: 'gone' };
        if (isNew) runtime.measures.of(of.resource).acquired(now - (since ?? until - waitMs));
        return { kind: 'acquired', hold: { grant: found.grant, detached } };
      }
      if (found.kind === 'gone' && wake.refusal === undefined && !(await areAnswersRead(of, claim, stop)))
        return notYet;
      const { refusal } = wake;
      if (refusal !== undefined) {
        // Nobody hears this answer either: the next one with this ticket does.
        if (signal?.aborted === true) return notYet;
        runtime.remembered.unpark(claim.ticket, of.resource, claim.holder);
        runtime.measures.of(of.resource).failed();
        throw new NotAcquired(of.resource, refusal);
      }
      if (found.kind === 'gone') return found;
      const lease = await keepAlive(of, found.request.lease);
      if (lease === undefined) return { kind: 'gone' };
      const leftMs = until - runtime.clock.monotonic();
      if (leftMs <= 0 || signal?.aborted === true || runtime.isClosed) return found.waiting;
      // The answer goes to the mailbox of the process that asked first. Another one follows the record.
      if (!isFollowing && processOf(claim.ticket) !== runtime.sender.id) {
        isFollowing = true;
        await followRecord(of, wake, stop);
        continue;
      }
      await wake.within(Math.min(leftMs, LOOK_AGAIN_MS, lease.ttlMs / 3), stop);
    }
  } finally {
    over.abort();
    if (isRegistered) runtime.awaitsNoMore(claim.ticket);
  }
}

/** Answers whether there was such a request, or a hold that it was granted. */
export async function withdraw(of: AnyResource, claim: TicketClaim): Promise<{ readonly kind: 'withdrawn' | 'gone' }> {
  refuseUnlessTicket(of, claim);
  const found = await look(of, claim);
  const since = of.runtime.remembered.unpark(claim.ticket, of.resource, claim.holder);
  if (since !== undefined) of.runtime.measures.of(of.resource).failed();
  if (found.kind === 'gone') return found;
  if (found.kind === 'granted') {
    const { holder, token } = found.grant;
    const { kind } = await release(of, { holder, token });
    return { kind: kind === 'released' ? 'withdrawn' : 'gone' };
  }
  const { request } = found;
  await of.submit({ kind: 'cancel', id: claim.ticket, ticket: ticketOf(request as never) });
  const lease = await of.leaseIdOf(request.lease);
  if (lease !== undefined) await of.runtime.store.revokeLease(lease).catch(() => undefined);
  return { kind: 'withdrawn' };
}

type Found =
  | { readonly kind: 'granted'; readonly grant: Grant }
  | { readonly kind: 'waiting'; readonly request: Request; readonly waiting: Waiting }
  | { readonly kind: 'gone' };

async function look(of: AnyResource, { ticket, holder }: TicketClaim): Promise<Found> {
  const { state } = await of.untilAnswered(
    () => new Promise<Snapshot<Coordinated>>((resolve, reject) => of.writer.cached.look(resolve, reject)),
  );
  const holds = state.record.holds as unknown as readonly Grant[];
  const place = state.waiting.findIndex(({ id }) => id === ticket);
  const request = state.waiting[place];
  // A request on the session of its process is no ticket: its lease carries everything else that the process holds, and a
  // withdrawal would end that lease.
  if (request !== undefined && request.holder === holder && processOf(request.lease) !== request.lease) {
    const holders = holds.filter((hold) => hold.holder !== holder).map(shownHolder);
    return { kind: 'waiting', request, waiting: { kind: 'waiting', ticket, position: place + 1, holders } };
  }
  // A request that enlarged a hold its holder had, or found one, leaves no trace of its own: asked anew, it gets that hold.
  const grant = holds.find(({ id }) => id === ticket);
  return grant === undefined || grant.holder !== holder ? { kind: 'gone' } : { kind: 'granted', grant };
}

/**
 * A ticket that was left here is gone, perhaps because it was refused. The refusal comes by a letter, or with the answer to a write
 * of this process, and may come later than what a look reads: waits for both. False if they take too long, or if `stop` aborts.
 */
async function areAnswersRead(of: AnyResource, { ticket, holder }: TicketClaim, stop: AbortSignal): Promise<boolean> {
  const { runtime } = of;
  if (!runtime.remembered.isParked(ticket, of.resource, holder)) return true;
  if (stop.aborted || runtime.isClosed) return false;
  const late = new AbortController();
  const limit = runtime.later(runtime.options.requestTimeoutMs, () => late.abort());
  const cut = AbortSignal.any([stop, late.signal]);
  const isCut = new Promise<false>((resolve) => onAbort(cut, () => resolve(false)));
  // A writer settles its commands in order, so the answers of all earlier writes have come before this one's.
  const written = of.submit({ kind: 'heartbeat', holder, id: ticket });
  const read = runtime.presence.hasReadAllSince(0, runtime.giveUpAt());
  try {
    return await Promise.race([Promise.all([written, read]).then(() => true), isCut]);
  } finally {
    limit.cancel();
  }
}

async function keepAlive(of: AnyResource, lease: string): Promise<{ readonly ttlMs: number } | undefined> {
  const id = await of.leaseIdOf(lease);
  if (id === undefined) return undefined;
  return (await of.untilAnswered(() => of.runtime.store.keepLeaseAlive(id, of.runtime.stopped))) ?? undefined;
}

async function followRecord(of: AnyResource, wake: TicketWaiter, signal: AbortSignal): Promise<void> {
  const { store, clock } = of.runtime;
  const slash = of.resource.indexOf('/');
  const kind = of.resource.slice(0, slash) as ResourceKind;
  const { record } = resourceKeys(kind, of.resource.slice(slash + 1));
  const resync = async (): Promise<number> => {
    wake.wake();
    return (await store.health(signal)).revision;
  };
  await follow(store, clock, { key: record }, { changes: () => wake.wake(), resync }, signal);
}

/** Stands for the request among the waiting ones of this process, so that queues are settled when a holder dies. */
class TicketWaiter implements Waiter {
  readonly process: string;
  readonly writer: Waiter['writer'];
  readonly holder: string;
  readonly #ticket: string;
  readonly #runtime: Runtime;
  #outcome: AnyOutcome | undefined;
  #isAwake = false;
  #resolve: (() => void) | undefined;

  constructor(of: AnyResource, { ticket, holder }: TicketClaim) {
    this.#runtime = of.runtime;
    this.#ticket = ticket;
    this.process = processOf(ticket);
    this.writer = of.writer;
    this.holder = holder;
  }

  wake(): void {
    this.#isAwake = true;
    this.#resolve?.();
  }

  /** Resolves at the next wake-up, or when the time is over. A wake-up since the last call counts. */
  async within(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isAwake && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = this.#runtime.clock.timer(ms, resolve);
        const done = (): void => {
          timer.cancel();
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.#resolve = done;
        signal.addEventListener('abort', done, { once: true });
      });
    }
    this.#isAwake = false;
    this.#resolve = undefined;
  }

  askAgain(): void {
    this.wake();
  }

  /** Why the request was refused, if it was: told to this waiter, or while nobody waited. */
  get refusal(): Refusal | undefined {
    const { remembered } = this.#runtime;
    return refusalIn(this.#outcome ?? remembered.parkedAnswer(this.#ticket, this.writer.resource, this.holder));
  }

  /** Keeps the answer for later callers too: the caller of this one may be about to leave. */
  answered(outcome: unknown): void {
    this.#outcome = outcome as AnyOutcome;
    this.#runtime.remembered.answered(this.#ticket, outcome);
    this.wake();
  }

  inconsistent(): void {
    this.wake();
  }

  sessionEnded(): void {
    this.wake();
  }

  closed(): void {
    this.wake();
  }
}

function refusalIn(outcome: unknown): Refusal | undefined {
  const { kind, hold } = (outcome ?? {}) as Partial<AnyOutcome>;
  return kind === undefined || kind === 'queued' || hold !== undefined ? undefined : (outcome as Refusal);
}

function shownHolder({ holder, token, acquiredAt, reason, metadata }: Grant): HeldBy {
  return {
    ...{ holder, token, acquiredAt },
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata }),
  };
}

function refuseUnlessTicket({ resource }: AnyResource, { ticket, holder }: TicketClaim): void {
  const problem = requestProblem({ id: ticket, holder }, ['id', 'holder'])?.replace(/^id /, 'ticket ');
  if (problem !== undefined) throw new Failure('invalid', `${resource}: ${problem}`);
}
