import { describe, expect, it } from 'vitest';
import { checkGuard } from '../guard/guard.ts';
import { isFree, isHeldBy, staleHolds } from '../lock.ts';
import { availableSlots, canAcquire, staleHolders, usedSlots } from '../semaphore.ts';
import { buildInputs, registerGuard, unregisterGuard, wokenBy } from './guards.ts';
import { describeLock, describeSemaphore } from './describe.ts';
import {
  emptyManager,
  getGuard,
  getLock,
  getSemaphore,
  type Handled,
  type Manager,
  momentOf,
  names,
} from './manager.ts';
import { ensureLock, ensureSemaphore } from './ensure.ts';
import { handle } from './handle.ts';
import { maintain, reclaimStale, tick } from './sweep.ts';
import type { ManagerCommand } from './command.ts';

/** A manager with a clock, for telling stories. */
class World {
  manager: Manager = emptyManager;
  clock = { now: 1_000_000 };

  ask(command: ManagerCommand): Handled {
    return this.keep(handle(this.manager, command, this.clock));
  }
  acquire(resource: `lock/${string}`, holder: string, more: object = {}): Handled {
    return this.ask({ resource, kind: 'acquire', holder, ...more });
  }
  keep(handled: Handled): Handled {
    this.manager = handled.manager;
    return handled;
  }
  tick = (): Handled => this.keep(tick(this.manager, this.clock));
  reclaimStale = (): Handled => this.keep(reclaimStale(this.manager, this.clock));
  maintain = (): Handled => this.keep(maintain(this.manager, this.clock));
  get lock() {
    return describeLock(this.manager, 'main', this.clock);
  }
  pass(ms: number): void {
    this.clock = { now: this.clock.now + ms };
  }
}

const typesOf = ({ events }: Handled) => events.map(({ type }) => type);

