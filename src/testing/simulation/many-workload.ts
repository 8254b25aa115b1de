/** Large numbers of everything: more than one transaction of a store can take. */
import { NotAcquired } from '../../runtime/refusal.ts';
import { isExpected, type Story, User } from './user.ts';

const MANY = 150;
/** More are refused, with the number. */
const MOST_TOGETHER = 50;

export class ManyWorker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#leaveBehind(),
      () => this.#crowd(),
      () => this.#together(),
      () => this.#breakAll(),
      () => this.#resize(),
    ];
  }

  /** Many detached holds that are never renewed. */
  async #leaveBehind(): Promise<void> {
    this.doing = 'leaves many holds behind';
    const many = this.box.semaphore('many', { capacity: MANY });
    const serial = this.random.whole(1, 1e9);
    const options = { ttlMs: 2000, waitMs: 20_000 };
    await this.#all(MANY, async (place) => {
      await many.acquireDetached({ holder: `left-${serial}-${place}`, ...options });
    });
    await this.pause(3000);
    this.doing = 'waits for what was left behind';
    await this.under(await many.acquire({ weight: this.random.whole(1, MANY) }));
  }

  /** Many requests that wait at the same time; some give up at once. */
  async #crowd(): Promise<void> {
    this.doing = 'waits many times over';
    const lock = this.box.lock(this.pickLock());
    const signal = this.soon(5000);
    await this.#all(MANY, async () => {
      const hold = await lock.acquire({ signal, mode: this.random.chance(0.7) ? 'shared' : 'exclusive' });
      const believer = this.checker.granted(hold, this.process);
      this.checker.touches(believer);
      this.checker.left(believer);
      await hold.release();
    });
  }

  async #together(): Promise<void> {
    const count = this.random.whole(30, MOST_TOGETHER);
    this.doing = `takes ${count} locks together`;
    const wants = Array.from({ length: count }, (_, place) => ({ lock: `set-${place}` }));
    try {
      await this.box.runAll(wants, () => this.pause(50), { waitMs: 10_000 });
    } catch (error) {
      if (!(error instanceof NotAcquired)) throw error;
    }
  }

  async #breakAll(): Promise<void> {
    this.doing = 'breaks many holds';
    await this.box.semaphore('many', { capacity: MANY }).break({ holder: this.name, reason: 'simulated' });
  }

  async #resize(): Promise<void> {
    this.doing = 'resizes where many wait';
    const many = this.box.semaphore('many');
    await many.resize(MANY - 1);
    await many.resize(MANY);
  }

  async #all(times: number, each: (place: number) => Promise<void>): Promise<void> {
    const done = await Promise.allSettled(Array.from({ length: times }, (_, place) => each(place)));
    for (const one of done) if (one.status === 'rejected' && !isExpected(one.reason)) throw one.reason as Error;
  }
}
