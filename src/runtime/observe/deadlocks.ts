/**
 * Looks for deadlocks when a request begins to wait whose holder may hold something else. Reads all resources that have a
 * queue; the core chooses the requests that give way, and their writers refuse them.
 */
import {
  type Deadlock,
  deadlockSearch,
  type Lock,
  type LockRequest,
  type Resource,
  runAtOnce,
  type Semaphore,
  type Steps,
} from '../../core/index.ts';
import {
  type KeyValue,
  MOST_OPERATIONS,
  Operations,
  prefixed,
  readPages,
  readRange,
  type Revision,
} from '../../store/index.ts';
import { compareKeys } from '../../store/key-order.ts';
import { recordOfTicket, resourceOfRecord, resourceOfTicket, TICKETS, ticketIn } from '../layout.ts';
import { lockMachine, semaphoreMachine } from '../../core/machines.ts';
import { BackgroundCommand } from '../write/pending-command.ts';
import type { Runtime } from '../runtime.ts';
import { Slices } from '../slices.ts';
import { readEach } from '../stored.ts';
import { recordOf } from '../write/snapshot.ts';

/** How many tickets or records one read asks for. */
const PAGE = 125;
const LOOK_AGAIN_MS = 500;

export class Deadlocks {
  readonly #runtime: Runtime;
  #looking = false;
  #again = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
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
    const slices = new Slices(this.#runtime);
    const queues = await this.#readQueues(slices);
    let found = await this.#search(queues, slices);
    // Reads at several revisions may show a state that never existed. What a second reading finds unchanged did exist.
    if (found.length > 0 && !queues.isOfOneRevision) {
      const again = await this.#readQueues(slices);
      found = await this.#search(again, slices, queues);
    }
    for (const { victim, cycle } of found) {
      const command = { kind: 'refuse', id: victim.request.id, cycle } as const;
      this.#runtime.writerFor(victim.resource).submit(new BackgroundCommand(command));
    }
  }

  /** With `before`, only among the resources that are as they were then. */
  async #search(queues: Queues, slices: Slices, before?: Queues): Promise<readonly Deadlock[]> {
    const resources = await slices.run(queues.resources(before));
    return slices.run(deadlockSearch(resources, this.#runtime.moment(queues.revision), queues.arrivalOf));
  }

  /** All resources that have a queue: no others are part of a deadlock. A few are read at one revision. */
  async #readQueues(slices: Slices): Promise<Queues> {
    const { store, stopped } = this.#runtime;
    const queues = new Queues();
    const { pairs: first, more } = await readRange(store, { ...prefixed(TICKETS), limit: PAGE }, stopped);
    const few = new Set(readEach(first, (pair) => recordOfTicket(pair.key)));
    if (few.size === 0) return queues;
    if (!more && few.size < MOST_OPERATIONS) {
      const look = new Operations();
      const tickets = look.read(prefixed(TICKETS));
      const records = [...few].map((key) => look.read({ key }));
      const { results, revision } = await store.transaction(look.always(), stopped);
      const pairs = [tickets, ...records].flatMap((place) => place.in(results).pairs);
      runAtOnce(queues.add(pairs, revision));
      return queues;
    }
    for await (const page of readPages(store, prefixed(TICKETS), PAGE, stopped)) {
      await slices.run(queues.add(page.pairs, page.revision));
    }
    const waited = queues.records();
    while (waited.length > 0) {
      const look = new Operations();
      const records = waited.splice(0, PAGE).map((key) => look.read({ key }));
      const { results, revision } = await store.transaction(look.always(), stopped);
      const pairs = records.flatMap((record) => record.in(results).pairs);
      await slices.run(queues.add(pairs, revision));
    }
    return queues;
  }
}

interface Ticket {
  readonly key: string;
  readonly arrival: Revision;
  readonly request: LockRequest;
}

interface StoredRecord {
  readonly mod: Revision;
  readonly record: (Lock | Semaphore)['record'];
}

/** Queues and the records they belong to, as they were read. */
class Queues {
  readonly #tickets = new Map<string, Ticket[]>();
  readonly #records = new Map<string, StoredRecord>();
  readonly #arrivals = new Map<string, Revision>();
  #first: Revision | undefined;
  /** The last revision at which something was read. */
  revision: Revision = 0;

  readonly arrivalOf = (requestId: string): number => this.#arrivals.get(requestId) ?? 0;

  get isOfOneRevision(): boolean {
    return this.#first === undefined || this.#first === this.revision;
  }

  /** Takes tickets or records. One key that cannot be read must not hide the deadlocks of other resources. */
  *add(pairs: readonly KeyValue[], revision: Revision): Steps<void> {
    this.#first ??= revision;
    this.revision = revision;
    for (const pair of pairs) {
      yield;
      readEach([pair], () => (pair.key.startsWith(TICKETS) ? this.#addTicket(pair) : this.#addRecord(pair)));
    }
  }

  #addTicket(pair: KeyValue): void {
    const { request } = ticketIn<LockRequest>(pair);
    const resource = resourceOfTicket(pair.key);
    const ticket = { key: pair.key, arrival: pair.createRevision, request };
    this.#arrivals.set(request.id, ticket.arrival);
    const queue = this.#tickets.get(resource);
    if (queue === undefined) this.#tickets.set(resource, [ticket]);
    else queue.push(ticket);
  }

  #addRecord(pair: KeyValue): void {
    const name = resourceOfRecord(pair.key);
    const record = recordOf<Lock | Semaphore>(name.startsWith('lock/') ? lockMachine : semaphoreMachine, pair);
    this.#records.set(name, { mod: pair.modRevision, record });
  }

  /** The keys of the records that the queues belong to. */
  records(): string[] {
    return [...this.#tickets.values()].map(([ticket]) => recordOfTicket((ticket as Ticket).key));
  }

  *resources(before: Queues | undefined): Steps<readonly Resource[]> {
    const found: Resource[] = [];
    for (const [name, { record }] of this.#records) {
      yield;
      if (before !== undefined && before.#versionOf(name) !== this.#versionOf(name)) continue;
      const tickets = (this.#tickets.get(name) ?? []).sort(
        (a, b) => a.arrival - b.arrival || compareKeys(a.key, b.key),
      );
      found.push({ name, state: { record, waiting: tickets.map(({ request }) => request) } as Lock | Semaphore });
    }
    return found;
  }

  /** Equal exactly if neither the record nor the queue was changed. */
  #versionOf(name: string): string {
    const tickets = (this.#tickets.get(name) ?? []).map(({ key, arrival }) => `${arrival} ${key}`);
    return [this.#records.get(name)?.mod, ...tickets.sort()].join('\n');
  }
}