describe('a lock', () => {
  it('is free until a holder acquires it, and says who has it, since when and why', () => {
    const world = new World();
    expect(isFree(getLock(world.manager, 'main'))).toBe(true);
    const acquired = world.acquire('lock/main', 'a', { reason: 'release', metadata: { pr: 7 } });
    expect(acquired.outcome).toMatchObject({ kind: 'acquired', hold: { token: 1 } });
    expect(acquired.events).toMatchObject([
      { type: 'lock:acquired', resource: 'lock/main', holder: 'a', at: 1_000_000 },
    ]);
    expect(isHeldBy(getLock(world.manager, 'main'), 'a')).toBe(true);
    world.pass(10);
    world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'a' });
    expect(world.lock).toMatchObject({
      resource: 'lock/main',
      free: false,
      token: 1,
      holds: [
        {
          holder: 'a',
          acquiredAt: 1_000_000,
          lastHeartbeat: 1_000_010,
          staleAt: 1_060_010,
          stale: false,
          reason: 'release',
          metadata: { pr: 7 },
          mode: 'exclusive',
        },
      ],
    });
  });

  it('is refused to another, which learns who has it, or queued and granted in the step that releases it', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    const busy = world.acquire('lock/main', 'b');
    expect(busy.outcome).toMatchObject({ kind: 'busy', holders: [{ holder: 'a' }] });
    expect(typesOf(busy)).toEqual(['lock:denied']);
    expect(world.acquire('lock/main', 'b', { wait: true, id: 'b1' }).outcome).toMatchObject({
      kind: 'queued',
      position: 1,
    });
    expect(world.lock.waiting).toMatchObject([{ id: 'b1', holder: 'b' }]);
    const released = world.ask({ resource: 'lock/main', kind: 'release', holder: 'a' });
    expect(typesOf(released)).toEqual(['lock:released', 'lock:acquired']);
    expect(released.answers).toMatchObject([
      { id: 'b1', resource: 'lock/main', outcome: { kind: 'acquired', hold: { token: 2 } } },
    ]);
  });

  it('of a holder that is not heard of for a minute is stale: warned of once, then reclaimed by the next', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.pass(60_000);
    expect(typesOf(world.tick())).toEqual([]);
    world.pass(1);
    expect(staleHolds(getLock(world.manager, 'main'), momentOf(world.manager, world.clock))).toHaveLength(1);
    expect(world.tick()).toMatchObject({ outcome: { kind: 'warned', holds: [{ resource: 'lock/main' }] } });
    expect(typesOf(world.tick())).toEqual([]);
    const reclaimed = world.acquire('lock/main', 'b');
    expect(typesOf(reclaimed)).toEqual(['lock:reclaimed', 'lock:acquired']);
    expect(reclaimed.losses).toMatchObject([
      { resource: 'lock/main', hold: { holder: 'a' }, why: 'reclaimed', by: 'b' },
    ]);
  });

  it('that went stale cannot be revived by its holder, not even if the clock goes back', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.pass(60_001);
    expect(world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'a' }).outcome).toEqual({ kind: 'lost' });
    world.pass(-60_000);
    expect(world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'a' }).outcome).toEqual({ kind: 'lost' });
    expect(world.ask({ kind: 'renew', holder: 'a' }).outcome).toEqual({ kind: 'lost' });
  });

  it('stays with a holder that heartbeats, asks again, or renews all it has', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.pass(50_000);
    world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'a' });
    world.pass(50_000);
    expect(world.acquire('lock/main', 'a').outcome).toMatchObject({ kind: 'extended', hold: { token: 1 } });
    world.pass(50_000);
    expect(world.ask({ kind: 'renew', holder: 'a' }).outcome).toMatchObject({ kind: 'renewed', lost: [] });
    world.pass(50_000);
    expect(world.lock.holds).toMatchObject([{ stale: false, token: 1 }]);
  });

  it('goes stale at its maximum however well it is renewed, counted from the grant', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.acquire('lock/main', 'b', { wait: true, maxHoldMs: 30_000 });
    world.pass(20_000);
    world.ask({ resource: 'lock/main', kind: 'release', holder: 'a' });
    world.pass(30_000);
    expect(world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'b' }).outcome.kind).toBe('refreshed');
    expect(world.lock.holds).toMatchObject([{ holder: 'b', staleAt: 1_050_000 }]);
    world.pass(1);
    expect(world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'b' }).outcome.kind).toBe('lost');
    expect(typesOf(world.maintain())).toEqual(['lock:stale', 'lock:reclaimed']);
  });

  it('can be held longer, or less long, by saying so while holding it', () => {
    const world = new World();
    world.acquire('lock/main', 'a', { ttlMs: 1000, maxHoldMs: 5000 });
    world.ask({ resource: 'lock/main', kind: 'extend', holder: 'a', ttlMs: 100_000, maxHoldMs: 90_000 });
    world.pass(90_000);
    expect(world.lock.holds).toMatchObject([{ stale: false, staleAt: 1_090_000 }]);
    world.pass(1);
    expect(world.lock.holds).toMatchObject([{ stale: true }]);
    expect(world.ask({ resource: 'lock/main', kind: 'extend', holder: 'a', ttlMs: 1 }).outcome.kind).toBe('lost');
  });

  it('that must not change hands without a person is only warned of', () => {
    const world = new World();
    world.keep(ensureLock(world.manager, 'main', world.clock, { onStale: 'alert' }));
    world.acquire('lock/main', 'a');
    world.pass(60_001);
    expect(typesOf(world.maintain())).toEqual(['lock:stale']);
    expect(world.acquire('lock/main', 'b').outcome.kind).toBe('busy');
    expect(world.acquire('lock/main', 'b', { steal: true }).outcome.kind).toBe('reclaimed');
  });

  it('that is shared becomes exclusive once the other readers have left', () => {
    const world = new World();
    world.acquire('lock/main', 'a', { mode: 'shared' });
    world.acquire('lock/main', 'b', { mode: 'shared' });
    const queued = world.ask({ resource: 'lock/main', kind: 'upgrade', holder: 'a', request: 'up', wait: true });
    expect(queued.outcome).toMatchObject({ kind: 'queued', position: 1 });
    const released = world.ask({ resource: 'lock/main', kind: 'release', holder: 'b' });
    expect(released.answers).toMatchObject([{ id: 'up', outcome: { kind: 'upgraded' } }]);
    expect(world.ask({ resource: 'lock/main', kind: 'downgrade', holder: 'a' }).outcome.kind).toBe('downgraded');
  });
});

