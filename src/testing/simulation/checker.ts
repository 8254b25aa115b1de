/**
 * Checks on every step what must never happen: once on what is stored, as an observer that no fault affects, and once on
 * what the users of holds believe.
 */
import {
  type LockHold as LockGrant,
  type LockMode,
  type LockRequest,
  type SemaphoreHold as SemaphoreGrant,
  slotNumbers,
} from '../../core/index.ts';
import type { Hold } from '../../runtime/holds/public-hold.ts';
import {
  ANCHORS,
  decode,
  processOf,
  type RecordDocument,
  RECORDS,
  resourceOfRecord,
  resourceOfTicket,
  type TicketDocument,
  TICKETS,
} from '../../runtime/layout.ts';
import type { Changes } from '../../store/index.ts';
import { MemberChecker } from './member-checker.ts';
import { TaskChecker } from './task-checker.ts';
import type { SimulatedProcess, World } from './world.ts';

/** A broken promise. */
export class Violation extends Error {}

/** What users make of metadata after they passed it on: it must not get into the store. */
export const CHANGED = 'changed by its user';

/** What the checker needs of a hold, a detached hold, or the claim of a task. */
export interface Held extends Pick<Hold, 'id' | 'resource' | 'holder' | 'token' | 'isValid'> {
  /** Of a lock. What has neither a mode nor slots excludes everyone else. */
  readonly mode?: LockMode;
  /** Of a semaphore: no other user has these slots. */
  readonly slots?: readonly number[];
  /** Aborts when its user hears of the loss. */
  readonly signal: Pick<AbortSignal, 'aborted'>;
  readonly lost?: { readonly why: string } | undefined;
  /** The session it was given to; of a re-entry, that of the user who entered again. */
  readonly process?: string;
  readonly isReentry?: boolean;
}

/** A user that may still act on what it holds: on a hold, on a re-entry, on a detached hold, on a claim. */
export interface Believer {
  readonly hold: Held;
  readonly process: SimulatedProcess;
}

/** A user asks for something, or has just given up on it. */
interface Asking {
  under: number;
  /** When the last of them was settled. */
  settledAt: number;
  wantsToWrite: boolean;
}

/** Users that can hear of a loss only after it has happened hear of it within this time. */
const HEARD_MS = 12_000;
/** What has been given up leaves no trace after this; until then a lost answer may still be looked into. */
const NO_TRACE_MS = 10_000;

type Grant = LockGrant & Partial<SemaphoreGrant>;
type StoredRecord = { kind: string; token: number; capacity?: number; holds: readonly Grant[] };

interface Ticket {
  readonly request: LockRequest & { grows?: string };
  readonly arrival: number;
}

function isExclusive({ mode, slots }: Held): boolean {
  return slots === undefined && mode !== 'shared';
}

/** Whether both cannot be had at once. */
function excludes(one: Held, other: Held): boolean {
  if (one.slots !== undefined && other.slots !== undefined) {
    const { slots } = other;
    return one.slots.some((slot) => slots.includes(slot));
  }
  return isExclusive(one) || isExclusive(other);
}

export class Checker {
  readonly #world: World;
  readonly #believers = new Map<string, Set<Believer>>();
  readonly #records = new Map<string, StoredRecord>();
  readonly #tickets = new Map<string, Map<string, Ticket>>();
  readonly #highest = new Map<string, number>();
  readonly #touched = new Map<string, number>();
  /**
   * The ids of holds and claims that were ended from elsewhere: by an administrator, or by their own holder, by name and
   * token. Only there may the user of the hold hear of its loss after the next holder got in.
   */
  readonly #ended = new Set<string>();
  /** Since when they should have heard of their loss. */
  readonly #late = new WeakMap<Believer, number>();
  readonly #asking = new Map<string, Asking>();
  readonly #counted = new Set<number>();
  readonly #ran = new Set<string>();
  /** How many users are forgetting the pipeline, or do not know whether they did. */
  readonly #forgetting = new Map<string, number>();
  readonly #phases = new Map<string, { readonly process: SimulatedProcess; readonly token: number }>();
  #lastCapacity = 10;
  readonly #sized = new Set<number>();
  readonly #alive = new Set<string>();
  grants = 0;
  /** The first violation; the simulation looks at it after every step. */
  violation: Violation | undefined;

