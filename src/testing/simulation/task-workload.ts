/** What users do with tasks: publish them, claim and finish them in every way, forget them, take them away. */
import type { TaskClaim } from '../../runtime/tasks/claim.ts';
import type { Held } from './checker.ts';
import { type Story, Thrown, User } from './user.ts';

/** Few ids, so that many users want the same; a task depends only on tasks with lower numbers. */
const IDS = 12;
const CAPABILITIES = ['gpu', 'rust'];

export class TaskWorker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#publish(),
      () => this.#publish(),
      () => this.#next(),
      () => this.#next(),
      () => this.#next(),
      () => this.#named(),
      () => this.#waitForNamed(),
      () => this.#detached(),
      () => this.#force(),
      () => this.#again(),
      () => this.#forget(),
      () => this.#look(),
      () => this.#byName(),
      () => this.#subscribe(),
    ];
  }

  async #publish(): Promise<void> {
    const number = this.random.whole(1, IDS);
    this.doing = `publishes t${number}`;
    const dependsOn = number > 1 && this.random.chance(0.3) ? [`t${this.random.whole(1, number - 1)}`] : undefined;
    await this.box.tasks.publish(
      `t${number}`,
      { number },
      {
        priority: this.random.whole(-1, 1),
        by: this.name,
        traceId: this.name,
        sensitive: true,
        retries: this.random.whole(0, 2),
        backoffMs: this.random.chance(0.5) ? 0 : this.random.whole(1, 1500),
        ...(this.random.chance(0.5) && { lossLimit: this.random.whole(1, 3) }),
        ...(dependsOn !== undefined && { dependsOn }),
        ...(this.random.chance(0.3) && { capabilities: [this.random.pick(CAPABILITIES)] }),
      },
    );
  }

  async #next(): Promise<void> {
    this.doing = 'waits for the next task';
    const capabilities = this.random.chance(0.5) ? CAPABILITIES : [];
    if (this.random.chance(0.3)) {
      const attempt = await this.box.tasks.tryClaimNext({ capabilities });
      if (attempt.kind === 'claimed') await this.#under(attempt.claim);
      return;
    }
    await this.#under(
      await this.box.tasks.claimNext({ holder: this.name, capabilities, waitMs: this.random.whole(10, 4000) }),
    );
  }

  async #named(): Promise<void> {
    const id = this.#pickId();
    this.doing = `tries ${id}`;
    const attempt = await this.box.tasks.tryClaim(id, { capabilities: CAPABILITIES });
    if (attempt.kind === 'claimed') await this.#under(attempt.claim);
  }

  async #waitForNamed(): Promise<void> {
    const id = this.#pickId();
    this.doing = `waits for ${id}`;
    const abort = new AbortController();
    this.world.schedule(this.random.whole(0, 4000), () => abort.abort(), this.process);
    await this.#under(await this.box.tasks.claim(id, { capabilities: CAPABILITIES, signal: abort.signal }));
  }

  async #detached(): Promise<void> {
    this.doing = 'claims a task, detached';
    const { tasks } = this.box;
    const holder = `${this.name}-detached`;
    const claim = await tasks.claimNextDetached({ holder, capabilities: CAPABILITIES, ttlMs: 4000, waitMs: 1000 });
    await this.pause(1500);
    if (this.random.chance(0.5)) await tasks.renew(claim.id, { token: claim.token });
    // Some users never come back; then the lease ends the claim.
    if (this.random.chance(0.3)) await tasks.release(claim.id, { token: claim.token });
    else if (this.random.chance(0.3)) await tasks.fail(claim.id, { token: claim.token }, 'simulated', { retry: true });
    else if (this.random.chance(0.5)) await tasks.complete(claim.id, { token: claim.token, holder });
  }

  async #force(): Promise<void> {
    const id = this.#pickId();
    this.doing = `takes ${id} away`;
    if (this.random.chance(0.7)) await this.box.tasks.forceRelease(id, { holder: this.name, reason: 'simulated' });
  }

  async #again(): Promise<void> {
    const id = this.#pickId();
    this.doing = `has ${id} done again`;
    if (this.random.chance(0.5)) await this.box.tasks.retry(id, { by: this.name });
    else await this.box.tasks.requeue(id, { by: this.name });
  }

  async #forget(): Promise<void> {
    const id = this.#pickId();
    this.doing = `forgets ${id}`;
    if (this.random.chance(0.5)) await this.box.tasks.forget(id);
  }

  async #look(): Promise<void> {
    this.doing = 'looks at all tasks';
    const { tasks } = this.box;
    const id = this.#pickId();
    if (this.random.chance(0.2)) await tasks.configure({ keepMs: this.random.whole(2000, 20_000), keepMost: 4 });
    const page = tasks.list({ status: 'pending', limit: this.random.whole(1, 4), after: this.#pickId() });
    await Promise.all([tasks.retention(), tasks.list(), page, tasks.show(id), tasks.status(id), tasks.ownerOf(id)]);
  }

  /** Acts like a script that knows its claim only by name. */
  async #byName(): Promise<void> {
    const id = this.#pickId();
    this.doing = `claims ${id}, detached`;
    const { tasks } = this.box;
    const holder = `${this.name}-script`;
    const waiting = { ttlMs: 3000, waitMs: 500, signal: this.soon(1000) };
    const claim = await tasks.claimDetached(id, { holder, capabilities: CAPABILITIES, ...waiting });
    await this.pause(500);
    await tasks.renew(id, { holder });
    if (this.random.chance(0.5)) await tasks.fail(id, claim, 'simulated', { retry: true });
    else await tasks.release(id, { holder, token: claim.token });
  }

  /** A failing handler must affect nothing else. */
  async #subscribe(): Promise<void> {
    this.doing = 'subscribes to tasks';
    const subscription = await this.box.tasks.subscribe(
      () => {
        if (this.random.chance(0.1)) throw new Thrown('simulated: the handler failed');
      },
      { pending: this.random.chance(0.5) },
    );
    await this.pause(1000);
    subscription.unsubscribe();
  }

  async #under(claim: TaskClaim): Promise<void> {
    const believer = this.checker.granted(believed(claim), this.process);
    try {
      for (let touches = this.random.whole(1, 3); touches > 0; touches--) {
        this.checker.touches(believer);
        this.doing = `does ${claim.resource} #${claim.token}`;
        await this.pause(this.random.chance(0.1) ? 8000 : 60);
      }
      this.checker.touches(believer);
      if (claim.isValid) claim.check();
    } finally {
      this.checker.left(believer);
      await this.#end(claim);
    }
  }

  async #end(claim: TaskClaim): Promise<void> {
    this.doing = `ends ${claim.resource} #${claim.token}`;
    const chance = this.random.next();
    if (chance < 0.6) {
      const { kind } = await claim.complete({ by: this.name });
      if (kind === 'completed') this.checker.tasks.completed(claim.id, claim.token);
    } else if (chance < 0.8) await claim.fail('simulated', { retry: true });
    else if (chance < 0.85) await claim[Symbol.asyncDispose]();
    else await claim.release();
  }

  #pickId(): string {
    return `t${this.random.whole(1, IDS)}`;
  }
}

/** The form that the checker needs: the id of a claim is its own, not that of its task. */
function believed(claim: TaskClaim): Held {
  return {
    id: `${claim.id} #${claim.token}`,
    resource: claim.resource,
    holder: claim.holder,
    token: claim.token,
    signal: claim.signal,
    get isValid() {
      return claim.isValid;
    },
    get lost() {
      return claim.lost;
    },
  };
}