describe('a request that waits', () => {
  it('leaves the queue when nobody renews it, and is not granted after that', () => {
    const world = new World();
    world.acquire('lock/main', 'a', { ttlMs: 200_000 });
    world.acquire('lock/main', 'dead', { wait: true });
    world.acquire('lock/main', 'alive', { wait: true });
    world.pass(50_000);
    world.ask({ kind: 'renew', holder: 'alive' });
    world.pass(50_000);
    const { answers } = world.ask({ resource: 'lock/main', kind: 'release', holder: 'a' });
    expect(answers).toMatchObject([{ outcome: { kind: 'acquired', hold: { holder: 'alive' } } }]);
    world.acquire('lock/main', 'late', { wait: true });
    world.pass(60_001);
    world.maintain();
    expect(world.lock).toMatchObject({ free: true, waiting: [] });
    expect(world.manager).toMatchObject({ leases: {}, arrivals: {} });
  });

  it('can be cancelled, and a grant that came first is given back', () => {
    const world = new World();
    world.acquire('lock/main', 'a', { id: 'a1' });
    world.acquire('lock/main', 'b', { wait: true, id: 'b1' });
    world.ask({ resource: 'lock/main', kind: 'cancel', id: 'a1' });
    expect(world.ask({ resource: 'lock/main', kind: 'cancel', id: 'b1' }).outcome).toEqual({
      kind: 'cancelled',
      gaveBack: true,
    });
    expect(world.lock.free).toBe(true);
  });

  it('that closes a circle is refused at once, and told the whole circle', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.acquire('lock/docs', 'b');
    world.acquire('lock/docs', 'a', { wait: true });
    const refused = world.acquire('lock/main', 'b', { wait: true });
    expect(refused.outcome).toEqual({
      kind: 'deadlock',
      cycle: [
        { holder: 'b', resource: 'lock/main', blockedBy: 'a' },
        { holder: 'a', resource: 'lock/docs', blockedBy: 'b' },
      ],
    });
    expect(refused.answers).toEqual([]);
    expect(typesOf(refused)).toEqual(['lock:queued', 'lock:deadlock']);
  });

  it('gives way to a more important one that closes a circle, and learns why', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.acquire('lock/docs', 'b');
    world.acquire('lock/docs', 'a', { wait: true, id: 'a-docs' });
    const queued = world.acquire('lock/main', 'b', { wait: true, priority: 5 });
    expect(queued.outcome.kind).toBe('queued');
    expect(queued.answers).toMatchObject([{ id: 'a-docs', resource: 'lock/docs', outcome: { kind: 'deadlock' } }]);
  });
});

