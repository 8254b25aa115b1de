/**
 * The imperative shell of one process on one store: its session, its writers, its waiting requests and its holds. It sends the
 * transactions of the writers, and hands them what the store reports.
 */
import { setMaxListeners } from 'node:events';
import type { Answer, Event, Hold, Loss, LossReason, Moment, Token } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { Clock, Timer } from '../clock.ts';
import type { ProcessIdentity } from '../host/index.ts';
import type { Revision, Store, Transaction, TransactionResult } from '../store/index.ts';
import { Presence } from './session/presence.ts';
import type { WriterIdentity } from './write/commit.ts';
import { Witness, type WitnessSettings } from './write/witness.ts';
import { ResourceWriter } from './write/resource-writer.ts';
import { DelegationMail } from './write/delegation.ts';
import { type Held, Lookout, type Waiter } from './holds/lookout.ts';
import { Remembered } from './holds/remembered.ts';
import { Measures } from './observe/measures.ts';
import { type LossNotice, processOf } from './layout.ts';
import { lockMachine, type ResourceKind, semaphoreMachine } from '../core/machines.ts';
import type { AnyMachine } from './write/decision.ts';
import { type AnyOutcome, BackgroundCommand } from './write/pending-command.ts';
import { OwnLeases } from './session/leases.ts';
import { Anchors, type Session, type SessionEnd } from './session/session.ts';

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
  /** The session, until it ends; `session` is the same if its time is not up. */
  current: Session | undefined;
  /** The session, or what stands for it while there is none. */
  sender: WriterIdentity;
  readonly #nobody: WriterIdentity;
  /** The holds that rest on the session, by the id of the request that was granted. */
  readonly holds = new Map<string, Held>();
  /** Re-entries, by the id of the outer hold on which they rest. */
  readonly reentries = new Map<string, Set<Held>>();
  /** The requests that wait, by their id. */
  readonly waiters = new Map<string, Waiter>();
  /** Keeps the process alive while a request waits, even if it has nothing else to do. */
  #aliveForWaiters: Timer | undefined;
  #remembered: Remembered | undefined;
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
  readonly lookout = new Lookout(this);
  /** Sends commands to the keeper of a record. */
  readonly delegationMail: DelegationMail = new DelegationMail(this);

  constructor(store: Store, options: RuntimeOptions) {
    this.store = store;
    this.clock = options.clock;
    this.options = options;
    this.answersAtOnce = store.transactionNow !== undefined;
    this.anchors = new Anchors(() => this.#leaseGone());
    this.#nobody = { id: '', anchor: '', epoch: 0, leaseIdOf: () => '', isGone: this.#gone };
    this.sender = this.#nobody;
    this.witness = new Witness(options.witness ?? { isOn: false, isDemanded: false }, this);
    this.presence = new Presence(this);
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
    const { current } = this;
    return current?.isValid() === true ? current : undefined;
  }

  /** When the session was last checked, on the monotonic clock. */
  get lookedAt(): number {
    return this.current?.lookedAt ?? this.clock.monotonic();
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

  /** From now on, answers to this request go to the waiter. */
  awaits(id: string, waiter: Waiter): void {
    this.waiters.set(id, waiter);
    this.#aliveForWaiters ??= this.clock.keepAlive?.();
  }

  awaitsNoMore(id: string): void {
    this.waiters.delete(id);
    if (this.waiters.size > 0) return;
    this.#aliveForWaiters?.cancel();
    this.#aliveForWaiters = undefined;
  }

  /** What is remembered of requests and holds that this process does not keep. */
  get remembered(): Remembered {
    return (this.#remembered ??= new Remembered());
  }

  /** Whether the hold has an owner: this process keeps it, or has handed it out. */
  hasHold(id: string): boolean {
    return this.holds.has(id) || this.#remembered?.collectedAt(id) !== undefined;
  }

  /** Keeps the answer to a request whose caller comes back for it. */
  answeredParked(id: string, outcome: unknown): boolean {
    return this.#remembered !== undefined && this.#remembered.answered(id, outcome);
  }

  /** Whether the loss of this grant arrived before the grant: then the grant is void. */
  wasLostEarly(id: string, token: Token): boolean {
    return this.#remembered !== undefined && this.#remembered.wasLostEarly(id, token);
  }

  /**
   * Whether a grant on a session of this process has no valid hold here, or one that is less: it was given back, lost, released
   * or downgraded, and its writer is about to say so in the record. No re-entry may rest on it.
   */
  isForsaken(stored: Hold): boolean {
    if (!this.presence.isOwn(stored.lease)) return false;
    const hold = this.holds.get(stored.id);
    return hold?.isValid !== true || hold.isLessThan?.(stored) === true;
  }

  /** A grant to a holder that also waits for another resource can close a deadlock. */
  grantedTo(holder: string, resource: string): void {
    if (![...this.waiters.values()].some((waiter) => waiter.holder === holder)) return;
    this.waitChanged();
    this.lookout.granted(holder, resource);
  }

  waitChanged(): void {
    for (const observer of this.#observers) observer.waitChanged?.();
  }

  /** Looks for answers that were missed. */
  askAgain(): void {
    // Each look reads a whole queue.
    if (this.lookout.isOurTurn()) this.lookout.answers();
    for (const observer of this.#observers) observer.backstop?.();
  }

  saw(revision: Revision): void {
    if (revision > this.revision) this.revision = revision;
  }

  /** Releases all holds. A hold that cannot be released in time ends with the session's lease. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiter of [...this.waiters.values()]) waiter.closed();
    const released = Promise.all(this.#allHolds().map((hold) => hold.surrender()));
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
    if (this.answeredParked(id, outcome)) return;
    const { hold } = outcome as AnyOutcome;
    if (hold?.id !== id || this.hasHold(id) || processOf(id) !== this.sender.id) return;
    // The grant is for a request of this process that no longer waits: without a cancel, nobody would ever release it.
    this.writerFor(resource).submit(new BackgroundCommand({ kind: 'cancel', id }));
  }

  lose({ hold: { id, token }, ...loss }: Loss): void {
    this.lost({ id, token, ...loss });
  }

  /** A hold was taken away. */
  lost({ id, token, ...loss }: LossNotice): void {
    const hold = this.holds.get(id);
    // A request that was sent again may have been granted again: the loss of its first grant no longer matters.
    if (hold !== undefined && token < hold.token) return;
    if (hold !== undefined) hold.lose(loss);
    else this.remembered.lost(id, token);
    this.loseReentries(id, loss);
  }

  loseReentries(id: string, loss: Omit<LossNotice, 'id' | 'token'>): void {
    const resting = this.reentries.get(id);
    if (resting !== undefined) for (const inner of resting) inner.lose(loss);
  }

  #allHolds(): readonly Held[] {
    return [...this.holds.values(), ...[...this.reentries.values()].flatMap((inner) => [...inner])];
  }

  /** Publishes events that no write carries, in this process. */
  emit(resource: string, events: readonly Event[]): void {
    for (const observer of this.#observers) observer.localEvents?.(resource, events);
  }

  // News from the store

  /** A read at `revision` found this lease alive, or not there. */
  sawLease(lease: string, version: number | undefined, revision: Revision): void {
    const { current } = this;
    if (current !== undefined && lease === current.id) {
      if (version === undefined) current.end('expired');
      // A fence that got no answer has landed.
      else current.epoch = Math.max(current.epoch, version);
      return;
    }
    this.anchors.saw(lease, version !== undefined, revision);
  }

  #leaseGone(): void {
    this.lookout.leasesEnded();
    for (const observer of this.#observers) observer.leasesEnded?.();
  }

  sessionBegan(session: Session): void {
    this.current = session;
    this.sender = session;
  }

  sessionEnded(session: Session, why: SessionEnd): void {
    if (this.current === session) {
      this.current = undefined;
      this.sender = this.#nobody;
    }
    this.measures.tracer?.happened?.('session-ended', { session: session.id, why });
    const reason: LossReason = why === 'disconnected' ? 'disconnected' : 'expired';
    // A re-entry may rest on a hold of another process, which continues; the re-entry ends all the same.
    const held = this.#allHolds().filter((hold) => hold.process === session.id);
    for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });
    for (const waiter of [...this.waiters.values()]) if (waiter.process === session.id) waiter.sessionEnded();
    for (const observer of this.#observers) observer.sessionEnded?.(session);
    // Does not revoke the lease: its last part is the time in which user code has to stop.
  }
}
