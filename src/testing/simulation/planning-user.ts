/** A user that plans faults of its own process, and calls other processes. */
import { Failure } from '../../failure.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import { isExpected, type Neighbour, User } from './user.ts';

/** How often a user looks whether the other process of its story is still alive. */
const LOOK_MS = 500;

export abstract class PlanningUser extends User {
  readonly #here: Neighbour = { process: this.process, box: this.box };
  #serial = 0;

  /** The next write of this process lands and gets no answer; after that, requests are lost for a while. */
  protected loseAnswer(forMs: number): void {
    this.faults.next(this.process, 'write', { kind: 'answer-lost', thereMs: this.random.next() * 50 });
    this.loseRequests(forMs);
  }

  /** The transactions of this process are lost for a while. It renews its leases meanwhile. */
  protected loseRequests(forMs: number): void {
    for (const call of ['read', 'write'] as const)
      this.faults.always(this.process, call, { kind: 'request-lost' }, forMs);
  }

  // Two processes

  protected newName(): string {
    this.#serial += 1;
    return `${this.name}-${this.#serial}`;
  }

  /** Another process; the own one if there is no other. */
  protected pickNeighbour(): Neighbour {
    const all = this.neighbours();
    return all.length === 0 ? this.#here : this.random.pick(all);
  }

  /** Two processes, as different as possible. */
  protected pickNeighbours(): readonly [Neighbour, Neighbour] {
    const one = this.pickNeighbour();
    const rest = this.neighbours().filter(({ process }) => process !== one.process);
    return [one, rest.length === 0 ? this.#here : this.random.pick(rest)];
  }

  /** Acquires a lock in another process; returns the function that releases it. */
  protected acquireAt(other: Neighbour, name: string, holder?: string): Promise<() => Promise<unknown>> {
    const asked = other.box.lock(name).acquire(holder === undefined ? {} : { holder });
    return this.at(
      other,
      asked.then((hold) => () => this.at(other, hold.release())),
    );
  }

  /** Waits for a call of another process. If that process crashes, the call is never answered, and this fails. */
  protected at<T>({ process }: Neighbour, call: Promise<T>): Promise<T> {
    const answered = new Promise<T>((resolve, reject) => {
      let isSettled = false;
      const look = (): void => {
        if (isSettled) return;
        if (process.isDead) return reject(new Failure('unavailable', `simulated: ${process.name} has crashed`));
        this.world.schedule(LOOK_MS, look, this.process);
      };
      call.then(resolve, reject).finally(() => void (isSettled = true));
      look();
    });
    // Its story may wait for something else first.
    answered.catch(() => undefined);
    return answered;
  }

  /** Waits for all of them, and throws the first unexpected failure. Returns the results of the others. */
  protected async settled<T>(all: readonly Promise<T>[]): Promise<readonly T[]> {
    const results: T[] = [];
    for (const one of await Promise.allSettled(all)) {
      if (one.status === 'fulfilled') results.push(one.value);
      else if (!isExpected(one.reason)) throw one.reason as Error;
    }
    return results;
  }

  protected async releaseAll(holds: readonly Hold[]): Promise<void> {
    await this.settled(holds.map((hold) => hold.release()));
  }
}