describe('a semaphore', () => {
  const world = () => {
    const fresh = new World();
    fresh.keep(ensureSemaphore(fresh.manager, 'agents', 3, fresh.clock));
    return fresh;
  };
  const agents = 'semaphore/agents';

  it('counts its slots by weight, and grows a hold rather than adding one', () => {
    const one = world();
    const slots = () => getSemaphore(one.manager, 'agents') ?? expect.fail();
    one.ask({ resource: agents, kind: 'acquire', holder: 'a' });
    one.ask({ resource: agents, kind: 'acquire', holder: 'a', weight: 2 });
    expect([usedSlots(slots()), availableSlots(slots()), canAcquire(slots(), 2)]).toEqual([2, 1, false]);
    expect(describeSemaphore(one.manager, 'agents', one.clock)).toMatchObject({
      capacity: 3,
      used: 2,
      available: 1,
      holds: [{ holder: 'a', weight: 2, slots: [0, 1], token: 1 }],
    });
    one.pass(60_001);
    expect(staleHolders(slots(), momentOf(one.manager, one.clock))).toHaveLength(1);
    const { outcome } = one.reclaimStale();
    expect(outcome).toMatchObject({ kind: 'swept', reclaimed: [{ resource: agents, hold: { holder: 'a' } }] });
  });

  it('is made by the first to name its capacity, and another capacity is told apart', () => {
    const one = new World();
    expect(one.ask({ resource: agents, kind: 'acquire', holder: 'a' }).outcome).toEqual({
      kind: 'impossible',
      why: 'nobody has used semaphore/agents yet, so its capacity must be named',
      capacity: 0,
    });
    expect(one.ask({ resource: agents, kind: 'acquire', holder: 'a', weight: 9, capacity: 3 }).outcome.kind).toBe(
      'impossible',
    );
    expect(names(one.manager).semaphores).toEqual([]);
    expect(one.ask({ resource: agents, kind: 'acquire', holder: 'a', capacity: 3 }).outcome.kind).toBe('acquired');
    expect(ensureSemaphore(one.manager, 'agents', 4, one.clock).outcome).toMatchObject({
      kind: 'capacity-mismatch',
      capacity: 3,
    });
    expect(one.ask({ resource: agents, kind: 'resize', capacity: 4 }).outcome).toMatchObject({ kind: 'resized' });
  });

  it.each([0, -1, 1.5, 4, Number.NaN])('refuses a weight of %s as impossible', (weight) => {
    expect(world().ask({ resource: agents, kind: 'acquire', holder: 'a', weight }).outcome.kind).toBe('impossible');
  });
});

describe('several resources together', () => {
  it('are all acquired, and one heartbeat keeps them all; or none is', () => {
    const world = new World();
    const parts = [{ resource: 'semaphore/agents', weight: 2, capacity: 3 }, { resource: 'lock/main' }] as const;
    const both = world.ask({ kind: 'acquire-together', holder: 'a', parts, maxHoldMs: 100_000 });
    expect(both.outcome).toMatchObject({
      kind: 'acquired-together',
      grants: [{ resource: 'lock/main' }, { resource: 'semaphore/agents', outcome: { hold: { slots: [0, 1] } } }],
    });
    world.pass(50_000);
    world.ask({ resource: 'lock/main', kind: 'heartbeat', holder: 'a' });
    world.pass(50_000);
    expect(describeSemaphore(world.manager, 'agents', world.clock)?.holds).toMatchObject([{ stale: false }]);
    const none = world.ask({ kind: 'acquire-together', holder: 'b', parts: [...parts, { resource: 'lock/docs' }] });
    expect(none.outcome).toMatchObject({
      kind: 'refused-together',
      refusals: [{ resource: 'lock/main', outcome: { kind: 'busy' } }, { outcome: { kind: 'full', free: 1 } }],
    });
    expect(typesOf(none)).toEqual(['lock:denied', 'semaphore:denied']);
    expect(names(world.manager).locks).toEqual(['main']);
  });

  it('named twice, or of a semaphore that nobody made, are refused with what is wrong', () => {
    const world = new World();
    const parts = [{ resource: 'lock/main' }, { resource: 'lock/main' }] as const;
    expect(world.ask({ kind: 'acquire-together', holder: 'a', parts }).outcome).toMatchObject({
      kind: 'invalid',
      problem: expect.stringContaining('"lock/main" is asked for twice'),
    });
    const unknown = world.ask({ kind: 'acquire-together', holder: 'a', parts: [{ resource: 'semaphore/s' }] });
    expect(unknown.outcome).toMatchObject({
      refusals: [{ outcome: { why: expect.stringContaining('capacity must be named') } }],
    });
  });
});

