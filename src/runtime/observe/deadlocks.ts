/**
 * Looks for deadlocks when somebody begins to wait who may hold something else. The core decides who gives way; here
 * the states of all resources that are waited for are read, at one revision, and the victims are told.
 */
import {
  type Cycle,
  findDeadlocks,
  type Lock,
  type LockRequest,
  type Resource,
  type Semaphore,
} from '../../core/index.ts';
import {
  type KeyValue,
  MOST_OPERATIONS,
  type Operation,
  prefixed,
  type ReadResult,
  type TransactionResult,
} from '../../store/index.ts';
import { recordOfTicket, RECORDS, resourceOfRecord, resourceOfTicket, TICKETS } from '../layout.ts';
import { lockMachine, semaphoreMachine } from '../write/machines.ts';
import { BackgroundCommand } from '../write/pending-command.ts';
import type { RuntimeObserver } from '../observer.ts';
import type { Runtime } from '../runtime.ts';
import { readEach, ticketIn } from '../stored.ts';
import { recordOf } from '../write/snapshot.ts';

const LOOK_AGAIN_MS = 500;

export class Deadlocks implements RuntimeObserver {
  readonly #runtime: Runtime;
  #looking = false;
  #again = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  waitChanged(): void {
    this.look();
  }

  /** Asked for while a look is under way, it is repeated: the one under way may have read too early. */
  look(): void {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    void this.#lookNow()
      // Whoever waits in a circle waits for nothing else: a look that failed has to be repeated.
      .catch(() => {
        if (this.#runtime.waiters.size > 0) this.#runtime.later(LOOK_AGAIN_MS, () => this.look());
      })
      .finally(() => {
        this.#looking = false;
        if (this.#again) {
          this.#again = false;
          this.look();
        }
      });
  }

  async #lookNow(): Promise<void> {
    const waited = new Set(readEach(await this.#tickets(), (pair) => recordOfTicket(pair.key)));
    if (waited.size === 0) return;
    // A circle goes through those who wait, so records that nobody waits for are not read.
    const reads: readonly Operation[] =
      waited.size < MOST_OPERATIONS
        ? [...waited].map((key) => ({ do: 'read', key }))
        : [{ do: 'read', ...prefixed(RECORDS) }];
    const result = await this.#read([{ do: 'read', ...prefixed(TICKETS), order: 'create' }, ...reads]);
    const [tickets, ...records] = result.results as readonly [ReadResult, ...ReadResult[]];
    const arrivals = new Map<string, number>();
    const waiting = new Map<string, LockRequest[]>();
    // One key that cannot be read must not hide the deadlocks of others.
    const asked = (pair: KeyValue) => [pair, resourceOfTicket(pair.key), ticketIn<LockRequest>(pair).request] as const;
    for (const [pair, resource, request] of readEach(tickets.pairs, asked)) {
      arrivals.set(request.id, pair.createRevision);
      const queue = waiting.get(resource);
      if (queue === undefined) waiting.set(resource, [request]);
      else queue.push(request);
    }
    const resources = readEach(
      records.flatMap(({ pairs }) => pairs),
      (pair): Resource => {
        const name = resourceOfRecord(pair.key);
        const record = recordOf<Lock | Semaphore>(name.startsWith('lock/') ? lockMachine : semaphoreMachine, pair);
        return { name, state: { record, waiting: waiting.get(name) ?? [] } as Lock | Semaphore };
      },
    );
    const at = this.#runtime.moment(result.revision);
    for (const { victim, cycle } of findDeadlocks(resources, at, (id) => arrivals.get(id) ?? 0)) {
      this.#refuse(victim.resource, { kind: 'refuse', id: victim.request.id, cycle });
    }
  }

  async #tickets(): Promise<readonly KeyValue[]> {
    const { results } = await this.#read([{ do: 'read', ...prefixed(TICKETS) }]);
    return (results[0] as ReadResult).pairs;
  }

  /** All at one revision. */
  #read(success: readonly Operation[]): Promise<TransactionResult> {
    return this.#runtime.store.transaction({ compare: [], success, failure: [] }, this.#runtime.stopped);
  }

  #refuse(resource: string, command: { readonly kind: 'refuse'; readonly id: string; readonly cycle: Cycle }): void {
    this.#runtime.writerFor(resource).submit(new BackgroundCommand(command));
  }
}
