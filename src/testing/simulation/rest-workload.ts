import type { Trace } from '../../runtime/tracer.ts';
/** What users do besides holding things: members, the bus, guards, events, and looking at the whole store. */
import { any, type Guard, lockFree, memberAlive, not, semaphoreAvailable } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Held } from './checker.ts';
import { type Story, Thrown, User } from './user.ts';

const MEMBERS = ['north', 'south'];
const COUNTER = 'counter';

export class RestWorker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#join(),
      () => this.#join(),
      () => this.#count(),
      () => this.#count(),
      () => this.#watchTheBus(),
      () => this.#plainKeys(),
      () => this.#checkGuards(),
      () => this.#waitForGuard(),
      () => this.#registerGuard(),
      () => this.#hear(),
      () => this.#survey(),
      () => this.#write(),
      () => this.#keepRules(),
      () => this.#changeMode(),
    ];
  }

  /** Makes something to look at. */
  async #write(): Promise<void> {
    this.doing = 'writes';
    await this.box
      .lock(this.pickLock())
      .run((hold) => this.using(hold), { waitMs: 3000, reason: 'simulated', sensitive: true });
    await this.box.semaphore('slots', { capacity: 2 }).run((hold) => this.using(hold), { waitMs: 1000 });
  }

  /** Checks that no hold lasts longer than the rules say, whatever a user asks for. */
  async #keepRules(): Promise<void> {
    this.doing = 'sets rules';
    const maxHoldMs = this.random.whole(1000, 2000);
    const lock = await this.box.ensureLock('ruled', { maxHoldMs });
    const slots = await this.box.ensureSemaphore('ruled', { capacity: 2, ttlMs: 3000, maxHoldMs });
    this.doing = 'works under rules';
    const hold = await lock.acquire({ waitMs: 3000, maxHoldMs: 60_000 });
    await this.under(hold, 1000);
    const set = await this.box.acquireAll([{ lock: 'ruled' }, { semaphore: 'ruled' }], {
      ...{ waitMs: 3000, priority: 1, reason: 'needs both', metadata: { by: this.name }, sensitive: true, within: [] },
      onWaiting: () => this.note('waits for both'),
    });
    for (const each of set.holds) await this.using(each, 1000);
    await set.release();
    const claim = await slots.acquireDetached({
      ...{ holder: `${this.name}-ruled`, ttlMs: 60_000, maxHoldMs: 60_000, waitMs: 2000, signal: this.soon(5000) },
      ...{ priority: 1, reason: 'by hand', metadata: { by: this.name }, sensitive: true, within: [] },
      strategy: this.random.pick(['retry', 'fail-fast', 'steal-stale']),
      onWaiting: () => this.note('waits by hand'),
    });
    if (claim.ttlMs > 3000) this.fail(`${slots.resource} was given for ${claim.ttlMs} ms`);
    // If the holder has several holds, one of them stale, its name does not identify one.
    if ((await slots.release({ holder: claim.holder })).kind === 'ambiguous') await slots.release(claim);
  }

  /** Reads, writes and reads again with single calls. */
  async #changeMode(): Promise<void> {
    const lock = this.box.lock('ruled-docs');
    const holder = `${this.name}-${this.random.whole(1, 1e9)}`;
    this.doing = 'reads by hand';
    const claim = await lock.acquireDetached({ holder, mode: 'shared', ttlMs: 4000, waitMs: 2000 });
    await this.pause(100);
    this.doing = 'writes by hand';
    const options = {
      waitMs: this.random.pick([0, 1000]),
      ...(this.random.chance(0.5) && { signal: this.soon(2000) }),
    };
    const upgraded = await this.asking(lock.resource, holder, true, () => lock.upgrade(claim, options));
    if (!('token' in upgraded)) return;
    await this.pause(100);
    this.doing = 'reads again by hand';
    const downgraded = await lock.downgrade({ holder, token: upgraded.token });
    if ('token' in downgraded) await lock.release({ holder, token: downgraded.token });
  }

  async #join(): Promise<void> {
    const id = this.random.pick(MEMBERS);
    this.doing = `joins as ${id}`;
    const outcome = await this.box.members.join(id, { by: this.name });
    if (outcome.kind !== 'joined') return;
    const { membership } = outcome;
    const held: Held = {
      id: `${id} ${this.name} ${this.world.now}`,
      resource: `member/${id}`,
      holder: this.name,
      token: this.checker.grants + 1,
      get isValid() {
        return membership.isValid;
      },
      signal: {
        get aborted() {
          return !membership.isValid;
        },
      },
    };
    try {
      await this.using(held, 300);
      this.note(`${(await this.box.members.list()).length} members, ${await this.box.members.isAlive(id)}`);
    } finally {
      this.doing = `leaves as ${id}`;
      if (this.random.chance(0.8)) await membership.leave();
      else await membership[Symbol.asyncDispose]();
    }
  }

  /** Counts with compare and swap: no count is lost, and none counts twice. */
  async #count(): Promise<void> {
    this.doing = 'counts on the bus';
    const { bus } = this.box;
    const before = await bus.get(COUNTER);
    const next = Number(before ?? 0) + 1;
    const condition =
      before === null
        ? ({ key: COUNTER, target: 'version', is: '=', than: 0 } as const)
        : ({ key: COUNTER, target: 'value', is: '=', than: before } as const);
    try {
      const put = { do: 'put', key: COUNTER, value: String(next) } as const;
      const { succeeded } = await bus.transaction([condition], [put], [{ do: 'get', key: COUNTER }]);
      if (succeeded) this.checker.counted(next);
    } catch (error) {
      if (!Failure.is(error, 'outcome-unknown')) throw error;
    }
  }

  /** Checks that a watcher of a growing counter never gets a smaller number after a larger one. */
  async #watchTheBus(): Promise<void> {
    this.doing = 'watches the bus';
    const { bus } = this.box;
    let last = 0;
    const id = await bus.watch(COUNTER, (event) => {
      if (event.type !== 'PUT') return;
      if (Number(event.value) < last) this.fail(`the bus told of ${event.value} after ${last}`);
      last = Number(event.value);
    });
    await this.pause(2000);
    if (!bus.unwatch(id)) this.fail('a watch of the bus was gone before it was ended');
    const health = await bus.healthCheck();
    this.note(`the bus is ${health.isHealthy ? 'well' : health.error}`);
  }

  async #plainKeys(): Promise<void> {
    this.doing = 'uses plain keys';
    const { bus } = this.box;
    // A new one each time: a deletion that got no answer may still land.
    const key = `of/${this.name}/${this.world.now}`;
    const id = await bus.watch('of/', () => {
      throw new Thrown('simulated: the handler failed');
    });
    await bus.put(key, 'something');
    if (!(await bus.list('of/')).some((pair) => pair.key === key))
      this.fail('the bus does not list a key that was put');
    await bus.delete(key);
    await this.pause(100);
    bus.unwatch(id);
  }

  async #checkGuards(): Promise<void> {
    this.doing = 'looks at guards';
    const outcomes = await this.box.guards.check([this.#guard(), this.#guard()], {
      signal: this.soon(5000),
      commandsLast: true,
    });
    const { condition } = this.#guard();
    const verdict = await this.box.check(condition);
    const explanation = await this.box.explain(condition);
    this.note(`${outcomes.map(({ kind }) => kind).join(' ')} ${verdict.kind} ${typeof explanation}`);
    const watch = await this.box.guards.watch([this.#guard()], { pollMs: 500 });
    await watch.next(this.soon(500));
    watch.close();
  }

  async #waitForGuard(): Promise<void> {
    this.doing = 'waits for a guard';
    const lock = this.pickLock();
    const timeoutMs = this.random.whole(0, 4000);
    const { kind } = await this.box.guards.wait(lockFree(lock), { timeoutMs, onVerdict: () => undefined });
    this.note(`lock/${lock} is free: ${kind}`);
  }

  async #registerGuard(): Promise<void> {
    this.doing = 'registers a guard';
    const { guards } = this.box;
    const guard = this.#guard();
    const registered = await guards.register(guard, () => {
      if (this.random.chance(0.2)) throw new Thrown('simulated: the handler failed');
    });
    await this.pause(1000);
    this.note(`${guards.list().length} guards, ${guards.get(guard.id)?.outcome?.kind ?? 'none'}`);
    if (this.random.chance(0.5)) guards.unregister(guard.id);
    else registered.unregister();
  }

  async #hear(): Promise<void> {
    this.doing = 'listens';
    const subscription = await this.box.on('lock:*', () => {
      if (this.random.chance(0.1)) throw new Thrown('simulated: the handler failed');
    });
    await this.pause(500);
    subscription.unsubscribe();
    const signal = this.soon(1000);
    for await (const { type } of this.box.events('*', { signal })) if (type === 'lock:released') break;
    this.doing = 'looks back';
    const past: string[] = [];
    const told = ({ type }: { readonly type: string }): void => void past.push(type);
    const listener = { told, forgotten: () => past.push('forgotten'), caughtUp: () => past.push('caught up') };
    await this.box.eventsSince('*', 0, listener, this.soon(1000));
    this.note(`${past.length} events looked back at`);
  }

  async #survey(): Promise<void> {
    this.doing = 'looks at the whole store';
    const survey = await this.box.survey();
    const one = await this.box.survey({ resource: { kind: 'lock', name: this.pickLock() }, leases: false });
    this.note(`${JSON.stringify(survey).length} characters of survey, ${JSON.stringify(one).length} of one lock`);
    await this.box.maintain();
    await this.box.health();
    await this.box.denials();
    const tracing = this.box.trace({ begin: () => NO_TRACE });
    this.note(`${this.box.getMetrics().totalAcquisitions} acquisitions`);
    tracing.unsubscribe();
    await this.box.probe();
  }

  #guard(): Guard {
    const condition = this.random.pick([
      lockFree(this.pickLock()),
      not(lockFree(this.pickLock())),
      any([memberAlive(this.random.pick(MEMBERS)), semaphoreAvailable('slots', 1)]),
    ]);
    return { id: `guard-${this.name}-${this.random.whole(1, 2)}`, condition };
  }
}

const NO_TRACE: Trace = { end: () => undefined, within: (work) => work(), next: () => NO_TRACE };
