/**
 * Checks every write of a lock or a semaphore, as an observer that no fault affects: one exclusive holder, no slot twice, growing
 * tokens, first come first served within a priority, nothing left at the end.
 */
import {
  type LockHold as LockGrant,
  type LockRequest,
  type SemaphoreHold as SemaphoreGrant,
  slotNumbers,
} from '../../core/index.ts';
import {
  ANCHORS,
  decode,
  type RecordDocument,
  RECORDS,
  resourceOfRecord,
  resourceOfTicket,
  type TicketDocument,
  TICKETS,
} from '../../runtime/layout.ts';
import type { Changes } from '../../store/index.ts';
import type { World } from './world.ts';

/** The text to which users change metadata after they passed it on; it must not get into the store. */
export const CHANGED = 'changed by its user';

export type Grant = LockGrant & Partial<SemaphoreGrant>;
type StoredRecord = {
  kind: string;
  token: number;
  capacity?: number;
  drained?: { revision: number };
  onStale?: string;
  holds: readonly Grant[];
};

interface Ticket {
  readonly request: LockRequest & { grows?: string };
  readonly arrival: number;
}

/** The checker of users, which knows what they asked for. */
interface Users {
  fail(what: string): never;
  /** Called when a stored hold was changed, which only its holder may ask for. */
  changed(resource: string, before: Grant | undefined, after: Grant): void;
  /** An administrator took this hold. */
  taken(id: string): void;
}

export class StoreChecker {
  readonly #world: World;
  readonly #users: Users;
  readonly #records = new Map<string, StoredRecord>();
  readonly #tickets = new Map<string, Map<string, Ticket>>();
  readonly #highest = new Map<string, number>();
  readonly #sized = new Set<number>();
  readonly #alive = new Set<string>();
  /** When each lease ended, for those that have. */
  readonly #endedAt = new Map<string, number>();
  /** The holds whose holders released them, by resource and token. */
  readonly #released = new Set<string>();
  /** How many writes of each resource it has seen. */
  readonly #writesOf = new Map<string, number>();
  /** How many writes of records and tickets it has seen. */
  writes = 0;

  constructor(world: World, users: Users) {
    this.#world = world;
    this.#users = users;
  }