describe('a lease that several share', () => {
  it('keeps all that hangs on it, and its end loses all of it at once', () => {
    const world = new World();
    world.acquire('lock/main', 'a', { lease: 'session', ttlMs: 15_000 });
    world.acquire('lock/docs', 'b', { lease: 'session' });
    world.pass(10_000);
    expect(world.ask({ kind: 'renew', lease: 'session' }).outcome).toEqual({
      kind: 'renewed',
      leases: ['session'],
      lost: [],
    });
    world.pass(15_001);
    expect(world.acquire('lock/new', 'a', { lease: 'session' }).outcome).toMatchObject({
      kind: 'invalid',
      problem: 'lease is "session", which has ended; expected a new name',
    });
    const { outcome } = world.maintain();
    expect(outcome).toMatchObject({ reclaimed: [{ resource: 'lock/main' }, { resource: 'lock/docs' }] });
    expect(world.manager.leases).toEqual({});
  });
});

describe('a guard', () => {
  const merge = {
    id: 'merge',
    condition: { all: [{ lockFree: 'main' }, { semaphoreAvailable: { name: 's', slots: 2 } }] },
  };

  it('is told what the manager knows, and what somebody else has to find out', () => {
    const world = new World();
    world.acquire('lock/main', 'a');
    world.keep(ensureSemaphore(world.manager, 's', 2, world.clock));
    const { inputs, missing } = buildInputs(world.manager, { ...merge }, world.clock);
    expect(missing).toEqual([]);
    expect(inputs).toEqual({
      'lock:main': { value: { holders: [{ holder: 'a', stale: false }] } },
      'semaphore:s': { value: { capacity: 2, used: 0 } },
    });
    expect(checkGuard(merge, inputs).kind).toBe('failed');
    world.ask({ resource: 'lock/main', kind: 'release', holder: 'a' });
    expect(checkGuard(merge, buildInputs(world.manager, merge, world.clock).inputs).kind).toBe('passed');
    const more = buildInputs(world.manager, { any: [{ lockFree: 'never-used' }, { fileExists: 'go' }] }, world.clock);
    expect(more).toMatchObject({ inputs: { 'lock:never-used': { value: null } }, missing: [{ kind: 'file' }] });
  });

  it('is registered under its id, woken by the events it waits for, and forgotten on request', () => {
    const world = new World();
    world.keep(registerGuard(world.manager, merge));
    world.keep(registerGuard(world.manager, { ...merge, id: 'any-task', wakeOn: ['task:*'] }));
    expect(names(world.manager).guards).toEqual(['any-task', 'merge']);
    world.acquire('lock/main', 'a');
    const { events } = world.ask({ resource: 'lock/main', kind: 'release', holder: 'a' });
    expect(wokenBy(world.manager, events).map(({ id }) => id)).toEqual(['merge']);
    expect(world.keep(unregisterGuard(world.manager, 'merge')).outcome.kind).toBe('unregistered');
    expect(world.keep(unregisterGuard(world.manager, 'merge')).outcome.kind).toBe('unknown-guard');
    expect(getGuard(world.manager, 'merge')).toBeUndefined();
  });

  it.each([
    [{ ...merge, condition: { lockFree: 7 } }, 'condition.lockFree'],
    [{ ...merge, id: '' }, 'id is empty'],
    [{ ...merge, wakeOn: 'lock:*' }, 'wakeOn is "lock:*"'],
    [{ ...merge, onFailure: { retry: -1 } }, 'onFailure is {"retry":-1}'],
  ])('that makes no sense is not registered: %j', (guard, problem) => {
    const { outcome, manager } = registerGuard(emptyManager, guard as never);
    expect(outcome).toMatchObject({ kind: 'invalid', problem: expect.stringContaining(problem) });
    expect(manager).toBe(emptyManager);
  });
});

