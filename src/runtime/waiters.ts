/** Who waits in this process, and looks again where an answer may have been missed. */
import type { Failure } from '../failure.ts';
import type { Clock, Timer } from '../clock.ts';
import type { Coordinated } from './machines.ts';

/** Somebody in this process who asked, and is to be told. */
export interface Waiter {
  /** The session it asks under. */
  readonly process: string;
  readonly desk: {
    readonly resource: string;
    settle(looksFirst?: boolean): void;
    /** How many living requests were before this one in the queue; undefined if that is not known. */
    placeOf(id: string): number | undefined;
    look(done: (view: { readonly state: Coordinated }) => void, failed: (error: unknown) => void): void;
  };
  readonly holder: string;
  /** Sends the request again, in case its answer was missed. */
  askAgain(): void;
  answered(outcome: unknown): void;
  /** What it was given breaks a promise. */
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
  /** The desks that look in a moment whether somebody could be served. */
  readonly #toSettle = new Set<Waiter['desk']>();
  /** A process in which somebody waits must not end for want of anything else to do. */
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

  /** Looks whether somebody could be served. */
  settle(looksFirst: boolean): void {
    const desks = new Set<Waiter['desk']>();
    for (const waiter of this.#waiters.values()) desks.add(waiter.desk);
    for (const desk of desks) desk.settle(looksFirst);
  }

  /** The same, at each resource so long after now as `delayMs` says for the first of those who wait for it here. */
  settleInTurn(delayMs: (place: number | undefined) => number): void {
    const places = new Map<Waiter['desk'], number | undefined>();
    for (const [id, { desk }] of this.#waiters) {
      const [place, before] = [desk.placeOf(id), places.get(desk)];
      places.set(desk, place === undefined || before === undefined ? (place ?? before) : Math.min(place, before));
    }
    for (const [desk, place] of places) {
      if (this.#toSettle.has(desk)) continue;
      this.#toSettle.add(desk);
      const settle = (): void => {
        this.#toSettle.delete(desk);
        if (this.all().some((waiter) => waiter.desk === desk)) desk.settle(true);
      };
      this.#host.later(delayMs(place), settle, false);
    }
  }

  /**
   * Looks what has become of everything that is waited for, in case an answer was missed. One look for each resource;
   * only those who are not in its queue any more have to ask anew, and are known by their ids.
   */
  askAgain(): void {
    const desks = new Map<Waiter['desk'], [string, Waiter][]>();
    for (const [id, waiter] of this.#waiters) {
      const waiters = desks.get(waiter.desk);
      if (waiters === undefined) desks.set(waiter.desk, [[id, waiter]]);
      else waiters.push([id, waiter]);
    }
    for (const [desk, waiters] of desks) this.#askAgainAt(desk, waiters);
  }

  /** The same for one resource. */
  lookAgainAt(resource: string): void {
    const waiters = [...this.#waiters].filter(([, waiter]) => waiter.desk.resource === resource);
    const desk = waiters[0]?.[1].desk;
    if (desk !== undefined && !this.#host.isClosed) this.#askAgainAt(desk, waiters);
  }

  #askAgainAt(desk: Waiter['desk'], waiters: readonly [string, Waiter][]): void {
    desk.look(
      ({ state }) => {
        const queue = new Set(state.waiting.map(({ id }) => id));
        for (const [id, waiter] of waiters) if (!queue.has(id)) waiter.askAgain();
        desk.settle();
      },
      () => this.#host.later(LOOK_AGAIN_MS, () => this.lookAgainAt(desk.resource)),
    );
  }
}
