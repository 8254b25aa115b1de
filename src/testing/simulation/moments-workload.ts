/**
 * What a fault does at the worst moment. Each story plans one fault, at one call of one process, and most of them span two
 * processes. Chance alone would bring these moments about once in thousands of runs.
 *
 * Every story uses names of its own, because other writes of a resource soon repair what a bug left behind.
 */
import { Failure } from '../../failure.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import type { DetachedHold } from '../../runtime/holds/terms.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { Held } from './checker.ts';
import { PlanningUser } from './planning-user.ts';
import { isExpected, type Story } from './user.ts';

const CAPACITY = 8;
/** In this time the slowest network without faults serves a queue. */
const SERVED_MS = 15_000;
/** No lease of a hold ends during its story, unless the story wants it to. */
const LONG_MS = 60_000;

export class MomentsWorker extends PlanningUser {
  protected stories(): readonly Story[] {
    return [
      () => this.#failToBecomeWriter(),
      () => this.#letPastTheDead(),
      () => this.#askFromTwoProcesses(),
      () => this.#releaseWhatIsBroken(),
      () => this.#giveUpWhatIsDelegated(),
      () => this.#releaseWhatBecameMore(),
      () => this.#acquireAgain(),
      () => this.#takeInTheSameWrite(),
      () => this.#loseOneOfTwo(),
      () => this.#acquireBehindRelease(),
      () => this.#replaceUpgrade(),
      () => this.#renewElsewhere(),
    ];
  }

