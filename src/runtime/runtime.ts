/**
 * The imperative shell of one process on one store: its session, its writers, its waiting requests and its holds. It sends the
 * transactions of the writers, and hands them what the store reports.
 */
import { setMaxListeners } from 'node:events';
import type { Answer, Event, Hold, Loss, LossReason, Moment } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { Clock, Timer } from '../clock.ts';
import type { ProcessIdentity } from '../host/index.ts';
import type { Revision, Store, Transaction, TransactionResult } from '../store/index.ts';
import { Anchors, Presence } from './session/presence.ts';
import type { WriterIdentity } from './write/commit.ts';
import { Witness, type WitnessSettings } from './write/witness.ts';
import { ResourceWriter } from './write/resource-writer.ts';
import { DelegationMail } from './write/delegation.ts';
import { Holdings, Waiters } from './holds/holdings.ts';
import { Measures } from './observe/measures.ts';
import { processOf } from './layout.ts';
import { lockMachine, type ResourceKind, semaphoreMachine } from '../core/machines.ts';
import type { AnyMachine } from './write/decision.ts';
import { type AnyOutcome, BackgroundCommand } from './write/pending-command.ts';
import { OwnLeases } from './session/leases.ts';
import { isOfOneMachine, type Session, type SessionEnd } from './session/session.ts';

export interface RuntimeOptions {
  readonly clock: Clock;
  /** Ids of processes; unique for all time. */
  readonly newId: () => string;
  readonly sessionTtlMs: number;
  /** After this time, a store that cannot be reached fails with `unavailable`. */
  readonly requestTimeoutMs: number;
  /** Describes this process to people. */
  readonly about: unknown;
  /** Whether every change is entered, and what is said of this process there; off, if not given. */
  readonly witness?: WitnessSettings | undefined;
  /** On a store that can tell when this process ends, its session ends with it. */
  readonly process?: ProcessIdentity | undefined;
}

/**
 * How a part of a signalbox observes this process. `Parts` connects each part when it begins; a part implements only what it
 * acts on. Observers must neither throw nor wait: a write or a watch calls them.
 */
export interface RuntimeObserver {
  /** Events that no write carries. */
  localEvents?(resource: string, events: readonly Event[]): void;
  /** A holder that may hold something else has begun to wait, or was granted one thing while it waits for another. */
  waitChanged?(): void;
  /** Leases of other processes have ended. */
  leasesEnded?(): void;
  /** A session of this process has ended. */
  sessionEnded?(session: Session): void;
  /** Called now and then, in case an event was missed. */
  backstop?(): void;
}

/** Up to this many processes, all settle at once after a lease has ended; more take turns. */
const FEW_PROCESSES = 16;
/** About how many processes of one machine look for missed answers per interval; across machines, every process does. */
const BACKSTOPS = 4;
/** The average time between two turns. */
const BETWEEN_SETTLES_MS = 20;
/** The longest time until the turn of a process. */
const LONGEST_TO_SETTLE_MS = 4000;
/** The most resources whose writers are kept. */
const MOST_WRITERS = 100_000;

export class Runtime {
  readonly store: Store;
  readonly clock: Clock;
  readonly options: RuntimeOptions;
  readonly measures = new Measures();
  /** The store is in this process: a transaction costs no more than a function call. */
  readonly answersAtOnce: boolean;
  readonly anchors: Anchors;
  /** The newest revision this process has seen. */
  revision: Revision = 0;
  readonly #gone = (lease: string): boolean => this.anchors.isGone(lease);
  #closed = false;
  #serial = 0;
  readonly #stop = new AbortController();
  readonly #observers: RuntimeObserver[] = [];
  readonly #writers = new Map<string, ResourceWriter>();
  /** Enters every write. */
  readonly witness: Witness;
  readonly presence: Presence;
  readonly leases = new OwnLeases(this);
  readonly waiters: Waiters;
  readonly holdings: Holdings;
  /** Sends commands to the keeper of a record. */
  readonly delegationMail: DelegationMail = new DelegationMail(this);

