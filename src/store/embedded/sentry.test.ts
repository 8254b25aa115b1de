import { describe, expect, it } from 'vitest';
import { TestClock } from '../../testing/index.ts';
import type { Duty } from './duty.ts';
import type { Engine } from './engine.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import type { Suspect } from './leases.ts';
import type { Listening } from './listening.ts';
import type { Mark } from './mark.ts';
import { Sentry } from './sentry.ts';
import { Turns } from './turns.ts';

const MINUTE_MS = 60_000;

/** One process of so many that wait, with what it does counted. */
function waiting(count: number, how: { isRelieved: boolean; isDeaf?: boolean; isHeardFor?: boolean }) {
  const clock = new TestClock();
  const did = {
    looks: 0,
    seeks: 0,
    deathsLookedFor: 0,
    looksUpAll: 0,
    ringsAgain: 0,
    takeovers: 0,
    called: [] as number[][],
  };
  const processes = { all: [0], withChild: 1, gone: new Set<number>(), order: [] as string[] };
  const rank = { isAmongEldest: true, asked: 0 };
  const mark = { age: 0, isFresh: (_forMs: number) => false };
  const duty = {
    isRelieved: how.isRelieved,
    isHeardFor: how.isHeardFor ?? false,
    isOn: !how.isRelieved,
    isPresent: ({ pid }: ProcessIdentity) => pid < 1000,
    hasPredecessor: false,
    isPredecessor: ({ pid }: ProcessIdentity) => pid === 1,
    seek: () => (did.seeks += 1),
    check: () => undefined,
    heed: () => undefined,
    takeOver() {
      did.takeovers += 1;
      Object.assign(duty, { isRelieved: false, isOn: true });
    },
  };
  const engine = {
    isCalledFor: false,
    leases: {
      suspects(): Suspect[] {
        did.deathsLookedFor += 1;
        return processes.all.map((pid) => {
          const children = pid === processes.withChild ? [named(pid + 1000)] : [];
          return { told: String(pid), ids: [pid], processes: [named(pid), ...children] };
        });
      },
      areGone({ told }: Suspect) {
        if (told === '0') did.looksUpAll += 1;
        processes.order.push(told);
        return processes.gone.has(Number(told));
      },
      endingWith: (gone: Suspect[]) => gone.flatMap(({ ids }) => ids),
      tidy: () => undefined,
    },
    endLeases: (find: () => number[]) => processes.order.push(`end ${find()}`),
    giveBack: () => false,
  };
  const listening = {
    isEmpty: false,
    isDeaf: how.isDeaf ?? false,
    bell: undefined,
    look: () => (did.looks += 1),
    stayOnList: () => undefined,
    version: 1,
    count: () => count,
    isAmongEldest() {
      rank.asked += 1;
      return rank.isAmongEldest;
    },
    ringEldest: (most: number, few: number) => did.called.push([most, few]),
    tidy: () => undefined,
    relay: { mustLook: false, look: () => undefined, ringAgain: () => (did.ringsAgain += 1) },
  };
  const sentry = new Sentry(
    engine as unknown as Engine,
    listening as unknown as Listening,
    new Turns(clock, 'store.db', 1000),
    clock,
    {
      mark: { ageMs: () => mark.age, isFresh: (_now: number, forMs: number) => mark.isFresh(forMs) } as unknown as Mark,
      duty: duty as unknown as Duty,
      isRemoved: () => false,
      onRemoved: () => undefined,
    },
  );
  sentry.begin();
  return { clock, did, duty, listening, mark, processes, rank, sentry };
}

function named(pid: number): ProcessIdentity {
  return { boot: 'b', space: 's', pid, start: '1' };
}