  stored({ revision, changes }: Changes): void {
    this.writes += 1;
    const arrived: [string, string, Ticket][] = [];
    const gone: [string, string][] = [];
    const written: [string, StoredRecord | undefined, number][] = [];
    for (const change of changes) {
      const key = change.kind === 'put' ? change.pair.key : change.key;
      if (key.startsWith(ANCHORS)) {
        const lease = key.slice(ANCHORS.length);
        if (change.kind === 'put') this.#alive.add(lease);
        else if (this.#alive.delete(lease)) this.#endedAt.set(lease, this.#world.now);
      } else if (key.startsWith(RECORDS)) {
        const resource = resourceOfRecord(key);
        const { record, events = [] } = change.kind === 'put' ? decode<RecordDocument<StoredRecord>>(change.pair) : {};
        for (const { type, holder, token } of events) {
          if (type.endsWith(':forced')) this.#wasTaken(resource, holder);
          if (type.endsWith(':released')) this.#released.add(`${resource} #${String(token)}`);
        }
        // One write may grant and resize, in any order. A capacity that one write both set and changed appears only as the `from`
        // of that change.
        const resized = events.flatMap(({ type, capacity, from }) =>
          type === 'semaphore:resized' ? [Number(capacity), Number(from)] : [],
        );
        written.push([resource, record, Math.max(0, ...resized)]);
      } else if (!key.startsWith(TICKETS)) {
        continue;
      } else if (change.kind === 'put') {
        const { request } = decode<TicketDocument<Ticket['request']>>(change.pair);
        arrived.push([resourceOfTicket(key), request.id, { request, arrival: change.pair.createRevision }]);
      } else {
        gone.push([resourceOfTicket(key), key.slice(key.lastIndexOf('/') + 1)]);
      }
    }
    const leaving = new Set(gone.map(([, id]) => id));
    for (const [resource, record, largest] of written) this.#checkRecord(resource, record, largest, leaving);
    for (const [resource, id] of gone) this.#queue(resource).delete(id);
    for (const [resource, id, ticket] of arrived) this.#queue(resource).set(id, ticket);
    const changed = new Set([...written, ...gone, ...arrived].map(([resource]) => resource));
    for (const resource of changed) this.#writesOf.set(resource, (this.#writesOf.get(resource) ?? 0) + 1);
    if (!this.#world.isTraced) return;
    for (const resource of changed) this.#world.note('store', `r${revision} ${this.#told(resource)}`);
  }

  /** `largest` is the largest capacity that it had on the way. */
  #checkRecord(
    resource: string,
    record: StoredRecord | undefined,
    largest: number,
    leaving: ReadonlySet<string>,
  ): void {
    const before = this.#records.get(resource);
    if (record === undefined) {
      if ((before?.holds.length ?? 0) > 0) this.#users.fail(`the record of ${resource} was deleted while it was held`);
      this.#records.delete(resource);
      return;
    }
    this.#records.set(resource, record);
    const { holds } = record;
    if (record.kind === 'lock' && holds.length > 1 && holds.some(({ mode }) => mode === 'exclusive')) {
      this.#users.fail(`${resource} is stored as held by several, one of them exclusively`);
    }
    const slots = holds.flatMap((hold) => slotNumbers(hold.slots ?? []));
    if (new Set(slots).size < slots.length)
      this.#users.fail(`a slot of ${resource} was given out twice: ${slots.join(' ')}`);
    if (resource === 'semaphore/sized' && record.capacity !== before?.capacity && record.capacity !== undefined) {
      if (this.#sized.has(record.capacity)) this.#users.fail(`${resource} was resized to ${record.capacity} again`);
      this.#sized.add(record.capacity);
    }
    const { drained } = record;
    const had = new Map(before?.holds.map(({ id, weight = 0 }) => [id, weight]));
    const past = holds.find(({ id, weight = 0 }) => weight > (had.get(id) ?? 0));
    if (drained !== undefined && drained.revision === before?.drained?.revision && past !== undefined)
      this.#users.fail(`${past.holder} got slots of ${resource}, which was drained`);
    const used = holds.reduce((sum, { weight = 0 }) => sum + weight, 0);
    // A semaphore that shrank below the slots in use grants nothing until enough holders have released.
    const usedBefore = before?.holds.reduce((sum, { weight = 0 }) => sum + weight, 0) ?? 0;
    const capacity = Math.max(record.capacity ?? used, before?.capacity ?? 0, largest);
    if (used > capacity && used > usedBefore)
      this.#users.fail(`${resource} has ${used} slots in use and a capacity of ${record.capacity}`);
    if (used !== slots.length) this.#users.fail(`${resource} has ${used} slots in use, and these: ${slots.join(' ')}`);
    for (const hold of holds)
      this.#users.changed(
        resource,
        before?.holds.find(({ token }) => token === hold.token),
        hold,
      );
    const known = new Set(before?.holds.map(({ token }) => token));
    const fresh = holds.filter(({ token }) => !known.has(token));
    for (const { token, id, lease } of fresh) {
      if (!this.#alive.has(lease)) this.#users.fail(`${resource} was granted to ${id}, whose lease had ended`);
      const highest = this.#highest.get(resource) ?? 0;
      if (token <= highest) this.#users.fail(`${resource} was granted with #${token} after #${highest}`);
      this.#highest.set(resource, token);
    }
    this.#checkOrder(
      resource,
      fresh.map(({ id }) => id),
      leaving,
    );
  }

  /** Finds the holds that the administrator took from this holder, which the new record no longer has. */
  #wasTaken(resource: string, holder: string): void {
    for (const hold of this.#records.get(resource)?.holds ?? []) {
      if (hold.holder === holder) this.#users.taken(hold.id);
    }
  }