  constructor(store: Store, options: RuntimeOptions) {
    this.store = store;
    this.clock = options.clock;
    this.options = options;
    this.answersAtOnce = store.transactionNow !== undefined;
    this.anchors = new Anchors(() => this.#leaseGone());
    this.witness = new Witness(options.witness ?? { isOn: false, isDemanded: false }, this);
    this.presence = new Presence(this);
    this.waiters = new Waiters(this);
    this.holdings = new Holdings(this);
    // Every background task listens to this signal, so many listeners are no leak.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Connects the parts of a signalbox that act on what happens in this process. */
  observedBy(...observers: readonly RuntimeObserver[]): void {
    this.#observers.push(...observers);
  }

  // For locks, semaphores and holds

  writer({ kind }: { readonly kind: ResourceKind }, name: string): ResourceWriter {
    return this.writerFor(`${kind}/${name}`);
  }

  /** The writer of a resource by its full name, such as `lock/main`. */
  writerFor(resource: string): ResourceWriter {
    let writer = this.#writers.get(resource);
    if (writer === undefined) {
      const slash = resource.indexOf('/');
      const machine = resource.slice(0, slash) === 'lock' ? lockMachine : semaphoreMachine;
      writer = new ResourceWriter(machine as unknown as AnyMachine, resource.slice(slash + 1), this);
      this.#writers.set(resource, writer);
      if (this.#writers.size > MOST_WRITERS) this.#forgetOldestWriter();
    }
    return writer;
  }

  /** A forgotten writer only costs a read of its resource. Should two writers exist for one resource, they cost a lost race. */
  #forgetOldestWriter(): void {
    const [oldest] = this.#writers.keys();
    if (oldest !== undefined) this.#writers.delete(oldest);
  }

  /** The session, if it is valid at this moment. */
  get session(): Session | undefined {
    return this.presence.session;
  }

  /** When the session was last checked, on the monotonic clock. */
  get lookedAt(): number {
    return this.presence.lookedAt;
  }

  ready(): Promise<Session> {
    return this.presence.ready();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  refuseIfClosed(): void {
    if (this.#closed) throw new Failure('closed', 'this signalbox was closed; open another one');
    this.store.over?.throwIfAborted();
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  nextId(session: Session): string {
    this.#serial += 1;
    return `${session.id}.${this.#serial}`;
  }

  /** When to give up on a store that cannot be reached, on the monotonic clock. `now`: if the clock was just read. */
  giveUpAt(now = this.clock.monotonic()): number {
    return now + this.options.requestTimeoutMs;
  }

  // Waiters and holds

  /**
   * Whether a grant on a session of this process has no valid hold here, or one that is less: it was given back, lost, released
   * or downgraded, and its writer is about to say so in the record. No re-entry may rest on it.
   */
  isForsaken(stored: Hold): boolean {
    if (!this.presence.isOwn(stored.lease)) return false;
    const hold = this.holdings.holds.get(stored.id);
    return hold?.isValid !== true || hold.isLessThan?.(stored) === true;
  }

  /** A grant to a holder that also waits for another resource can close a deadlock. */
  grantedTo(holder: string, resource: string): void {
    if (!this.waiters.isWaiting(holder)) return;
    this.waitChanged();
    this.waiters.granted(holder, resource);
  }

  waitChanged(): void {
    for (const observer of this.#observers) observer.waitChanged?.();
  }

  /**
   * Whether this process looks for missed answers this time. On one machine, where letters do not get lost, the processes take
   * turns by chance.
   */
  isOurTurn(): boolean {
    return !isOfOneMachine(this.store) || this.anchors.size * Math.random() < BACKSTOPS;
  }

  /** Looks for answers that were missed. */
  askAgain(): void {
    // Each look reads a whole queue.
    if (this.isOurTurn()) this.waiters.askAgain();
    for (const observer of this.#observers) observer.backstop?.();
  }

  saw(revision: Revision): void {
    if (revision > this.revision) this.revision = revision;
  }

  /** Releases all holds. A hold that cannot be released in time ends with the session's lease. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiter of this.waiters.all()) waiter.closed();
    const released = Promise.all(this.holdings.all().map((hold) => hold.surrender()));
    // Waits for abandoned requests too: a grant that is on its way would stay behind as a stale hold.
    const over = released.then(() => Promise.all([...this.#writers.values()].map((writer) => writer.idle())));
    await new Promise<void>((resolve) => {
      const limit = this.later(this.options.requestTimeoutMs, resolve);
      const done = (): void => {
        limit.cancel();
        resolve();
      };
      over.then(done, done);
    });
    await this.presence.leave([...this.#writers.values()]);
    this.#stop.abort();
    await this.store.close().catch(() => undefined);
  }

  // For the writers

  get sender(): WriterIdentity {
    return this.presence.sender;
  }

  moment(revision: Revision, most = Number.POSITIVE_INFINITY): Moment {
    return { now: this.clock.now(), revision, gone: this.#gone, most };
  }

  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void {
    const { store } = this;
    if (store.transactionNow === undefined) {
      const sentAt = this.clock.monotonic();
      store.transaction(transaction, this.stopped).then(
        (result) => {
          this.saw(result.revision);
          this.measures.answered(result.revision, sentAt, this.clock.monotonic(), result.succeeded);
          done(result);
        },
        (error: unknown) => {
          this.measures.transactionFailed(error);
          failed(error);
        },
      );
      return;
    }
    let result: TransactionResult;
    try {
      result = store.transactionNow(transaction);
    } catch (error) {
      failed(error);
      return;
    }
    if (result.revision > this.revision) this.revision = result.revision;
    done(result);
  }

  /** `keepsAlive`: keeps the process alive until then, even if it has nothing else to do. */
  later(delayMs: number, call: () => void, keepsAlive = true): Timer {
    const alive = keepsAlive ? this.clock.keepAlive?.() : undefined;
    const timer = this.clock.timer(delayMs, () => {
      alive?.cancel();
      call();
    });
    return {
      cancel: () => {
        timer.cancel();
        alive?.cancel();
      },
    };
  }

  answer(resource: string, { id, outcome }: Answer<unknown>): void {
    const waiter = this.waiters.get(id);
    if (waiter !== undefined) return waiter.answered(outcome);
    if (this.holdings.answeredParked(id, outcome)) return;
    const { hold } = outcome as AnyOutcome;
    if (hold?.id !== id || this.holdings.has(id) || processOf(id) !== this.sender.id) return;
    // The grant is for a request of this process that no longer waits: without a cancel, nobody would ever release it.
    this.writerFor(resource).submit(new BackgroundCommand({ kind: 'cancel', id }));
  }

  lose({ hold, why, by, reason }: Loss): void {
    this.holdings.lose({
      id: hold.id,
      token: hold.token,
      why,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    });
  }

  /** After a lost answer: checks the holds and waiters of this process against `holds`, all that the record has. */
  reconcile(resource: string, holds: ReadonlySet<string>): void {
    this.holdings.loseAllBut(resource, holds);
    this.waiters.lookAgainAt(resource);
  }

  /** Publishes events that no write carries, in this process. */
  emit(resource: string, events: readonly Event[]): void {
    for (const observer of this.#observers) observer.localEvents?.(resource, events);
  }

  // News from the store

  /** Reads from the records what the missed letters said. */
  async missedLetters(): Promise<Revision> {
    const { revision } = await this.store.health(this.stopped);
    this.measures.resynced('mailbox');
    this.waiters.askAgain();
    this.holdings.check();
    return revision;
  }

  #leaseGone(): void {
    this.#settleInTurn();
    for (const observer of this.#observers) observer.leasesEnded?.();
  }

  /**
   * Every waiting process hears of an ended lease, and one of them is enough to settle the queue. On one machine, where a look
   * is no round trip but all processes share the processor, they take turns, and all but the first find nothing to do. The
   * process whose request is first in a queue, as far as it knows, looks at once, because it gains the hold.
   */
  #settleInTurn(): void {
    if (!isOfOneMachine(this.store)) return this.waiters.settle(false);
    if (this.anchors.size <= FEW_PROCESSES) return this.waiters.settle(true);
    const longestMs = Math.min(this.anchors.size * BETWEEN_SETTLES_MS, LONGEST_TO_SETTLE_MS);
    this.waiters.settleInTurn((place) => {
      return place === undefined ? longestMs * Math.random() : Math.min(place * BETWEEN_SETTLES_MS, longestMs);
    });
  }

  sessionEnded(session: Session, why: SessionEnd): void {
    this.measures.tracer?.happened?.('session-ended', { session: session.id, why });
    const reason: LossReason = why === 'disconnected' ? 'disconnected' : 'expired';
    // A re-entry may rest on a hold of another process, which continues; the re-entry ends all the same.
    const held = this.holdings.all().filter((hold) => hold.process === session.id);
    for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });
    for (const waiter of this.waiters.all()) if (waiter.process === session.id) waiter.sessionEnded();
    for (const observer of this.#observers) observer.sessionEnded?.(session);
    // Does not revoke the lease: its last part is the time in which user code has to stop.
  }
}
