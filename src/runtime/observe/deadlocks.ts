/**
 * Looks for deadlocks when somebody begins to wait who may hold something else. The core decides who gives way; here
 * the states of all resources are read, at one revision, and the victims are told.
 */
import {
  type Cycle,
  findDeadlocks,
  type Lock,
  type LockRequest,
  type Resource,
  type Semaphore,
} from '../../core/index.ts';
import { type KeyValue, prefixed, type ReadResult } from '../../store/index.ts';
import { RECORDS, resourceOfRecord, resourceOfTicket, TICKETS } from '../layout.ts';
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
    const { store, stopped } = this.#runtime;
    const result = await store.transaction(
      {
        compare: [],
        success: [
          { do: 'read', ...prefixed(RECORDS) },
          { do: 'read', ...prefixed(TICKETS), order: 'create' },
        ],
        failure: [],
      },
      stopped,
    );
    const [records, tickets] = result.results as readonly ReadResult[];
    if (records === undefined || tickets === undefined) return;
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
    const resources = readEach(records.pairs, (pair): Resource => {
      const name = resourceOfRecord(pair.key);
      const record = recordOf<Lock | Semaphore>(name.startsWith('lock/') ? lockMachine : semaphoreMachine, pair);
      return { name, state: { record, waiting: waiting.get(name) ?? [] } as Lock | Semaphore };
    });
    const at = this.#runtime.moment(result.revision);
    for (const { victim, cycle } of findDeadlocks(resources, at, (id) => arrivals.get(id) ?? 0)) {
      this.#refuse(victim.resource, { kind: 'refuse', id: victim.request.id, cycle });
    }
  }

  #refuse(resource: string, command: { readonly kind: 'refuse'; readonly id: string; readonly cycle: Cycle }): void {
    this.#runtime.writerFor(resource).submit(new BackgroundCommand(command));
  }
}
