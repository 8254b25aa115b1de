/** What most users do with locks and semaphores. */
import { type Story, User } from './user.ts';

export const CAPACITY = 3;

export class Worker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#write(),
      () => this.#write(),
      () => this.#write(),
      () => this.#read(),
      () => this.#upgrade(),
      () => this.#slots(),
      () => this.#slots(),
      () => this.#impatient(),
      () => this.#try(),
      () => this.#oneInsideTheOther(),
      () => this.#together(),
      () => this.#detached(),
      () => this.#limited(),
      () => this.#force(),
    ];
  }

  async #write(): Promise<void> {
    const lock = this.pickLock();
    this.doing = `waits for ${lock}`;
    const priority = this.random.chance(0.2) ? this.random.whole(-2, 2) : 0;
    await this.under(await this.box.lock(lock).acquire({ priority }));
  }

  async #read(): Promise<void> {
    const lock = this.pickLock();
    this.doing = `waits to read ${lock}`;
    await this.under(await this.box.lock(lock).acquire({ mode: 'shared' }));
  }

  async #upgrade(): Promise<void> {
    const lock = this.pickLock();
    this.doing = `waits to read ${lock}`;
    const hold = await this.box.lock(lock).acquire({ mode: 'shared' });
    const reading = this.checker.granted(hold, this.process);
    try {
      await this.pause(20);
      this.doing = `waits to upgrade ${lock}`;
      await hold.upgrade({ waitMs: this.random.whole(10, 3000) });
      this.checker.left(reading);
      await this.using(hold);
      if (this.random.chance(0.5) && hold.isValid) {
        this.doing = `downgrades ${lock}`;
        await hold.downgrade();
        await this.using(hold);
      }
    } finally {
      this.checker.left(reading);
      await this.release(hold);
    }
  }

  async #slots(): Promise<void> {
    const weight = this.random.whole(1, CAPACITY);
    this.doing = `waits for ${weight} slots`;
    const semaphore = this.box.semaphore('slots', { capacity: CAPACITY });
    await this.under(await semaphore.acquire({ weight }));
  }

  async #impatient(): Promise<void> {
    const lock = this.pickLock();
    this.doing = `waits a little for ${lock}`;
    if (this.random.chance(0.5)) {
      await this.under(await this.box.lock(lock).acquire({ waitMs: this.random.whole(0, 200) }));
      return;
    }
    const abort = new AbortController();
    this.world.schedule(this.random.whole(0, 100), () => abort.abort(), this.process);
    await this.under(await this.box.lock(lock).acquire({ signal: abort.signal }));
  }

  async #try(): Promise<void> {
    const lock = this.pickLock();
    this.doing = `tries ${lock}`;
    const attempt = await this.box.lock(lock).tryAcquire();
    if ('hold' in attempt) await this.under(attempt.hold);
  }

  async #oneInsideTheOther(): Promise<void> {
    const [outer, inner] = [this.pickLock(), this.pickLock()];
    const holder = `${this.name}-${this.world.now.toFixed(1)}`;
    this.doing = `waits for ${outer}`;
    const hold = await this.box.lock(outer).acquire({ holder });
    const using = this.checker.granted(hold, this.process);
    try {
      await this.pause(30);
      this.doing = `has ${outer} and waits for ${inner}`;
      const second = await this.box.lock(inner).acquire({ holder });
      if (inner === outer) await second.release();
      else await this.under(second);
    } finally {
      this.checker.left(using);
      await this.release(hold);
    }
  }

  async #together(): Promise<void> {
    const locks = [...new Set([this.pickLock(), this.pickLock()])];
    this.doing = `waits for ${locks.join(' and ')} and a slot together`;
    const wants = [...locks.map((lock) => ({ lock })), { semaphore: 'slots', capacity: CAPACITY }];
    const set = await this.box.acquireAll(wants, { waitMs: this.random.whole(0, 5000) });
    const using = set.holds.map((hold) => this.checker.granted(hold, this.process));
    try {
      await this.pause(30);
      for (const believer of using) this.checker.touches(believer);
    } finally {
      for (const believer of using) this.checker.left(believer);
      this.doing = `releases ${locks.join(' and ')}`;
      await set.release();
    }
  }

  async #detached(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `waits for ${lock.name}, detached`;
    const hold = await lock.acquireDetached({ holder: `${this.name}-detached`, ttlMs: 5000, waitMs: 4000 });
    for (let renewals = this.random.whole(0, 2); renewals > 0; renewals--) {
      await this.pause(1500);
      if ((await lock.renew(hold)).kind !== 'refreshed') return;
    }
    // Some users never come back; then the lease ends the hold.
    if (this.random.chance(0.7)) await this.releaseClaim(lock, hold);
  }

  async #limited(): Promise<void> {
    const lock = this.pickLock();
    this.doing = `waits for ${lock}, for a limited time`;
    await this.under(await this.box.lock(lock).acquire({ maxHoldMs: this.random.whole(2000, 4000) }), 3000);
  }

  async #force(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `breaks ${lock.name}`;
    if (this.random.chance(0.3)) await lock.break({ holder: this.name, reason: 'simulated' });
  }
}