  readonly tasks: TaskChecker;
  readonly members: MemberChecker;

  constructor(world: World) {
    this.#world = world;
    this.tasks = new TaskChecker(
      (what) => world.note('store', what),
      (what) => this.fail(what),
      (id, token) => void this.#ended.add(`${id} #${token}`),
    );
    this.members = new MemberChecker((what) => this.fail(what));
  }

  // What users believe

  /** A user was given a hold: no other running user may still believe in a hold that excludes it. */
  granted(hold: Held, process: SimulatedProcess): Believer {
    this.grants += 1;
    this.#world.note(process.name, `has ${hold.resource} #${hold.token}${isExclusive(hold) ? '' : ', with others'}`);
    const believer = { hold, process };
    // One that was lost on its way says so, and its user believes nothing.
    for (const other of hold.isValid ? this.#others(believer) : []) {
      if (!other.hold.signal.aborted && !this.#hearsLate(other, believer)) {
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
    const { hold, process } = believer;
    if (!hold.isValid) return;
    for (const other of this.#others(believer)) {
      if (other.hold.isValid && !this.#hearsLate(other, believer)) {
        this.fail(
          `${hold.resource} is used by ${process.name} (#${hold.token}) and by ${other.process.name} (#${other.hold.token}) at once`,
        );
      }
    }
    if (!isExclusive(hold)) return;
    const before = this.#touched.get(hold.resource) ?? 0;
    if (hold.token < before && !this.#mayHearLate(hold))
      this.fail(`${hold.resource} was written with #${hold.token} after #${before}`);
    this.#touched.set(hold.resource, Math.max(before, hold.token));
  }

  left(believer: Believer): void {
    const { hold, process } = believer;
    if (!this.#of(hold.resource).delete(believer)) return;
    const how = hold.lost === undefined ? '' : `: ${hold.lost.why}`;
    this.#world.note(process.name, `is through with ${hold.resource} #${hold.token}${how}`);
  }

  /** Whether the store still has it as held. */
  isStored({ resource, token }: Pick<Held, 'resource' | 'token'>): boolean {
    return this.#records.get(resource)?.holds.some((hold) => hold.token === token) ?? false;
  }

  /** All that is valid at once excludes each other: looked at now and then, for those whose users just wait. */
  lookAtAll(): void {
    for (const believers of this.#believers.values()) for (const believer of believers) this.touches(believer);
    this.#lookForTraces();
    this.#lookForChanged();
  }

  #lookForChanged(): void {
    for (const [resource, { holds }] of this.#records) {
      const changed = holds.find(({ metadata }) => (metadata as { by?: string } | undefined)?.by === CHANGED);
      if (changed !== undefined)
        this.fail(`${resource}: its holder changed the metadata of ${changed.id} in the store`);
    }
  }

  #others(believer: Believer): readonly Believer[] {
    return [...this.#of(believer.hold.resource)].filter(
      (other) =>
        other !== believer &&
        other.hold.id !== believer.hold.id &&
        excludes(other.hold, believer.hold) &&
        !other.process.isDead &&
        !other.process.isPaused &&
        !believer.process.isDead &&
        !believer.process.isPaused,
    );
  }

  /** One of the two may still have to hear that it lost. That takes its time, and has an end. */
  #hearsLate(one: Believer, other: Believer): boolean {
    const late = this.#mayHearLate(one.hold) ? one : this.#mayHearLate(other.hold) ? other : undefined;
    if (late === undefined) return false;
    const since = this.#late.get(late) ?? this.#world.now;
    this.#late.set(late, since);
    return this.#world.now - since < HEARD_MS;
  }

  /** It was ended from elsewhere; or it rests on a hold of another process, which may release that at any time. */
  #mayHearLate({ id, process, isReentry }: Held): boolean {
    if (this.#ended.has(id)) return true;
    return isReentry === true && process !== undefined && processOf(id) !== process;
  }

  #of(resource: string): Set<Believer> {
    const believers = this.#believers.get(resource) ?? new Set();
    this.#believers.set(resource, believers);
    return believers;
  }

  /** A user is about to release a hold by name and token, whichever user has it. */
  endsElsewhere({ id }: Pick<Held, 'id'>): void {
    this.#ended.add(id);
  }

  // What users ask for

  /** A name that no other user gets. */
  nextCapacity(): number {
    return this.#lastCapacity++;
  }

  /** A named holder asks for it; answers what to call when that was settled, one way or the other. */
  asks(resource: string, holder: string, wantsToWrite: boolean): () => void {
    const key = `${resource} ${holder}`;
    const asking = this.#asking.get(key) ?? { under: 0, settledAt: 0, wantsToWrite: false };
    this.#asking.set(key, asking);
    asking.under += 1;
    if (wantsToWrite) asking.wantsToWrite = true;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      asking.under -= 1;
      asking.settledAt = this.#world.now;
    };
  }

