/**
 * What must never happen, checked on every step: once on what is stored, by an observer whom no fault concerns, and
 * once on what the users of holds believe.
 */
import type { LockHold as LockGrant, LockRequest, SemaphoreHold as SemaphoreGrant } from '../../core/index.ts';
import type { Hold } from '../../runtime/hold.ts';
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
import { TaskChecker } from './task-checker.ts';
import type { SimulatedProcess, World } from './world.ts';

export class Violation extends Error {}

/** What it looks at of a hold, or of the claim of a task. */
type Held = Pick<Hold, 'id' | 'resource' | 'holder' | 'token' | 'signal' | 'isValid' | 'lost'>;

interface Believer {
  readonly hold: Held;
  readonly process: SimulatedProcess;
  readonly isExclusive: boolean;
}

type Grant = LockGrant & Partial<SemaphoreGrant>;
type StoredRecord = { kind: string; token: number; capacity?: number; holds: readonly Grant[] };

interface Ticket {
  readonly request: LockRequest & { grows?: string };
  readonly arrival: number;
}

export class Checker {
  readonly #world: World;
  readonly #believers = new Map<string, Set<Believer>>();
  readonly #records = new Map<string, StoredRecord>();
  readonly #tickets = new Map<string, Map<string, Ticket>>();
  readonly #highest = new Map<string, number>();
  readonly #touched = new Map<string, number>();
  /** Taken by an administrator: only there may the old holder hear of it later than the next is let in. */
  readonly #forced = new Set<string>();
  readonly #alive = new Set<string>();
  grants = 0;
  /** The first one; whoever runs the world looks at it after every step. */
  violation: Violation | undefined;

  readonly tasks: TaskChecker;

  constructor(world: World) {
    this.#world = world;
    this.tasks = new TaskChecker(
      (what) => world.note('store', what),
      (what) => this.fail(what),
      (resource, holder) => void this.#forced.add(`${resource} ${holder}`),
    );
  }

  // What users believe

  /** Somebody was given a hold: nobody else who runs may still believe in one that excludes it. */
  granted(hold: Held, process: SimulatedProcess, isExclusive: boolean): Believer {
    this.grants += 1;
    this.#world.note(process.name, `has ${hold.resource} #${hold.token}${isExclusive ? '' : ', beside others'}`);
    const believer = { hold, process, isExclusive };
    for (const other of this.#others(believer)) {
      if (!other.hold.signal.aborted) {
        this.fail(
          `${hold.resource} was given to ${process.name} (#${hold.token}) before ${other.process.name} (#${other.hold.token}) was told of its loss`,
        );
      }
    }
    this.#of(hold.resource).add(believer);
    return believer;
  }

  /** The user of a hold is about to do something that cannot be undone. */
  touches(believer: Believer): void {
    const { hold, process, isExclusive } = believer;
    if (!hold.isValid) return;
    for (const other of this.#others(believer)) {
      if (other.hold.isValid) {
        this.fail(
          `${hold.resource} is used by ${process.name} (#${hold.token}) and by ${other.process.name} (#${other.hold.token}) at once`,
        );
      }
    }
    if (!isExclusive) return;
    const before = this.#touched.get(hold.resource) ?? 0;
    if (hold.token < before && !this.#wasForced(hold))
      this.fail(`${hold.resource} was written with #${hold.token} after #${before}`);
    this.#touched.set(hold.resource, Math.max(before, hold.token));
  }

  left(believer: Believer): void {
    const { hold, process } = believer;
    if (!this.#of(hold.resource).delete(believer)) return;
    const how = hold.lost === undefined ? '' : `: ${hold.lost.why}`;
    this.#world.note(process.name, `is through with ${hold.resource} #${hold.token}${how}`);
  }

  #others(believer: Believer): readonly Believer[] {
    return [...this.#of(believer.hold.resource)].filter(
      (other) =>
        other !== believer &&
        other.hold.id !== believer.hold.id &&
        !this.#wasForced(other.hold) &&
        !this.#wasForced(believer.hold) &&
        (other.isExclusive || believer.isExclusive) &&
        !other.process.isDead &&
        !other.process.isPaused,
    );
  }

  #wasForced({ resource, holder }: Held): boolean {
    return this.#forced.has(`${resource} ${holder}`);
  }

