/**
 * Bugs that signalbox once had, put back one by one: each broke a promise for a user, and the workload that it is named
 * with was written to find it.
 *
 * Two of them no run can show, because nothing comes of them that a user of the simulator would see. They have tests of their
 * own: a session of 0.01 ms, which is refused (`test/runtime/open-and-close.test.ts`), and a callback that throws, which leaves a
 * phase to a person (`test/pipelines/driver.test.ts`).
 */
import type { Workload } from '../../src/testing/simulation/workloads.ts';
import type { Edit, Mutant } from './mutants.ts';

/** A process that closes does not reach the store. */
export const closedCutOff: Edit = {
  file: 'testing/simulation/simulate.ts',
  right: "this.#world.note(process.name, 'closes');",
  wrong: "this.#world.note(process.name, 'closes');\n        this.#faults.cutOff(process, 3 * TTL_MS);",
};

/** Processes stand still past their lease all the time, and not just now and then. */
export const standsStill: Edit = {
  file: 'testing/simulation/simulate.ts',
  right: 'switch (random.whole(0, 7)) {',
  wrong: 'if (random.chance(0.4)) return process.pause(1.5 * TTL_MS);\n    switch (random.whole(0, 7)) {',
};

export const rows: readonly (Mutant & { readonly workload: Workload })[] = [
  {
    name: 'a reader that waits to read once more is made the writer',
    workload: 'names',
    shownBy: 30,
    file: 'core/lock.ts',
    right: 'if (own === undefined || !covers(own.mode, mode)) return undefined;',
    wrong: "if (own === undefined || mode === 'shared') return undefined;",
  },
  {
    name: 'a re-entry is not told that its outer hold is released',
    workload: 'names',
    shownBy: 3,
    file: 'runtime/holds/hold.ts',
    right: "this.runtime.holdings.loseReentries(this.grant.id, { why: 'released-elsewhere' });",
    wrong: '',
  },
  {
    name: 'a request that can never be granted waits at the head of the queue',
    workload: 'slots',
    shownBy: 2,
    file: 'core/semaphore.ts',
    right: 'mismatch(request, record) ?? impossible(request, own, record.capacity);',
    wrong: 'mismatch(request, record);',
  },
  {
    name: 'one write serves more than a store takes in one transaction',
    workload: 'many',
    shownBy: 3,
    file: 'runtime/write/resource-writer.ts',
    right: 'const SERVED = 32;',
    wrong: 'const SERVED = 1000;',
  },
  {
    name: 'run resolves although its hold was lost while the work stood still',
    workload: 'names',
    shownBy: 1,
    file: 'runtime/holds/run-under.ts',
    right: `if (held.lost !== undefined) throw held.lost;
  // Or the store knew of the loss first, and answered the release with it.
  const lost = released.find((outcome) => outcome.kind === 'already-lost');`,
    wrong: 'const lost = released.find(() => false);',
  },
  {
    name: 'a release whose answer got lost is said to be of another',
    workload: 'names',
    shownBy: 28,
    file: 'runtime/write/resource-writer.ts',
    right:
      "if (pending.command.kind === 'release' && pending.outcome?.hold === undefined && pending.unanswered?.outcome) {",
    wrong: 'if (pending.asked < 0) {',
  },
  {
    name: 'a request that is refused as things are known is put into the queue',
    workload: 'slots',
    shownBy: 13,
    file: 'runtime/write/batch.ts',
    right: 'if (!pending.effective) continue;',
    wrong: '',
  },
  {
    name: 'a driver that lost its hold while it stood still begins a phase',
    workload: 'pipelines',
    shownBy: 601,
    oftener: [standsStill],
    file: 'runtime/pipelines/phase-run.ts',
    right: 'const lost = this.#holds.find((hold) => !hold.isValid);',
    wrong: 'const lost = this.#holds.find(() => false);',
  },
  {
    name: 'a release that fails while its process closes ends the process',
    workload: 'names',
    shownBy: 32,
    oftener: [closedCutOff],
    file: 'runtime/holds/hold.ts',
    right: 'await outcomeOf(this.writer, command, this.runtime.giveUpAt()).catch(() => undefined);',
    wrong: 'void outcomeOf(this.writer, command, this.runtime.giveUpAt());',
  },
  {
    name: 'metadata that a caller changes after it passed it on changes in the store',
    workload: 'names',
    shownBy: 2,
    file: 'runtime/holds/resource.ts',
    right: 'metadata: frozenCopy(metadata as Json)',
    wrong: 'metadata: metadata as Json',
  },
  {
    name: 'a writer that asked to read goes on writing until the answer comes',
    workload: 'names',
    shownBy: 4,
    file: 'runtime/holds/lock.ts',
    right: "this.changed({ ...grant, mode: 'shared' }, true);",
    wrong: '',
  },
];
