/**
 * The imperative shell of one process on one store: its session, its desks, whoever waits in it, and its holds. It
 * carries out what the desks decide, and brings them what the store tells.
 */
import { setMaxListeners } from 'node:events';
import type { Answer, Event, Loss, LossReason, Moment, Token } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { Clock, Timer } from '../clock.ts';
import type { ProcessIdentity } from '../host/index.ts';
import { prefixed, type Revision, type Store, type Transaction, type TransactionResult } from '../store/index.ts';
import { Anchors } from './anchors.ts';
import { Desk } from './desk.ts';
import type { Office } from './office.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf, Unheard } from './pending.ts';
import type { Sender } from './commit.ts';
import { type ErrandCalls, Errands } from './errands.ts';
import { follow } from './follow.ts';
import {
  anchorKey,
  ANCHORS,
  decode,
  encode,
  type Errand,
  type Letter,
  type LossNotice,
  mailboxKey,
  processOf,
} from './layout.ts';
import { isResource, type Reader, readLetter } from './reading.ts';
import { type Coordinated, lockMachine, type Machine, semaphoreMachine } from './machines.ts';
import { type Sent, sentNow, Session, type SessionEnd } from './session.ts';

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

const LOOK_AGAIN_MS = 500;
/** So many ids are remembered at most, of those that may still be asked for. */
const MOST_IDS = 10_000;

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size <= MOST_IDS) return;
  for (const oldest of ids) {
    ids.delete(oldest);
    return;
  }
}

/** So many resources are remembered at most. */
const MOST_DESKS = 100_000;

/** Somebody in this process who asked, and is to be told. */
export interface Waiter {
  /** The session it asks under. */
  readonly process: string;
  readonly desk: {
    readonly resource: string;
    settle(): void;
    look(done: (view: { readonly state: Coordinated }) => void, failed: (error: unknown) => void): void;
  };
  readonly holder: string;
  /** Sends the request again, in case its answer was missed. */
  askAgain(): void;
  answered(outcome: unknown): void;
  sessionEnded(): void;
  /** This process closes its signalbox. */
  closed(): void;
}

/** A hold in this process that hangs on its session. */
export interface Held {
  readonly resource: string;
  readonly process: string;
  readonly holder: string;
  readonly token: Token;
  lose(loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }): void;
  /** The process gives it up: whoever uses it is told, and it is released. */
  surrender(): Promise<void>;
}