describe('a process that waits', () => {
  it('opens no socket while it is the only one, and one soon after another has come', async () => {
    const { clock, did, listening } = waiting(1, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    expect(did.seeks).toBe(0);
    expect(did.deathsLookedFor).toBeGreaterThanOrEqual(MINUTE_MS / 125);
    Object.assign(listening, { version: 2, count: () => 2 });
    await clock.advance(100);
    expect(did.seeks).toBe(1);
    await clock.advance(MINUTE_MS);
    expect(did.seeks).toBe(1);
  });

  it('seeks the process on duty at once if it cannot hear its bell', async () => {
    const { clock, did } = waiting(1, { isRelieved: false, isDeaf: true });
    await clock.advance(100);
    expect(did.seeks).toBe(1);
  });

  it('looks for the dead at least every 125 ms if it is on duty, and rings again for others twice a second', async () => {
    const { clock, did } = waiting(200, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    expect(did.deathsLookedFor).toBeGreaterThanOrEqual(MINUTE_MS / 125);
    expect(did.ringsAgain).toBeGreaterThanOrEqual(MINUTE_MS / 625);
    expect(did.ringsAgain).toBeLessThanOrEqual(MINUTE_MS / 500);
  });

  it('looks up the processes that are connected to it every two seconds, and does not wait when a connection closes', async () => {
    const { clock, did, sentry } = waiting(200, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    expect(did.looksUpAll).toBeGreaterThanOrEqual(MINUTE_MS / 2125);
    expect(did.looksUpAll).toBeLessThanOrEqual(MINUTE_MS / 2000);
    const before = did.deathsLookedFor;
    // Many that end at once are one reason to look.
    for (let left = 0; left < 10; left++) sentry.hurry();
    await clock.advance(10);
    expect(did.deathsLookedFor).toBe(before + 1);
  });

  it('calls for new deputies when processes have hung up, and becomes one itself when it is rung', async () => {
    const { clock, did, sentry } = waiting(200, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    for (let left = 0; left < 3; left++) sentry.hurry();
    await clock.advance(MINUTE_MS);
    expect(did.called).toEqual([[8, 3]]);
    const other = waiting(200, { isRelieved: true });
    other.rank.isAmongEldest = false;
    await other.clock.advance(MINUTE_MS);
    expect(other.sentry.isDeputy).toBe(false);
    other.rank.isAmongEldest = true;
    other.sentry.wasRung();
    await other.clock.advance(0);
    expect(other.sentry.isDeputy).toBe(true);
  });

  it('makes its next round soon when it takes the duty, however many wait', async () => {
    const { clock, did, sentry } = waiting(200, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    const before = did.deathsLookedFor;
    sentry.onDuty();
    await clock.advance(126);
    expect(did.deathsLookedFor).toBe(before + 1);
  });

  it('looks up who has ended as soon as it takes the duty from a process that has, whose last round was a moment ago', async () => {
    const { clock, did, duty, mark, sentry } = waiting(200, { isRelieved: true });
    await clock.advance(MINUTE_MS);
    Object.assign(duty, { isRelieved: false });
    const markedAt = clock.now();
    mark.isFresh = (forMs) => clock.now() - markedAt < forMs;
    sentry.goAtOnce();
    // One of eight deputies goes at once, and the last one 160 ms later.
    await clock.advance(160);
    expect(did.deathsLookedFor).toBe(1);
    Object.assign(duty, { isOn: true });
    sentry.onDuty();
    await clock.advance(5);
    expect(did.deathsLookedFor).toBe(2);
  });

  it('looks up only the process on duty after that has hung up, again and again until it has ended, even just after a round', async () => {
    const { clock, duty, mark, processes, sentry } = waiting(200, { isRelieved: true });
    await clock.advance(MINUTE_MS);
    Object.assign(duty, { isRelieved: false, hasPredecessor: true });
    mark.isFresh = () => true;
    processes.all = [1, 2, 3];
    // It has a child, whose end is not announced to anybody.
    processes.withChild = 1;
    sentry.goAtOnce();
    await clock.advance(5);
    expect(processes.order).toEqual(['1']);
    processes.gone.add(1);
    await clock.advance(10);
    expect(processes.order).toEqual(['1', '1', 'end 1']);
    await clock.advance(200);
    expect(processes.order).toHaveLength(3);
    // Another process may have ended in the same moment.
    Object.assign(duty, { isOn: true });
    sentry.onDuty();
    processes.order.length = 0;
    await clock.advance(5);
    expect(processes.order).toEqual(['1', '2', '3', 'end 1']);
    await clock.advance(50);
    expect(processes.order).toHaveLength(4);
  });

  it('ends what the first of many held before it looks up the last', async () => {
    const { clock, processes } = waiting(200, { isRelieved: false });
    processes.all = Array.from({ length: 40 }, (_, index) => index + 1);
    processes.gone.add(1).add(40);
    await clock.advance(51);
    expect(processes.order.filter((what) => what.startsWith('end'))).toEqual(['end 1', 'end 40']);
    expect(processes.order.indexOf('end 1')).toBe(16);
  });

  it('counts its neighbours only when their list has changed', async () => {
    const { clock, listening, rank } = waiting(2, { isRelieved: true });
    await clock.advance(MINUTE_MS);
    expect(rank.asked).toBe(1);
    listening.version = 2;
    await clock.advance(MINUTE_MS);
    expect(rank.asked).toBe(2);
  });

  it('looks again, ever later, for a process that has hung up and is still ending', async () => {
    const { clock, did, sentry } = waiting(200, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    const before = did.deathsLookedFor;
    sentry.hurry();
    // After 5, 15, 35 and 75 ms.
    await clock.advance(76);
    expect(did.deathsLookedFor).toBe(before + 4);
    await clock.advance(MINUTE_MS);
    expect(did.deathsLookedFor).toBeLessThan(before + 8 + MINUTE_MS / 125);
  });

  it('looks only some times a minute while another process is on duty, the less often the more there are', async () => {
    const looks = [];
    for (const processes of [2, 30, 200]) {
      const { clock, did } = waiting(processes, { isRelieved: true });
      await clock.advance(MINUTE_MS);
      expect(did.deathsLookedFor).toBe(0);
      looks.push(did.looks);
    }
    // One of them looks each 200 ms or so: about a second after the process on duty is stopped, this is noticed.
    expect(looks[0]).toBeGreaterThan(120);
    expect(looks[1]).toBeLessThan(20);
    expect(looks[2]).toBeLessThan(5);
  });

  it('looks whenever it renews its lease, so that a dropped ring is found then, and is woken for nothing else', async () => {
    const { clock, did, sentry } = waiting(200, { isRelieved: true });
    await clock.advance(1000);
    did.looks = 0;
    const looks = [];
    for (let renewal = 0; renewal < 12; renewal++) {
      await clock.advance(5000);
      const before = did.looks;
      sentry.pass();
      looks.push(did.looks - before);
    }
    expect(looks).toEqual(Array.from({ length: 12 }, () => 1));
    expect(did.looks).toBe(12);
  });

  it('looks no more often where the process on duty hears its bell for it', async () => {
    const { clock, did } = waiting(200, { isRelieved: true, isDeaf: true, isHeardFor: true });
    await clock.advance(MINUTE_MS);
    expect(did.looks).toBeLessThan(10);
  });

  it('looks every 10 ms where nobody hears its bell, but all that wait together no more than 500 times a second', async () => {
    const few = waiting(2, { isRelieved: true, isDeaf: true });
    await few.clock.advance(1000);
    expect(few.did.looks).toBeGreaterThanOrEqual(99);
    const many = waiting(200, { isRelieved: true, isDeaf: true });
    await many.clock.advance(1000);
    // Two before it knows how many wait, and then at least 300 ms from one to the next.
    expect(many.did.looks).toBeLessThanOrEqual(5);
  });

  it('takes over from a process on duty that is stopped, and not from one that is merely late', async () => {
    const { clock, did, mark } = waiting(2, { isRelieved: true });
    mark.age = 900;
    await clock.advance(1000);
    expect(did.takeovers).toBe(0);
    mark.age = 1100;
    await clock.advance(450);
    expect(did.takeovers).toBe(1);
    expect(did.deathsLookedFor).toBeGreaterThan(0);
  });
});
