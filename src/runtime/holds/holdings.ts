/**
 * What this process holds and waits for: `Holdings` tells each hold when it is lost, `Waiters` look again for answers that may
 * have been missed.
 */
import type { Hold, LossReason, Token } from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';
import type { LossNotice } from '../layout.ts';
import type { Coordinated } from '../../core/machines.ts';
import { type AnyCommand, outcomeOf } from '../write/pending-command.ts';
import { isResource } from '../write/letters.ts';
import type { Trace } from '../tracer.ts';
import type { Failure } from '../../failure.ts';
import type { Timer } from '../../clock.ts';

/** A hold of this process that rests on its session. */
export interface Held {
  readonly resource: string;
  readonly process: string;
  readonly holder: string;
  readonly token: Token;
  readonly isValid: boolean;
  /** Its release is under way, and finds out by itself if the hold was taken away. */
  readonly isReleasing?: boolean;
  /** Whether the user holds less than this stored grant: the command that says so is on its way. */
  isLessThan?(stored: Hold): boolean;
  lose(loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }): void;
  /** The process gives it up: the signal aborts, and the hold is released. */
  surrender(): Promise<void>;
  /** Ends with the hold. */
  trace?: Trace | undefined;
}

const LOOK_AGAIN_MS = 500;
/** How many ids are remembered, in case a caller still asks for them. */
const MOST_IDS = 10_000;
/** How many tickets are remembered; the grant of a forgotten ticket goes back. */
const MOST_PARKED = 100_000;

export class Holdings {
  /** By the id of the request that was granted. */
  readonly holds = new Map<string, Held>();
  /** By the id of the outer hold on which they rest. */
  readonly reentries = new Map<string, Set<Held>>();
  readonly #host: Runtime;
  /** Detached holds that were handed out, and when, on the monotonic clock. */
  readonly #collected = new Map<string, number>();
  /** Requests whose callers come back with a ticket, and what was answered meanwhile. */
  readonly #parked = new Map<string, { readonly owner: string; readonly since: number; answer?: unknown }>();
  readonly #lostEarly = new Set<string>();
  /** Leases of detached holds that this process has asked the store to end: without an answer, that may still happen. */
  readonly #givenUp = new Set<string>();

  constructor(host: Runtime) {
    this.#host = host;
  }

  all(): readonly Held[] {
    return [...this.holds.values(), ...[...this.reentries.values()].flatMap((inner) => [...inner])];
  }