export class Runtime implements Office {
  readonly store: Store;
  readonly clock: Clock;
  readonly options: RuntimeOptions;
  readonly answersAtOnce: boolean;
  readonly waiters: ReadonlyMap<string, Waiter>;
  readonly holds = new Map<string, Held>();
  /** Re-entries, by the outer hold that they rest on. */
  readonly reentries = new Map<string, Set<Held>>();
  readonly anchors: Anchors;
  /** Told of every event that is not carried by a write. */
  onLocalEvents: ((resource: string, events: readonly Event[]) => void) | undefined;
  /** Told when somebody who may hold something else has begun to wait, or was granted while it waits elsewhere. */
  onWait: (() => void) | undefined;
  revision: Revision = 0;
  #session: Session | undefined;
  #starting: Promise<Session> | undefined;
  #following = false;
  #closed = false;
  readonly #stop = new AbortController();
  readonly #desks = new Map<string, Desk<never, never, never>>();
  /** Leases of our own besides the session's, by name. */
  readonly #leaseIds = new Map<string, string>();
  readonly #waiters = new Map<string, Waiter>();
  readonly #errands = new Errands(this);
  readonly #reader: Reader = {
    hear: (report, revision) => this.deskOf(report.resource).hear(report, revision),
    carryOut: (errand) => this.deskOf(errand.resource).carryOut(errand),
    replied: (reply) => this.#errands.heard(reply),
    answer: (resource, answer) => this.answer(resource, answer),
    lost: (notice) => this.#lose(notice),
  };
  readonly #collected = new Set<string>();
  readonly #lostEarly = new Set<string>();
  /** A process in which somebody waits must not end for want of anything else to do. */
  #alive: Timer | undefined;
  #serial = 0;
  readonly #gone = (lease: string): boolean => this.anchors.isGone(lease);
  readonly #nobody: Sender = { id: '', anchor: '', epoch: 0, leaseId: () => '', isGone: this.#gone };
  #sender: Sender = this.#nobody;

  constructor(store: Store, options: RuntimeOptions) {
    this.store = store;
    this.clock = options.clock;
    this.options = options;
    this.answersAtOnce = store.transactionNow !== undefined;
    this.anchors = new Anchors(() => this.#leaseGone());
    this.waiters = this.#waiters;
    // Everything that goes on in the background listens to it: that many are no leak.
    setMaxListeners(0, this.#stop.signal);
  }

  // For the objects users hold

  desk<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome>(
    machine: Machine<State, Command, Outcome>,
    name: string,
  ): Desk<State, Command, Outcome> {
    const key = `${machine.kind}/${name}`;
    let desk = this.#desks.get(key) as Desk<State, Command, Outcome> | undefined;
    if (desk === undefined) {
      desk = new Desk(machine, name, this);
      this.#desks.set(key, desk as unknown as Desk<never, never, never>);
      if (this.#desks.size > MOST_DESKS) this.#forgetOldestDesk();
    }
    return desk;
  }

  /** The desk of `lock/main`, whatever its kind. */
  deskOf(resource: string): Desk<Coordinated, AnyCommand, AnyOutcome> {
    const slash = resource.indexOf('/');
    const machine = resource.slice(0, slash) === 'lock' ? lockMachine : semaphoreMachine;
    return this.desk(machine as unknown as Machine<Coordinated, AnyCommand, AnyOutcome>, resource.slice(slash + 1));
  }

  /** What it knew has to be read again if it is wanted; two desks for one resource only cost a lost race. */
  #forgetOldestDesk(): void {
    const [oldest] = this.#desks.keys();
    if (oldest !== undefined) this.#desks.delete(oldest);
  }

  /** The session if there is a valid one at this very moment. */
  get session(): Session | undefined {
    return this.#session?.isValid() === true ? this.#session : undefined;
  }

  async ready(): Promise<Session> {
    for (;;) {
      this.refuseIfClosed();
      const session = this.session ?? (await (this.#starting ??= this.#start()));
      if (session.isValid()) return session;
    }
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
  async anchorLease(session: Session, ttlMs: number): Promise<{ name: string; leaseId: string; ttlMs: number }> {
    const lease = await this.store.grantLease(ttlMs, this.stopped);
    const name = this.nextId(session);
    const result = await this.store.transaction(
      {
        compare: [],
        success: [{ do: 'put', key: anchorKey(name), value: encode(this.options.about), lease: lease.id }],
        failure: [],
      },
      this.stopped,
    );
    this.saw(result.revision);
    this.anchors.add(name, result.revision);
    this.#leaseIds.set(name, lease.id);
    return { name, leaseId: lease.id, ttlMs: lease.ttlMs };
  }

  forgetLease(name: string): void {
    this.#leaseIds.delete(name);
  }

  /** A detached hold was handed to whoever asked: it is not in our hands any more, and not nobody's either. */
  collected(id: string): void {
    remember(this.#collected, id);
  }

  isInHand(id: string): boolean {
    return this.holds.has(id) || this.#collected.has(id);
  }

  /** A loss that was told before the grant itself was: such a grant is none any more. */
  wasLostEarly(id: string, token: Token): boolean {
    return this.#lostEarly.delete(`${id} #${token}`);
  }

  expect(id: string, waiter: Waiter): void {
    this.#waiters.set(id, waiter);
    this.#alive ??= this.clock.keepAlive?.();
  }

  expectNoMore(id: string): void {
    this.#waiters.delete(id);
    if (this.#waiters.size > 0) return;
    this.#alive?.cancel();
    this.#alive = undefined;
  }

  /** Whoever waits for something else as well may now be waited for itself: that can close a circle. */
  grantedTo(holder: string): void {
    for (const waiter of this.#waiters.values()) if (waiter.holder === holder) return this.onWait?.();
  }

  saw(revision: Revision): void {
    if (revision > this.revision) this.revision = revision;
  }

  /** What is held is released, as if its holders had; what cannot be in time ends with the session's lease. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiter of [...this.#waiters.values()]) waiter.closed();
    const held = [...this.holds.values(), ...[...this.reentries.values()].flatMap((inner) => [...inner])];
    const released = Promise.all(held.map((hold) => hold.surrender()));
    // Also what was given up: a grant that was on its way would stay behind as one of the dead.
    const over = released.then(() => Promise.all([...this.#desks.values()].map((desk) => desk.idle())));
    await new Promise<void>((resolve) => {
      const limit = this.later(this.options.requestTimeoutMs, resolve);
      void over.finally(() => {
        limit.cancel();
        resolve();
      });
    });
    const session = this.#session;
    session?.end('closed');
    if (session !== undefined) await this.store.revokeLease(session.leaseId).catch(() => undefined);
    this.#stop.abort();
    await this.store.close().catch(() => undefined);
  }

  // The office of the desks

  get sender(): Sender {
    return this.#sender;
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
    const session = this.#session;
    if (session !== undefined && lease === session.id) {
      if (version === undefined) session.end('expired');
      // A fence that was thought lost has landed after all.
      else session.epoch = Math.max(session.epoch, version);
      return;
    }
    this.anchors.saw(lease, version !== undefined, revision);
  }

  knowsLease(lease: string): boolean {
    return this.anchors.isKnown(lease);
  }

  fence(done: () => void, failed: (error: unknown) => void): void {
    const session = this.#session;
    if (session === undefined) return done();
    const key = anchorKey(session.id);
    this.commit(
      {
        compare: [{ key, target: 'version', is: '>', than: 0 }],
        success: [
          { do: 'put', key, value: encode(this.options.about), lease: 'keep' },
          { do: 'read', key },
        ],
        failure: [],
      },
      (result) => {
        const read = result.results[1];
        if (read?.do === 'read') this.sawLease(session.id, read.pairs[0]?.version, result.revision);
        else session.end('expired');
        done();
      },
      failed,
    );
  }

  answer(resource: string, { id, outcome }: Answer<unknown>): void {
    const waiter = this.waiters.get(id);
    if (waiter !== undefined) return waiter.answered(outcome);
    const { hold } = outcome as AnyOutcome;
    if (hold?.id !== id || this.holds.has(id) || this.#collected.has(id) || processOf(id) !== this.sender.id) return;
    // Granted to a request of ours that nobody waits for any more: kept, it would be held for ever.
    this.deskOf(resource).submit(new Unheard({ kind: 'cancel', id }));
  }

  lose({ hold, why, by, reason }: Loss): void {
    this.#lose({
      id: hold.id,
      token: hold.token,
      why,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    });
  }

  reconcile(resource: string, holds: ReadonlySet<string>): void {
    this.#loseAllBut(resource, holds);
    this.#lookAgainAt(resource);
  }

  #loseAllBut(resource: string, holds: ReadonlySet<string>): void {
    for (const [id, hold] of this.holds) {
      // It may have been granted since that was read; a hold that is asked for by name is looked up anew.
      if (hold.resource === resource && !holds.has(id)) void this.#loseIfGone(resource, id, hold.holder);
    }
  }

  leaveTo(keeper: string, resource: string, commands: readonly AnyCommand[], calls: ErrandCalls): void {
    this.#errands.leaveTo(keeper, resource, commands, calls);
  }

  passOn(keeper: string, errand: Errand, notPassed: () => void): void {
    this.#errands.passOn(keeper, errand, notPassed);
  }

  nudge(keeper: string, resource: string): void {
    this.#errands.nudge(keeper, resource);
  }

  emit(resource: string, events: readonly Event[]): void {
    this.onLocalEvents?.(resource, events);
  }

  // The session, and what the store tells

  async #start(): Promise<Session> {
    const giveUpAt = this.giveUpAt();
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          return await this.#tryStart();
        } catch (error) {
          const again =
            Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown') || Failure.is(error, 'not-found');
          if (!again || this.clock.monotonic() >= giveUpAt) throw error;
          await new Promise<void>((resolve) => this.later(Math.min(50 * 2 ** attempt, 1000), resolve));
        }
      }
    } finally {
      this.#starting = undefined;
    }
  }

  async #tryStart(): Promise<Session> {
    const { store, clock } = this;
    if (!this.#following) {
      await follow(
        store,
        clock,
        prefixed(ANCHORS),
        { changes: (changes) => this.anchors.changes(changes), resync: () => this.#listAnchors() },
        this.stopped,
      );
      this.#following = true;
    }
    const id = this.options.newId();
    const sent = sentNow(clock);
    const lease = await store.grantLease(this.options.sessionTtlMs, this.stopped);
    const over = new AbortController();
    try {
      const { process } = this.options;
      if (process !== undefined) await store.endLeaseWith?.(lease.id, [process], this.stopped);
      return await this.#register(id, lease, sent, over);
    } catch (error) {
      over.abort();
      void store.revokeLease(lease.id).catch(() => undefined);
      throw error;
    }
  }

  /** With its mailbox followed before there is one, so that no letter is missed. */
  async #register(
    id: string,
    lease: { readonly id: string; readonly ttlMs: number },
    sent: Sent,
    over: AbortController,
  ): Promise<Session> {
    const { store, clock } = this;
    await follow(
      store,
      clock,
      { key: mailboxKey(id) },
      {
        changes: ({ changes }) => {
          for (const change of changes) {
            if (change.kind !== 'put') continue;
            const { modRevision } = change.pair;
            this.saw(modRevision);
            readLetter(decode<unknown>(change.pair), modRevision, this.#reader);
          }
        },
        resync: () => this.#askAgain(),
      },
      AbortSignal.any([this.stopped, over.signal]),
    );
    const empty: Letter = { answers: [], losses: [] };
    const result = await store.transaction(
      {
        compare: [{ key: anchorKey(id), target: 'version', is: '=', than: 0 }],
        success: [
          { do: 'put', key: anchorKey(id), value: encode(this.options.about), lease: lease.id },
          { do: 'put', key: mailboxKey(id), value: encode(empty), lease: lease.id },
          { do: 'read', ...prefixed(ANCHORS) },
        ],
        failure: [],
      },
      this.stopped,
    );
    const anchors = result.results[2];
    if (anchors?.do !== 'read') throw new Failure('unavailable', `the id ${id} is taken by another process`);
    this.refuseIfClosed();
    this.saw(result.revision);
    this.anchors.list(anchors.pairs, result.revision);
    const session = new Session(store, clock, id, lease, sent, (ended, why) => {
      over.abort();
      this.#sessionEnded(ended, why);
    });
    this.#session = session;
    this.#sender = {
      id,
      anchor: anchorKey(id),
      get epoch() {
        return session.epoch;
      },
      leaseId: (name) => (name === id ? lease.id : (this.#leaseIds.get(name) ?? '')),
      isGone: this.#gone,
    };
    return session;
  }

  async #listAnchors(): Promise<Revision> {
    const result = await this.store.transaction(
      { compare: [], success: [{ do: 'read', ...prefixed(ANCHORS) }], failure: [] },
      this.stopped,
    );
    const [read] = result.results;
    if (read?.do === 'read') this.anchors.list(read.pairs, result.revision);
    return result.revision;
  }

  /** Letters may have been missed. The records know what they said. */
  async #askAgain(): Promise<Revision> {
    const { revision } = await this.store.health(this.stopped);
    this.askAgain();
    // Tasks are no resources of a desk, and are followed by themselves.
    const held = [...this.holds.values()].filter(({ resource }) => isResource(resource));
    this.#checkHolds(new Set(held.map(({ resource }) => resource)));
    return revision;
  }

  /** Some may have been taken from us without our hearing of it. */
  #checkHolds(resources: Iterable<string>): void {
    for (const resource of resources) {
      this.deskOf(resource).look(
        ({ state }) => this.#loseAllBut(resource, new Set(state.record.holds.map(({ id }) => id))),
        () => this.later(LOOK_AGAIN_MS, () => this.#checkHolds(this.#closed ? [] : [resource]), false),
      );
    }
  }

  /**
   * Looks what has become of everything that is waited for, in case an answer was missed. One look for each resource;
   * only those who are not in its queue any more have to ask anew, and are known by their ids.
   */
  askAgain(): void {
    const desks = new Map<Waiter['desk'], [string, Waiter][]>();
    for (const [id, waiter] of this.#waiters) {
      const waiters = desks.get(waiter.desk);
      if (waiters === undefined) desks.set(waiter.desk, [[id, waiter]]);
      else waiters.push([id, waiter]);
    }
    for (const [desk, waiters] of desks) this.#askAgainAt(desk, waiters);
  }

  #lookAgainAt(resource: string): void {
    const waiters = [...this.#waiters].filter(([, waiter]) => waiter.desk.resource === resource);
    const desk = waiters[0]?.[1].desk;
    if (desk !== undefined && !this.#closed) this.#askAgainAt(desk, waiters);
  }

  #askAgainAt(desk: Waiter['desk'], waiters: readonly [string, Waiter][]): void {
    desk.look(
      ({ state }) => {
        const queue = new Set(state.waiting.map(({ id }) => id));
        for (const [id, waiter] of waiters) if (!queue.has(id)) waiter.askAgain();
        desk.settle();
      },
      () => this.later(LOOK_AGAIN_MS, () => this.#lookAgainAt(desk.resource)),
    );
  }

  /** Whoever waits in this process looks whether it could be served. */
  settleWaits(): void {
    const desks = new Set<{ settle(): void }>();
    for (const waiter of this.waiters.values()) desks.add(waiter.desk);
    for (const desk of desks) desk.settle();
  }

  #leaseGone(): void {
    this.settleWaits();
  }

  async #loseIfGone(resource: string, id: string, holder: string): Promise<void> {
    const command = { kind: 'heartbeat', holder, id } as AnyCommand;
    const outcome = await outcomeOf(this.deskOf(resource), command, Number.POSITIVE_INFINITY).catch(() => undefined);
    if (outcome !== undefined && outcome.kind !== 'refreshed') this.holds.get(id)?.lose({ why: 'reclaimed' });
  }

  #lose({ id, token, ...loss }: LossNotice): void {
    const hold = this.holds.get(id);
    // A request that asked again may have been granted again: the loss of its first grant is then old news.
    if (hold !== undefined && token < hold.token) return;
    if (hold !== undefined) hold.lose(loss);
    else if (processOf(id) === this.sender.id) remember(this.#lostEarly, `${id} #${token}`);
    this.loseReentries(id, loss);
  }

  loseReentries(id: string, loss: Omit<LossNotice, 'id' | 'token'>): void {
    for (const inner of this.reentries.get(id) ?? []) inner.lose(loss);
  }

  #sessionEnded(session: Session, why: SessionEnd): void {
    if (this.#session === session) {
      this.#session = undefined;
      this.#sender = this.#nobody;
    }
    const reason: LossReason = why === 'disconnected' ? 'disconnected' : 'expired';
    // A re-entry may rest on a hold of another process, which goes on.
    const inner = [...this.reentries.values()].flatMap((some) => [...some]);
    const held = [...this.holds.values(), ...inner].filter((hold) => hold.process === session.id);
    for (const hold of held) hold.lose({ why: why === 'closed' ? 'released-elsewhere' : reason });
    const waiting = [...this.waiters.values()].filter((waiter) => waiter.process === session.id);
    for (const waiter of waiting) waiter.sessionEnded();
    // The lease is left to run out: its last part is the time that the holds' users have to stop.
  }
}
