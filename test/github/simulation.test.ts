import { describe, expect, it } from 'vitest';
import { assignAndVerify } from './simulation/plain.ts';
import { Broken, type Mutant, type Report, simulate, type SimulationOptions } from './simulation/world.ts';

const SEEDS = Number(process.env['SIGNALBOX_GITHUB_SEEDS'] ?? 1_000);

/** The seeds in which an invariant broke. */
function broken(seeds: number, options: Omit<SimulationOptions, 'seed'>): readonly string[] {
  return Array.from({ length: seeds }, (_, seed) => seed).flatMap((seed) => {
    try {
      simulate({ ...options, seed });
      return [];
    } catch (error) {
      if (error instanceof Broken) return [error.message];
      throw error;
    }
  });
}

describe('locks on GitHub Issues, simulated', () => {
  it(`keep the six invariants in ${SEEDS} storms: crashes, pauses, skewed clocks, one account, old reads, lost answers`, () => {
    const sum: Record<string, number> = {};
    for (let seed = 0; seed < SEEDS; seed++) {
      const options = {
        seed,
        forMs: 120_000,
        workers: 2 + (seed % 5),
        issues: 1 + (seed % 3),
        weather: { sharedAccount: seed % 2 === 0 },
      };
      const report: Report = simulate(options);
      for (const [name, count] of Object.entries(report)) sum[name] = (sum[name] ?? 0) + count;
    }
    // A storm in which nothing happens proves nothing.
    for (const name of [
      'acquired',
      'refused',
      'stolen',
      'forced',
      'renewed',
      'unsure',
      'fenced',
      'released',
      'crashed',
    ])
      expect(sum[name], name).toBeGreaterThan(SEEDS / 20);
    if (process.env['SIGNALBOX_GITHUB_SEEDS'] !== undefined) console.log(sum);
  });

  it('keep them whichever request of a worker is its last', () => {
    const weather = { faults: false, crashes: false, pauses: false, staleReads: false };
    const options = { seed: 1, weather, workers: 3, forMs: 150_000 };
    const { requests } = simulate(options);
    expect(requests).toBeGreaterThan(30);
    for (let crashAfter = 1; crashAfter <= requests; crashAfter++) simulate({ ...options, crashAfter });
  });

  it('let every worker in when nothing goes wrong', () => {
    const weather = { faults: false, crashes: false, pauses: false, skew: false, staleReads: false };
    const { acquired, released, fenced, unsure } = simulate({ seed: 2, weather });
    // Less those that were forced away.
    expect(acquired).toBeGreaterThan(5);
    expect(unsure).toBe(0);
    expect(released + fenced).toBeGreaterThanOrEqual(acquired - 1);
  });
});

describe('the simulation catches', () => {
  it.each<Mutant>(['forced-update', 'client-clock', 'no-self-fence', 'unconditional-delete'])('%s', (mutant) => {
    expect(broken(20, { mutant }).length).toBeGreaterThan(0);
  });

  it.each([
    ['one account for all', { sharedAccount: true, skew: false, crashes: false, pauses: false }],
    ['clocks that differ by up to ten minutes', { sharedAccount: false, skew: true, crashes: false, pauses: false }],
    ['crashes and pauses', { sharedAccount: false, skew: false, crashes: true, pauses: true }],
  ])('assign-and-verify under %s', (_, weather) => {
    const calm = { faults: false, staleReads: false };
    expect(broken(40, { plain: assignAndVerify, weather: { ...calm, ...weather } }).length).toBeGreaterThan(0);
  });
});