  /** Remembers a detached hold that was handed to its caller: it has an owner, although this process does not keep it. */
  collected(id: string, at: number): void {
    this.#collected.set(id, at);
    if (this.#collected.size <= MOST_IDS) return;
    const [oldest] = this.#collected.keys();
    if (oldest !== undefined) this.#collected.delete(oldest);
  }

  /** Undefined if another process handed it out, or if that was long ago. */
  collectedAt(id: string): number | undefined {
    return this.#collected.get(id);
  }

  /** A hold that is gone already, or is not kept here, has nothing to trace. */
  traced(id: string, trace: Trace): void {
    const hold = this.holds.get(id);
    if (hold === undefined) trace.end('detached', false);
    else hold.trace = trace;
  }

  has(id: string): boolean {
    return this.holds.has(id) || this.#collected.has(id);
  }

  /** The caller of this request comes back for its answer, so a grant is kept although nobody waits for it now. */
  park(id: string, resource: string, holder: string, since: number): void {
    this.#parked.set(id, { owner: ownerOf(resource, holder), since });
    if (this.#parked.size <= MOST_PARKED) return;
    const [oldest] = this.#parked.keys();
    if (oldest !== undefined) this.#parked.delete(oldest);
  }

  /** Keeps the answer to a parked request; false if it is not parked. */
  answeredParked(id: string, outcome: unknown): boolean {
    const parked = this.#parked.get(id);
    if (parked === undefined) return false;
    parked.answer = outcome;
    return true;
  }

  /** Whether this holder parked this request: ids can be guessed, so the id alone is no proof. */
  isParked(id: string, resource: string, holder: string): boolean {
    return this.#parked.get(id)?.owner === ownerOf(resource, holder);
  }

  /** The answer that came while nobody waited for it. */
  parkedAnswer(id: string, resource: string, holder: string): unknown {
    return this.isParked(id, resource, holder) ? this.#parked.get(id)?.answer : undefined;
  }

  /** Answers since when the request waited, if it was parked here. */
  unpark(id: string, resource: string, holder: string): number | undefined {
    if (!this.isParked(id, resource, holder)) return undefined;
    const { since } = this.#parked.get(id) ?? {};
    this.#parked.delete(id);
    return since;
  }

  /** This process is about to end the lease, and the hold that may rest on it. */
  giveUpLease(lease: string): void {
    remember(this.#givenUp, lease);
  }

  isGivenUp(lease: string): boolean {
    return this.#givenUp.has(lease);
  }

  /** Whether the loss of this grant arrived before the grant: then the grant is void. */
  wasLostEarly(id: string, token: Token): boolean {
    return this.#lostEarly.size > 0 && this.#lostEarly.delete(`${id} #${token}`);
  }

  /** Whether this process heard that a detached hold, which it does not keep, was taken away. */
  wasLost({ id, token }: Pick<Hold, 'id' | 'token'>): boolean {
    return this.#lostEarly.has(`${id} #${token}`);
  }

  lose({ id, token, ...loss }: LossNotice): void {
    const hold = this.holds.get(id);
    // A request that was sent again may have been granted again: the loss of its first grant no longer matters.
    if (hold !== undefined && token < hold.token) return;
    if (hold !== undefined) hold.lose(loss);
    else remember(this.#lostEarly, `${id} #${token}`);
    this.loseReentries(id, loss);
  }

  loseReentries(id: string, loss: Omit<LossNotice, 'id' | 'token'>): void {
    const resting = this.reentries.get(id);
    if (resting !== undefined) for (const inner of resting) inner.lose(loss);
  }

  /** Looks for holds whose loss was missed. */
  check(): void {
    // Tasks have no writer; `tasks/` follows their claims.
    const held = [...this.holds.values()].filter(({ resource }) => isResource(resource));
    for (const resource of new Set(held.map((hold) => hold.resource))) this.#check(resource);
  }

  #check(resource: string): void {
    if (this.#host.isClosed) return;
    this.#host.writerFor(resource).cached.look(
      ({ state }) => this.loseAllBut(resource, new Set(state.record.holds.map(({ id }) => id))),
      () => this.#host.later(LOOK_AGAIN_MS, () => this.#check(resource), false),
    );
  }

  /** Loses the holds of this resource that are not among `ids`, all that the record has. */
  loseAllBut(resource: string, ids: ReadonlySet<string>): void {
    for (const [id, hold] of this.holds) {
      // The hold may have been granted after the record was read, so a heartbeat looks it up again.
      const isMissing = hold.resource === resource && !ids.has(id);
      if (isMissing && hold.isReleasing !== true) void this.#loseIfGone(resource, id, hold.holder);
    }
  }

  async #loseIfGone(resource: string, id: string, holder: string): Promise<void> {
    const command = { kind: 'heartbeat', holder, id } as AnyCommand;
    const writer = this.#host.writerFor(resource);
    const outcome = await outcomeOf(writer, command, Number.POSITIVE_INFINITY).catch(() => undefined);
    if (outcome === undefined || outcome.kind === 'refreshed') return;
    const hold = this.holds.get(id);
    if (hold?.isReleasing !== true) hold?.lose({ why: 'reclaimed' });
  }
}

function ownerOf(resource: string, holder: string): string {
  return JSON.stringify([resource, holder]);
}

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size > MOST_IDS) ids.delete(ids.values().next().value as string);
}

/** A request of this process that waits for its answer. */
export interface Waiter {
  /** The session of the request. */
  readonly process: string;
  readonly writer: {
    readonly resource: string;
    settle(looksFirst?: boolean, seesAll?: boolean): void;
    readonly cached: {
      /** How many living requests are before this one in the queue; undefined if unknown. */
      placeOf(id: string): number | undefined;
      look(done: (view: { readonly state: Coordinated }) => void, failed: (error: unknown) => void): void;
    };
  };
  readonly holder: string;
  /** Sends the request again, in case its answer was missed. */
  askAgain(): void;
  answered(outcome: unknown): void;
  /** The grant breaks a promise. */
  inconsistent(failure: Failure): void;
  sessionEnded(): void;
  /** This process closes its signalbox. */
  closed(): void;
}