  #of(resource: string): Set<Believer> {
    const believers = this.#believers.get(resource) ?? new Set();
    this.#believers.set(resource, believers);
    return believers;
  }

  // What is stored

  stored({ revision, changes }: Changes): void {
    const arrived: [string, string, Ticket][] = [];
    const gone: [string, string][] = [];
    const written: [string, StoredRecord | undefined][] = [];
    for (const change of changes) {
      const key = change.kind === 'put' ? change.pair.key : change.key;
      if (key.startsWith(ANCHORS)) {
        const lease = key.slice(ANCHORS.length);
        if (change.kind === 'put') this.#alive.add(lease);
        else this.#alive.delete(lease);
      } else if (key.startsWith(RECORDS)) {
        const resource = resourceOfRecord(key);
        const { record, events = [] } = change.kind === 'put' ? decode<RecordDocument<StoredRecord>>(change.pair) : {};
        for (const { type, holder } of events) if (type.endsWith(':forced')) this.#forced.add(`${resource} ${holder}`);
        written.push([resource, record]);
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
    for (const [resource, record] of written) this.#checkRecord(resource, record, leaving);
    for (const [resource, id] of gone) this.#queue(resource).delete(id);
    for (const [resource, id, ticket] of arrived) this.#queue(resource).set(id, ticket);
    if (!this.#world.isTraced) return;
    const changed = new Set([...written, ...gone, ...arrived].map(([resource]) => resource));
    for (const resource of changed) this.#world.note('store', `r${revision} ${this.#told(resource)}`);
  }

  #checkRecord(resource: string, record: StoredRecord | undefined, leaving: ReadonlySet<string>): void {
    const before = this.#records.get(resource);
    if (record === undefined) {
      if ((before?.holds.length ?? 0) > 0) this.fail(`the record of ${resource} was deleted while it was held`);
      this.#records.delete(resource);
      return;
    }
    this.#records.set(resource, record);
    const { holds } = record;
    if (record.kind === 'lock' && holds.length > 1 && holds.some(({ mode }) => mode === 'exclusive')) {
      this.fail(`${resource} is stored as held by several, one of them exclusively`);
    }
    const slots = holds.flatMap((hold) => hold.slots ?? []);
    if (new Set(slots).size < slots.length) this.fail(`a slot of ${resource} was given out twice: ${slots.join(' ')}`);
    const used = holds.reduce((sum, { weight = 0 }) => sum + weight, 0);
    if (used > (record.capacity ?? used))
      this.fail(`${resource} has ${used} slots in use and a capacity of ${record.capacity}`);
    if (used !== slots.length) this.fail(`${resource} has ${used} slots in use, and these: ${slots.join(' ')}`);
    const known = new Set(before?.holds.map(({ token }) => token));
    const fresh = holds.filter(({ token }) => !known.has(token));
    for (const { token, id, lease } of fresh) {
      if (!this.#alive.has(lease)) this.fail(`${resource} was granted to ${id}, whose lease had ended`);
      const highest = this.#highest.get(resource) ?? 0;
      if (token <= highest) this.fail(`${resource} was granted with #${token} after #${highest}`);
      this.#highest.set(resource, token);
    }
    this.#checkOrder(
      resource,
      fresh.map(({ id }) => id),
      leaving,
    );
  }

  /** Whoever is granted has waited longest among those of its priority, and nobody of a priority as high waits on. */
  #checkOrder(resource: string, granted: readonly string[], leaving: ReadonlySet<string>): void {
    const queue = this.#queue(resource);
    for (const id of granted) {
      const ticket = queue.get(id);
      if (ticket === undefined) continue;
      for (const [other, { request, arrival }] of queue) {
        if (leaving.has(other) || request.upgrades !== undefined || ticket.request.upgrades !== undefined) continue;
        if (request.priority === ticket.request.priority && arrival < ticket.arrival) {
          this.fail(`${resource} was granted to ${id} although ${other} of the same priority had waited longer`);
        }
      }
    }
  }

  #queue(resource: string): Map<string, Ticket> {
    const queue = this.#tickets.get(resource) ?? new Map<string, Ticket>();
    this.#tickets.set(resource, queue);
    return queue;
  }

  // The end

  /** What is stored, for people. */
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

  /** After all is over nothing may be held and nobody may wait. */
  atTheEnd(): void {
    this.tasks.atTheEnd();
    for (const [resource, { holds }] of this.#records) {
      if (holds.length > 0)
        this.fail(`${resource} is still held by ${holds.map(({ holder }) => holder).join(', ')} at the end`);
    }
    for (const [resource, queue] of this.#tickets) {
      if (queue.size > 0) this.fail(`${resource} is still waited for by ${[...queue.keys()].join(', ')} at the end`);
    }
  }

  fail(what: string): never {
    this.#world.note('', `VIOLATION: ${what}`);
    this.violation ??= new Violation(what);
    throw this.violation;
  }
}
