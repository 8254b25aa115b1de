/**
 * Looks again for what a process may have missed: answers to requests that wait, holds that others took away, and queues that a
 * holder left behind when it died.
 */
import type { Hold, LossReason, Token } from '../../core/index.ts';
import type { Coordinated } from '../../core/machines.ts';
import type { Failure } from '../../failure.ts';
import type { Revision } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';
import { isOfOneMachine } from '../session/session.ts';
import type { Trace } from '../tracer.ts';
import { isResource } from '../write/letters.ts';
import { type AnyCommand, outcomeOf } from '../write/pending-command.ts';

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

const LOOK_AGAIN_MS = 500;
/** Up to this many processes, all settle at once after a lease has ended; more take turns. */
const FEW_PROCESSES = 16;
/** About how many processes of one machine look for missed answers per interval; across machines, every process does. */
const BACKSTOPS = 4;
/** The average time between two turns. */
const BETWEEN_SETTLES_MS = 20;
/** The longest time until the turn of a process. */
const LONGEST_TO_SETTLE_MS = 4000;

export class Lookout {
  readonly #host: Runtime;
  /** The writers that are about to settle their queue. */
  readonly #toSettle = new Set<Waiter['writer']>();

  constructor(host: Runtime) {
    this.#host = host;
  }

  /**
   * Every waiting process hears of an ended lease, and one of them is enough to settle the queue. On one machine, where a look
   * is no round trip but all processes share the processor, they take turns, and all but the first find nothing to do. The
   * process whose request is first in a queue, as far as it knows, looks at once, because it gains the hold.
   */
  leasesEnded(): void {
    const { anchors, store } = this.#host;
    if (!isOfOneMachine(store)) return this.#settle(false);
    if (anchors.size <= FEW_PROCESSES) return this.#settle(true);
    const longestMs = Math.min(anchors.size * BETWEEN_SETTLES_MS, LONGEST_TO_SETTLE_MS);
    this.#settleInTurn((place) => {
      return place === undefined ? longestMs * Math.random() : Math.min(place * BETWEEN_SETTLES_MS, longestMs);
    });
  }

  /** Settles the queues in which requests of this process wait. */
  #settle(looksFirst: boolean): void {
    const writers = new Set<Waiter['writer']>();
    for (const waiter of this.#host.waiters.values()) writers.add(waiter.writer);
    for (const writer of writers) writer.settle(looksFirst);
  }

  /** The same after a delay for each resource: `delayMs` gets the best known position of this process in its queue. */
  #settleInTurn(delayMs: (place: number | undefined) => number): void {
    const places = new Map<Waiter['writer'], number | undefined>();
    for (const [id, { writer }] of this.#host.waiters) {
      const [place, before] = [writer.cached.placeOf(id), places.get(writer)];
      places.set(writer, place === undefined || before === undefined ? (place ?? before) : Math.min(place, before));
    }
    for (const [writer, place] of places) {
      if (this.#toSettle.has(writer)) continue;
      this.#toSettle.add(writer);
      const settle = (): void => {
        this.#toSettle.delete(writer);
        if ([...this.#host.waiters.values()].some((waiter) => waiter.writer === writer)) writer.settle(true);
      };
      this.#host.later(delayMs(place), settle, false);
    }
  }

  /**
   * Whether this process looks for missed answers this time. On one machine, where letters do not get lost, the processes take
   * turns by chance.
   */
  isOurTurn(): boolean {
    return !isOfOneMachine(this.#host.store) || this.#host.anchors.size * Math.random() < BACKSTOPS;
  }

  /** The history was compacted before all letters were read: reads from the records what they said. */
  async lettersMissed(): Promise<Revision> {
    const { measures, stopped, store } = this.#host;
    const { revision } = await store.health(stopped);
    measures.resynced('mailbox');
    this.answers();
    this.losses();
    return revision;
  }

  /** After a lost answer: checks the holds and waiters of this process against `holds`, all that the record has. */
  reconcile(resource: string, holds: ReadonlySet<string>): void {
    this.#loseAllBut(resource, holds);
    this.#answersOf(resource);
  }

  /**
   * A request of this holder was granted. Another one of the same holder at this resource needs no turn any more; but the process
   * that granted the first may know only the front of the queue, and not the second. No other process would answer it.
   */
  granted(holder: string, resource: string): void {
    const waits = (): boolean => {
      return [...this.#host.waiters.values()].some(
        (waiter) => waiter.holder === holder && waiter.writer.resource === resource,
      );
    };
    const look = (): void => void (waits() && this.#answersOf(resource));
    if (waits()) this.#host.later(LOOK_AGAIN_MS, look, false);
  }

  /**
   * Looks for answers that were missed: reads each queue once, and sends again the requests that are no longer in it. Their
   * ids tell whether they were granted.
   */
  answers(): void {
    const writers = new Map<Waiter['writer'], [string, Waiter][]>();
    for (const [id, waiter] of this.#host.waiters) {
      const waiters = writers.get(waiter.writer);
      if (waiters === undefined) writers.set(waiter.writer, [[id, waiter]]);
      else waiters.push([id, waiter]);
    }
    for (const [writer, waiters] of writers) this.#readAnswersOf(writer, waiters);
  }

  /** The same for one resource. */
  #answersOf(resource: string): void {
    const waiters = [...this.#host.waiters].filter(([, waiter]) => waiter.writer.resource === resource);
    const writer = waiters[0]?.[1].writer;
    if (writer !== undefined && !this.#host.isClosed) this.#readAnswersOf(writer, waiters);
  }

  #readAnswersOf(writer: Waiter['writer'], waiters: readonly [string, Waiter][]): void {
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
      () => this.#host.later(LOOK_AGAIN_MS, () => this.#answersOf(writer.resource)),
    );
  }

  /** Looks for holds whose loss was missed. */
  losses(): void {
    // Tasks have no writer; `tasks/` follows their claims.
    const held = [...this.#host.holds.values()].filter(({ resource }) => isResource(resource));
    for (const resource of new Set(held.map((hold) => hold.resource))) this.#lossesOf(resource);
  }

  #lossesOf(resource: string): void {
    if (this.#host.isClosed) return;
    this.#host.writerFor(resource).cached.look(
      ({ state }) => this.#loseAllBut(resource, new Set(state.record.holds.map(({ id }) => id))),
      () => this.#host.later(LOOK_AGAIN_MS, () => this.#lossesOf(resource), false),
    );
  }

  /** Loses the holds of this resource that are not among `ids`, all that the record has. */
  #loseAllBut(resource: string, ids: ReadonlySet<string>): void {
    for (const [id, hold] of this.#host.holds) {
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
    const hold = this.#host.holds.get(id);
    if (hold?.isReleasing !== true) hold?.lose({ why: 'reclaimed' });
  }
}
