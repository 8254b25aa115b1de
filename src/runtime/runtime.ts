/**
 * The imperative shell of one process on one store: its session, its writers, whoever waits in it, and its holds. It
 * carries out what the writers decide, and brings them what the store tells.
 */
import { setMaxListeners } from 'node:events';
import type { Answer, Event, Hold, Loss, LossReason, Moment } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { Clock, Timer } from '../clock.ts';
import type { ProcessIdentity } from '../host/index.ts';
import type { Revision, Store, Transaction, TransactionResult } from '../store/index.ts';
import { Anchors } from './session/anchors.ts';
import type { WriterIdentity } from './write/commit.ts';
import { ResourceWriter } from './write/resource-writer.ts';
import { DelegationMail } from './write/delegation-mail.ts';
import { Holdings } from './holds/holdings.ts';
import { processOf } from './layout.ts';
import { type Coordinated, lockMachine, type Machine, semaphoreMachine } from './write/machines.ts';
import type { WriterHost } from './write/writer-host.ts';
import { type AnyCommand, type AnyOutcome, BackgroundCommand } from './write/pending-command.ts';
import type { RuntimeObserver } from './observer.ts';
import { Presence } from './session/presence.ts';
import { type LetterRecipient, readLetter } from './session/mailbox.ts';
import { isOfOneMachine, type Session, type SessionEnd } from './session/session.ts';
import { Waiters } from './holds/waiters.ts';

export interface RuntimeOptions {
  readonly clock: Clock;
  /** Ids of processes; unique for all time. */
  readonly newId: () => string;
  readonly sessionTtlMs: number;
  /** A store that cannot be reached is told as `unavailable` after this time. */
  readonly requestTimeoutMs: number;
  /** About this process, for people. */
  readonly about: unknown;
  /** Where the store can tell that it has ended, its session ends with it. */
  readonly process?: ProcessIdentity | undefined;
}

/** From so many processes on, they look one after the other what has become of what a dead one held; */
const FEW_PROCESSES = 16;
/** on average so long apart, */
const BETWEEN_SETTLES_MS = 10;
/** but each of them within this time. */
const LONGEST_TO_SETTLE_MS = 2000;
/** So many resources are remembered at most. */
const MOST_WRITERS = 100_000;

