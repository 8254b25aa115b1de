import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Bus } from '../../src/runtime/bus/bus.ts';
import { Guards } from '../../src/runtime/guards/guards.ts';
import { Lock, LockHold } from '../../src/runtime/holds/lock.ts';
import { SemaphoreHold, Semaphore } from '../../src/runtime/holds/semaphore.ts';
import { FollowedMembers } from '../../src/runtime/members/followed-members.ts';
import { Members } from '../../src/runtime/members/members.ts';
import { Membership } from '../../src/runtime/members/membership.ts';
import { TopologyBroadcast } from '../../src/runtime/members/topology-broadcast.ts';
import { open } from '../../src/runtime/open.ts';
import { Pipelines } from '../../src/runtime/pipelines/pipelines.ts';
import { Signalbox } from '../../src/runtime/signalbox.ts';
import { TaskClaim } from '../../src/runtime/tasks/claim.ts';
import { Tasks } from '../../src/runtime/tasks/tasks.ts';
import { WitnessLog } from '../../src/runtime/witness/log.ts';
import { HoldSet } from '../../src/runtime/holds/hold-set.ts';
import { simulate } from '../../src/testing/simulation/simulate.ts';
import { WORKLOADS, type Workload } from '../../src/testing/simulation/workloads.ts';

type Method = (this: unknown, ...args: unknown[]) => unknown;

const CLASSES = {
  Signalbox,
  Lock,
  LockHold,
  Semaphore,
  SemaphoreHold,
  HoldSet,
  Tasks,
  TaskClaim,
  Guards,
  Pipelines,
  Members,
  Membership,
  FollowedMembers,
  TopologyBroadcast,
  Bus,
  WitnessLog,
};

/** Not for users, or not of the virtual world: with the reason. */
const LEFT_OUT = new Map<string, string>([
  ...['toJSON', 'Symbol(nodejs.util.inspect.custom)'].map((name) => [name, 'tells what the getters tell'] as const),
  ['Signalbox.saveState', 'real files'],
  ['Signalbox.loadState', 'real files'],
  ['Signalbox.asyncDispose', 'close, by another name'],
  ['Bus.close', 'the signalbox closes it'],
  ['Bus.asyncDispose', 'close, by another name'],
]);

/** Options that make sense for commands of the real machine alone. */
const REAL = new Set([
  'adapters',
  'issues',
  'commandTimeoutMs',
  'graceMs',
  'hurrying',
  'onOutput',
  'onMessage',
  'own',
  'isQuiet',
  'onMalformed',
  'pid',
]);

/** As a rule three are enough; what is rare may take more. */
const MOST_SEEDS = 30;

const called = new Set<string>();
const options = new Map<string, Set<string>>();
const restore: (() => void)[] = [];

function methodsOf(type: { readonly prototype: object }): readonly [string | symbol, PropertyDescriptor, object][] {
  const found: [string | symbol, PropertyDescriptor, object][] = [];
  for (let at = type.prototype; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const name of Reflect.ownKeys(at)) {
      const descriptor = Object.getOwnPropertyDescriptor(at, name) as PropertyDescriptor;
      if (name !== 'constructor' && typeof descriptor.value === 'function') found.push([name, descriptor, at]);
    }
  }
  return found;
}

/** Methods that several classes inherit count for the one that they are called on. */
function record(): void {
  const wrapped = new Set<unknown>();
  for (const type of Object.values(CLASSES)) {
    for (const [name, descriptor, at] of methodsOf(type)) {
      const method = descriptor.value as Method;
      if (wrapped.has(method)) continue;
      const wrapper: Method = function (this: unknown, ...args) {
        const key = `${(this as object).constructor.name}.${nameOf(name)}`;
        called.add(key);
        const names = options.get(key) ?? new Set();
        options.set(key, names);
        for (const arg of args) if (isPlain(arg)) for (const option of Object.keys(arg)) names.add(option);
        return method.apply(this, args);
      };
      wrapped.add(wrapper);
      Object.defineProperty(at, name, { ...descriptor, value: wrapper });
      restore.push(() => Object.defineProperty(at, name, descriptor));
    }
  }
}

/** The symbol has another description where Node does not have it itself. */
function nameOf(name: string | symbol): string {
  return name === Symbol.asyncDispose ? 'asyncDispose' : String(name);
}

