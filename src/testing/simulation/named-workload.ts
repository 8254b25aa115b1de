/**
 * What holders with a name do: they wait several times and in several processes, enter again in every form, become the
 * writer twice over, give up, and are forced out.
 */
import type { LockMode } from '../../core/index.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import type { LockHold } from '../../runtime/holds/lock.ts';
import { HoldLost, NotAcquired } from '../../runtime/refusal.ts';
import type { Held } from './checker.ts';
import { CHANGED } from './store-checker.ts';
import { isExpected, type Story, Thrown, User } from './user.ts';

/** Few names, so that several processes use the same one. */
const NAMES = ['ann', 'bob', 'cid'];
const MODES: readonly LockMode[] = ['shared', 'exclusive'];
const DETACHED_TTL_MS = 4000;

export class NamedWorker extends User {
  #isWaitingWorthIt = { tried: 0, got: 0 };

  protected stories(): readonly Story[] {
    return [
      () => this.#severalAtOnce(),
      () => this.#severalAtOnce(),
      () => this.#releaseAndReenter(),
      () => this.#reenter(),
      () => this.#reenter(),
      () => this.#becomeWriterTwice(),
      () => this.#giveUpBecomingWriter(),
      () => this.#detached(),
      () => this.#ownDetached(),
      () => this.#forced(),
      () => this.#runThroughAStall(),
      () => this.#throwing(),
      () => this.#atOnce(),
      () => this.#configure(),
      () => this.#look(),
    ];
  }

