/**
 * A task whose owner has died still says that it is running. It can be claimed all the same; where nobody claims it, this
 * writes down that it is pending again, and tells everybody. All who know of it could: each waits for a moment of its own,
 * so that the first one spares the others the trouble.
 */
import type { Timer } from '../../clock.ts';
import { decideRepair, isOrphaned, type Task } from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';
import type { TaskCache } from './task-cache.ts';
import { readTasks, taskIn } from './reading.ts';
import { writeOnce } from '../write/write-once.ts';
import { hashOf } from './candidate-picker.ts';
import { repairTransaction } from './writing.ts';

/** Whoever waits for a task has had time to claim it. */
const SOONEST_MS = 50;
const SPREAD_MS = 450;

export class Repairs {
  readonly #runtime: Runtime;
  readonly #cache: TaskCache;
  readonly #isOn: boolean;
  #salt: string | undefined;
  readonly #due = new Map<string, Timer>();

  constructor(runtime: Runtime, cache: TaskCache, isOn: boolean) {
    this.#runtime = runtime;
    this.#cache = cache;
    this.#isOn = isOn;
  }

  /** This one has no owner. */
  look(id: string): void {
    if (!this.#isOn || this.#due.has(id)) return;
    this.#salt ??= this.#runtime.options.newId();
    const delay = SOONEST_MS + (hashOf(this.#salt + id) % SPREAD_MS);
    this.#due.set(
      id,
      this.#runtime.clock.timer(delay, () => {
        this.#due.delete(id);
        void this.repair(id).catch(() => undefined);
      }),
    );
  }

  stop(): void {
    for (const timer of this.#due.values()) timer.cancel();
  }

  /** All that the cache knows of, at once; answers how many there were. */
  async all(): Promise<number> {
    await this.#cache.start();
    let repaired = 0;
    for (const task of [...this.#cache.values()]) {
      if (isOrphaned(task) && (await this.repair(task.id))) repaired += 1;
    }
    return repaired;
  }

  /** Whether it was this one who did it. */
  async repair(id: string): Promise<boolean> {
    const runtime = this.#runtime;
    return writeOnce<Task | undefined, boolean>(runtime, {
      read: async (isFirst) => (isFirst ? this.#cache.get(id) : (await readTasks(runtime, [id])).tasks[0]),
      decide: (task) => {
        const repair = task === undefined ? undefined : decideRepair(task, runtime.clock.now());
        if (task === undefined || repair === undefined) return { kind: 'answer', answer: false };
        return {
          kind: 'write',
          transaction: repairTransaction(task, repair),
          landed: () => true,
          overtaken: ({ results }) => taskIn(id, results),
        };
      },
      until: runtime.giveUpAt(),
    });
  }
}
