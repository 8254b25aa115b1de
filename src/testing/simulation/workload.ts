/** What the users of the simulated processes do: everything that signalbox offers, in any order. */
import { Failure } from '../../failure.ts';
import type { Hold } from '../../runtime/hold.ts';
import type { LockHold } from '../../runtime/lock.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { type Checker, Violation } from './checker.ts';
import type { Random } from './random.ts';
import type { SimulatedProcess, World } from './world.ts';

export const CAPACITY = 3;

/** One user in one process; `done` once it has finished its rounds. */
export class Worker {
  readonly name: string;
  readonly process: SimulatedProcess;
  readonly #box: Signalbox;
  readonly #world: World;
  readonly #checker: Checker;
  readonly #random: Random;
  readonly #locks: readonly string[];
  isDone = false;
  doing = 'begins';

  constructor(
    name: string,
    process: SimulatedProcess,
    box: Signalbox,
    world: World,
    checker: Checker,
    locks: readonly string[],
  ) {
    this.name = name;
    this.process = process;
    this.#box = box;
    this.#world = world;
    this.#checker = checker;
    this.#random = world.random;
    this.#locks = locks;
  }

  async work(rounds: number): Promise<void> {
    const stories = [
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
    for (let round = 0; round < rounds; round++) {
      await this.#pause(20);
      try {
        await this.#random.pick(stories)();
      } catch (error) {
        // Refusals and a store that cannot be reached are to be expected here; anything else is a bug.
        if (!(error instanceof Failure) || error.code === 'invalid' || error.code === 'corrupt') {
          if (!(error instanceof Violation)) this.#fail(`${this.name} met ${String(error)}`);
        }
        this.#note(`${this.doing}: ${(error as Error).message}`);
      }
    }
    this.isDone = true;
    this.doing = 'done';
  }

  async #write(): Promise<void> {
    const lock = this.#pickLock();
    this.doing = `waits for ${lock}`;
    const priority = this.#random.chance(0.2) ? this.#random.whole(-2, 2) : 0;
    await this.#under(await this.#box.lock(lock).acquire({ priority }), true);
  }

