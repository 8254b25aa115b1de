/**
 * One round of upkeep through the records: announces stale holds and frees them, and deletes records that say nothing but
 * their last token. A maintainer's first sweep reads every record; later ones read what changed since.
 */
import { leasesOf } from '../../core/hold.ts';
import { type Hold, isStale, type Token } from '../../core/index.ts';
import {
  afterPrefix,
  always,
  type KeyValue,
  type Operation,
  Operations,
  prefixed,
  readPages,
  type Revision,
} from '../../store/index.ts';
import { ANCHORS, HORIZON, queueOfRecord, RECORDS } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { Slices } from '../slices.ts';
import { type Malformed, malformedBy } from '../stored.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { Horizon } from './horizon.ts';
import { keepHead } from '../write/witness.ts';
import { type Free, lookAt, type Looked, RecordIndex } from './record-index.ts';

/** How many records one request reads. */
const PAGE = 250;
/** How many records one transaction deletes, each with comparisons of its own. */
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
  /** Keys that were skipped because their values cannot be read. */
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
  /** False where a person has to decide (`onStale: 'alert'`), and where maintenance only warns. */
  readonly isFreed: boolean;
}

/** The same, as a sweep adds it up. */
type Sweeping = { -readonly [K in keyof Swept]: Swept[K] } & {
  readonly stale: SweptHold[];
  readonly malformed: Malformed[];
};
export class Sweep {
  readonly swept: Sweeping = {
    ...{ records: 0, warned: 0, reclaimed: 0, forgotten: 0, requeued: 0, forgottenTasks: 0 },
    ...{ stale: [], malformed: [] },
  };
  readonly #runtime: Runtime;
  readonly #reclaims: boolean;
  readonly #slices: Slices;
  readonly #horizon: Horizon;

  constructor(runtime: Runtime, reclaims: boolean) {
    this.#runtime = runtime;
    this.#reclaims = reclaims;
    this.#slices = new Slices(runtime);
    this.#horizon = new Horizon(runtime);
  }