export class Runtime implements WriterHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly options: RuntimeOptions;
  readonly answersAtOnce: boolean;
  readonly anchors: Anchors;
  revision: Revision = 0;
  readonly #gone = (lease: string): boolean => this.anchors.isGone(lease);
  #closed = false;
  #serial = 0;
  readonly #stop = new AbortController();
  readonly #observers: RuntimeObserver[] = [];
  readonly #writers = new Map<string, ResourceWriter<never, never, never>>();
  readonly presence: Presence;
  readonly waiters: Waiters;
  readonly holdings: Holdings;
  readonly delegationMail: DelegationMail = new DelegationMail(this);
  readonly #reader: LetterRecipient = {
    hear: (report, revision) => this.writerFor(report.resource).hear(report, revision),
    carryOut: (delegated) => this.writerFor(delegated.resource).carryOut(delegated),
    replied: (reply) => this.delegationMail.heard(reply),
    answer: (resource, answer) => this.answer(resource, answer),
    failed: (id, failure) => this.waiters.get(id)?.inconsistent(failure),
    lost: (notice) => this.holdings.lose(notice),
  };

  constructor(store: Store, options: RuntimeOptions) {
    this.store = store;
    this.clock = options.clock;
    this.options = options;
    this.answersAtOnce = store.transactionNow !== undefined;
    this.anchors = new Anchors(() => this.#leaseGone());
    this.presence = new Presence(this);
    this.waiters = new Waiters(this);
    this.holdings = new Holdings(this);
    // Everything that goes on in the background listens to it: that many are no leak.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Connects the parts of a signalbox that act on what happens in this process. */
  observedBy(...observers: readonly RuntimeObserver[]): void {
    this.#observers.push(...observers);
  }

  // For the objects users hold

  writer<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome>(
    machine: Machine<State, Command, Outcome>,
    name: string,
  ): ResourceWriter<State, Command, Outcome> {
    const key = `${machine.kind}/${name}`;
    let writer = this.#writers.get(key) as ResourceWriter<State, Command, Outcome> | undefined;
    if (writer === undefined) {
      writer = new ResourceWriter(machine, name, this);
      this.#writers.set(key, writer as unknown as ResourceWriter<never, never, never>);
      if (this.#writers.size > MOST_WRITERS) this.#forgetOldestWriter();
    }
    return writer;
  }

  /** The writer of `lock/main`, whatever its kind. */
  writerFor(resource: string): ResourceWriter<Coordinated, AnyCommand, AnyOutcome> {
    const slash = resource.indexOf('/');
    const machine = resource.slice(0, slash) === 'lock' ? lockMachine : semaphoreMachine;
    return this.writer(machine as unknown as Machine<Coordinated, AnyCommand, AnyOutcome>, resource.slice(slash + 1));
  }

  /** What it knew has to be read again if it is wanted; two writers for one resource only cost a lost race. */
  #forgetOldestWriter(): void {
    const [oldest] = this.#writers.keys();
    if (oldest !== undefined) this.#writers.delete(oldest);
  }

  /** The session if there is a valid one at this very moment. */
  get session(): Session | undefined {
    return this.presence.session;
  }

  ready(): Promise<Session> {
    return this.presence.ready();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  refuseIfClosed(): void {
    if (this.#closed) throw new Failure('closed', 'this signalbox was closed; open another one');
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  nextId(session: Session): string {
    this.#serial += 1;
    return `${session.id}.${this.#serial}`;
  }

  /** When to give up asking a store that cannot be reached. */
  giveUpAt(): number {
    return this.clock.monotonic() + this.options.requestTimeoutMs;
  }

  /** A lease of its own, with its anchor: for holds that are to outlive this session, and for limits. */
  anchorLease(session: Session, ttlMs: number): Promise<{ name: string; leaseId: string; ttlMs: number }> {
    return this.presence.anchorLease(this.nextId(session), ttlMs);
  }

  // Who waits, and what is held

  /**
   * A grant on a session of this process that nobody here has in hand: it was given back, lost or released, and what is in
   * the record of it is about to go. Nothing may rest on it.
   */
  isForsaken({ id, lease }: Hold): boolean {
    return this.presence.isOwn(lease) && this.holdings.holds.get(id)?.isValid !== true;
  }

  /** Whoever waits for something else as well may now be waited for itself: that can close a circle. */
  grantedTo(holder: string): void {
    if (this.waiters.isWaiting(holder)) this.waitChanged();
  }

  waitChanged(): void {
    for (const observer of this.#observers) observer.waitChanged?.();
  }

  /** Looks what has become of everything that is waited for, in case an answer was missed. */
  askAgain(): void {
    // Each of them reads the whole queue. On one machine they take turns: nothing there loses a letter.
    if (!isOfOneMachine(this.store) || this.anchors.size * Math.random() < FEW_PROCESSES) this.waiters.askAgain();
    for (const observer of this.#observers) observer.backstop?.();
  }

  saw(revision: Revision): void {
    if (revision > this.revision) this.revision = revision;
  }

  /** What is held is released, as if its holders had; what cannot be in time ends with the session's lease. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiter of this.waiters.all()) waiter.closed();
    const released = Promise.all(this.holdings.all().map((hold) => hold.surrender()));
    // Also what was given up: a grant that was on its way would stay behind as one of the dead.
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

  // The host of the writers

  get sender(): WriterIdentity {
    return this.presence.sender;
  }

  moment(revision: Revision, most = Number.POSITIVE_INFINITY): Moment {
    return { now: this.clock.now(), revision, gone: this.#gone, most };
  }

  monotonic(): number {
    return this.clock.monotonic();
  }

  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void {
    const { store } = this;
    if (store.transactionNow === undefined) {
      store.transaction(transaction, this.stopped).then((result) => {
        this.saw(result.revision);
        done(result);
      }, failed);
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

  sawLease(lease: string, version: number | undefined, revision: Revision): void {
    this.presence.sawLease(lease, version, revision);
  }

  knowsLease(lease: string): boolean {
    return this.anchors.isKnown(lease);
  }

  fence(done: () => void, failed: (error: unknown) => void): void {
    this.presence.fence(done, failed);
  }

  answer(resource: string, { id, outcome }: Answer<unknown>): void {
    const waiter = this.waiters.get(id);
    if (waiter !== undefined) return waiter.answered(outcome);
    const { hold } = outcome as AnyOutcome;
    if (hold?.id !== id || this.holdings.has(id) || processOf(id) !== this.sender.id) return;
    // Granted to a request of ours that nobody waits for any more: kept, it would be held for ever.
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

  reconcile(resource: string, holds: ReadonlySet<string>): void {
    this.holdings.loseAllBut(resource, holds);
    this.waiters.lookAgainAt(resource);
  }

  emit(resource: string, events: readonly Event[]): void {
    for (const observer of this.#observers) observer.localEvents?.(resource, events);
  }

  // What the store tells

  readLetter(letter: unknown, revision: Revision): void {
    readLetter(letter, revision, this.#reader);
  }

  /** The records know what they said. */
  async missedLetters(): Promise<Revision> {
    const { revision } = await this.store.health(this.stopped);
    this.waiters.askAgain();
    this.holdings.check();
    return revision;
  }

  #leaseGone(): void {
    this.#settleInTurn();
    for (const observer of this.#observers) observer.leasesEnded?.();
  }

  /**
   * Every process that waits is told of a lease that is gone, and one of them is enough. On one machine, where a look is no
   * round trip but all of them share the processor, they look one after the other, and all but the first leave it at that.
   * The first in a queue, as far as it knows, looks at once: it is the one who gains.
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
    const reason: LossReason = why === 'disconnected' ? 'disconnected' : 'expired';
    // A re-entry may rest on a hold of another process, which goes on.
    const held = this.holdings.all().filter((hold) => hold.process === session.id);
    for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });
    for (const waiter of this.waiters.all()) if (waiter.process === session.id) waiter.sessionEnded();
    // The lease is left to run out: its last part is the time that the holds' users have to stop.
  }
}
