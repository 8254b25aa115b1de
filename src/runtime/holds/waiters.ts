/** The waiting requests of this process. Looks again for answers that may have been missed. */
import type { Hold } from '../../core/index.ts';
import type { Failure } from '../../failure.ts';
import type { Clock, Timer } from '../../clock.ts';
import type { Coordinated } from '../write/machines.ts';

/** A request of this process that waits for its answer. */
export interface Waiter {
  /** The session of the request. */
  readonly process: string;
  readonly writer: {
    readonly resource: string;
    settle(looksFirst?: boolean, seesAll?: boolean): void;
    /** How many living requests are before this one in the queue; undefined if unknown. */
    placeOf(id: string): number | undefined;
    look(done: (view: { readonly state: Coordinated }) => void, failed: (error: unknown) => void): void;
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

interface Host {
  readonly clock: Clock;
  readonly isClosed: boolean;
  later(delayMs: number, call: () => void, keepsAlive?: boolean): void;
}

const LOOK_AGAIN_MS = 500;

export class Waiters {
  readonly #host: Host;
  /** By the id of the request. */
  readonly #waiters = new Map<string, Waiter>();
  /** The writers that are about to settle their queue. */
  readonly #toSettle = new Set<Waiter['writer']>();
  /** Keeps the process alive while a request waits, even if it has nothing else to do. */
  #alive: Timer | undefined;

  constructor(host: Host) {
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
      const [place, before] = [writer.placeOf(id), places.get(writer)];
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
    writer.look(
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
