/**
 * node believer.mjs STORE-DIRECTORY LOG NAME SEED: the users of the simulator on a real store, in real time, until the process
 * is killed. LOG tells what they believed, and when, by the monotonic clock of the machine:
 *
 *     has    a user was given a hold       uses   it was about to act, and the hold was valid
 *     left   it is through with it         ended  it releases a hold by name, whoever has it in its hands
 */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { processOf } from '../../../src/runtime/layout.ts';
import type { Lock } from '../../../src/runtime/holds/lock.ts';
import { open } from '../../../src/runtime/open.ts';
import type { Signalbox } from '../../../src/runtime/signalbox.ts';
import type { Held } from '../../../src/testing/simulation/checker.ts';
import { NamedWorker } from '../../../src/testing/simulation/named-workload.ts';
import { Random } from '../../../src/testing/simulation/random.ts';
import { SlotsWorker } from '../../../src/testing/simulation/slots-workload.ts';
import type { Place } from '../../../src/testing/simulation/user.ts';
import { Worker } from '../../../src/testing/simulation/workload.ts';
import type { Belief } from '../beliefs.ts';

const [directory = '', log = '', name = '', seed = '1'] = process.argv.slice(2);
const random = new Random(Number(seed));
const clock = { monotonic: () => Number(process.hrtime.bigint()) / 1e6 };

function tell(belief: Belief): void {
  appendFileSync(log, `${JSON.stringify(belief)}\n`);
}

/** Once a hold is not valid it never is again, so the time is taken before it is asked. */
class Telling {
  #count = 0;
  grants = 0;

  granted(hold: Held): { readonly hold: Held; readonly believer: string } {
    const believer = `${name}-${this.#count++}`;
    this.grants += 1;
    this.#tell('has', believer, hold);
    process.send?.('granted');
    return { hold, believer };
  }

  touches({ hold, believer }: { readonly hold: Held; readonly believer: string }): void {
    this.#tell('uses', believer, hold);
  }

  left({ hold, believer }: { readonly hold: Held; readonly believer: string }): void {
    tell({ what: 'left', at: clock.monotonic(), believer, resource: hold.resource, id: hold.id });
  }

  endsElsewhere({ id }: Held): void {
    tell({ what: 'ended', at: clock.monotonic(), believer: '', resource: '', id });
  }

  asks(): () => void {
    return () => undefined;
  }

  /** No process here sees what the others write, so these two say nothing. */
  readonly store = { isStored: (): boolean => true, wasReleased: (): boolean => true };

  nextCapacity(): number {
    return random.whole(10, 1e6);
  }

  fail(what: string): void {
    tell({ what: 'failed', at: clock.monotonic(), believer: '', resource: what, id: '' });
  }

  #tell(what: 'has' | 'uses', believer: string, hold: Held): void {
    const at = clock.monotonic();
    if (what === 'uses' && !hold.isValid) return;
    const { resource, id, slots } = hold;
    // It rests on a hold of another process, and hears later when that one is released.
    const hearsLate = hold.isReentry === true && hold.process !== undefined && processOf(id) !== hold.process;
    const isShared = slots === undefined && hold.mode === 'shared';
    tell({ what, at, believer, resource, id, isShared, hearsLate, ...(slots !== undefined && { slots: [...slots] }) });
  }
}

/** No administrator is among them: whoever loses a hold by force hears of it late. */
function withoutForce(box: Signalbox): Signalbox {
  const tame = <T extends object>(resource: T): T =>
    new Proxy(resource, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        if (property === 'break') return async () => ({ broken: 0 });
        if (typeof value !== 'function') return value;
        return (first: { strategy?: string } | undefined, ...rest: unknown[]) => {
          const isForced = first?.strategy === 'force';
          return Reflect.apply(value, target, [isForced ? { ...first, strategy: 'fail-fast' } : first, ...rest]) as T;
        };
      },
    });
  return new Proxy(box, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== 'function') return value;
      const bound = value.bind(target) as (...args: unknown[]) => unknown;
      if (property !== 'lock' && property !== 'semaphore') return bound;
      return (...args: unknown[]) => tame(bound(...args) as Lock);
    },
  });
}

const box = withoutForce(await open(`file:${directory}`, { sessionTtlMs: 2000, requestTimeoutMs: 5000 }));
const self = {
  name,
  isDead: false,
  isPaused: false,
  clock,
  /** The event loop stands still. */
  pause: (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.min(ms, 4000)),
};
const world = {
  random,
  get now(): number {
    return clock.monotonic();
  },
  schedule: (ms: number, then: () => void) => void setTimeout(then, ms),
  sleep: (ms: number) => sleep(ms),
  note: () => undefined,
};
process.send?.('ready');
const kinds = [Worker, NamedWorker, SlotsWorker];
const checker = new Telling();
await Promise.all(
  kinds.map((kind, place) => {
    const place_ = { name: `${name}w${place}`, process: self, box, world, checker, locks: ['a', 'b'] };
    return new kind(place_ as unknown as Place).work(Number.POSITIVE_INFINITY);
  }),
);
