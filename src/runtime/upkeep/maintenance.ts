/**
 * What nobody's request brings about: warnings of stale holds, freeing them, looking for deadlocks that were missed,
 * and forgetting what is no longer needed. One process per store does it: the one that has the maintainer's anchor.
 */
import { type Hold, isStale, type Lock, type Semaphore, type Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { type KeyValue, prefixed, type ReadResult, type Revision } from '../../store/index.ts';
import type { Timer } from '../../clock.ts';
import { anchorKey, ANCHORS, decode, encode, MAINTAINER, RECORDS, resourceOfRecord } from '../layout.ts';
import { lockMachine, semaphoreMachine } from '../write/machines.ts';
import type { Runtime } from '../runtime.ts';
import type { Deadlocks } from '../observe/deadlocks.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { type Malformed, malformedBy, readEach } from '../stored.ts';
import { recordOf } from '../write/snapshot.ts';
import { ALL_TASKS } from '../tasks/keys.ts';
import type { Repairs } from '../tasks/repairs.ts';

/** So much history stays for those who watch. */
const KEPT_REVISIONS = 10_000;
/** So many records are gone through before others get their turn: a session has to be renewed meanwhile. */
const PAGE = 200;

export interface Swept {
  readonly records: number;
  readonly warned: number;
  readonly reclaimed: number;
  readonly forgotten: number;
  /** Tasks whose owner was gone, and which are pending again. */
  readonly requeued: number;
  /** Every stale hold that was found, whether it was freed or not. */
  readonly stale: readonly SweptHold[];
  /** Keys that were passed over, because what they hold cannot be read. */
  readonly malformed: readonly Malformed[];
}

export interface SweptHold {
  /** `lock/main-branch`. */
  readonly resource: string;
  readonly holder: string;
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
  readonly #repairs: Repairs;
  readonly #settings: MaintenanceSettings;
  #timer: Timer | undefined;
  #running: Promise<unknown> | undefined;

  constructor(runtime: Runtime, deadlocks: Deadlocks, repairs: Repairs, settings: MaintenanceSettings) {
    this.#runtime = runtime;
    this.#deadlocks = deadlocks;
    this.#repairs = repairs;
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
      if (!this.#settings.maintains) return;
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
    if (maintainer === session.id) await this.sweep();
  }

  /** Once through everything. Harmless if several do it at once: each step is checked like any other. */
  async sweep(): Promise<Swept> {
    const { store } = this.#runtime;
    const anchors = await this.#read(prefixed(ANCHORS));
    this.#runtime.anchors.list(anchors.pairs, anchors.revision);
    const swept: Sweeping = {
      records: 0,
      warned: 0,
      reclaimed: 0,
      forgotten: 0,
      requeued: 0,
      stale: [],
      malformed: [],
    };
    let key = RECORDS;
    const { end } = prefixed(RECORDS);
    for (;;) {
      const page = await this.#read({ key, end, limit: PAGE });
      for (const pair of page.pairs) {
        await this.#tend(pair, swept, anchors.revision).catch((error: unknown) => {
          swept.malformed.push(malformedBy(pair.key, error));
        });
      }
      const last = page.pairs.at(-1);
      if (!page.more || last === undefined) break;
      key = `${last.key}\0`;
      await this.#othersTurn();
    }
    // Those who have no tasks need not follow them.
    if ((await this.#read({ ...ALL_TASKS, limit: 1 })).count > 0) swept.requeued = await this.#repairs.all();
    this.#deadlocks.look();
    if (store.historyIsShared !== true) await this.#forgetHistory();
    return swept;
  }

  /** A store in memory answers at once, so nothing else would get to run until the sweep is done. */
  #othersTurn(): Promise<void> {
    return new Promise((resolve) => void this.#runtime.later(0, resolve));
  }

  async #forgetHistory(): Promise<void> {
    const { store, stopped } = this.#runtime;
    const { revision, compacted } = await store.health(stopped);
    if (revision - compacted > 2 * KEPT_REVISIONS) await compact(store, revision - KEPT_REVISIONS, stopped);
  }

  /** `listed`: when it was looked who is alive. */
  async #tend(pair: KeyValue, swept: Sweeping, listed: Revision): Promise<void> {
    swept.records += 1;
    const resource = resourceOfRecord(pair.key);
    const record = recordOf<Lock | Semaphore>(resource.startsWith('lock/') ? lockMachine : semaphoreMachine, pair);
    const at = this.#runtime.moment(pair.modRevision);
    const holds = record.holds as readonly Hold[];
    // One that nothing was known of, and that was not in the list although the record is older than it, has ended.
    if (pair.modRevision <= listed) {
      for (const lease of holds.flatMap((hold) => [hold.lease, hold.limit ?? hold.lease])) {
        if (!this.#runtime.anchors.isKnown(lease)) this.#runtime.anchors.saw(lease, false, listed);
      }
    }
    const stale = holds.filter((hold) => isStale(hold, at));
    if (stale.length > 0) {
      await this.#submit(resource, { kind: 'tick' });
      swept.warned += 1;
      const freed = this.#settings.reclaim ? await this.#free(resource) : [];
      swept.reclaimed += freed.length;
      const isFreed = ({ id }: Hold): boolean => freed.some((hold) => hold.id === id);
      const found = stale.map((hold) => ({
        resource,
        holder: hold.holder,
        token: hold.token,
        isFreed: isFreed(hold),
      }));
      swept.stale.push(...found);
    } else if (holds.length === 0 && record.kind === 'lock' && record.onStale === 'reclaim') {
      swept.forgotten += await this.#forget(pair, record.token, listed);
    }
  }

  async #free(resource: string): Promise<readonly Hold[]> {
    const outcome = await this.#submit(resource, { kind: 'maintain' });
    return (outcome as unknown as { reclaimed?: readonly Hold[] }).reclaimed ?? [];
  }

  /**
   * The record of a free lock says nothing but its last token. Whoever acquires it next without having read anything
   * takes a token above the revision its session began at; so only a token that is older than every session may go,
   * those included that began since it was looked. Tokens can be ahead of the store: one write may grant many times.
   */
  async #forget(pair: KeyValue, token: number, listed: Revision): Promise<number> {
    if (token >= Math.min(this.#runtime.anchors.oldest, listed)) return 0;
    const result = await this.#runtime.store.transaction(
      {
        compare: [{ key: pair.key, target: 'mod', is: '=', than: pair.modRevision }],
        success: [{ do: 'delete', key: pair.key }],
        failure: [],
      },
      this.#runtime.stopped,
    );
    return result.succeeded ? 1 : 0;
  }

  #submit(resource: string, command: AnyCommand): Promise<AnyOutcome> {
    return outcomeOf(this.#runtime.writerFor(resource), command, this.#runtime.giveUpAt());
  }

  async #read(range: { key: string; end: string; limit?: number }): Promise<ReadResult & { revision: number }> {
    const result = await this.#runtime.store.transaction(
      { compare: [], success: [{ do: 'read', ...range }], failure: [] },
      this.#runtime.stopped,
    );
    return { ...(result.results[0] as ReadResult), revision: result.revision };
  }
}

async function compact(store: Runtime['store'], revision: number, signal: AbortSignal): Promise<void> {
  try {
    await store.compact(revision, signal);
  } catch (error) {
    // Somebody else did.
    if (!Failure.is(error, 'compacted')) throw error;
  }
}
