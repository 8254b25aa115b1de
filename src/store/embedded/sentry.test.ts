import { describe, expect, it } from 'vitest';
import { TestClock } from '../../testing/index.ts';
import type { Duty } from './duty.ts';
import type { Engine } from './engine.ts';
import type { Listening } from './listening.ts';
import type { Mark } from './mark.ts';
import { Sentry } from './sentry.ts';
import { Turns } from './turns.ts';

const MINUTE_MS = 60_000;

/** One process of so many that wait, with what it does counted. */
function waiting(processes: number, how: { isRelieved: boolean; isDeaf?: boolean; isHeardFor?: boolean }) {
  const clock = new TestClock();
  const did = { looks: 0, deathsLookedFor: 0, ringsAgain: 0, takeovers: 0 };
  const mark = { age: 0 };
  const duty = {
    isRelieved: how.isRelieved,
    isHeardFor: how.isHeardFor ?? false,
    isOn: !how.isRelieved,
    seek: () => undefined,
    check: () => undefined,
    takeOver() {
      did.takeovers += 1;
      Object.assign(duty, { isRelieved: false, isOn: true });
    },
  };
  const engine = {
    isCalledFor: false,
    leases: {
      ofTheDead() {
        did.deathsLookedFor += 1;
        return [];
      },
      tidy: () => undefined,
    },
    giveBack: () => false,
  };
  const listening = {
    isEmpty: false,
    isDeaf: how.isDeaf ?? false,
    bell: undefined,
    look: () => (did.looks += 1),
    stayOnList: () => undefined,
    count: () => processes,
    tidy: () => undefined,
    relay: { mustLook: false, look: () => undefined, ringAgain: () => (did.ringsAgain += 1) },
  };
  const sentry = new Sentry(
    engine as unknown as Engine,
    listening as unknown as Listening,
    new Turns(clock, 'store.db', 1000),
    clock,
    {
      mark: { ageMs: () => mark.age, isFresh: () => false } as unknown as Mark,
      duty: duty as unknown as Duty,
      isRemoved: () => false,
      onRemoved: () => undefined,
    },
  );
  sentry.begin();
  return { clock, did, mark, sentry };
}

describe('a process that waits', () => {
  it('looks for the dead at least every 125 ms if it is on duty, and rings again for others twice a second', async () => {
    const { clock, did } = waiting(200, { isRelieved: false });
    await clock.advance(MINUTE_MS);
    expect(did.deathsLookedFor).toBeGreaterThanOrEqual(MINUTE_MS / 125);
    expect(did.ringsAgain).toBeGreaterThanOrEqual(MINUTE_MS / 625);
    expect(did.ringsAgain).toBeLessThanOrEqual(MINUTE_MS / 500);
  });

  it('looks only some times a minute while another process is on duty, the less often the more there are', async () => {
    const looks = [];
    for (const processes of [2, 30, 200]) {
      const { clock, did } = waiting(processes, { isRelieved: true });
      await clock.advance(MINUTE_MS);
      expect(did.deathsLookedFor).toBe(0);
      looks.push(did.looks);
    }
    expect(looks[0]).toBeGreaterThan(400);
    expect(looks[1]).toBeLessThan(60);
    expect(looks[2]).toBeLessThan(10);
  });

  it('looks when it renews its lease, and is woken for nothing else', async () => {
    const { clock, did, sentry } = waiting(200, { isRelieved: true });
    await clock.advance(1000);
    did.looks = 0;
    for (let renewal = 0; renewal < 12; renewal++) {
      sentry.pass();
      await clock.advance(5000);
    }
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
    await clock.advance(200);
    expect(did.takeovers).toBe(1);
    expect(did.deathsLookedFor).toBeGreaterThan(0);
  });
});
