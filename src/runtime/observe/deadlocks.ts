/**
 * Looks for deadlocks when a request begins to wait whose holder may hold something else. Reads all resources that have a
 * queue, at one revision; the core chooses the requests that give way, and their writers refuse them.
 */
import {
  type Cycle,
  findDeadlocks,
  type Lock,
  type LockRequest,
  type Resource,
  type Semaphore,
} from '../../core/index.ts';
import { type KeyValue, MOST_OPERATIONS, Operations, prefixed, readRange } from '../../store/index.ts';
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

  /** Repeats a look that is under way: it may have read too early. */
  look(): void {
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = true;
    void this.#lookNow()
      // Nothing else ends the waits of a deadlock, so a failed look has to be repeated.
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
    const queued = await readRange(store, prefixed(TICKETS), stopped);
    const waited = new Set(readEach(queued.pairs, (pair) => recordOfTicket(pair.key)));
    if (waited.size === 0) return;
    const look = new Operations();
    const tickets = look.read({ ...prefixed(TICKETS), order: 'create' });
    // A deadlock only has resources with a queue, so other records are not read.
    const ranges = waited.size < MOST_OPERATIONS ? [...waited].map((key) => ({ key })) : [prefixed(RECORDS)];
    const records = ranges.map((range) => look.read(range));
    const { results, revision } = await store.transaction(look.always(), stopped);
    const arrivals = new Map<string, number>();
    const waiting = new Map<string, LockRequest[]>();
    // One key that cannot be read must not hide the deadlocks of other resources.
    const asked = (pair: KeyValue) => [pair, resourceOfTicket(pair.key), ticketIn<LockRequest>(pair).request] as const;
    for (const [pair, resource, request] of readEach(tickets.in(results).pairs, asked)) {
      arrivals.set(request.id, pair.createRevision);
      const queue = waiting.get(resource);
      if (queue === undefined) waiting.set(resource, [request]);
      else queue.push(request);
    }
    const resources = readEach(
      records.flatMap((record) => record.in(results).pairs),
      (pair): Resource => {
        const name = resourceOfRecord(pair.key);
        const record = recordOf<Lock | Semaphore>(name.startsWith('lock/') ? lockMachine : semaphoreMachine, pair);
        return { name, state: { record, waiting: waiting.get(name) ?? [] } as Lock | Semaphore };
      },
    );
    const at = this.#runtime.moment(revision);
    for (const { victim, cycle } of findDeadlocks(resources, at, (id) => arrivals.get(id) ?? 0)) {
      this.#refuse(victim.resource, { kind: 'refuse', id: victim.request.id, cycle });
    }
  }

  #refuse(resource: string, command: { readonly kind: 'refuse'; readonly id: string; readonly cycle: Cycle }): void {
    this.#runtime.writerFor(resource).submit(new BackgroundCommand(command));
  }
}
