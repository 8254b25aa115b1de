import { describe, expect, it } from 'vitest';
import { caught, type Mutant } from './mutants.ts';

/** So many seeds are enough for each of these; the real thing passes a thousand. */
const SEEDS = 400;

const mutants: readonly Mutant[] = [
  {
    name: 'tokens that start over let an old holder write',
    file: 'core/machine.ts',
    right: 'return Math.max(last, at.revision) + 1;',
    wrong: 'return (at.revision % 5) + 1;',
  },
  {
    name: 'a deadline counted from the answer tells the holder of its loss too late',
    file: 'runtime/session.ts',
    right: "if (lease === null) return this.end('expired');",
    wrong: "if (lease === null) return this.end('expired');\n      Object.assign(sent, sentNow(this.#clock));",
  },
  {
    name: 'a request sent again blindly after an unknown outcome is granted twice',
    file: 'runtime/desk.ts',
    right: 'for (const pending of batch) pending.doubt();',
    wrong: 'if (batch.length > 0) return this.#attempt(batch);',
  },
  {
    name: 'a grant whose answer got lost is not told to the one in the same process who waits for it',
    file: 'runtime/desk.ts',
    right: 'this.#mustReconcile = true;',
    wrong: '',
  },
  {
    name: 'nobody wakes those who wait for the dead',
    file: 'runtime/runtime.ts',
    right: '#leaseGone(): void {\n    this.#waiters.settle();',
    wrong: '#leaseGone(): void {',
  },
  {
    name: 'a newcomer who never looks at the queue passes it',
    file: 'runtime/commit.ts',
    right: 'if (this.#provesQueue) this.#nobodyElse(',
    wrong: 'if (this.#provesQueue && newcomers.length === 0) this.#nobodyElse(',
  },
  {
    name: 'a grant goes to one who has left the queue',
    file: 'runtime/commit.ts',
    right: "target: 'create', is: '=', than: arrival }",
    wrong: "target: 'create', is: '!=', than: -1 }",
  },
  {
    name: 'a watch that comes back from now on skips what happened meanwhile',
    file: 'runtime/follow.ts',
    right: 'watch = await store.watch(range, delivered, signal);',
    wrong: "watch = await store.watch(range, 'now', signal);",
  },
  {
    name: 'a lost session is not told to its holds',
    file: 'runtime/runtime.ts',
    right: "for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });",
    wrong: 'void held;',
  },
  {
    name: 'a semaphore with one slot too many lets one too many in',
    file: 'core/semaphore.ts',
    right: 'return record.capacity - weightOf(record.holds);',
    wrong: 'return record.capacity + 1 - weightOf(record.holds);',
  },
  {
    name: 'deadlocks are not looked for',
    file: 'runtime/deadlocks.ts',
    right: "this.#refuse(victim.resource, { kind: 'refuse', id: victim.request.id, cycle });",
    wrong: 'void victim;\n      void cycle;',
  },
];

describe('a planted bug is caught by the simulator', () => {
  it.each(mutants)('$name', { timeout: 300_000 }, async (mutant) => {
    expect(await caught(mutant, SEEDS)).toBeDefined();
  });
});
