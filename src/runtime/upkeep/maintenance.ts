/**
 * Does what no request does: warns of stale holds and frees them, looks for deadlocks that were missed, and deletes
 * what is no longer needed. One process per store does it, the maintainer: the process that has the maintainer's anchor.
 */
import type { Timer } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import { readRange } from '../../store/index.ts';
import { MAINTAINER } from '../layout.ts';
import type { Deadlocks } from '../observe/deadlocks.ts';
import type { Runtime } from '../runtime.ts';
import type { Dispatch } from '../tasks/dispatch.ts';
import { ALL_TASKS } from '../tasks/keys.ts';
import { sweepFinished } from '../tasks/retention.ts';
import type { RecordKeeping } from '../witness/retention.ts';
import type { RecordIndex } from './record-index.ts';
import { takeRole } from '../session/leases.ts';
import { Sweep, type Swept } from './sweep.ts';

/** How many revisions of history stay for processes that watch. */
const KEPT_REVISIONS = 10_000;

export interface MaintenanceSettings {
  readonly maintenanceMs: number;
  readonly reclaim: boolean;
  /** Whether this process takes its turn. */
  readonly maintains: boolean;
  /** How this process keeps the record of the witness, if it is to do that. */
  readonly keepsRecord?: RecordKeeping | undefined;
}

/** What a round uses; each part begins when a round first reads it. */
export interface MaintainedParts {
  readonly deadlocks: Pick<Deadlocks, 'look'>;
  readonly dispatch: Pick<Dispatch, 'repairs' | 'cache'>;
}

export class Maintenance {
  readonly #runtime: Runtime;
  readonly #parts: MaintainedParts;
  readonly #settings: MaintenanceSettings;
  #timer: Timer | undefined;
  /** Only a maintainer has an index, once it has gone through all records. */
  #index: RecordIndex | undefined;
  #running: Promise<unknown> | undefined;
  /** The maintenance of the record, which may take longer than a round. */
  #keeping: Promise<void> | undefined;

  constructor(runtime: Runtime, parts: MaintainedParts, settings: MaintenanceSettings) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#settings = settings;
    this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer = this.#runtime.clock.timer(this.#settings.maintenanceMs, () => {
      this.#schedule();
      // The back-stop of every wait: a watch that has fallen silent must not leave anyone waiting for ever.
      this.#runtime.askAgain();
      // The maintainer runs every round. The others try only now and then, in case there is no maintainer any more.
      const isOurTurn = this.#settings.maintains && (this.#index !== undefined || this.#runtime.lookout.isOurTurn());
      if (!isOurTurn && this.#settings.keepsRecord === undefined) return;
      this.#running ??= (isOurTurn ? this.#round() : this.#keepRecord())
        .catch(() => undefined)
        .finally(() => (this.#running = undefined));
    });
  }

  async #round(): Promise<void> {
    if (this.#runtime.session === undefined) return;
    if (!(await takeRole(this.#runtime, MAINTAINER))) {
      this.#index = undefined;
      return;
    }
    const index = this.#index;
    this.#index = undefined;
    try {
      if (index !== undefined) await this.#sweepChanges(index);
    } catch (error) {
      // The history of the store does not go back to the last round.
      if (!Failure.is(error, 'compacted')) throw error;
    }
    if (this.#index === undefined) await this.#sweepAll(false);
  }

  /**
   * Goes through all records. Harmless if several processes do it at once: each step is checked like any other. A new
   * maintainer begins with it, and from then on looks at what changed.
   */
  sweep(): Promise<Swept> {
    return this.#sweepAll(true);
  }

  async #sweepAll(waitsForKeeper: boolean): Promise<Swept> {
    const sweep = new Sweep(this.#runtime, this.#settings.reclaim);
    this.#index = await sweep.all();
    return this.#finish(sweep.swept, waitsForKeeper);
  }

  async #sweepChanges(index: RecordIndex): Promise<void> {
    const sweep = new Sweep(this.#runtime, this.#settings.reclaim);
    const revision = await sweep.changes(index);
    this.#index = index;
    await sweep.forgetLongFree(index, revision);
    await this.#finish(sweep.swept, false);
  }

  /**
   * `waitsForKeeper`: false in the rounds. What keeps a copy of the record, such as a network disk, may hang, and the rounds of
   * this process are those of the whole store.
   */
  async #finish(swept: Sweep['swept'], waitsForKeeper: boolean): Promise<Swept> {
    const { store, stopped } = this.#runtime;
    // A store without tasks costs one read, not a watch.
    const hasTasks = (await readRange(store, { ...ALL_TASKS, limit: 1 }, stopped)).pairs.length > 0;
    const steps: readonly (() => Promise<unknown>)[] = [
      async () => hasTasks && (swept.requeued = await this.#parts.dispatch.repairs.all()),
      async () => hasTasks && (swept.forgottenTasks = await sweepFinished(this.#runtime, this.#parts.dispatch.cache)),
      async () => this.#runtime.witness.isOn && (await this.#witnessed(hasTasks, waitsForKeeper)),
      async () => this.#parts.deadlocks.look(),
      async () => store.historyIsShared !== true && (await this.#forgetHistory()),
    ];
    const failures: unknown[] = [];
    // A step that fails in every round must not keep the others from being done.
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return swept;
  }

  /** Enters in the witness what no write entered, and trims the record. Loaded only where it is needed. */
  async #witnessed(hasTasks: boolean, waitsForKeeper: boolean): Promise<void> {
    const { enterObserved } = await import('../witness/observed.ts');
    try {
      await enterObserved(this.#runtime, hasTasks ? this.#parts.dispatch.cache.values() : []);
    } finally {
      const kept = this.#maintainRecord();
      if (waitsForKeeper || this.#settings.keepsRecord === undefined) await kept;
      else kept.catch(() => undefined);
    }
  }

  /** One at a time. */
  #maintainRecord(): Promise<void> {
    const begin = async (): Promise<void> => {
      const { maintainRecord } = await import('../witness/upkeep.ts');
      await maintainRecord(this.#runtime, this.#settings.keepsRecord);
    };
    this.#keeping ??= begin().finally(() => (this.#keeping = undefined));
    return this.#keeping;
  }

  /** A process that can sign, anchor or archive does it itself, whether it is the maintainer or not. */
  async #keepRecord(): Promise<void> {
    const { keepsRecord } = this.#settings;
    if (keepsRecord === undefined) return;
    await this.#runtime.witness.known();
    if (!this.#runtime.witness.isOn) return;
    this.#maintainRecord().catch(() => undefined);
  }

  async #forgetHistory(): Promise<void> {
    const { store, stopped } = this.#runtime;
    const { revision, compacted } = await store.health(stopped);
    if (revision - compacted > 2 * KEPT_REVISIONS) await compact(store, revision - KEPT_REVISIONS, stopped);
  }
}

async function compact(store: Runtime['store'], revision: number, signal: AbortSignal): Promise<void> {
  try {
    await store.compact(revision, signal);
  } catch (error) {
    // Another process did it.
    if (!Failure.is(error, 'compacted')) throw error;
  }
}
