/**
 * Checks after every step that the promises hold: in the store, as an observer that no fault affects, and in what the users of
 * holds believe.
 */
import type { LockMode } from '../../core/index.ts';
import type { Hold } from '../../runtime/holds/hold.ts';
import { processOf } from '../../runtime/layout.ts';
import { MemberChecker } from './member-checker.ts';
import { PhaseChecker } from './phase-checker.ts';
import { type Grant, StoreChecker } from './store-checker.ts';
import { TaskChecker } from './task-checker.ts';
import type { SimulatedProcess, World } from './world.ts';

/** A broken promise. */
export class Violation extends Error {}

/** The fields of a hold, a detached hold or a task claim that the checker needs. */
export interface Held extends Pick<Hold, 'id' | 'resource' | 'holder' | 'token' | 'isValid'> {
  /** The mode of a lock. A hold with neither a mode nor slots excludes every other. */
  readonly mode?: LockMode;
  /** The slots of a semaphore, which no other user may have. */
  readonly slots?: readonly number[];
  /** Aborts when its user learns of the loss. */
  readonly signal: Pick<AbortSignal, 'aborted'>;
  readonly lost?: { readonly why: string } | undefined;
  /** The session that got it; for a re-entry, that of the user who entered again. */
  readonly process?: string;
  readonly isReentry?: boolean;
}

/** A user that may still act on a hold, a re-entry, a detached hold or a claim. */
export interface Believer {
  readonly hold: Held;
  readonly process: SimulatedProcess;
}

/** A user that asks for something, or has just given up. */
interface Asking {
  under: number;
  /** The processes in which it asked. */
  readonly processes: Set<SimulatedProcess>;
  /** When the last request was settled. */
  settledAt: number;
  wantsToWrite: boolean;
}

/** Users that can learn of a loss only afterwards must learn of it within this time. */
const HEARD_MS = 12_000;
/**
 * After this time in which every call of its process is answered, a request that was given up leaves no trace. Until then its
 * process may still resolve a lost answer.
 */
const NO_TRACE_MS = 10_000;
/** Added to it, in ways to the store: a withdrawal that loses a race has to read and write again. */
const NO_TRACE_WAYS = 12;

function isExclusive({ mode, slots }: Held): boolean {
  return slots === undefined && mode !== 'shared';
}

