/** One user in one simulated process: it runs one story after another, and knows which failures to expect. */
import type { Collected, TicketClaim } from '../../runtime/holds/tickets.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import { setMaxListeners } from 'node:events';
import { Failure } from '../../failure.ts';
import type { Lock } from '../../runtime/holds/lock.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { type Checker, type Held, Violation } from './checker.ts';
import type { Faults } from './faults.ts';
import type { Random } from './random.ts';
import type { SimulatedProcess, World } from './world.ts';

export type Story = () => Promise<void>;

/** A simulated process and its signalbox. */
export interface Neighbour {
  readonly process: SimulatedProcess;
  readonly box: Signalbox;
}

/** The surroundings of a user. */
export interface Place extends Neighbour {
  readonly name: string;
  readonly world: World;
  readonly checker: Checker;
  /** The names of the locks of this run. */
  readonly locks: readonly string[];
  readonly faults: Faults;
  /** The other processes that are alive. */
  readonly neighbours: () => readonly Neighbour[];
}

type Claimed = Pick<Held, 'resource' | 'holder' | 'token'>;

/** Thrown by the callbacks of users, on purpose. */
export class Thrown extends Error {}

/**
 * How many stories a user begins once the faults have stopped. They show that everything is still usable; more would cost two
 * thirds of a run and meet no fault.
 */
const ROUNDS_IN_CALM = 2;

export abstract class User {
  readonly name: string;
  readonly process: SimulatedProcess;
  protected readonly box: Signalbox;
  protected readonly world: World;
  protected readonly checker: Checker;
  protected readonly random: Random;
  protected readonly locks: readonly string[];
  protected readonly faults: Faults;
  protected readonly neighbours: () => readonly Neighbour[];
  /** Whether it has finished its rounds. */
  isDone = false;
  doing = 'begins';

  constructor({ name, process, box, world, checker, locks, faults, neighbours }: Place) {
    this.name = name;
    this.process = process;
    this.box = box;
    this.world = world;
    this.checker = checker;
    this.random = world.random;
    this.locks = locks;
    this.faults = faults;
    this.neighbours = neighbours;
  }

  /** Whether it still has something to do, in a process that lives. */
  get isUnfinished(): boolean {
    return !this.isDone && !this.process.isDead;
  }

  /** A story that is listed twice runs twice as often. */
  protected abstract stories(): readonly Story[];

  async work(rounds: number): Promise<void> {
    const stories = this.stories();
    let calmRounds = 0;
    for (let round = 0; round < rounds && calmRounds <= ROUNDS_IN_CALM; round++) {
      await this.pause(20);
      if (this.world.isCalm) calmRounds += 1;
      try {
        await this.random.pick(stories)();
      } catch (error) {
        if (!isExpected(error)) this.fail(`${this.name} ${this.doing} and met ${String(error)}`);
        this.note(`${this.doing}: ${(error as Error).message}`);
      }
    }
    this.isDone = true;
    this.doing = 'done';
  }

  /** Uses a hold for a while, and releases it. */
  protected async under(hold: Hold, longest = 50): Promise<void> {
    const believer = this.checker.granted(hold, this.process);
    try {
      for (let touches = this.random.whole(1, 3); touches > 0; touches--) {
        this.checker.touches(believer);
        this.doing = `uses ${hold.resource} #${hold.token}`;
        await this.pause(longest);
        if (hold.isValid) hold.check();
      }
      if (this.random.chance(0.05)) await this.pause(4000);
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
      await this.release(hold);
    }
  }

  /** Uses a hold without releasing it. */
  protected async using(hold: Held, longest = 50): Promise<void> {
    const believer = this.checker.granted(hold, this.process);
    this.doing = `uses ${hold.resource} #${hold.token}`;
    try {
      await this.pause(longest);
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
    }
  }

  protected async release(hold: Hold): Promise<void> {
    this.doing = `releases ${hold.resource} #${hold.token}`;
    if (this.random.chance(0.1)) await hold[Symbol.asyncDispose]();
    else await hold.release();
  }