describe('a command that makes no sense', () => {
  it.each<[unknown, string]>([
    [{ resource: 'main', kind: 'acquire', holder: 'a' }, 'resource is "main"; expected lock/NAME or semaphore/NAME'],
    [{ resource: 'lock/', kind: 'acquire', holder: 'a' }, 'the name of the resource is empty'],
    [{ resource: 'lock/a\nb', kind: 'tick' }, 'U+000A'],
    [{ resource: 'lock/main', kind: 'grab', holder: 'a' }, 'kind is "grab"; expected acquire, release'],
    [{ resource: 'lock/main', kind: 'constructor' }, 'kind is "constructor"'],
    [{ resource: 'lock/main', kind: 'acquire' }, 'holder is undefined'],
    [{ resource: 'lock/main', kind: 'acquire', holder: 'a', ttlMs: -5 }, 'ttlMs is -5'],
    [{ resource: 'lock/main', kind: 'acquire', holder: 'a', priority: 1e9 }, 'priority is 1000000000'],
    [{ resource: 'lock/main', kind: 'acquire', holder: 'a', id: '#1' }, 'id is "#1"'],
    [{ resource: 'lock/main', kind: 'extend', holder: 'a' }, 'extend has neither ttlMs nor maxHoldMs'],
    [{ resource: 'semaphore/s', kind: 'acquire', holder: 'a', weight: '1' }, 'weight is "1"'],
    [{ resource: 'semaphore/s', kind: 'upgrade', holder: 'a' }, 'kind is "upgrade"'],
    [{ resource: 'semaphore/s', kind: 'configure', onStale: 'alert' }, 'there is no semaphore/s yet'],
    [{ kind: 'renew' }, 'holder is undefined'],
    [{ kind: 'acquire-together', holder: 'a', parts: 'lock/main' }, 'parts is "lock/main"'],
    [{ kind: 'acquire-together', holder: 'a', parts: [null] }, 'a part is null'],
    [null, 'command is null'],
  ])('%j changes nothing and is told what is accepted', (command, problem) => {
    const { manager, outcome, events } = handle(emptyManager, command as ManagerCommand, { now: 5 });
    expect(outcome).toMatchObject({ kind: 'invalid', problem: expect.stringContaining(problem) });
    expect(manager).toBe(emptyManager);
    expect(events).toEqual([]);
  });

  it('is one whose id belongs to another request, which cancelling would then hit', () => {
    const world = new World();
    world.acquire('lock/main', 'a', { id: 'mine' });
    expect(world.acquire('lock/main', 'b', { id: 'mine', wait: true }).outcome.kind).toBe('invalid');
    world.acquire('lock/main', 'b', { id: 'b1', wait: true });
    expect(world.acquire('lock/docs', 'c', { id: 'b1' }).outcome.kind).toBe('invalid');
  });

  it('is not one that comes again because its answer got lost: nothing is granted or queued twice', () => {
    const world = new World();
    const first = world.acquire('lock/main', 'a', { id: 'mine' }).outcome;
    expect(world.acquire('lock/main', 'a', { id: 'mine' }).outcome).toEqual(first);
    world.acquire('lock/main', 'b', { id: 'b1', wait: true });
    expect(world.acquire('lock/main', 'b', { id: 'b1', wait: true }).outcome).toMatchObject({
      kind: 'queued',
      position: 1,
    });
    expect(world.lock.waiting).toHaveLength(1);
  });

  it('is one without a time', () => {
    expect(handle(emptyManager, { kind: 'renew', holder: 'a' }, { now: Number.NaN }).outcome.kind).toBe('invalid');
    expect(tick(emptyManager, { now: Infinity }).outcome.kind).toBe('invalid');
  });
});

it('names such as __proto__ and constructor are names like any other', () => {
  const world = new World();
  for (const name of ['__proto__', 'constructor', 'toString']) {
    expect(isFree(getLock(world.manager, name))).toBe(true);
    expect(world.acquire(`lock/${name}`, name, { lease: name, id: name }).outcome.kind).toBe('acquired');
    world.manager = JSON.parse(JSON.stringify(world.manager)) as Manager;
    expect(world.acquire(`lock/${name}`, 'other').outcome.kind).toBe('busy');
  }
  expect(names(world.manager).locks).toEqual(['__proto__', 'constructor', 'toString']);
});
