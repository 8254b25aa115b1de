/**
 * Bugs that signalbox once had, put back one by one: each broke a promise for a user, and the workload that it is named
 * with was written to find it.
 *
 * Two of them no run can show, because nothing comes of them that a user of the simulator would see. They have tests of their
 * own: a session of 0.01 ms, which is refused (`test/runtime/open-and-close.test.ts`), and a callback that throws, which leaves a
 * phase to a person (`test/pipelines/driver.test.ts`).
 *
 * Four more have guards of their own, which fail once the bug is put back (`unseen-rows.test.ts`). Virtual time stands still while
 * the event loop is kept, so no run sees a stall of maintenance; and no run is long enough to be short of memory, so none sees
 * what a hundred million slots take, or what is kept of each wait for a task that timed out.
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

/** One transaction looks up two leases, so that a crowd of three is more than it looks up. */
const fewLeases: Edit = {
  file: 'runtime/write/snapshot.ts',
  right: 'const MOST_LEASES = 64;',
  wrong: 'const MOST_LEASES = 2;',
};

/** Every lost race counts as contention, however old the snapshot was. */
export const contended: Edit = {
  file: 'runtime/write/cached-state.ts',
  right: 'const FRESH_MS = 10;',
  wrong: 'const FRESH_MS = Number.POSITIVE_INFINITY;',
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
    name: 'an acquire that is repeated rests on a lease whose end is still on its way',
    workload: 'moments',
    shownBy: 56,
    file: 'runtime/holds/detached.ts',
    right: 'if (of.runtime.remembered.isGivenUp(grant.lease))',
    wrong: "if (grant.lease === '')",
  },
  {
    name: 'a detached hold is handed out although the write that granted it gave it to another',
    workload: 'moments',
    shownBy: 12,
    file: 'runtime/holds/detached.ts',
    right: 'if (isKnownLost(of, grant)) throw',
    wrong: 'if (false) throw',
  },
  {
    name: 'a release that was given up lands after its holder was told that it holds the lock already',
    workload: 'moments',
    shownBy: 4,
    file: 'runtime/write/recovery.ts',
    right: "if (kind === 'release' && pending.unanswered?.outcome?.hold !== undefined)",
    wrong: 'if (kind === undefined)',
  },
  {
    name: 'an upgrade never gets into the queue while the write that puts it there takes another one out',
    workload: 'moments',
    shownBy: 1,
    file: 'runtime/write/commit.ts',
    right: 'this.#replaced() ?? {',
    wrong: '{',
  },
  {
    name: 'a detached grant that another process of its holder renewed is refused as a broken record',
    workload: 'moments',
    shownBy: 16,
    file: 'core/fault.ts',
    right: 'hold.lease !== lease && detached !== true)',
    wrong: 'hold.lease !== lease)',
  },
  {
    name: 'a re-entry is not told that its outer hold is released',
    workload: 'names',
    shownBy: 8,
    file: 'runtime/holds/hold.ts',
    right: "this.runtime.loseReentries(this.grant.id, { why: 'released-elsewhere' });",
    wrong: '',
  },
  {
    name: 'a request that can never be granted waits at the head of the queue',
    workload: 'slots',
    shownBy: 1,
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
    file: 'runtime/holds/hold-set.ts',
    right: `if (held.lost !== undefined) throw held.lost;
  // Or the store knew of the loss first, and answered the release with it.
  const lost = released.find((outcome) => outcome.kind === 'already-lost');`,
    wrong: 'const lost = released.find(() => false);',
  },
  {
    name: 'a release whose answer got lost is said to be of another',
    workload: 'names',
    shownBy: 26,
    file: 'runtime/write/resource-writer.ts',
    right: 'if (unanswered?.outcome?.hold === undefined || !isRelease || outcome?.hold !== undefined)',
    wrong: 'if (pending.asked >= 0)',
  },
  {
    name: 'a request that is refused as things are known is put into the queue',
    workload: 'slots',
    shownBy: 13,
    file: 'runtime/write/pending-command.ts',
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
    shownBy: 15,
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
  {
    name: 'a second request to become the writer is written for ever, because the first one waits',
    workload: 'answers',
    shownBy: 3,
    file: 'core/lock.ts',
    right: 'waiting: [...waiting, earlier ? plain : request]',
    wrong: 'waiting: [...waiting, request]',
  },
  {
    name: 'an acquire that is an upgrade and times out leaves its ticket',
    workload: 'names',
    shownBy: 16,
    file: 'runtime/write/commit.ts',
    right: 'for (const form of formsOf(request))',
    wrong: 'for (const form of [request])',
  },
  {
    name: 'a resize whose answer got lost is applied again, over that of another',
    workload: 'slots',
    shownBy: 22,
    file: 'runtime/holds/resource.ts',
    right: 'return this.submit(command, this.runtime.options.newId());',
    wrong: 'return this.submit(command);',
  },
  {
    name: 'acquireAll gives up where acquire goes on',
    workload: 'answers',
    shownBy: 12,
    file: 'runtime/holds/together-write.ts',
    right: 'this.until = runtime.giveUpAt();',
    wrong: 'this.until = runtime.clock.monotonic();',
  },
  {
    name: 'a caller gives up together with an earlier one that began the same session',
    workload: 'answers',
    shownBy: 10,
    file: 'runtime/session/presence.ts',
    right: 'if (!isTrouble(error) || this.#host.clock.monotonic() >= until) throw error;',
    wrong: 'void isTrouble;\n        throw error;',
  },
  {
    name: 'a dead holder behind the leases that one transaction looks up is overlooked',
    workload: 'answers',
    shownBy: 25,
    oftener: [fewLeases],
    file: 'runtime/write/snapshot.ts',
    right: 'return states.flatMap(leasesOf).filter(',
    wrong: 'return states.flatMap(leasesOf).slice(0, MOST_LEASES).filter(',
  },
  {
    name: 'a dead holder whose lease nobody here has heard of is in the way of several resources together',
    workload: 'answers',
    shownBy: 56,
    file: 'runtime/holds/together-write.ts',
    right: 'await new Promise<void>((resolve, reject) => lookUpLeases(runtime, states, resolve, reject));',
    wrong: 'void [lookUpLeases, states];',
  },
  {
    name: 'what was granted together stays, if one of it was taken away before the answer came',
    workload: 'moments',
    shownBy: 17,
    file: 'runtime/holds/together-write.ts',
    right: 'if (!isThere) return undefined;',
    wrong: 'if (outcomes.size < this.#pieces.length) return undefined;',
  },
  {
    name: 'a release by token is said to have landed although the same holder got more elsewhere, and released that',
    workload: 'moments',
    shownBy: 3,
    file: 'runtime/write/ended.ts',
    right: 'if (claim.token !== undefined && held.token !== claim.token) return false;',
    wrong: 'void claim;',
  },
  {
    name: 'a free lock is never got without waiting, because the time is over before the store answers',
    workload: 'names',
    shownBy: 56,
    file: 'runtime/holds/acquisition.ts',
    right: 'if (waitMs !== undefined && waitMs > 0) {',
    wrong: 'if (waitMs !== undefined) {',
  },
  {
    name: 'extend takes the hold of a session away from its session',
    workload: 'answers',
    shownBy: 3,
    file: 'runtime/holds/detached.ts',
    right: 'if (isOfSession(before.hold.lease)) return kept(of, before.hold);',
    wrong: '',
  },
  {
    name: 'a release of a detached hold got no answer, and is said to have landed although the hold was taken away',
    workload: 'slots',
    shownBy: 1760,
    file: 'runtime/write/ended.ts',
    right: 'if (held === undefined)',
    wrong: 'if (held === undefined) return true;\n        if (held === undefined)',
  },
  {
    name: 'a second request of a holder waits on, beyond the known front of the queue, after the first is granted',
    workload: 'moments',
    shownBy: 113,
    file: 'runtime/write/cached-state.ts',
    right: 'if (!snapshot.complete && answers.some(isToNamed)) return true;',
    wrong: 'void [answers, isToNamed];',
  },
  {
    name: 'a release that got no answer is said to have landed although the hold was taken away before it',
    shownBy: 3,
    workload: 'moments',
    file: 'runtime/write/ended.ts',
    right: 'isOurs && (await presence.hasReadAllSince(seen, until));',
    wrong: 'isOurs;',
  },
  {
    name: 'a request that is given up while another process asks on its behalf keeps what it does not know of',
    workload: 'moments',
    shownBy: 575,
    file: 'runtime/write/delegation.ts',
    right: '(pending.wasGivenUp ? withdrawal(pending) : pending)',
    wrong: 'pending',
  },
  {
    name: 'an upgrade that got no answer in time leaves its ticket',
    workload: 'moments',
    shownBy: 2,
    file: 'runtime/write/recovery.ts',
    right: 'const isWanted = !pending.isOver && pending.leavesRequest;',
    wrong: "const isWanted = !pending.isOver && (pending.command as AnyCommand).kind === 'acquire';",
  },
  {
    name: 'a waiter in another process is not served after configure lets it past a dead holder',
    workload: 'moments',
    shownBy: 55,
    file: 'runtime/write/cached-state.ts',
    right: 'const isConfigured = commit.changesRecord &&',
    wrong: 'const isConfigured = !commit &&',
  },
  {
    name: 'a request of a holder that has the lock waits on, because the write that answered it got no answer',
    workload: 'moments',
    shownBy: 16,
    file: 'runtime/write/recovery.ts',
    right: 'if (answersUnseen) this.areAnswersUnseen = true;',
    wrong: 'void answersUnseen;',
  },
];