  async #read(): Promise<void> {
    const lock = this.#pickLock();
    this.doing = `waits to read ${lock}`;
    await this.#under(await this.#box.lock(lock).acquire({ mode: 'shared' }), false);
  }

  async #upgrade(): Promise<void> {
    const lock = this.#pickLock();
    this.doing = `waits to read ${lock}`;
    const hold = await this.#box.lock(lock).acquire({ mode: 'shared' });
    const reading = this.#checker.granted(hold, this.process, false);
    try {
      await this.#pause(20);
      this.doing = `waits to upgrade ${lock}`;
      await hold.upgrade({ waitMs: this.#random.whole(10, 3000) });
      this.#checker.left(reading);
      await this.#using(hold, true);
      if (this.#random.chance(0.5) && hold.isValid) {
        this.doing = `downgrades ${lock}`;
        await hold.downgrade();
        await this.#using(hold, false);
      }
    } finally {
      this.#checker.left(reading);
      await this.#release(hold);
    }
  }

  async #slots(): Promise<void> {
    const weight = this.#random.whole(1, CAPACITY);
    this.doing = `waits for ${weight} slots`;
    const semaphore = this.#box.semaphore('slots', { capacity: CAPACITY });
    await this.#under(await semaphore.acquire({ weight }), false);
  }

  async #impatient(): Promise<void> {
    const lock = this.#pickLock();
    this.doing = `waits a little for ${lock}`;
    if (this.#random.chance(0.5)) {
      await this.#under(await this.#box.lock(lock).acquire({ waitMs: this.#random.whole(0, 200) }), true);
      return;
    }
    const abort = new AbortController();
    this.#world.schedule(this.#random.whole(0, 100), () => abort.abort(), this.process);
    await this.#under(await this.#box.lock(lock).acquire({ signal: abort.signal }), true);
  }

  async #try(): Promise<void> {
    const lock = this.#pickLock();
    this.doing = `tries ${lock}`;
    const attempt = await this.#box.lock(lock).tryAcquire();
    if ('hold' in attempt) await this.#under(attempt.hold, true);
  }

  async #oneInsideTheOther(): Promise<void> {
    const [outer, inner] = [this.#pickLock(), this.#pickLock()];
    const holder = `${this.name}-${this.#world.now.toFixed(1)}`;
    this.doing = `waits for ${outer}`;
    const hold = await this.#box.lock(outer).acquire({ holder });
    const using = this.#checker.granted(hold, this.process, true);
    try {
      await this.#pause(30);
      this.doing = `has ${outer} and waits for ${inner}`;
      const second = await this.#box.lock(inner).acquire({ holder });
      if (inner === outer) await second.release();
      else await this.#under(second, true);
    } finally {
      this.#checker.left(using);
      await this.#release(hold);
    }
  }

  async #together(): Promise<void> {
    const locks = [...new Set([this.#pickLock(), this.#pickLock()])];
    this.doing = `waits for ${locks.join(' and ')} and a slot together`;
    const wants = [...locks.map((lock) => ({ lock })), { semaphore: 'slots', capacity: CAPACITY }];
    const set = await this.#box.acquireAll(wants, { waitMs: this.#random.whole(0, 5000) });
    const using = set.holds.map((hold) => this.#checker.granted(hold, this.process, hold.resource.startsWith('lock/')));
    try {
      await this.#pause(30);
      for (const believer of using) this.#checker.touches(believer);
    } finally {
      for (const believer of using) this.#checker.left(believer);
      this.doing = `releases ${locks.join(' and ')}`;
      await set.release();
    }
  }

  async #detached(): Promise<void> {
    const lock = this.#box.lock(this.#pickLock());
    this.doing = `waits for ${lock.name}, detached`;
    const hold = await lock.acquireDetached({ holder: `${this.name}-detached`, ttlMs: 5000, waitMs: 4000 });
    for (let renewals = this.#random.whole(0, 2); renewals > 0; renewals--) {
      await this.#pause(1500);
      if ((await lock.renew(hold)).kind !== 'refreshed') return;
    }
    // Some never come back: then the lease ends it.
    if (this.#random.chance(0.7)) await lock.release(hold);
  }

  async #limited(): Promise<void> {
    const lock = this.#pickLock();
    this.doing = `waits for ${lock}, for a limited time`;
    await this.#under(await this.#box.lock(lock).acquire({ maxHoldMs: this.#random.whole(2000, 4000) }), true, 3000);
  }

  async #force(): Promise<void> {
    const lock = this.#box.lock(this.#pickLock());
    this.doing = `breaks ${lock.name}`;
    if (this.#random.chance(0.3)) await lock.break({ holder: this.name, reason: 'simulated' });
  }

  async #under(hold: Hold, isExclusive: boolean, longest = 50): Promise<void> {
    const believer = this.#checker.granted(hold, this.process, isExclusive && hold.resource.startsWith('lock/'));
    try {
      for (let touches = this.#random.whole(1, 3); touches > 0; touches--) {
        this.#checker.touches(believer);
        this.doing = `uses ${hold.resource} #${hold.token}`;
        await this.#pause(longest);
      }
      if (this.#random.chance(0.05)) await this.#pause(4000);
      this.#checker.touches(believer);
    } finally {
      this.#checker.left(believer);
      await this.#release(hold);
    }
  }

  async #using(hold: LockHold, isExclusive: boolean): Promise<void> {
    const believer = this.#checker.granted(hold, this.process, isExclusive);
    this.doing = `uses ${hold.resource} #${hold.token}`;
    await this.#pause(50);
    this.#checker.touches(believer);
    this.#checker.left(believer);
  }

  async #release(hold: Hold): Promise<void> {
    this.doing = `releases ${hold.resource} #${hold.token}`;
    await hold.release();
  }

  #pause(longestMs: number): Promise<void> {
    return this.#world.sleep(this.#random.next() * longestMs, this.process);
  }

  #pickLock(): string {
    return this.#random.pick(this.#locks);
  }

  #note(what: string): void {
    this.#world.note(this.process.name, `${this.name} ${what}`);
  }

  #fail(what: string): void {
    try {
      this.#checker.fail(what);
    } catch {
      // Kept by the checker.
    }
  }
}
