import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { caught, type Edit, firstViolation, type Mutant, simulatorOf } from './mutants.ts';
import { closedCutOff, contended, rows, standsStill } from './rows.ts';

/** So many seeds are enough for each of these; the real thing passes a thousand. */
const SEEDS = 400;
/** Some of those that were there once are rarer. */
const ROW_SEEDS = 2000;

/** A keeper is given up on while what it was asked for is still on its way to it. */
const impatient: Edit = {
  file: 'runtime/write/delegation.ts',
  right: 'const DELEGATION_TIMEOUT_MS = 300;',
  wrong: 'const DELEGATION_TIMEOUT_MS = 20;',
};

/** Answers that take longer than the margin of a lease come all the time, and not just now and then. */
const slowAnswers: Edit = {
  file: 'testing/simulation/faults.ts',
  right: '!this.isStill && random.chance(this.#rate) ?',
  wrong: '!this.isStill && random.chance(0.3) ?',
};

const mutants: readonly Mutant[] = [
  {
    name: 'a change without its entry in the same transaction leaves a gap in the witness',
    shownBy: 1,
    workload: 'witness',
    file: 'runtime/write/commit.ts',
    right: '    this.#success.add(link.put);\n',
    wrong: '',
  },
  {
    name: 'an entry that follows a stale end breaks the chain',
    shownBy: 1,
    workload: 'witness',
    file: 'runtime/write/cached-state.ts',
    right: 'if (commit.link !== undefined) snapshot.chain =',
    wrong: 'if (commit.link !== undefined && commit.link.head.seq % 3 !== 0) snapshot.chain =',
  },
  {
    name: 'a view that skips a change lets two processes place a key differently',
    shownBy: 1,
    workload: 'members',
    file: 'runtime/members/feed.ts',
    right: 'if (changes.revision <= this.#asOf) return;',
    wrong: 'if (changes.revision <= this.#asOf || changes.revision % 4 === 0) return;',
  },
  {
    name: 'a coordinator by join order is another one in a process that did not see them join',
    shownBy: 1,
    workload: 'members',
    file: 'core/members/view.ts',
    right: 'return members[0]?.id ?? null;',
    wrong: 'return [...members].sort((one, other) => one.incarnation - other.incarnation)[0]?.id ?? null;',
  },
  {
    name: 'an asset outlives its member',
    shownBy: 1,
    workload: 'members',
    file: 'runtime/members/registering.ts',
    right: "    lease: 'keep',\n",
    wrong: '',
  },
  {
    name: 'an exclusive asset is given to two members at once',
    shownBy: 10,
    workload: 'members',
    file: 'runtime/members/registering.ts',
    right: "return [{ ...prefixed(MEMBERS), target: 'mod', is: '<', than: revision + 1 }];",
    wrong: 'return [];',
  },
  {
    name: 'tokens that start over let an old holder write',
    shownBy: 1,
    file: 'core/machine.ts',
    right: 'return Math.max(last, at.revision) + 1;',
    wrong: 'return (at.revision % 5) + 1;',
  },
  {
    name: 'a deadline counted from the answer tells the holder of its loss too late',
    shownBy: 130,
    file: 'runtime/session/session.ts',
    right: "return this.end('expired');\n      }\n      this.#renewed(sent);",
    wrong: "return this.end('expired');\n      }\n      this.#renewed(Object.assign(sent, sentNow(this.#clock)));",
    oftener: [slowAnswers],
  },
  {
    name: 'a request sent again blindly after an unknown outcome is granted twice',
    shownBy: 42,
    file: 'runtime/write/resource-writer.ts',
    right: 'this.#recovering.failed(error, this.#again(batch, seen, answersUnseen));',
    wrong: 'void [error, answersUnseen];\n        this.#attempt(batch);',
  },
  {
    name: 'a grant whose answer got lost is not told to the one in the same process who waits for it',
    shownBy: 36,
    file: 'runtime/write/recovery.ts',
    right: 'this.#record = record;',
    wrong: 'void record;',
  },
  {
    name: 'nobody wakes those who wait for the dead',
    shownBy: 8,
    file: 'runtime/runtime.ts',
    right: '#leaseGone(): void {\n    this.lookout.leasesEnded();',
    wrong: '#leaseGone(): void {',
  },
  {
    name: 'a newcomer who never looks at the queue passes it',
    shownBy: 32,
    file: 'runtime/write/commit.ts',
    right: 'if (this.#provesQueue) this.#nobodyElse(',
    wrong: 'if (this.#provesQueue && newcomers.length === 0) this.#nobodyElse(',
  },
  {
    name: 'a grant goes to one who has left the queue',
    shownBy: 11,
    file: 'runtime/write/commit.ts',
    right: "target: 'create', is: '=', than: arrival }",
    wrong: "target: 'create', is: '!=', than: -1 }",
  },
  {
    name: 'a watch that comes back from now on skips what happened meanwhile',
    shownBy: 48,
    file: 'store/follow.ts',
    right: 'watch = await store.watch(range, delivered, signal, hint);',
    wrong: "watch = await store.watch(range, 'now', signal, hint);",
  },
  {
    name: 'a lost session is not told to its holds',
    shownBy: 32,
    file: 'runtime/runtime.ts',
    right: "for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });",
    wrong: 'void held;',
  },
  {
    name: 'a semaphore with one slot too many lets one too many in',
    shownBy: 1,
    file: 'core/capacity.ts',
    right: 'return record.capacity - weightOf(record.holds);',
    wrong: 'return record.capacity + 1 - weightOf(record.holds);',
  },
  {
    name: 'deadlocks are not looked for',
    shownBy: 15,
    file: 'runtime/observe/deadlocks.ts',
    right: 'this.#runtime.writerFor(victim.resource).submit(new BackgroundCommand(command));',
    wrong: 'void [BackgroundCommand, command];',
  },
  {
    name: 'what was left to another process that does not answer is forgotten',
    shownBy: 1,
    file: 'runtime/write/delegation.ts',
    right: 'this.#writer.returned(batch, error);',
    wrong: '',
  },
  {
    name: 'an acquire for another process is sent again after an unknown outcome, and granted twice',
    shownBy: 160,
    file: 'runtime/write/pending-command.ts',
    right: 'else this.attempts = Number.POSITIVE_INFINITY;',
    wrong: 'else super.doubt();',
    oftener: [contended],
  },
  {
    name: 'a delegated command is carried out although its sender has given up on it',
    shownBy: 14,
    workload: 'holds',
    file: 'runtime/write/commit.ts',
    right: "this.#relyOn(process, '=', sender.epoch);",
    wrong: "this.#relyOn(process, '>', 0);",
    oftener: [contended, impatient],
  },
];