  /** Goes through all records, and makes the index for the next sweep. */
  async all(): Promise<RecordIndex> {
    const listed = await this.#listAnchors();
    const index = new RecordIndex(listed);
    const free: Free[] = [];
    for await (const page of readPages(this.#runtime.store, prefixed(RECORDS), PAGE, this.#runtime.stopped)) {
      for (const pair of page.pairs) {
        await this.#slices.next();
        const looked = await this.#tend(pair, listed);
        if (looked === undefined) continue;
        index.put(pair.key, looked);
        if (looked.free !== undefined) free.push(looked.free);
        if (free.length === FORGOTTEN_AT_ONCE) this.swept.forgotten += await this.#forget(free.splice(0), index);
      }
    }
    this.swept.forgotten += await this.#forget(free, index);
    return index;
  }

  /** Goes through the records that changed since the last sweep and those whose lease has ended, and updates the index. */
  async changes(index: RecordIndex): Promise<Revision> {
    index.nextRound();
    const { revision } = await this.#runtime.store.health(this.#runtime.stopped);
    // A sweep does not write to a store that nobody uses.
    if (revision > index.asOf) {
      const changed = await this.#changedSince(index.asOf, await this.#horizon.raise());
      for (const [key, pair] of changed.pairs) {
        await this.#slices.next();
        if (pair === undefined) index.remove(key);
        else this.#takeIn(index, pair);
      }
      index.asOf = changed.asOf;
    }
    // Lists the leases after the records were followed: a lease that a record names and the list lacks has ended.
    const listed = await this.#listAnchors();
    const stale: string[] = [];
    for (const [lease, held] of index.byLease()) {
      await this.#slices.next();
      this.#assumeGone(lease, listed);
      if (this.#runtime.anchors.isGone(lease)) for (const key of held) stale.push(key);
    }
    for (let place = 0; place < stale.length; place += PAGE / 2) {
      await this.#slices.next();
      const look = new Operations();
      // A hold that has two leases is there twice.
      const records = [...new Set(stale.slice(place, place + PAGE / 2))].map((key) => look.read({ key }));
      const { results } = await this.#runtime.store.transaction(look.always(), this.#runtime.stopped);
      for (const pair of records.flatMap((record) => record.in(results).pairs)) {
        await this.#slices.next();
        await this.#tend(pair, listed);
      }
    }
    return revision;
  }

  /** Deletes the records that were free a round ago already. `revision`: that of the store when `changes` began. */
  async forgetLongFree(index: RecordIndex, revision: Revision): Promise<void> {
    const free: Free[] = [];
    for (const record of index.free()) {
      await this.#slices.next();
      if (index.isLongFree(record, revision)) free.push(record);
      if (free.length === FORGOTTEN_AT_ONCE) await this.#forget(free.splice(0), index);
    }
    await this.#forget(free, index);
  }

  /** Every record that was changed up to `upTo`, the revision of our own write into the same range. */
  async #changedSince(
    since: Revision,
    upTo: Revision,
  ): Promise<{ readonly pairs: ReadonlyMap<string, KeyValue | undefined>; readonly asOf: Revision }> {
    const pairs = new Map<string, KeyValue | undefined>();
    const over = new AbortController();
    const limit = this.#runtime.later(this.#runtime.options.requestTimeoutMs, () => over.abort(), false);
    const signal = AbortSignal.any([over.signal, this.#runtime.stopped]);
    let asOf = since;
    try {
      const range = { key: HORIZON, end: afterPrefix(RECORDS) };
      for await (const { revision, changes } of await this.#runtime.store.watch(range, since, signal)) {
        await this.#slices.next();
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

  #takeIn(index: RecordIndex, pair: KeyValue): void {
    try {
      index.put(pair.key, lookAt(pair));
    } catch (error) {
      index.remove(pair.key);
      this.swept.malformed.push(malformedBy(pair.key, error));
    }
  }

  /** Lists the leases that are alive, and answers the revision of the list. */
  async #listAnchors(): Promise<Revision> {
    const { store, stopped, anchors } = this.#runtime;
    const anchored: KeyValue[] = [];
    let listed: Revision | undefined;
    for await (const page of readPages(store, prefixed(ANCHORS), PAGE, stopped)) {
      listed ??= page.revision;
      for (const pair of page.pairs) {
        await this.#slices.next();
        anchored.push(pair);
      }
    }
    await this.#slices.run(anchors.list(anchored, listed ?? 0));
    return listed ?? 0;
  }

  /** Notes that an unknown lease has ended: the list lacks it, although the record that names it is older than the list. */
  #assumeGone(lease: string, listed: Revision): void {
    if (!this.#runtime.anchors.isKnown(lease)) this.#runtime.anchors.saw(lease, false, listed);
  }

  /** `listed`: the revision at which the leases were listed. */
  async #tend(pair: KeyValue, listed: Revision): Promise<Looked | undefined> {
    this.swept.records += 1;
    try {
      const looked = lookAt(pair);
      if (pair.modRevision <= listed) for (const lease of leasesOf(looked.holds)) this.#assumeGone(lease, listed);
      const at = this.#runtime.moment(pair.modRevision);
      const stale = looked.holds.filter((hold) => isStale(hold, at));
      if (stale.length > 0) await this.#tendStale(looked.resource, stale);
      return looked;
    } catch (error) {
      this.swept.malformed.push(malformedBy(pair.key, error));
      return undefined;
    }
  }

  async #tendStale(resource: string, stale: readonly Hold[]): Promise<void> {
    await this.#submit(resource, { kind: 'tick' });
    this.swept.warned += 1;
    const freed = this.#reclaims ? await this.#free(resource) : [];
    this.swept.reclaimed += freed.length;
    const isFreed = ({ id }: Hold): boolean => freed.some((hold) => hold.id === id);
    const found = stale.map((hold) => ({ resource, holder: hold.holder, token: hold.token, isFreed: isFreed(hold) }));
    this.swept.stale.push(...found);
  }

  async #free(resource: string): Promise<readonly Hold[]> {
    const outcome = await this.#submit(resource, { kind: 'maintain' });
    return (outcome as unknown as { reclaimed?: readonly Hold[] }).reclaimed ?? [];
  }

  /**
   * Deletes records that say nothing but their last token, each only if it is as it was and nobody waits. Tokens can be ahead
   * of the store, since one write may grant many times: such a record stays in the index until the store has come past it.
   */
  async #forget(free: readonly Free[], index: RecordIndex): Promise<number> {
    const success: Operation[] = [];
    for (const { key, mod, token, head } of free) {
      if (!(await this.#horizon.isPast(token))) continue;
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
    await this.#slices.turn();
    const { store, stopped } = this.#runtime;
    const { results } = await store.transaction(always(success), stopped);
    return results.filter((result) => result.do === 'transaction' && result.succeeded).length;
  }

  #submit(resource: string, command: AnyCommand): Promise<AnyOutcome> {
    return outcomeOf(this.#runtime.writerFor(resource), command, this.#runtime.giveUpAt());
  }
}
