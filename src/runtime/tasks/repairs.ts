/**
 * Marks tasks as pending again whose owner has died. Such a task still has the status `running` in the store. Workers can
 * claim it all the same; where none does, a repair writes the status and tells subscribers. Every process can repair: each
 * waits for a different delay, so that one write usually saves the others theirs.
 */
import type { Timer } from '../../clock.ts';
import { decideRepair, isOrphaned, type Task } from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';
import { Slices } from '../slices.ts';
import { writeOnce } from '../write/write-once.ts';
import { taskDeeds } from './witnessed.ts';
import { readTask, taskIn } from './reading.ts';
import type { TaskCache } from './task-cache.ts';
import { hashOf } from './workers.ts';
import { idleTransaction } from './writing.ts';

/** Gives a waiting worker time to claim the task, which makes the repair unnecessary. */
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

  /** Repairs the task after a delay, unless a worker claims it first. */
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

  /** Repairs all tasks in the cache now, and answers how many needed it. */
  async all(): Promise<number> {
    await this.#cache.start();
    const slices = new Slices(this.#runtime);
    let repaired = 0;
    for (const task of this.#cache.values()) {
      await slices.next();
      if (isOrphaned(task) && (await this.repair(task.id))) repaired += 1;
    }
    return repaired;
  }

  /** Answers whether this process made the repair. */
  async repair(id: string): Promise<boolean> {
    const runtime = this.#runtime;
    return writeOnce<Task | undefined, boolean>(runtime, {
      read: (isFirst) => (isFirst ? this.#cache.get(id) : readTask(runtime, id)),
      decide: (task) => {
        const repair = task === undefined ? undefined : decideRepair(task, runtime.clock.now());
        if (task === undefined || repair === undefined) return { kind: 'answer', answer: false };
        return {
          kind: 'write',
          transaction: idleTransaction(task, repair),
          deeds: taskDeeds(task, {
            actor: task.bookkeeping?.entry.claim?.holder ?? '',
            component: 'maintenance',
            command: 'observed',
            outcome: 'owner-gone',
            events: repair.bookkeeping.events,
            detail: { status: repair.status },
          }),
          landed: () => true,
          overtaken: ({ results }) => taskIn(id, results),
        };
      },
      until: runtime.giveUpAt(),
    });
  }
}
