/**
 * What nobody's request brings about: warnings of stale holds, freeing them, looking for deadlocks that were missed,
 * and forgetting what is no longer needed. One process per store does it: the one that has the maintainer's anchor.
 */
import { type Hold, isStale, type Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import {
  afterPrefix,
  always,
  type KeyValue,
  type Operation,
  Operations,
  prefixed,
  type ReadRange,
  readPages,
  readRange,
  type ReadResult,
  type Revision,
} from '../../store/index.ts';
import type { Timer } from '../../clock.ts';
import { anchorKey, ANCHORS, decode, encode, HORIZON, MAINTAINER, queueOfRecord, RECORDS } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import type { Deadlocks } from '../observe/deadlocks.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { keepHead } from '../write/witness.ts';
import { type Free, leasesOf, lookAt, type Looked, RecordIndex } from './record-index.ts';
import { Slices } from '../slices.ts';
import { type Malformed, malformedBy, readEach } from '../stored.ts';
import { ALL_TASKS } from '../tasks/keys.ts';
import type { Dispatch } from '../tasks/dispatch.ts';

/** So much history stays for those who watch. */
const KEPT_REVISIONS = 10_000;
/** So many records are read at once. */
const PAGE = 250;
/** So many are deleted by one transaction, each with its own comparisons. */
const FORGOTTEN_AT_ONCE = 32;

/** What one round of maintenance did. */
export interface Swept {
  /** How many records it looked at. */
  readonly records: number;
  /** How many stale holds it announced. */
  readonly warned: number;
  /** How many stale holds it freed. */
  readonly reclaimed: number;
  /** How many records of free locks it deleted. */
  readonly forgotten: number;
  /** Tasks whose owner was gone, and which are pending again. */
  readonly requeued: number;
  /** Finished tasks that were deleted because they were kept for long enough, or were too many. */
  readonly forgottenTasks: number;
  /** Every stale hold that was found, whether it was freed or not. */
  readonly stale: readonly SweptHold[];
  /** Keys that were passed over, because what they hold cannot be read. */
  readonly malformed: readonly Malformed[];
}

/** A stale hold that maintenance found. */
export interface SweptHold {
  /** `lock/main-branch`. */
  readonly resource: string;
  /** Who has it. */
  readonly holder: string;
  /** The token of its grant. */
  readonly token: Token;
  /** Not where a person has to decide (`onStale: 'alert'`), nor by one who only warns. */
  readonly isFreed: boolean;
}

/** As it is added up. */
type Sweeping = { -readonly [K in keyof Swept]: Swept[K] } & {
  readonly stale: SweptHold[];
  readonly malformed: Malformed[];
};

export interface MaintenanceSettings {
  readonly maintenanceMs: number;
  readonly reclaim: boolean;
  /** Whether this process takes its turn. */
  readonly maintains: boolean;
}

export class Maintenance {
  readonly #runtime: Runtime;
  readonly #deadlocks: Deadlocks;
  readonly #tasks: Pick<Dispatch, 'repairs' | 'retention' | 'cache'>;
  readonly #settings: MaintenanceSettings;
  #timer: Timer | undefined;
  /** Of the maintainer, once it went through all records. */
  #index: RecordIndex | undefined;
  #running: Promise<unknown> | undefined;

  constructor(
    runtime: Runtime,
    deadlocks: Deadlocks,
    tasks: Pick<Dispatch, 'repairs' | 'retention' | 'cache'>,
    settings: MaintenanceSettings,
  ) {
    this.#runtime = runtime;
    this.#deadlocks = deadlocks;
    this.#tasks = tasks;
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
      // The maintainer goes on every round, and all others only now and then, in case there is none any more.
      if (!this.#settings.maintains || (this.#index === undefined && !this.#runtime.isOurTurn())) return;
      this.#running ??= this.#round()
        .catch(() => undefined)
        .finally(() => (this.#running = undefined));
    });
  }

  async #round(): Promise<void> {
    const { session } = this.#runtime;
    if (session === undefined) return;
    const key = anchorKey(MAINTAINER);
    const result = await this.#runtime.store.transaction(
      {
        compare: [
          { key, target: 'version', is: '=', than: 0 },
          { key: anchorKey(session.id), target: 'version', is: '>', than: 0 },
        ],
        success: [{ do: 'put', key, value: encode(session.id), lease: session.leaseId }],
        failure: [{ do: 'read', key }],
      },
      this.#runtime.stopped,
    );
    const [read] = result.results;
    // A key that cannot be read names nobody, and must not keep everybody from it.
    const [maintainer = session.id] = read?.do === 'read' ? readEach(read.pairs, (pair) => decode<unknown>(pair)) : [];
    if (maintainer !== session.id) {
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
    if (this.#index === undefined) await this.sweep();
  }

  /**
   * Goes through all records. Harmless if several processes do it at once: each step is checked like any other. A new
   * maintainer begins with it, and from then on looks at what changed.
   */
  async sweep(): Promise<Swept> {
    const swept = nothingSwept();
    const slices = new Slices(this.#runtime);
    const listed = await this.#listAnchors(slices);
    const index = new RecordIndex(listed);
    const horizon = new Horizon(this.#runtime);
    const free: Free[] = [];
    for await (const page of readPages(this.#runtime.store, prefixed(RECORDS), PAGE, this.#runtime.stopped)) {
      for (const pair of page.pairs) {
        await slices.next();
        const looked = await this.#tend(pair, swept, listed);
        if (looked === undefined) continue;
        index.put(pair.key, looked);
        if (looked.free !== undefined) free.push(looked.free);
        if (free.length === FORGOTTEN_AT_ONCE)
          swept.forgotten += await this.#forget(free.splice(0), horizon, index, slices);
      }
    }
    swept.forgotten += await this.#forget(free, horizon, index, slices);
    this.#index = index;
    return this.#finish(swept);
  }

  /** The same for what changed since the last time. */
  async #sweepChanges(index: RecordIndex): Promise<void> {
    const swept = nothingSwept();
    const slices = new Slices(this.#runtime);
    const horizon = new Horizon(this.#runtime);
    index.nextRound();
    const { revision } = await this.#runtime.store.health(this.#runtime.stopped);
    // A store that is left alone is not written to.
    if (revision > index.asOf) {
      const changed = await this.#changedSince(index.asOf, await horizon.raise(), slices);
      for (const [key, pair] of changed.pairs) {
        await slices.next();
        if (pair === undefined) index.remove(key);
        else this.#takeIn(index, pair, swept);
      }
      index.asOf = changed.asOf;
    }
    // Listed after the records were followed: a lease that one of them names and that is not in the list has ended.
    const listed = await this.#listAnchors(slices);
    const stale: string[] = [];
    for (const [lease, held] of index.byLease()) {
      await slices.next();
      this.#assumeGone(lease, listed);
      if (this.#runtime.anchors.isGone(lease)) for (const key of held) stale.push(key);
    }
    for (let place = 0; place < stale.length; place += PAGE / 2) {
      await slices.next();
      const look = new Operations();
      // A hold that has two leases is there twice.
      const records = [...new Set(stale.slice(place, place + PAGE / 2))].map((key) => look.read({ key }));
      const { results } = await this.#runtime.store.transaction(look.always(), this.#runtime.stopped);
      for (const pair of records.flatMap((record) => record.in(results).pairs)) {
        await slices.next();
        await this.#tend(pair, swept, listed);
      }
    }
    this.#index = index;
    const free: Free[] = [];
    for (const record of index.free()) {
      await slices.next();
      if (index.isLongFree(record, revision)) free.push(record);
      if (free.length === FORGOTTEN_AT_ONCE) await this.#forget(free.splice(0), horizon, index, slices);
    }
    await this.#forget(free, horizon, index, slices);
    await this.#finish(swept);
  }

  /** What every record is that was changed up to `upTo`, which is our own write into the same range. */
  async #changedSince(
    since: Revision,
    upTo: Revision,
    slices: Slices,
  ): Promise<{ readonly pairs: ReadonlyMap<string, KeyValue | undefined>; readonly asOf: Revision }> {
    const pairs = new Map<string, KeyValue | undefined>();
    const over = new AbortController();
    const limit = this.#runtime.later(this.#runtime.options.requestTimeoutMs, () => over.abort(), false);
    const signal = AbortSignal.any([over.signal, this.#runtime.stopped]);
    let asOf = since;
    try {
      const range = { key: HORIZON, end: afterPrefix(RECORDS) };
      for await (const { revision, changes } of await this.#runtime.store.watch(range, since, signal)) {
        await slices.next();
        for (const change of changes) {
          const key = change.kind === 'put' ? change.pair.key : change.key;
          if (key !== HORIZON) pairs.set(key, change.kind === 'put' ? change.pair : undefined);
        }
        asOf = revision;
        if (revision >= upTo) break;
      }
    } finally {
      limit.cancel();
      over.abort();
    }
    return { pairs, asOf };
  }

  #takeIn(index: RecordIndex, pair: KeyValue, swept: Sweeping): void {
    try {
      index.put(pair.key, lookAt(pair));
    } catch (error) {
      index.remove(pair.key);
      swept.malformed.push(malformedBy(pair.key, error));
    }
  }

  async #finish(swept: Sweeping): Promise<Swept> {
    // Those who have no tasks need not follow them.
    const hasTasks = (await this.#read({ ...ALL_TASKS, limit: 1 })).pairs.length > 0;
    const steps: readonly (() => Promise<unknown>)[] = [
      async () => hasTasks && (swept.requeued = await this.#tasks.repairs.all()),
      async () => hasTasks && (swept.forgottenTasks = await this.#tasks.retention.sweep()),
      async () => this.#runtime.witness.isOn && (await this.#witnessed(hasTasks)),
      async () => this.#deadlocks.look(),
      async () => this.#runtime.store.historyIsShared !== true && (await this.#forgetHistory()),
    ];
    const failures: unknown[] = [];
    // One that fails in every round must not keep the others from being done.
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

  /** What nobody entered, and what there is too much of. Loaded only where it is needed. */
  async #witnessed(hasTasks: boolean): Promise<void> {
    const [{ enterObserved }, { maintainRecord }, { checkpoint }] = await Promise.all([
      import('../witness/observed.ts'),
      import('../witness/retention.ts'),
      import('../witness/proving.ts'),
    ]);
    await enterObserved(this.#runtime, hasTasks ? this.#tasks.cache.values() : []);
    await maintainRecord(this.#runtime, (runtime) => checkpoint(runtime));
  }

  async #forgetHistory(): Promise<void> {
    const { store, stopped } = this.#runtime;
    const { revision, compacted } = await store.health(stopped);
    if (revision - compacted > 2 * KEPT_REVISIONS) await compact(store, revision - KEPT_REVISIONS, stopped);
  }

  /** Who is alive, and at which revision that was. */
  async #listAnchors(slices: Slices): Promise<Revision> {
    const { store, stopped, anchors } = this.#runtime;
    const anchored: KeyValue[] = [];
    let listed: Revision | undefined;
    for await (const page of readPages(store, prefixed(ANCHORS), PAGE, stopped)) {
      listed ??= page.revision;
      for (const pair of page.pairs) {
        await slices.next();
        anchored.push(pair);
      }
    }
    await slices.run(anchors.list(anchored, listed ?? 0));
    return listed ?? 0;
  }

  /** A lease that nothing was known of, and that was not in the list although its record is older than it, has ended. */
  #assumeGone(lease: string, listed: Revision): void {
    if (!this.#runtime.anchors.isKnown(lease)) this.#runtime.anchors.saw(lease, false, listed);
  }

  /** `listed`: when it was looked who is alive. */
  async #tend(pair: KeyValue, swept: Sweeping, listed: Revision): Promise<Looked | undefined> {
    swept.records += 1;
    try {
      const looked = lookAt(pair);
      if (pair.modRevision <= listed) for (const lease of leasesOf(looked.holds)) this.#assumeGone(lease, listed);
      const at = this.#runtime.moment(pair.modRevision);
      const stale = looked.holds.filter((hold) => isStale(hold, at));
      if (stale.length > 0) await this.#tendStale(looked.resource, stale, swept);
      return looked;
    } catch (error) {
      swept.malformed.push(malformedBy(pair.key, error));
      return undefined;
    }
  }

  async #tendStale(resource: string, stale: readonly Hold[], swept: Sweeping): Promise<void> {
    await this.#submit(resource, { kind: 'tick' });
    swept.warned += 1;
    const freed = this.#settings.reclaim ? await this.#free(resource) : [];
    swept.reclaimed += freed.length;
    const isFreed = ({ id }: Hold): boolean => freed.some((hold) => hold.id === id);
    const found = stale.map((hold) => ({ resource, holder: hold.holder, token: hold.token, isFreed: isFreed(hold) }));
    swept.stale.push(...found);
  }

  async #free(resource: string): Promise<readonly Hold[]> {
    const outcome = await this.#submit(resource, { kind: 'maintain' });
    return (outcome as unknown as { reclaimed?: readonly Hold[] }).reclaimed ?? [];
  }

  /**
   * Deletes records that say nothing but their last token, each only if it is as it was and nobody waits. Tokens can be ahead
   * of the store, since one write may grant many times: such a record stays in the index until the store has come past it.
   */
  async #forget(free: readonly Free[], horizon: Horizon, index: RecordIndex, slices: Slices): Promise<number> {
    const success: Operation[] = [];
    for (const { key, mod, token, head } of free) {
      if (!(await horizon.isPast(token))) continue;
      // Should it have changed meanwhile, that change brings it back.
      index.remove(key);
      success.push({
        do: 'transaction',
        compare: [
          { key, target: 'mod', is: '=', than: mod },
          { ...queueOfRecord(key), target: 'version', is: '=', than: 0 },
        ],
        success: [{ do: 'delete', key }, ...(head === undefined ? [] : [keepHead(key.slice(RECORDS.length), head)])],
        failure: [],
      });
    }
    if (success.length === 0) return 0;
    await slices.turn();
    const { store, stopped } = this.#runtime;
    const { results } = await store.transaction(always(success), stopped);
    return results.filter((result) => result.do === 'transaction' && result.succeeded).length;
  }

  #submit(resource: string, command: AnyCommand): Promise<AnyOutcome> {
    return outcomeOf(this.#runtime.writerFor(resource), command, this.#runtime.giveUpAt());
  }

  #read(range: ReadRange): Promise<ReadResult & { readonly revision: Revision }> {
    return readRange(this.#runtime.store, range, this.#runtime.stopped);
  }
}

/**
 * Up to where tokens may be forgotten: the revision of the last write of its key. `commit.ts` says what rests on it. It is
 * written once per sweep, because a process that has not seen it yet loses one race when it makes a record.
 */
class Horizon {
  readonly #runtime: Runtime;
  #revision: Revision | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async isPast(token: Token): Promise<boolean> {
    return token < (this.#revision ?? (await this.raise()));
  }

  async raise(): Promise<Revision> {
    const { store, stopped } = this.#runtime;
    const put: Operation = { do: 'put', key: HORIZON, value: encode({}) };
    const { revision } = await store.transaction(always([put]), stopped);
    this.#runtime.saw(revision);
    this.#revision = revision;
    return revision;
  }
}

function nothingSwept(): Sweeping {
  return {
    records: 0,
    warned: 0,
    reclaimed: 0,
    forgotten: 0,
    requeued: 0,
    forgottenTasks: 0,
    stale: [],
    malformed: [],
  };
}

async function compact(store: Runtime['store'], revision: number, signal: AbortSignal): Promise<void> {
  try {
    await store.compact(revision, signal);
  } catch (error) {
    // Another process did it.
    if (!Failure.is(error, 'compacted')) throw error;
  }
}
