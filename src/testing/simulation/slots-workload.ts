/** What users do with semaphores: every weight and capacity, also impossible ones, and changes of the capacity. */
import { NotAcquired } from '../../runtime/refusal.ts';
import type { SemaphoreHold, Semaphore } from '../../runtime/holds/semaphore.ts';
import { isExpected, type Story, User } from './user.ts';

const NAMES = ['ann', 'bob', 'cid'];
const CAPACITY = 4;
const MOST = 6;

export class SlotsWorker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#take(),
      () => this.#take(),
      () => this.#take(),
      () => this.#grow(),
      () => this.#severalAtOnce(),
      () => this.#resize(),
      () => this.#resizeOnce(),
      () => this.#mistaken(),
      () => this.#try(),
      () => this.#detached(),
      () => this.#forced(),
      () => this.#drain(),
      () => this.#look(),
    ];
  }

  async #take(): Promise<void> {
    const weight = this.random.whole(1, MOST);
    this.doing = `waits for ${weight} slots`;
    const priority = this.random.chance(0.2) ? this.random.whole(-2, 2) : 0;
    await this.under(await this.#pool().acquire({ weight, priority }), 100);
  }

  async #grow(): Promise<void> {
    const holder = this.random.pick(NAMES);
    const hold = await this.#acquire(holder, 1);
    if (hold === undefined) return;
    const believer = this.checker.granted(hold, this.process);
    try {
      await this.pause(50);
      const more = await this.#acquire(holder, this.random.whole(1, CAPACITY));
      this.checker.touches(believer);
      await more?.release();
      await this.pause(50);
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
      await this.release(hold);
    }
  }

  /** The same holder waits several times, for more and for less. */
  async #severalAtOnce(): Promise<void> {
    const holder = this.random.pick(NAMES);
    this.doing = `waits for slots several times as ${holder}`;
    const done = await Promise.allSettled(
      Array.from({ length: this.random.whole(2, 3) }, async () => {
        await this.pause(30);
        const hold = await this.#acquire(holder, this.random.whole(1, CAPACITY), this.random.chance(0.4) ? 1000 : 8000);
        if (hold !== undefined) await this.under(hold, 300);
      }),
    );
    for (const one of done) if (one.status === 'rejected' && !isExpected(one.reason)) throw one.reason as Error;
  }

  async #resize(): Promise<void> {
    const capacity = this.random.whole(1, MOST);
    this.doing = `resizes to ${capacity}`;
    await this.#pool(undefined).resize(capacity);
  }

  /** Resizes to a capacity that no other user asks for: it takes effect once. */
  async #resizeOnce(): Promise<void> {
    const capacity = this.checker.nextCapacity();
    this.doing = `resizes once to ${capacity}`;
    const sized = this.box.semaphore('sized');
    const hold = await this.box.semaphore('sized-first', { capacity: 1 }).acquire({ waitMs: 3000 });
    await hold.release();
    await sized.resize(capacity);
  }

  /** Asks for something impossible, or for a capacity that differs from the others'. */
  async #mistaken(): Promise<void> {
    this.doing = 'asks for what cannot be';
    const weight = this.random.pick([0, -1, 1.5, 100, 1, 8]);
    const capacity = this.random.chance(0.3) ? undefined : this.random.pick([1, 2, 10]);
    const hold = await this.#pool(capacity).acquire({ weight, waitMs: 8000 });
    await this.under(hold);
  }

  async #try(): Promise<void> {
    this.doing = 'tries for slots';
    const attempt = await this.#pool().tryAcquire({ weight: this.random.whole(1, 3) });
    if ('hold' in attempt) await this.under(attempt.hold);
    await this.#pool().run((hold) => this.using(hold), { waitMs: 500, maxHoldMs: 3000 });
  }

  async #detached(): Promise<void> {
    const pool = this.#pool();
    const holder = `${this.random.pick(NAMES)}-detached`;
    this.doing = 'waits for slots, detached';
    const options = { holder, ttlMs: 3000, waitMs: 2000, weight: this.random.whole(1, 2) };
    const isByTicket = this.random.chance(0.4);
    const claim = await (isByTicket ? this.withTicket(pool, options, () => undefined) : pool.acquireDetached(options));
    await this.pause(1000);
    if (this.random.chance(0.5)) await pool.renew(claim);
    if (this.random.chance(0.3)) await pool.extend(claim, 2000, { maxHoldMs: 20_000 });
    if (this.random.chance(0.7)) await this.releaseClaim(pool, claim);
  }

  async #forced(): Promise<void> {
    if (this.random.chance(0.6)) return;
    this.doing = 'takes slots by force';
    const pool = this.#pool(undefined);
    const reason = 'simulated';
    if (this.random.chance(0.3)) return void (await pool.break({ holder: this.name, reason }));
    await this.under(await pool.acquire({ holder: this.name, strategy: 'force', reason, sensitive: true }));
  }

  /** Drains a separate semaphore: a user that dies in the middle leaves it drained, and the next user undoes that. */
  async #drain(): Promise<void> {
    const drained = this.box.semaphore('drained', { capacity: 2 });
    this.doing = 'drains a semaphore';
    const { kind, drain } = await drained.drain({ holder: this.name, reason: 'simulated' });
    this.note(`${kind} by ${drain.by}`);
    const attempt = await drained.tryAcquire({ holder: this.name });
    if ('hold' in attempt) await this.under(attempt.hold);
    const wait = async (): Promise<void> => this.under(await drained.acquire({ waitMs: 3000 }));
    const undo = async (): Promise<void> => {
      await this.pause(100);
      this.doing = 'undoes a drain';
      const revision = this.random.chance(0.5) ? { revision: drain.revision } : {};
      await drained.undrain({ holder: this.name, ...revision });
    };
    const done = await Promise.allSettled([wait(), undo()]);
    for (const one of done) if (one.status === 'rejected' && !isExpected(one.reason)) throw one.reason as Error;
  }

  async #look(): Promise<void> {
    const pool = this.#pool(undefined);
    this.doing = 'looks at the slots';
    const [used, available, stale, can, view] = await Promise.all([
      pool.usedSlots(),
      pool.availableSlots(),
      pool.staleHolders(),
      pool.canAcquire(this.random.whole(1, 4)),
      pool.inspect(),
    ]);
    this.note(`saw ${used} used, ${available} free, ${stale.length} stale, ${can}, ${view.waiting.length} waiting`);
    await pool.configure({ onStale: 'reclaim' });
  }

  #pool(capacity: number | undefined = this.random.chance(0.5) ? CAPACITY : undefined): Semaphore {
    return this.box.semaphore('pool', capacity === undefined ? {} : { capacity });
  }

  async #acquire(holder: string, weight: number, longest = 8000): Promise<SemaphoreHold | undefined> {
    const pool = this.#pool();
    this.doing = `waits for ${weight} slots as ${holder}`;
    return this.asking(pool.resource, holder, false, () =>
      pool.acquire({ holder, weight, signal: this.soon(longest) }).catch((error: unknown) => {
        if (error instanceof NotAcquired) return undefined;
        throw error;
      }),
    );
  }
}
