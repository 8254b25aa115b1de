/** What single calls promise although answers come late or never: each story is about one call. */
import { Failure } from '../../failure.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import type { Semaphore } from '../../runtime/holds/semaphore.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import { isExpected, type Story, User } from './user.ts';

/** No call gives up on the store sooner; a little less than the `requestTimeoutMs` of simulated processes. */
const PATIENCE_MS = 1900;
const CROWD = 3;
/** In this time a slow network without faults serves a queue. */
const SERVED_MS = 5000;

export class AnswersWorker extends User {
  readonly #began = this.world.now;

  protected stories(): readonly Story[] {
    return [
      () => this.#becomeWriterTwice(),
      () => this.#failToBecomeWriter(),
      () => this.#goOnUntilAnswered(),
      () => this.#leaveToAPerson(),
      () => this.#waitForAPerson(),
      () => this.#waitForAPerson(),
      () => this.#wait(),
      () => this.#impatient(),
      () => this.#impatient(),
      () => this.#extendWhatItHas(),
      () => this.#crowd(),
      () => this.#tryWhereSomebodyDied(),
    ];
  }

  /** Asks twice without a time limit: the second request joins the first; both are granted when the other reader leaves. */
  async #becomeWriterTwice(): Promise<void> {
    const { lock, reader, other } = await this.#readers('twice');
    this.doing = `becomes the writer of ${lock.name} twice`;
    try {
      const ask = async (): Promise<void> => {
        await this.pause(50);
        if (this.random.chance(0.5)) await reader.upgrade();
        // After a lost session it is no re-entry.
        else await (await lock.acquire({ holder: reader.holder })).release();
      };
      const leave = async (): Promise<void> => {
        await this.pause(500);
        await other.release();
      };
      await this.#all([ask(), ask(), leave()]);
    } finally {
      await Promise.all([reader.release(), other.release()]);
    }
  }

  /** If the store stays away until the caller gives up on it, the request must have no effect later. */
  async #failToBecomeWriter(): Promise<void> {
    const { lock, reader, other } = await this.#readers('unanswered');
    const believer = this.checker.granted(reader, this.process);
    try {
      this.doing = `waits to become the writer of ${lock.name}`;
      const { resource, holder } = reader;
      const asked = this.asking(resource, holder, true, () => reader.upgrade({ signal: this.soon(4000) })).catch(
        (error: unknown) => error,
      );
      if (this.random.chance(0.7)) {
        // When the process goes on, the time of the request is over, and no answer has come.
        await this.world.sleep(1, this.process);
        this.process.pause(2100);
      }
      const error = await asked;
      if (error instanceof Error && !isExpected(error)) throw error;
      this.doing = `reads ${lock.name}, which it could not write`;
      if (error instanceof Failure && !(error instanceof NotAcquired)) await this.world.sleep(14_000, this.process);
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
      await Promise.all([reader.release(), other.release()]);
    }
  }

  /** Two readers of a lock that no other user has, both in this process. */
  async #readers(what: string) {
    const lock = this.box.lock(`${what}-${this.name}`);
    this.doing = `reads ${lock.name}`;
    const reader = await lock.acquire({ mode: 'shared', holder: `${this.name}-${this.world.now}` });
    const other = await lock.acquire({ mode: 'shared' }).catch(async (error: unknown) => {
      await reader.release();
      throw error;
    });
    return { lock, reader, other };
  }

  /** Calls of every kind that a store fails to answer at first. */
  async #goOnUntilAnswered(): Promise<void> {
    const names = [`first-${this.name}`, `second-${this.name}`];
    const set = await this.#patiently('takes two locks together', () =>
      this.box.acquireAll(
        names.map((lock) => ({ lock })),
        { waitMs: 5000 },
      ),
    );
    await set.release();
    const lock = this.box.lock(`third-${this.name}`);
    const claim = await this.#patiently('takes a lock, detached', () => lock.acquireDetached({ holder: this.name }));
    await this.#patiently('extends it', () => lock.extend(claim, 4000));
    await this.#patiently('looks at it', () => lock.inspect());
    await this.#patiently('releases it', () => lock.release(claim), true);
  }

  /** `isRelease`: without an answer, only history tells how the hold ended, and the store may have forgotten it since. */
  async #patiently<T>(what: string, call: () => Promise<T>, isRelease = false): Promise<T> {
    const { clock } = this.process;
    const [since, begun] = [clock.monotonic(), this.world.now];
    this.doing = what;
    try {
      return await call();
    } catch (error) {
      const tookMs = clock.monotonic() - since;
      const isUnknown = Failure.is(error, 'outcome-unknown');
      const isForgotten = isRelease && isUnknown && this.world.forgottenAt >= begun;
      const gaveUp = !isForgotten && (isUnknown || Failure.is(error, 'unavailable'));
      if (gaveUp && tookMs < PATIENCE_MS && !(await this.#isClosed()))
        this.fail(`${this.name} ${what}: it gave up on the store after ${Math.round(tookMs)} ms`);
      throw error;
    }
  }

  /** Whether this process has closed: then a call fails at once. */
  #isClosed(): Promise<boolean> {
    const closed = (error: unknown): boolean => Failure.is(error, 'closed');
    return this.box
      .lock('any')
      .inspect()
      .then(() => false, closed);
  }

  /** A dead holder is left to a person, who decides a little later. */
  async #leaveToAPerson(): Promise<void> {
    const lock = this.box.lock('left');
    this.doing = `leaves ${lock.name} to a person`;
    try {
      await lock.configure({ onStale: 'alert' });
      await lock.acquireDetached({ holder: `${this.name}-${this.world.now}`, ttlMs: 500, waitMs: 2000 });
      await this.world.sleep(1000 + this.random.next() * 5000, this.process);
    } finally {
      await this.mayBeReclaimed(lock);
    }
    const { store } = this.checker;
    const left = store.leaves(lock.resource, this.world.now, true);
    if (left === undefined || !this.world.isCalm) return;
    await this.world.sleep(SERVED_MS, this.process);
    if (left === store.leaves(lock.resource, this.world.now, true))
      this.fail(`${lock.resource} is waited for, and ${this.name} made it free ${SERVED_MS} ms ago`);
  }

  /** Gets the lock as soon as the person decides, perhaps in another process. */
  async #waitForAPerson(): Promise<void> {
    const lock = this.box.lock('left');
    this.doing = `waits for ${lock.name}`;
    const asked = lock.acquire();
    const decide = async (): Promise<void> => {
      // The user that should have decided may have crashed.
      await this.world.sleep(6000, this.process);
      await this.mayBeReclaimed(lock);
    };
    await this.#all([asked.then((hold) => this.under(hold)), decide()]);
  }

  async #wait(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `waits for ${lock.name}`;
    await this.under(await lock.acquire());
  }

  /** Gives up at the moment when its request may be granted. */
  async #impatient(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `waits a moment for ${lock.name}`;
    await this.under(await lock.acquire({ signal: this.soon(300) }));
  }

  /** The hold goes with its session, whatever time its holder asks for. */
  async #extendWhatItHas(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `waits for ${lock.name}`;
    const hold = await lock.acquire({ waitMs: 5000 });
    const believer = this.checker.granted(hold, this.process);
    try {
      this.doing = `extends ${lock.name} by a second`;
      await lock.extend(hold, 1000);
      for (let touches = 3; touches > 0; touches--) {
        await this.pause(1500);
        this.checker.touches(believer);
      }
    } finally {
      this.checker.left(believer);
      await this.release(hold);
    }
  }

  /** Fills a semaphore, with a hold behind the others whose holder never comes back. */
  async #crowd(): Promise<void> {
    const crowd = this.box.semaphore('crowd', { capacity: CROWD });
    this.doing = 'fills a semaphore';
    const holds: Hold[] = [];
    try {
      while (holds.length < CROWD - 1) holds.push(await crowd.acquire({ waitMs: 1000 }));
      await crowd.acquireDetached({ holder: `${this.name}-${this.world.now}`, ttlMs: 500, waitMs: 1000 });
      await this.pause(10_000);
    } finally {
      await Promise.all(holds.map((hold) => hold.release()));
    }
  }

  /** A holder that died before a process began is never in its way, although the process did not see it die. */
  async #tryWhereSomebodyDied(): Promise<void> {
    const crowd = this.box.semaphore('crowd', { capacity: CROWD });
    this.doing = 'tries for a slot of the dead';
    const { store } = this.checker;
    const left = store.leaves(crowd.resource, this.#began, false);
    const isFull = (await this.#isFull(crowd)) && left !== undefined;
    if (isFull && left === store.leaves(crowd.resource, this.#began, false))
      this.fail(`${crowd.resource} was refused to ${this.name}, although a slot was left by the dead`);
  }

  /** Half of the users ask by `tryAcquireAll`. Uses the slot if there is one. */
  async #isFull(crowd: Semaphore): Promise<boolean> {
    if (this.name.endsWith('1')) {
      const attempt = await this.box.tryAcquireAll([{ semaphore: crowd.name, capacity: CROWD }]);
      if (attempt.kind === 'acquired') await this.under(attempt.holds.holds[0] as Hold);
      return attempt.kind === 'refused' && attempt.refusals.some(({ refusal }) => refusal.kind === 'full');
    }
    const attempt = await crowd.tryAcquire();
    if ('hold' in attempt) await this.under(attempt.hold);
    return attempt.kind === 'full';
  }

  /** Throws the first unexpected failure. */
  async #all(under: readonly Promise<void>[]): Promise<void> {
    for (const one of await Promise.allSettled(under))
      if (one.status === 'rejected' && !isExpected(one.reason)) throw one.reason as Error;
  }
}