  /** Checks that a granted request waited longest of its priority, and that no request of a higher priority keeps waiting. */
  #checkOrder(resource: string, granted: readonly string[], leaving: ReadonlySet<string>): void {
    const queue = this.#queue(resource);
    for (const id of granted) {
      const ticket = queue.get(id);
      if (ticket === undefined) continue;
      for (const [other, { request, arrival }] of queue) {
        if (leaving.has(other) || request.upgrades !== undefined || ticket.request.upgrades !== undefined) continue;
        if (request.priority === ticket.request.priority && arrival < ticket.arrival) {
          this.#users.fail(`${resource} was granted to ${id} although ${other} of the same priority had waited longer`);
        }
      }
    }
  }

  /** Every request that waits, with its resource. */
  *waiting(): Iterable<readonly [resource: string, holder: string]> {
    for (const [resource, queue] of this.#tickets) {
      for (const { request } of queue.values()) yield [resource, request.holder];
    }
  }

  /**
   * The number of the last write of this resource, if it left a hold that may be taken, because its lease ended before this
   * time, and a request waits exactly if `isWaitedFor`; otherwise undefined.
   */
  leaves(resource: string, before: number, isWaitedFor: boolean): number | undefined {
    const { holds = [], onStale } = this.#records.get(resource) ?? {};
    const isLeft = holds.some(({ lease }) => (this.#endedAt.get(lease) ?? Number.POSITIVE_INFINITY) < before);
    const isWaiting = this.#queue(resource).size > 0;
    return isLeft && onStale === 'reclaim' && isWaiting === isWaitedFor ? this.#writesOf.get(resource) : undefined;
  }

  /** The number of the last write of this resource, if this holder has it and waits for it; otherwise undefined. */
  waitsForItself(resource: string, holder: string): number | undefined {
    const isHeld = this.#records.get(resource)?.holds.some((hold) => hold.holder === holder) ?? false;
    return isHeld && this.isWaitedFor(resource, holder) ? this.#writesOf.get(resource) : undefined;
  }

  /** The names of the locks whose dead holders are left to a person. */
  leftToAPerson(): readonly string[] {
    const left = [...this.#records].filter(([, { kind, onStale }]) => kind === 'lock' && onStale === 'alert');
    return left.map(([resource]) => resource.slice(resource.indexOf('/') + 1));
  }

  /** Whether this holder waits for the resource. */
  isWaitedFor(resource: string, holder: string): boolean {
    return [...this.#queue(resource).values()].some(({ request }) => request.holder === holder);
  }

  /** Whether the store still has this hold. */
  isStored({ resource, token }: { readonly resource: string; readonly token: number }): boolean {
    return this.#records.get(resource)?.holds.some((hold) => hold.token === token) ?? false;
  }

  /** Whether this hold ended by a release, and was not taken away. */
  wasReleased({ resource, token }: { readonly resource: string; readonly token: number }): boolean {
    return this.#released.has(`${resource} #${token}`);
  }

  lookForChanged(): void {
    for (const [resource, { holds }] of this.#records) {
      const changed = holds.find(({ metadata }) => (metadata as { by?: string } | undefined)?.by === CHANGED);
      if (changed !== undefined)
        this.#users.fail(`${resource}: its holder changed the metadata of ${changed.id} in the store`);
    }
  }

  #queue(resource: string): Map<string, Ticket> {
    const queue = this.#tickets.get(resource) ?? new Map<string, Ticket>();
    this.#tickets.set(resource, queue);
    return queue;
  }

  /** Describes the stored state for people. */
  describe(): readonly string[] {
    const resources = new Set([...this.#records.keys(), ...this.#tickets.keys()]);
    return [...resources].map((resource) => this.#told(resource));
  }

  #told(resource: string): string {
    const holds = (this.#records.get(resource)?.holds ?? []).map(
      ({ id, lease, token, weight }) => `${id} #${token}${weight === undefined ? '' : ` ×${weight}`} on ${lease}`,
    );
    const waiting = [...this.#queue(resource).keys()];
    return `${resource}: ${holds.join(', ') || 'free'}${waiting.length === 0 ? '' : `; waiting: ${waiting.join(', ')}`}`;
  }

  /** Nothing is held, and nobody waits. */
  get isQuiet(): boolean {
    for (const { holds } of this.#records.values()) if (holds.length > 0) return false;
    for (const queue of this.#tickets.values()) if (queue.size > 0) return false;
    return true;
  }

  /** Checks at the end that nothing is held and no request waits. */
  atTheEnd(): void {
    for (const [resource, { holds }] of this.#records) {
      if (holds.length > 0)
        this.#users.fail(`${resource} is still held by ${holds.map(({ holder }) => holder).join(', ')} at the end`);
    }
    for (const [resource, queue] of this.#tickets) {
      if (queue.size > 0)
        this.#users.fail(`${resource} is still waited for by ${[...queue.keys()].join(', ')} at the end`);
    }
  }
}