describe('a bug that was there once is caught by the simulator', () => {
  it.each(rows)('$name', async (mutant) => {
    expect((await caught(mutant, ROW_SEEDS, mutant.workload))?.seed).toBeLessThanOrEqual(ROW_SEEDS);
  });
});

describe('a planted bug is caught by the simulator', () => {
  it.each(mutants)('$name', async (mutant) => {
    expect(await caught(mutant, SEEDS, mutant.workload)).toBeDefined();
  });

  // With the seeds that show those bugs above all: it is the bug that they show, and not this.
  it.each([
    ['contended', [contended], SEEDS / 10],
    ['contended and impatient', [contended, impatient], SEEDS / 20],
    ['slow answers', [slowAnswers], SEEDS / 20],
    ['closed while cut off', [closedCutOff], SEEDS / 20],
    ['standing still', [standsStill], SEEDS / 20],
  ] as const)('and what only makes it happen more often is none: %s', async (name, edits, seeds) => {
    const run = await simulatorOf(name, edits);
    for (const { shownBy, workload } of mutants.filter(({ oftener }) => isDeepStrictEqual(oftener, edits))) {
      expect((await run(shownBy, workload, false)).violation?.message, `seed ${shownBy}`).toBeUndefined();
    }
    expect(await firstViolation(run, seeds)).toBeUndefined();
  });
});