  /** An upgrade lands, gets no answer, and fails when its time is up. Then its request must not wait for ever. */
  async #failToBecomeWriter(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const holder = `${this.name}-reader`;
    const holds: Hold[] = [];
    try {
      this.doing = `reads ${lock.name} twice`;
      const reader = await lock.acquire({ mode: 'shared', holder });
      holds.push(reader);
      holds.push(await lock.acquire({ mode: 'shared' }));
      this.doing = `waits to become the writer of ${lock.name}`;
      this.loseAnswer(this.random.whole(1500, 3000));
      const error = await reader
        .upgrade({ waitMs: LONG_MS, signal: this.soon(10_000) })
        .catch((thrown: unknown) => thrown);
      if (!(error instanceof Failure) || error instanceof NotAcquired) return;
      this.doing = `configures ${lock.name}, which it could not write`;
      // The next write of the same process comes after the one that takes the request back.
      await lock.configure({ ttlMs: LONG_MS });
      if (this.checker.store.isWaitedFor(lock.resource, holder))
        this.fail(`${holder} failed to become the writer of ${lock.resource}, and its request waits on`);
    } finally {
      await this.releaseAll(holds);
    }
  }

  /** A dead holder is left to a person, who lets a waiter of another process past it. */
  async #letPastTheDead(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const other = this.pickNeighbour();
    this.doing = `leaves ${lock.name} to a person`;
    let waiting: Promise<() => Promise<unknown>> | undefined;
    try {
      await lock.configure({ onStale: 'alert' });
      await lock.acquireDetached({ holder: `${this.name}-dead`, ttlMs: 500 });
      await this.world.sleep(1000 + this.random.next() * 1000, this.process);
      waiting = this.acquireAt(other, lock.name);
      await this.pause(2000);
    } finally {
      await this.mayBeReclaimed(lock);
    }
    this.doing = `waits until ${other.process.name} is let past the dead holder of ${lock.name}`;
    await this.#changesSoon(
      () => this.checker.store.leaves(lock.resource, this.world.now, true),
      `${lock.resource} is waited for, and ${this.name} made it free`,
    );
    const release = await waiting;
    await release();
  }

  /**
   * A holder asks in two processes for one lock. If one request is granted, so is the other, which shares the hold; also if the
   * process that grants the first is cut off, and that of the second has to find out by itself.
   */
  async #askFromTwoProcesses(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const [one, other] = this.pickNeighbours();
    const holder = `${this.name}-both`;
    this.doing = `has ${lock.name}`;
    const hold = await lock.acquire();
    const asked: Promise<() => Promise<unknown>>[] = [];
    const isCutOff = this.random.chance(0.5);
    try {
      asked.push(this.acquireAt(one, lock.name, holder));
      await this.pause(500);
      // Reads the queue with the first request, and without the second.
      const attempt = await lock.tryAcquire();
      if ('hold' in attempt) await attempt.hold.release();
      // When this lease ends, every waiter looks.
      if (isCutOff) await this.box.lock(this.newName()).acquireDetached({ holder, ttlMs: 800 });
      asked.push(this.acquireAt(other, lock.name, holder));
      await this.pause(500);
    } finally {
      if (isCutOff) {
        this.faults.always(other.process, 'write', { kind: 'answer-lost', thereMs: 1 }, 2000);
        this.loseAnswer(3000);
      }
      await hold.release();
    }
    this.doing = `waits until ${holder} has ${lock.name} in both processes`;
    await this.#changesSoon(
      () => this.checker.store.waitsForItself(lock.resource, holder),
      `${holder} waits for ${lock.resource}, and has it`,
    );
    const releases = await this.settled(asked);
    await this.settled(releases.map((release) => release()));
  }

  /** A release is lost on its way, and an administrator takes the hold away before it is sent again. */
  async #releaseWhatIsBroken(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const other = this.pickNeighbour();
    this.doing = `has ${lock.name}`;
    const hold = await lock.acquire();
    this.faults.delayMail(this.process, this.random.whole(500, 3000));
    const breaking = async (): Promise<void> => {
      await this.pause(300);
      await this.at(other, other.box.lock(lock.name).break({ holder: 'admin', reason: 'simulated' }));
    };
    const releasing = async (): Promise<void> => {
      await this.pause(300);
      this.doing = `releases ${lock.name} while it is broken`;
      this.faults.next(this.process, 'write', { kind: 'request-lost' });
      const { kind } = await hold.release();
      if (kind === 'released' && !this.checker.store.wasReleased(hold))
        this.fail(`${lock.resource} #${hold.token} was said to be released to ${this.name}, and was broken`);
    };
    await this.settled([breaking(), releasing()]);
  }

  /** Requests are given up while another process writes them, and its answers come too late. None may keep a slot. */
  async #giveUpWhatIsDelegated(): Promise<void> {
    const name = this.newName();
    const other = this.pickNeighbour();
    const slots = this.box.semaphore(name, { capacity: CAPACITY });
    const theirs = other.box.semaphore(name, { capacity: CAPACITY });
    this.doing = `contends for ${name}`;
    await (await slots.acquire()).release();
    let isOver = false;
    const contend = async (): Promise<void> => {
      for (let round = 0; round < 200 && !isOver; round++) {
        const hold = await this.at(other, theirs.acquire({ waitMs: 1000 }));
        await this.at(other, hold.release());
      }
    };
    const giveUp = async (): Promise<void> => {
      await this.pause(50);
      this.faults.delayMail(this.process, 1500);
      for (let request = 0; request < 6; request++) {
        const hold = await slots.acquire({ signal: this.soon(300) }).catch((error: unknown) => {
          if (!isExpected(error)) throw error;
        });
        await hold?.release();
      }
      isOver = true;
    };
    await this.settled([contend(), giveUp()]);
    this.doing = `waits for all slots of ${name}`;
    const all = await slots.acquire({ weight: CAPACITY });
    await all.release();
  }

  /** A release by token is lost on its way, and the same holder gets more elsewhere, and releases that. */
  async #releaseWhatBecameMore(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const other = this.pickNeighbour();
    const holder = `${this.name}-script`;
    this.doing = `reads ${lock.name}, detached`;
    const claim = await lock.acquireDetached({ holder, mode: 'shared', ttlMs: LONG_MS });
    const getMore = async (): Promise<void> => {
      await this.pause(100);
      const theirs = other.box.lock(lock.name);
      const more = await this.at(other, theirs.acquireDetached({ holder, ttlMs: LONG_MS, waitMs: 5000 }));
      await this.at(other, theirs.release(more));
    };
    this.loseRequests(this.random.whole(300, 1500));
    await this.settled<unknown>([getMore(), this.releaseClaim(lock, claim)]);
    await lock.release(claim);
  }

  /** An acquire fails after it was granted, and its lease ends late. The second attempt must not rest on that lease. */
  async #acquireAgain(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const { process, faults } = this;
    const options = { holder: `${this.name}-script`, ttlMs: LONG_MS, maxHoldMs: LONG_MS };
    this.doing = `acquires ${lock.name}, detached, and gets no lease for its limit`;
    faults.next(process, 'grantLease', { kind: 'well', thereMs: 1, backMs: 1 });
    faults.always(process, 'grantLease', { kind: 'request-lost' }, 1900);
    faults.next(process, 'revokeLease', { kind: 'late', lateMs: this.random.whole(0, 3000) });
    let claim = await lock.acquireDetached(options).catch((error: unknown) => {
      if (!isExpected(error)) throw error;
    });
    this.doing = `acquires ${lock.name} again`;
    claim ??= await lock.acquireDetached(options);
    await this.world.sleep(5000, process);
    const { kind } = await lock.renew(claim);
    if (kind !== 'refreshed') this.fail(`${lock.resource} was renewed by its only holder: ${kind}`);
    await this.releaseClaim(lock, claim);
  }

  /** One write grants a detached hold, and takes it away by force. */
  async #takeInTheSameWrite(): Promise<void> {
    const lock = this.box.lock(this.newName());
    this.doing = `takes ${lock.name} by force`;
    await lock.configure({ ttlMs: 2 * LONG_MS });
    this.faults.next(this.process, 'write', { kind: 'well', thereMs: 1, backMs: this.random.whole(500, 2000) });
    // Both requests are made before this one is answered, so the next write decides both.
    const configured = lock.configure({ ttlMs: LONG_MS });
    const detached = async (): Promise<void> => {
      const since = this.process.clock.monotonic();
      const claim = await lock.acquireDetached({ holder: `${this.name}-script`, ttlMs: LONG_MS, waitMs: 1000 });
      await this.using(this.#held(claim, since));
      await lock.release(claim);
    };
    const given = detached();
    const force = async (): Promise<void> => {
      await this.pause(1000);
      const hold = await lock.acquire({ holder: `${this.name}-admin`, strategy: 'force', reason: 'simulated' });
      const believer = this.checker.granted(hold, this.process);
      try {
        await this.world.sleep(2000, this.process);
      } finally {
        this.checker.left(believer);
        await hold.release();
      }
    };
    await this.settled([configured, given, force()]);
  }

  /** A detached hold as its user believes in it, without renewals. */
  #held(claim: DetachedHold, since: number): Held {
    const isValid = (): boolean => this.process.clock.monotonic() - since < claim.ttlMs * 0.9;
    return {
      ...claim,
      get isValid() {
        return isValid();
      },
      signal: {
        get aborted() {
          return !isValid();
        },
      },
    };
  }

  /** Two locks are granted together without an answer, and one is taken away. Then the other must go back. */
  async #loseOneOfTwo(): Promise<void> {
    const [one, two] = [this.newName(), this.newName()];
    const other = this.pickNeighbour();
    this.doing = `tries for ${one} and ${two} together`;
    const together = async (): Promise<void> => {
      this.loseAnswer(0);
      const attempt = await this.box.tryAcquireAll([{ lock: one }, { lock: two }]);
      if (attempt.kind === 'acquired') await attempt.holds.release();
    };
    const trying = together();
    const take = async (): Promise<void> => {
      await this.pause(300);
      const hold = await this.at(other, other.box.lock(one).acquire({ strategy: 'force', reason: 'simulated' }));
      await trying.catch(() => undefined);
      await this.at(other, hold.release());
    };
    await this.settled([trying, take()]);
    this.doing = `waits until ${two} has been given back`;
    const release = await this.acquireAt(other, two);
    await release();
  }

  /** A release fails without an answer, and lands late. It must not end what the same holder has by then. */
  async #acquireBehindRelease(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const { process, faults } = this;
    const options = { holder: `${this.name}-script`, ttlMs: LONG_MS };
    this.doing = `has ${lock.name}, detached`;
    const claim = await lock.acquireDetached(options);
    this.doing = `releases ${lock.name}, and gets no answer`;
    faults.next(process, 'write', { kind: 'late', lateMs: this.random.whole(1500, 4000) });
    this.loseRequests(1900);
    const error = await lock.release(claim).catch((thrown: unknown) => thrown);
    if (error instanceof Error && !isExpected(error)) throw error;
    this.doing = `acquires ${lock.name} again, behind its release`;
    const again = await lock.acquireDetached(options);
    await this.world.sleep(5000, process);
    const { kind } = await lock.renew(again);
    if (kind !== 'refreshed') this.fail(`${lock.resource} was renewed by its only holder: ${kind}`);
    await this.releaseClaim(lock, again);
  }

  /** One reader stops waiting to become the writer at the very moment at which another of the same process begins to. */
  async #replaceUpgrade(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const other = this.pickNeighbour();
    const holds: Hold[] = [];
    try {
      this.doing = `reads ${lock.name} in two processes`;
      const theirs = await this.at(other, other.box.lock(lock.name).acquire({ mode: 'shared' }));
      const first = await lock.acquire({ mode: 'shared', holder: `${this.name}-first` });
      holds.push(first);
      const second = await lock.acquire({ mode: 'shared', holder: `${this.name}-second` });
      holds.push(second);
      const quit = new AbortController();
      const given = first.upgrade({ signal: quit.signal });
      // Its process may close during the pause.
      given.catch(() => undefined);
      await this.pause(1000);
      quit.abort();
      this.doing = `waits to become the writer of ${lock.name} in place of another`;
      const upgrading = second.upgrade();
      upgrading.catch(() => undefined);
      await this.pause(1000);
      await this.settled<unknown>([given, first.release(), this.at(other, theirs.release()), upgrading]);
    } finally {
      await this.releaseAll(holds);
    }
  }

  /** An acquire is granted without an answer, and another process of the same holder renews the hold before it is found. */
  async #renewElsewhere(): Promise<void> {
    const lock = this.box.lock(this.newName());
    const other = this.pickNeighbour();
    const holder = `${this.name}-script`;
    this.doing = `acquires ${lock.name}, detached, while another process renews it`;
    await (await lock.acquire()).release();
    const acquire = async (): Promise<void> => {
      // The first write is that of its lease.
      this.faults.next(this.process, 'write', { kind: 'well', thereMs: 1, backMs: 1 });
      this.loseAnswer(this.random.whole(0, 900));
      const claim = await lock.acquireDetached({ holder, ttlMs: LONG_MS });
      await this.releaseClaim(lock, claim);
    };
    const extend = async (): Promise<void> => {
      const theirs = other.box.lock(lock.name);
      for (let look = 0; look < 20; look++) {
        const [held] = (await this.at(other, theirs.inspect())).holders;
        if (held?.holder === holder)
          return void (await this.at(other, theirs.extend({ holder, token: held.token }, LONG_MS)));
        await this.pause(50);
      }
    };
    await this.settled([acquire(), extend()]);
  }

  /**
   * In calm times, the resource is written soon if its last write, which this gives, left a request that can be granted. Sooner
   * or later it is written anyway, because every waiter looks when a lease ends.
   */
  async #changesSoon(last: () => number | undefined, otherwise: string): Promise<void> {
    const before = last();
    if (before === undefined || !this.world.isCalm) return;
    await this.world.sleep(SERVED_MS, this.process);
    if (last() === before) this.fail(`${otherwise}; nothing came of it in ${SERVED_MS} ms`);
  }
}