function missingOf(className: string, type: { readonly prototype: object }): readonly string[] {
  const missing = methodsOf(type)
    .map(([name]) => nameOf(name))
    .filter((name) => !LEFT_OUT.has(name) && !LEFT_OUT.has(`${className}.${name}`))
    .filter((name) => !called.has(`${className}.${name}`));
  return [...new Set(missing)];
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Every way in tells which options it has when it is given one that it does not have. */
async function optionsOf(call: (nonsense: never) => Promise<unknown>): Promise<readonly string[]> {
  const error = await call({ nonsense: 1 } as never).catch((thrown: unknown) => thrown as Error);
  const listed = /there are (?<all>[\w, ]+)$/.exec((error as Error).message)?.groups?.['all'];
  expect(listed, (error as Error).message).toBeDefined();
  return (listed as string).split(', ').filter((name) => !REAL.has(name));
}

const WAYS: readonly [readonly string[], (box: Signalbox, nonsense: never) => Promise<unknown>][] = [
  [
    ['Lock.acquireDetached', 'Lock.askDetached', 'Semaphore.acquireDetached', 'Semaphore.askDetached'],
    (box, given) => box.lock('a').acquireDetached(given),
  ],
  [['Lock.acquire', 'Lock.tryAcquire', 'Lock.run'], (box, given) => box.lock('a').acquire(given)],
  [
    ['Semaphore.acquire', 'Semaphore.tryAcquire', 'Semaphore.run'],
    (box, given) => box.semaphore('a', { capacity: 1 }).acquire(given),
  ],
  [['Tasks.claim', 'Tasks.claimNext'], (box, given) => box.tasks.claimNext(given)],
  [['Tasks.claimDetached', 'Tasks.claimNextDetached'], (box, given) => box.tasks.claimNextDetached(given)],
  [['Tasks.list'], (box, given) => box.tasks.list(given)],
  [['Pipelines.resume'], (box, given) => box.pipelines.resume('a', given)],
  [['Pipelines.cancel'], (box, given) => box.pipelines.cancel('a', given)],
  [
    ['Pipelines.run', 'Pipelines.start'],
    (box, given) => box.pipelines.start({ name: 'a', phases: [{ name: 'a', run: 'a' }] }, given),
  ],
  [['Signalbox.acquireAll'], (box, given) => box.acquireAll([{ lock: 'a' }], given)],
  [['Signalbox.survey'], (box, given) => box.survey(given)],
  [['Tasks.publish'], (box, given) => box.tasks.publish('a', {}, given)],
  [['Members.join'], (box, given) => box.members.join('a', {}, given)],
  [['Members.joinDetached'], (box, given) => box.members.joinDetached('a', {}, given)],
  [['Guards.check'], (box, given) => box.guards.check([], given)],
  [['Guards.watch'], async (box, given) => box.guards.watch([], given)],
];

describe('the simulated users, between them', () => {
  const known = new Map<readonly string[], readonly string[]>();
  const violations: string[] = [];

  const missingOptions = (): readonly string[] =>
    WAYS.flatMap(([methods]) => {
      const given = new Set(methods.flatMap((method) => [...(options.get(method) ?? [])]));
      return (known.get(methods) ?? [])
        .filter((option) => !given.has(option))
        .map((option) => `${methods[0]}: ${option}`);
    });

  beforeAll(async () => {
    const box = await open('memory:');
    for (const [methods, call] of WAYS) known.set(methods, await optionsOf((nonsense) => call(box, nonsense)));
    await box.close();
    record();
    for (let seed = 1; seed <= MOST_SEEDS; seed++) {
      for (const workload of Object.keys(WORKLOADS) as Workload[]) {
        if (workload === 'many') continue;
        const { violation } = await simulate(seed, workload, false);
        if (violation !== undefined) violations.push(`seed ${seed}, ${workload}: ${violation.message}`);
      }
      const isAll = Object.entries(CLASSES).every(([name, type]) => missingOf(name, type).length === 0);
      if (isAll && missingOptions().length === 0) break;
    }
  });

  afterAll(() => {
    for (const undo of restore) undo();
  });

  it.each(Object.entries(CLASSES))('call every method of %s', (className, type) => {
    expect(missingOf(className, type)).toEqual([]);
  });

  it('break no promise meanwhile', () => {
    expect(violations).toEqual([]);
  });

  it('give every option', () => {
    expect(missingOptions()).toEqual([]);
  });
});
