import { describe, expect, it } from 'vitest';
import { simulate } from '../../src/testing/simulation/simulate.ts';
import { workloadOf, WORKLOADS, type Workload } from '../../src/testing/simulation/workloads.ts';

describe('a simulated run', () => {
  it('is the same again with the same seed, line by line, so that a failure can be looked at twice', async () => {
    const first = await simulate(7);
    const second = await simulate(7);
    expect(second.trace).toEqual(first.trace);
    expect(first.trace.length).toBeGreaterThan(100);
  });

  const workloads = Object.keys(WORKLOADS) as Workload[];

  // Also the first time, when modules are still to be loaded: virtual time would go on meanwhile.
  it.each(workloads)('is the same again whatever its users do: %s', async (workload) => {
    const [first, second] = [await simulate(3, workload), await simulate(3, workload)];
    expect(second.trace).toEqual(first.trace);
  });

  it('is of every workload, by its share, where nobody names one', () => {
    const shares = new Map<Workload, number>();
    for (let seed = 1; seed <= 100; seed++) shares.set(workloadOf(seed), (shares.get(workloadOf(seed)) ?? 0) + 1);
    const expected = Object.entries(WORKLOADS)
      .filter(([, { share }]) => share > 0)
      .map(([workload, { share }]) => [workload, share]);
    expect(Object.fromEntries(shares)).toEqual(Object.fromEntries(expected));
  });

  it('is another one with another seed', async () => {
    const [one, other] = [await simulate(1), await simulate(2)];
    expect(one.trace).not.toEqual(other.trace);
  });

  it('grants, loses, crashes, pauses, jumps and cuts: what it is for really happens', async () => {
    const lines: string[] = [];
    for (let seed = 1; seed <= 30; seed++) lines.push(...(await simulate(seed)).trace);
    const told = lines.join('\n');
    const happenings = [
      'has lock/',
      'has semaphore/slots',
      'crashes',
      'closes',
      'stands still',
      'wall clock jumps',
      'loses its watches',
      'is cut off',
      'is forgotten',
      ': expired',
      ': disconnected',
      ': forced',
      'deadlock: ',
      'the wait was aborted',
      'already waits to become the writer',
      'no answer came',
    ];
    expect(happenings.filter((happening) => !told.includes(happening))).toEqual([]);
  });
});