  /** The same holder wants the same lock several times, for reading or writing, and gives some of it up. */
  async #severalAtOnce(): Promise<void> {
    const [name, holder] = [this.pickLock(), this.#pickName()];
    this.doing = `waits for ${name} several times as ${holder}`;
    await this.#all(this.random.whole(2, 3), async () => {
      await this.pause(30);
      const mode = this.random.pick(MODES);
      const hold = await this.#acquire(name, holder, mode, this.random.chance(0.4) ? this.soon(2000) : undefined);
      if (hold !== undefined) await this.under(hold, 300);
    });
  }

  /** Releases the outer hold at the moment when its holder enters again. */
  async #releaseAndReenter(): Promise<void> {
    const [name, holder] = [this.pickLock(), this.#pickName()];
    const outer = await this.#acquire(name, holder, 'exclusive');
    if (outer === undefined) return;
    this.doing = `releases ${name} and enters it again as ${holder}`;
    const inner = this.#acquire(name, holder, this.random.pick(MODES), this.soon(4000));
    const releasing = async (): Promise<void> => {
      if (this.random.chance(0.5)) await this.pause(5);
      await this.release(outer);
    };
    // Either may fail first, and the other goes on.
    const [entered, released] = await Promise.allSettled([inner, releasing()]);
    if (entered.status === 'fulfilled' && entered.value !== undefined) await this.under(entered.value, 1000);
    for (const settled of [entered, released]) if (settled.status === 'rejected') throw settled.reason;
  }

  async #reenter(): Promise<void> {
    const [name, holder] = [this.pickLock(), this.#pickName()];
    const outer = await this.#acquire(name, holder, this.random.pick(MODES), undefined, this.#limit());
    if (outer === undefined) return;
    const believer = this.checker.granted(outer, this.process);
    try {
      await this.pause(20);
      this.checker.touches(believer);
      this.doing = `enters ${name} again as ${holder}`;
      await this.asking(outer.resource, holder, true, () => this.#enterAgain(name, holder));
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
      await this.release(outer);
    }
  }

  async #enterAgain(name: string, holder: string): Promise<void> {
    const lock = this.box.lock(name);
    const mode = this.random.pick(MODES);
    switch (this.random.whole(0, 4)) {
      case 0:
        return this.under(await lock.acquire({ holder, mode, signal: this.soon(3000), ...this.#limit() }));
      case 1: {
        const attempt = await lock.tryAcquire({ holder, mode });
        if ('hold' in attempt) await this.under(attempt.hold);
        return;
      }
      case 2:
        return lock.run((hold) => this.using(hold), { holder, mode, waitMs: 3000 });
      case 3: {
        const set = await this.box.acquireAll([{ lock: name, mode }], { holder, waitMs: 3000 });
        for (const hold of set.holds) await this.using(hold);
        await set[Symbol.asyncDispose]();
        return;
      }
      default: {
        const attempt = await this.box.tryAcquireAll([{ lock: name, mode }], { holder, reason: 'simulated' });
        if (attempt.kind !== 'acquired') return;
        await this.pause(100);
        if (attempt.holds.isValid) attempt.holds.check();
        await attempt.holds.release();
      }
    }
  }

  /** Asks to write twice at once, on the hold and by its name; and to read again twice. */
  async #becomeWriterTwice(): Promise<void> {
    const [name, holder] = [this.pickLock(), `${this.name}-${this.random.whole(1, 2)}`];
    const hold = await this.#acquire(name, holder, 'shared');
    if (hold === undefined) return;
    const believer = this.checker.granted(hold, this.process);
    try {
      await this.pause(20);
      this.doing = `becomes the writer of ${name} twice`;
      await this.asking(hold.resource, holder, true, () =>
        this.#all(2, async () => {
          if (this.random.chance(0.6)) await hold.upgrade({ waitMs: this.random.whole(10, 3000) });
          else {
            const again = await this.box.lock(name).acquire({ holder, waitMs: this.random.whole(10, 3000) });
            await again.release();
          }
        }),
      );
      await this.pause(30);
      this.checker.touches(believer);
      this.doing = `becomes a reader of ${name} twice`;
      if (hold.isValid && hold.mode === 'exclusive') {
        // It stops writing when it asks to downgrade, because others may read before it gets the answer.
        await this.#all(2, async () => void (await hold.downgrade()));
      }
      await this.pause(30);
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
      await this.release(hold);
    }
  }

  /** A given-up upgrade must not happen later, so it goes on reading long enough to notice. */
  async #giveUpBecomingWriter(): Promise<void> {
    const [name, holder] = [this.pickLock(), `${this.name}-reader`];
    const hold = await this.#acquire(name, holder, 'shared');
    if (hold === undefined) return;
    const believer = this.checker.granted(hold, this.process);
    try {
      this.doing = `gives up becoming the writer of ${name}`;
      const options = this.random.chance(0.5) ? { waitMs: this.random.whole(0, 100) } : { signal: this.soon(100) };
      await this.asking(hold.resource, holder, true, async () => {
        if (this.random.chance(0.6)) await this.box.lock(name).acquire({ holder, ...options });
        else await hold.upgrade(options);
      }).catch((error: unknown) => {
        if (!(error instanceof NotAcquired)) throw error;
      });
      this.doing = `reads ${name} after it gave up writing`;
      await this.pause(this.random.chance(0.3) ? 16_000 : 300);
      this.checker.touches(believer);
    } finally {
      this.checker.left(believer);
      await this.release(hold);
    }
  }

  async #detached(): Promise<void> {
    const name = this.pickLock();
    // Other users of the same name may end it, and a script learns of that when it renews.
    const isShared = this.random.chance(0.5);
    const holder = isShared ? this.#pickName() : `${this.name}-${this.random.whole(1, 1e9)}`;
    const lock = this.box.lock(name);
    this.doing = `waits for ${name} as ${holder}, detached`;
    const mode = this.random.pick(MODES);
    let sent = this.process.clock.monotonic();
    const options = { holder, mode, ttlMs: DETACHED_TTL_MS, waitMs: 2000 };
    const isByTicket = this.random.chance(0.4);
    const claim = await this.asking(lock.resource, holder, mode === 'exclusive', () =>
      isByTicket
        ? this.withTicket(lock, options, () => (sent = this.process.clock.monotonic()))
        : lock.acquireDetached(options),
    );
    // The time of the hold counts from the grant, so the wait before the answer is lost. With a ticket it counts from the last
    // question.
    if (!isByTicket) sent = Math.max(sent, this.process.clock.monotonic() - DETACHED_TTL_MS / 2);
    let ttlMs = claim.ttlMs;
    let isOver = false;
    const ends = sent + (claim.maxHoldMs ?? Number.POSITIVE_INFINITY) * 0.9;
    const isValid = (): boolean => {
      const now = this.process.clock.monotonic();
      return !isOver && now - sent < ttlMs * 0.9 && now < ends;
    };
    const held: Held = {
      ...claim,
      ...(isShared && { isReentry: true, process: 'a script' }),
      get isValid() {
        return isValid();
      },
      signal: {
        get aborted() {
          return !isValid();
        },
      },
    };
    if (this.process.clock.monotonic() - sent >= DETACHED_TTL_MS / 2) return;
    const believer = this.checker.granted(held, this.process);
    try {
      for (let renewals = this.random.whole(0, 3); renewals > 0 && isValid(); renewals--) {
        await this.pause(1500);
        this.checker.touches(believer);
        const sending = this.process.clock.monotonic();
        const longer = this.random.chance(0.3) ? this.random.whole(3000, 6000) : undefined;
        this.doing = `renews ${name} as ${holder}`;
        const outcome = longer === undefined ? await lock.renew(claim) : await lock.extend(claim, longer);
        if (outcome.kind !== 'refreshed') isOver = true;
        else [sent, ttlMs] = [sending, outcome.ttlMs];
      }
    } finally {
      isOver = true;
      this.checker.left(believer);
    }
    // Some users never come back; then the lease ends the hold.
    if (!this.random.chance(0.7)) return;
    this.checker.endsElsewhere(claim);
    await this.releaseClaim(lock, claim);
  }

  /** No other user ever wants this lock, so nothing else can have happened to it. */
  async #ownDetached(): Promise<void> {
    const lock = this.box.lock(`own-${this.name}`);
    this.doing = `holds ${lock.name}, detached`;
    const claim = await lock.acquireDetached({ holder: this.name });
    await this.pause(100);
    const { kind } = await lock.renew(claim);
    if (kind !== 'refreshed') this.fail(`${lock.resource} was renewed by its only holder: ${kind}`);
    const released = await this.releaseClaim(lock, claim);
    if (released !== 'released') this.fail(`${lock.resource} was released by its only holder: ${released}`);
  }

  /** Acts as an administrator: takes the lock, or ends every hold. */
  async #forced(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    if (this.random.chance(0.5)) return;
    this.doing = `takes ${lock.name} by force`;
    if (this.random.chance(0.3)) return void (await lock.break({ holder: this.name, reason: 'simulated' }));
    const mode = this.random.pick(MODES);
    await this.under(await lock.acquire({ holder: this.name, mode, strategy: 'force', reason: 'simulated' }));
  }

  /** Blocks the event loop in the middle of the work, sometimes for longer than the lease. */
  async #runThroughAStall(): Promise<void> {
    const name = this.pickLock();
    this.doing = `stalls while it has ${name}`;
    let token: number | undefined;
    let wasLost = false;
    const work = async (hold: Hold): Promise<void> => {
      const believer = this.checker.granted(hold, this.process);
      ({ token } = hold);
      try {
        this.process.pause(this.random.pick([100, 1000, 4000, 8000]));
        await this.world.sleep(0, this.process);
        wasLost = !this.checker.store.isStored(hold);
        this.checker.touches(believer);
      } finally {
        this.checker.left(believer);
      }
    };
    try {
      if (this.random.chance(0.7)) await this.box.lock(name).run(work, { signal: this.soon(10_000) });
      else await this.box.runAll([{ lock: name }], (set) => work(set.holds[0] as Hold), { signal: this.soon(10_000) });
    } catch (error) {
      if (error instanceof HoldLost) return;
      throw error;
    }
    if (wasLost) this.fail(`the work under lock/${name} #${token} was lost while it ran, and nobody was told`);
  }

  async #throwing(): Promise<void> {
    const name = this.pickLock();
    this.doing = `throws under ${name}`;
    const onWaiting = this.random.chance(0.3) ? undefined : () => this.note(`waits for ${name}`);
    const metadata = { by: this.name };
    await this.box.lock(name).run(
      async (hold) => {
        // Changes the user's own object, which must not change what was stored.
        metadata.by = CHANGED;
        await this.using(hold);
        throw new Thrown('simulated: the work failed');
      },
      { waitMs: 5000, metadata, within: [this.name], ...(onWaiting !== undefined && { onWaiting }) },
    );
  }

  /** No other user ever wants this lock, so even a try without waiting gets it. */
  async #atOnce(): Promise<void> {
    const lock = this.box.lock(`free-${this.name}`);
    this.doing = `takes ${lock.name} without waiting`;
    const counts = this.#isWaitingWorthIt;
    try {
      counts.tried += 1;
      const hold = await lock.acquire({ waitMs: 0 });
      counts.got += 1;
      await hold.release();
    } catch (error) {
      if (!(error instanceof NotAcquired)) throw error;
      // If the session ended meanwhile, the refusal says nothing about the lock.
      if (error.refusal.kind !== 'timed-out') counts.tried -= 1;
      if (counts.tried >= 4 && counts.got === 0)
        this.fail(`${lock.resource} is free and was never got without waiting`);
    }
  }

  async #configure(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `configures ${lock.name}`;
    try {
      await lock.configure({
        onStale: this.random.pick(['reclaim', 'alert']),
        ...(this.random.chance(0.5) && { maxHoldMs: this.random.whole(500, 3000) }),
        ...(this.random.chance(0.3) && { ttlMs: this.random.whole(2000, 4000) }),
      });
      await this.pause(500);
      this.doing = `takes ${lock.name} if it is stale`;
      const attempt = await lock.tryAcquire({ strategy: this.random.pick(['steal-stale', 'fail-fast', 'retry']) });
      if ('hold' in attempt) await this.under(attempt.hold);
    } finally {
      await this.mayBeReclaimed(lock);
    }
  }

  async #look(): Promise<void> {
    const lock = this.box.lock(this.pickLock());
    this.doing = `looks at ${lock.name}`;
    const [isFree, isHeld, isStale, view] = await Promise.all([
      lock.isFree(),
      lock.isHeldBy(this.#pickName()),
      lock.isStale(),
      lock.inspect(),
    ]);
    this.note(`saw ${lock.name}: ${JSON.stringify({ isFree, isHeld, isStale, holders: view.holders.length })}`);
  }

  async #acquire(
    name: string,
    holder: string,
    mode: LockMode,
    signal: AbortSignal = this.soon(8000),
    options: { readonly maxHoldMs?: number } = {},
  ): Promise<LockHold | undefined> {
    const lock = this.box.lock(name);
    const priority = this.random.chance(0.2) ? this.random.whole(-2, 2) : 0;
    this.doing = `waits for ${name} as ${holder}`;
    return this.asking(lock.resource, holder, mode === 'exclusive', () =>
      lock.acquire({ holder, mode, signal, priority, ...options }).catch((error: unknown) => {
        if (error instanceof NotAcquired) return undefined;
        throw error;
      }),
    );
  }

  #limit(): { readonly maxHoldMs?: number } {
    return this.random.chance(0.2) ? { maxHoldMs: this.random.whole(500, 3000) } : {};
  }

  /** Runs several at once and throws the first unexpected failure. */
  async #all(times: number, each: () => Promise<void>): Promise<void> {
    const done = await Promise.allSettled(Array.from({ length: times }, each));
    for (const one of done) if (one.status === 'rejected' && !isExpected(one.reason)) throw one.reason as Error;
  }

  #pickName(): string {
    return this.random.pick(NAMES);
  }
}