  /** Releases a detached hold: the answer must not be `released` if the hold was taken away before. */
  protected async releaseClaim(
    of: { release(claim: Claimed): Promise<{ readonly kind: string }> },
    claim: Claimed,
  ): Promise<string> {
    const { resource, token } = claim;
    this.doing = `releases ${resource} #${token}, detached`;
    const { kind } = await of.release(claim);
    if (kind === 'released' && !this.checker.store.wasReleased(claim))
      this.fail(`${resource} #${token} was said to be released to ${this.name}, and was taken away`);
    return kind;
  }

  /** Asks under a holder's name, so that the checker knows what this holder asked for. */
  protected async asking<T>(
    resource: string,
    holder: string,
    wantsToWrite: boolean,
    ask: () => Promise<T>,
  ): Promise<T> {
    const settled = this.checker.asks(resource, holder, wantsToWrite, this.process);
    try {
      return await ask();
    } finally {
      settled();
    }
  }

  /** Asks, goes away, and comes back with the ticket; gives up after `waitMs`. Calls `asks` before every question. */
  protected async withTicket<H>(
    of: {
      readonly resource: string;
      askDetached(options: never): Promise<Collected<H>>;
      collect(claim: TicketClaim, options: { waitMs: number; signal: AbortSignal }): Promise<Collected<H>>;
      withdraw(claim: TicketClaim): Promise<unknown>;
    },
    { waitMs, ...options }: { readonly holder: string; readonly waitMs: number },
    asks: () => void,
  ): Promise<H> {
    const { resource } = of;
    const until = this.process.clock.monotonic() + waitMs;
    asks();
    const ticketed = this.random.next() < 0.5 ? { ticketMs: 2000 } : {};
    let answer = await of.askDetached({ ...options, ...ticketed } as never);
    while (answer.kind === 'waiting') {
      const claim = { ticket: answer.ticket, holder: options.holder };
      await this.pause(300);
      if (this.process.clock.monotonic() >= until) {
        // It may have been granted meanwhile, and another user of the same name may have entered with it.
        this.checker.endsElsewhere({ id: answer.ticket });
        await of.withdraw(claim);
        throw new NotAcquired(resource, { kind: 'timed-out', waitedMs: waitMs, holders: [] });
      }
      asks();
      answer = await of.collect(claim, { waitMs: this.random.whole(0, 500), signal: this.soon(1000) });
    }
    if (answer.kind === 'gone') throw new NotAcquired(resource, { kind: 'lost' });
    return answer.hold;
  }

  /** No person is there to decide about stale holds, so locks must not wait for one. */
  protected async mayBeReclaimed(lock: Lock): Promise<void> {
    for (;;) {
      this.doing = `configures ${lock.name} to be reclaimed`;
      try {
        return await lock.configure({ onStale: 'reclaim', maxHoldMs: null, ttlMs: null });
      } catch (error) {
        if (!isExpected(error) || Failure.is(error, 'closed')) throw error;
        await this.pause(500);
      }
    }
  }

  protected pause(longestMs: number): Promise<void> {
    return this.world.sleep(this.random.next() * longestMs, this.process);
  }

  /** A signal that aborts after at most this long. */
  protected soon(longestMs: number): AbortSignal {
    const abort = new AbortController();
    setMaxListeners(0, abort.signal);
    this.world.schedule(this.random.next() * longestMs, () => abort.abort(), this.process);
    return abort.signal;
  }

  protected pickLock(): string {
    return this.random.pick(this.locks);
  }

  protected note(what: string): void {
    this.world.note(this.process.name, `${this.name} ${what}`);
  }

  protected fail(what: string): void {
    try {
      this.checker.fail(what);
    } catch {
      // The checker keeps the violation.
    }
  }
}

/** Whether a failure is expected: a refusal, or an unreachable store. Anything else is a bug. */
export function isExpected(error: unknown): boolean {
  if (error instanceof Violation || error instanceof Thrown) return true;
  if (error instanceof DOMException && error.name === 'AbortError') return true;
  return error instanceof Failure && !['invalid', 'corrupt', 'inconsistent'].includes(error.code);
}