/** Whether the two exclude each other. */
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
  readonly #touched = new Map<string, number>();
  /**
   * The ids of holds and claims that were ended from outside: by an administrator, or by their own holder, by name and token.
   * Only for these may the user learn of the loss after the next holder got in.
   */
  readonly #ended = new Set<string>();
  /** The ids of holds on a lease of their own. */
  readonly #detached = new Set<string>();
  /** Since when users should have learnt of their loss. */
  readonly #late = new WeakMap<Believer, number>();
  readonly #asking = new Map<string, Asking>();
  readonly #counted = new Set<number>();
  #lastCapacity = 10;
  grants = 0;
  /** The first violation; the simulation checks it after every step. */
  violation: Violation | undefined;

  readonly store: StoreChecker;
  readonly phases: PhaseChecker;
  readonly tasks: TaskChecker;
  readonly members: MemberChecker;

  constructor(world: World) {
    this.#world = world;
    this.tasks = new TaskChecker(
      (what) => world.note('store', what),
      (what) => this.fail(what),
      (id, token) => void this.#ended.add(`${id} #${token}`),
    );
    this.store = new StoreChecker(world, {
      fail: (what) => this.fail(what),
      changed: (resource, before, after) => this.#checkChange(resource, before, after),
      taken: (id) => void this.#ended.add(id),
    });
    this.phases = new PhaseChecker(
      (who, what) => world.note(who, what),
      (what) => this.fail(what),
      () => (this.grants += 1),
    );
    this.members = new MemberChecker((what) => this.fail(what));
  }

  // What users believe

  /** Records that a user got a hold: no other running user may still believe in a hold that excludes it. */
  granted(hold: Held, process: SimulatedProcess): Believer {
    this.grants += 1;
    this.#world.note(process.name, `has ${hold.resource} #${hold.token}${isExclusive(hold) ? '' : ', with others'}`);
    const believer = { hold, process };
    // A hold that was lost before it arrived says so, and its user relies on nothing.
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

  /** Called before the user of a hold does something that cannot be undone. */
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
    if (hold.token < before && !this.#hearsLate(believer, believer))
      this.fail(`${hold.resource} was written with #${hold.token} after #${before}`);
    this.#touched.set(hold.resource, Math.max(before, hold.token));
  }

  left(believer: Believer): void {
    const { hold, process } = believer;
    if (!this.#of(hold.resource).delete(believer)) return;
    const how = hold.lost === undefined ? '' : `: ${hold.lost.why}`;
    this.#world.note(process.name, `is through with ${hold.resource} #${hold.token}${how}`);
  }

  /**
   * Checks now and then that no two valid holds exclude each other, for users that just wait. Skips a process that has crashed or
   * stands still: it does nothing, whatever its holds say.
   */
  lookAtAll(): void {
    for (const believers of this.#believers.values()) {
      for (const believer of believers) {
        if (!believer.process.isDead && !believer.process.isPaused) this.touches(believer);
      }
    }
    this.#lookForTraces();
    this.store.lookForChanged();
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

  /** One of the two may have yet to learn that it lost, which may take a limited time. */
  #hearsLate(one: Believer, other: Believer): boolean {
    const late = this.#mayHearLate(one.hold) ? one : this.#mayHearLate(other.hold) ? other : undefined;
    if (late === undefined) return false;
    const since = this.#late.get(late) ?? this.#world.now;
    this.#late.set(late, since);
    return this.#world.now - since < HEARD_MS;
  }

  /**
   * Whether it was ended from outside, or is a re-entry into a hold that its process does not keep, and so follows in the record:
   * one of another process, which may release it at any time, or a detached one, whose time may be over.
   */
  #mayHearLate({ id, process, isReentry }: Held): boolean {
    if (this.#ended.has(id)) return true;
    return isReentry === true && process !== undefined && (processOf(id) !== process || this.#detached.has(id));
  }

  #of(resource: string): Set<Believer> {
    const believers = this.#believers.get(resource) ?? new Set();
    this.#believers.set(resource, believers);
    return believers;
  }

  /** Called before a user releases a hold by name and token, whichever user has it. */
  endsElsewhere({ id }: Pick<Held, 'id'>): void {
    this.#ended.add(id);
  }

  // What users ask for

  /** Returns a capacity that no other user gets. */
  nextCapacity(): number {
    return this.#lastCapacity++;
  }

  /** Records that a named holder asks for it; returns the function to call once that is settled, one way or the other. */
  asks(resource: string, holder: string, wantsToWrite: boolean, process: SimulatedProcess): () => void {
    const key = `${resource} ${holder}`;
    const asking = this.#asking.get(key) ?? { under: 0, processes: new Set(), settledAt: 0, wantsToWrite: false };
    this.#asking.set(key, asking);
    asking.processes.add(process);
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

  #lookForTraces(): void {
    for (const [resource, holder] of this.store.waiting()) {
      const asking = this.#asking.get(`${resource} ${holder}`);
      if (asking === undefined || this.#mayLeaveTrace(asking)) continue;
      const ms = this.#world.now - asking.settledAt;
      this.fail(`${resource} is waited for by ${holder}, who was answered ${ms} ms ago`);
    }
  }

  /** Whether a user still asks, or gave up so recently that its process may not have withdrawn the request yet. */
  #mayLeaveTrace({ under, settledAt, processes }: Asking): boolean {
    const since = Math.max(settledAt, ...[...processes].map(({ lostAt }) => lostAt));
    const { now, slowestMs } = this.#world;
    return under > 0 || now - since < NO_TRACE_MS + NO_TRACE_WAYS * slowestMs;
  }

  // What users count

  /** Records that the bus confirmed this count to a user. */
  counted(to: number): void {
    if (this.#counted.has(to)) this.fail(`the counter was made ${to} twice`);
    this.#counted.add(to);
  }

  /** Checks that a hold changes only when its holder asks. */
  #checkChange(resource: string, before: Grant | undefined, after: Grant): void {
    if (processOf(after.lease) !== after.lease) this.#detached.add(after.id);
    if (before === undefined) return;
    if ((after.weight ?? 0) < (before.weight ?? 0)) this.#checkUsers(resource, after);
    if (before.mode !== 'shared' || after.mode !== 'exclusive') return;
    const asking = this.#asking.get(`${resource} ${after.holder}`);
    if (asking === undefined) return;
    if (!asking.wantsToWrite || !this.#mayLeaveTrace(asking))
      this.fail(`${after.holder} became the writer of ${resource} unasked`);
  }

  /** Checks that a growth which was given up is undone, unless a user got it. */
  #checkUsers(resource: string, { id, holder, weight = 0 }: Grant): void {
    for (const { hold, process } of this.#of(resource)) {
      if (hold.id !== id || process.isDead || process.isPaused || !hold.isValid || this.#mayHearLate(hold)) continue;
      const has = hold.slots?.length ?? 0;
      if (has > weight)
        this.fail(`${holder} uses ${has} slots of ${resource} in ${process.name}, and was left ${weight}`);
    }
  }

  /** Checks that nothing is left at the end. */
  atTheEnd(): void {
    this.tasks.atTheEnd();
    this.members.atTheEnd();
    this.store.atTheEnd();
  }

  fail(what: string): never {
    this.#world.note('', `VIOLATION: ${what}`);
    this.violation ??= new Violation(what);
    throw this.violation;
  }
}