export class Waiters {
  readonly #host: Runtime;
  /** By the id of the request. */
  readonly #waiters = new Map<string, Waiter>();
  /** The writers that are about to settle their queue. */
  readonly #toSettle = new Set<Waiter['writer']>();
  /** Keeps the process alive while a request waits, even if it has nothing else to do. */
  #alive: Timer | undefined;

  constructor(host: Runtime) {
    this.#host = host;
  }

  get size(): number {
    return this.#waiters.size;
  }

  get(id: string): Waiter | undefined {
    return this.#waiters.get(id);
  }

  all(): readonly Waiter[] {
    return [...this.#waiters.values()];
  }

  add(id: string, waiter: Waiter): void {
    this.#waiters.set(id, waiter);
    this.#alive ??= this.#host.clock.keepAlive?.();
  }

  delete(id: string): void {
    this.#waiters.delete(id);
    if (this.#waiters.size > 0) return;
    this.#alive?.cancel();
    this.#alive = undefined;
  }

  isWaiting(holder: string): boolean {
    for (const waiter of this.#waiters.values()) if (waiter.holder === holder) return true;
    return false;
  }

  /**
   * A request of this holder was granted. Another one of the same holder at this resource needs no turn any more; but the process
   * that granted the first may know only the front of the queue, and not the second. No other process would answer it.
   */
  granted(holder: string, resource: string): void {
    const waits = (): boolean =>
      this.all().some((waiter) => waiter.holder === holder && waiter.writer.resource === resource);
    const look = (): void => void (waits() && this.lookAgainAt(resource));
    if (waits()) this.#host.later(LOOK_AGAIN_MS, look, false);
  }

  /** Settles the queues in which requests of this process wait. */
  settle(looksFirst: boolean): void {
    const writers = new Set<Waiter['writer']>();
    for (const waiter of this.#waiters.values()) writers.add(waiter.writer);
    for (const writer of writers) writer.settle(looksFirst);
  }

  /** The same after a delay for each resource: `delayMs` gets the best known position of this process in its queue. */
  settleInTurn(delayMs: (place: number | undefined) => number): void {
    const places = new Map<Waiter['writer'], number | undefined>();
    for (const [id, { writer }] of this.#waiters) {
      const [place, before] = [writer.cached.placeOf(id), places.get(writer)];
      places.set(writer, place === undefined || before === undefined ? (place ?? before) : Math.min(place, before));
    }
    for (const [writer, place] of places) {
      if (this.#toSettle.has(writer)) continue;
      this.#toSettle.add(writer);
      const settle = (): void => {
        this.#toSettle.delete(writer);
        if (this.all().some((waiter) => waiter.writer === writer)) writer.settle(true);
      };
      this.#host.later(delayMs(place), settle, false);
    }
  }

  /**
   * Looks for answers that were missed: reads each queue once, and sends again the requests that are no longer in it. Their
   * ids tell whether they were granted.
   */
  askAgain(): void {
    const writers = new Map<Waiter['writer'], [string, Waiter][]>();
    for (const [id, waiter] of this.#waiters) {
      const waiters = writers.get(waiter.writer);
      if (waiters === undefined) writers.set(waiter.writer, [[id, waiter]]);
      else waiters.push([id, waiter]);
    }
    for (const [writer, waiters] of writers) this.#askAgainAt(writer, waiters);
  }

  /** The same for one resource. */
  lookAgainAt(resource: string): void {
    const waiters = [...this.#waiters].filter(([, waiter]) => waiter.writer.resource === resource);
    const writer = waiters[0]?.[1].writer;
    if (writer !== undefined && !this.#host.isClosed) this.#askAgainAt(writer, waiters);
  }

  #askAgainAt(writer: Waiter['writer'], waiters: readonly [string, Waiter][]): void {
    writer.cached.look(
      ({ state }) => {
        const queue = new Set(state.waiting.map(({ id }) => id));
        for (const [id, waiter] of waiters) if (!queue.has(id)) waiter.askAgain();
        // A request whose holder has the resource needs no turn, and may wait beyond the front that a settle knows.
        const holders = new Set((state.record.holds as readonly Hold[]).map(({ holder }) => holder));
        writer.settle(
          false,
          waiters.some(([, { holder }]) => holders.has(holder)),
        );
      },
      () => this.#host.later(LOOK_AGAIN_MS, () => this.lookAgainAt(writer.resource)),
    );
  }
}
