import { describe, expect, it } from 'vitest';
import { simulate } from '../../src/testing/simulation/simulate.ts';
import { caught, type Mutant } from './mutants.ts';

/** More of them: npm run simulate -- --tasks --seeds 10000. */
const SEEDS = 40;
/** So many are enough for each of these. */
const MUTANT_SEEDS = 400;

const mutants: readonly Mutant[] = [
  {
    name: 'the end of a claim overwrites its entry in the witness',
    shownBy: 1852,
    file: 'runtime/tasks/claiming.ts',
    right: 'const { head: _head, ...entry } = bookkeeping;',
    wrong: 'const entry = bookkeeping;',
    // As long as the process knows the newest end by itself, it does not rely on the one of the claim.
    oftener: [
      {
        file: 'runtime/write/witness.ts',
        right: 'if (before !== undefined && before.at > at && before.end !== disproved) return;',
        wrong: '',
      },
    ],
  },
  {
    name: 'a claim that is ended by name alone is ended for the next one too',
    shownBy: 64,
    file: 'runtime/tasks/writing.ts',
    right: "{ key: keys.owner, target: 'create', is: '=', than: token },",
    wrong: "{ key: keys.owner, target: 'create', is: '>', than: 0 },",
  },
  {
    name: 'a worker that is not told of its lost session goes on beside the next one',
    shownBy: 202,
    file: 'runtime/runtime.ts',
    right: "for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });",
    wrong: 'void held;',
  },
  {
    name: 'a claim that was taken away before its answer arrived is handed out beside the next one',
    shownBy: 444,
    file: 'runtime/tasks/dispatch.ts',
    right: "if (this.#wasLostEarly(attempt, claim)) throw new NotAcquired(taskResource(id), { kind: 'lost' });",
    wrong: '',
    // A worker may hear late that its task was taken away, so only two that both work for long show it.
    oftener: [
      {
        file: 'testing/simulation/faults.ts',
        right: '!this.isStill && random.chance(this.#rate) ?',
        wrong: '!this.isStill && random.chance(0.3) ?',
      },
      {
        file: 'testing/simulation/task-workload.ts',
        right: 'await this.pause(this.random.chance(0.1) ? 8000 : 60);',
        wrong: 'await this.pause(8000);',
      },
    ],
  },
  {
    name: 'a task that is complete can be claimed again',
    shownBy: 1,
    file: 'runtime/tasks/writing.ts',
    right: "write.owner === 'delete'",
    wrong: "write.owner !== 'claim'",
  },
  {
    name: 'a task that ends its workers is tried for ever',
    shownBy: 2,
    file: 'core/task/decide.ts',
    right: 'if (losses < task.data.terms.lossLimit)',
    wrong: 'if (losses < Infinity)',
  },
  {
    name: 'a task is forgotten while a worker has it',
    shownBy: 5,
    file: 'core/task/decide.ts',
    right:
      "  if (statusOf(task) === 'running') return { kind: 'running', owner: task.owner?.holder ?? '' };\n  return { kind: 'forget' };",
    wrong: "  return { kind: 'forget' };",
  },
];

describe('tasks in simulated trouble', () => {
  it(`are done once each and none is lost, whatever happens: ${SEEDS} seeds`, async () => {
    let claims = 0;
    const told: string[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { violation, grants, trace } = await simulate(seed, 'tasks');
      expect(violation?.message, `seed ${seed}`).toBeUndefined();
      claims += grants;
      told.push(...trace);
    }
    expect(claims).toBeGreaterThan(300);
    const happenings = [
      'crashes',
      'is cut off',
      'is forgotten',
      ': disconnected',
      ': forced',
      'no answer came',
      'complete by',
    ];
    expect(happenings.filter((happening) => !told.some((line) => line.includes(happening)))).toEqual([]);
  });

  it.each(mutants)('show that $name', async (mutant) => {
    expect(await caught(mutant, MUTANT_SEEDS, 'tasks')).toBeDefined();
  });
});