  /** Since when no user asks for it any more; undefined if one still does, or if none ever did under a name. */
  #settledSince(resource: string, holder: string): number | undefined {
    const asking = this.#asking.get(`${resource} ${holder}`);
    return asking === undefined || asking.under > 0 ? undefined : asking.settledAt;
  }

  #lookForTraces(): void {
    for (const [resource, queue] of this.#tickets) {
      for (const { request } of queue.values()) {
        const since = this.#settledSince(resource, request.holder);
        if (since === undefined || this.#world.now - since < NO_TRACE_MS) continue;
        this.fail(`${resource} is waited for by ${request.holder}, who was answered ${this.#world.now - since} ms ago`);
      }
    }
  }

  // What users count, and the phases of pipelines

  /** The bus confirmed to a user that it set the counter to this. */
  counted(to: number): void {
    if (this.#counted.has(to)) this.fail(`the counter was made ${to} twice`);
    this.#counted.add(to);
  }

  /** A user forgets the pipeline. If its answer got lost, the pipeline may be forgotten all the same. */
  async forgets(pipeline: string, forget: () => Promise<boolean>): Promise<void> {
    this.#forgetting.set(pipeline, (this.#forgetting.get(pipeline) ?? 0) + 1);
    const isForgotten = await forget();
    this.#forgetting.set(pipeline, (this.#forgetting.get(pipeline) ?? 1) - 1);
    if (isForgotten) this.mayRunAgain(pipeline);
  }

  /** A person decided so, or all that is known of the pipeline is forgotten. */
  mayRunAgain(pipeline: string): void {
    for (const key of this.#ran) if (key.startsWith(`${pipeline} `)) this.#ran.delete(key);
  }

  /** Answers what to call when the phase has ended. */
  phaseBegins(
    pipeline: string,
    phase: string,
    token: number,
    isIdempotent: boolean,
    process: SimulatedProcess,
  ): () => void {
    this.grants += 1;
    const key = `${pipeline} ${phase}`;
    this.#world.note(process.name, `is at ${key} #${token}`);
    const running = this.#phases.get(pipeline);
    const isRunning = running !== undefined && !running.process.isDead && !running.process.isPaused;
    if (isRunning && running.token === token) this.fail(`${key} runs twice at once, in ${process.name} as well`);
    const isKnown = (this.#forgetting.get(pipeline) ?? 0) === 0;
    if (!isIdempotent && isKnown && this.#ran.has(key)) this.fail(`${key} was run again, and nobody had decided so`);
    if (!isIdempotent) this.#ran.add(key);
    const own = { process, token };
    this.#phases.set(pipeline, own);
    return () => {
      if (this.#phases.get(pipeline) === own) this.#phases.delete(pipeline);
    };
  }

  // What is stored

  stored({ revision, changes }: Changes): void {
    const arrived: [string, string, Ticket][] = [];
    const gone: [string, string][] = [];
    const written: [string, StoredRecord | undefined, number][] = [];
    for (const change of changes) {
      const key = change.kind === 'put' ? change.pair.key : change.key;
      if (key.startsWith(ANCHORS)) {
        const lease = key.slice(ANCHORS.length);
        if (change.kind === 'put') this.#alive.add(lease);
        else this.#alive.delete(lease);
      } else if (key.startsWith(RECORDS)) {
        const resource = resourceOfRecord(key);
        const { record, events = [] } = change.kind === 'put' ? decode<RecordDocument<StoredRecord>>(change.pair) : {};
        for (const { type, holder } of events) if (type.endsWith(':forced')) this.#wasTaken(resource, holder);
        // One write may grant and resize, in any order.
        const resized = events.flatMap(({ type, capacity }) =>
          type === 'semaphore:resized' ? [Number(capacity)] : [],
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
    if (!this.#world.isTraced) return;
    const changed = new Set([...written, ...gone, ...arrived].map(([resource]) => resource));
    for (const resource of changed) this.#world.note('store', `r${revision} ${this.#told(resource)}`);
  }

  /** `largest`: the largest capacity that it was given on the way. */
  #checkRecord(
    resource: string,
    record: StoredRecord | undefined,
    largest: number,
    leaving: ReadonlySet<string>,
  ): void {
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
    const slots = holds.flatMap((hold) => slotNumbers(hold.slots ?? []));
    if (new Set(slots).size < slots.length) this.fail(`a slot of ${resource} was given out twice: ${slots.join(' ')}`);
    if (resource === 'semaphore/sized' && record.capacity !== before?.capacity && record.capacity !== undefined) {
      if (this.#sized.has(record.capacity)) this.fail(`${resource} was resized to ${record.capacity} again`);
      this.#sized.add(record.capacity);
    }
    const used = holds.reduce((sum, { weight = 0 }) => sum + weight, 0);
    // Shrunk below what is in use, it waits until enough of them have left; then nobody gets in meanwhile.
    const usedBefore = before?.holds.reduce((sum, { weight = 0 }) => sum + weight, 0) ?? 0;
    const capacity = Math.max(record.capacity ?? used, before?.capacity ?? 0, largest);
    if (used > capacity && used > usedBefore)
      this.fail(`${resource} has ${used} slots in use and a capacity of ${record.capacity}`);
    if (used !== slots.length) this.fail(`${resource} has ${used} slots in use, and these: ${slots.join(' ')}`);
    for (const hold of holds)
      this.#checkChange(
        resource,
        before?.holds.find(({ token }) => token === hold.token),
        hold,
      );
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

  /** The holds of this holder are those that the administrator took: the record that tells of it has them no more. */
  #wasTaken(resource: string, holder: string): void {
    for (const hold of this.#records.get(resource)?.holds ?? []) {
      if (hold.holder === holder) this.#ended.add(hold.id);
    }
  }

  /** A hold changes only as its holder asks. */
  #checkChange(resource: string, before: Grant | undefined, after: Grant): void {
    if (before === undefined) return;
    if ((after.weight ?? 0) < (before.weight ?? 0)) this.#checkUsers(resource, after);
    if (before.mode !== 'shared' || after.mode !== 'exclusive') return;
    const asking = this.#asking.get(`${resource} ${after.holder}`);
    if (asking === undefined) return;
    const isLate = asking.under === 0 && this.#world.now - asking.settledAt >= NO_TRACE_MS;
    if (!asking.wantsToWrite || isLate) this.fail(`${after.holder} became the writer of ${resource} unasked`);
  }

  /** A growth that was given up goes back, unless a user got it. */
  #checkUsers(resource: string, { id, holder, weight = 0 }: Grant): void {
    for (const { hold, process } of this.#of(resource)) {
      if (hold.id !== id || process.isDead || process.isPaused || !hold.isValid || this.#mayHearLate(hold)) continue;
      const has = hold.slots?.length ?? 0;
      if (has > weight)
        this.fail(`${holder} uses ${has} slots of ${resource} in ${process.name}, and was left ${weight}`);
    }
  }

  /** A granted request has waited longest of its priority, and no request of a higher priority keeps waiting. */
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
    this.members.atTheEnd();
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
