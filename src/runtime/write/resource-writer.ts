/**
 * The writer of one resource in one process: takes commands, decides them on the freshest known state, commits, and
 * tries again on a newer one where somebody else was faster.
 *
 *     submit ─▶ pending ─▶ decide ─▶ commit ──ok──▶ landed: reply, answer waiters, settle the rest
 *                  ▲          ▲         │
 *                  │          └─ learn ◀┴─ not as known: the failure branch brought the newer state
 *                  └───── later ◀───────── unavailable: again in a moment; unknown: look first
 *
 * All commands that are pending when a commit is made go into it together. Written with callbacks and not with
 * promises, because an engine that answers at once then makes the whole way from `acquire` to the hold without
 * yielding once.
 */
import type { Answer, Loss, Moment } from '../../core/index.ts';
import type { KeyValue, OperationResult, ReadResult, Revision, TransactionResult } from '../../store/index.ts';
import { fitting, goesOn, isOutdated, isRepeat, needsWhole, queuedInstead, waitingOf, withdrawal } from './batch.ts';
import { type Commit, commitOf } from './commit.ts';
import { Delegation, type DelegatingWriter } from './delegation.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { DelegatedCommand } from './delegation-mail.ts';
import { CachedState } from './cached-state.ts';
import {
  anchorKey,
  type DelegationRequest,
  type Report,
  type ResourceKeys,
  resourceKeys,
  ticketKey,
} from '../layout.ts';
import type { Coordinated, Machine } from './machines.ts';
import { MOST_MARKS } from './marks.ts';
import type { WriterHost } from './writer-host.ts';
import { type Attempt, Recovery } from './recovery.ts';
import { type AnyCommand, type AnyOutcome, type PendingCommand, BackgroundCommand } from './pending-command.ts';
import { snapshotFrom, recordOf, type Snapshot, snapshotReads, writerOf } from './snapshot.ts';

/** So many of those who wait are served by one transaction; stores limit its operations. */
const SERVED = 32;

export class ResourceWriter<
  State extends Coordinated,
  Command extends AnyCommand,
  Outcome extends AnyOutcome,
> implements DelegatingWriter<Command, Outcome> {
  readonly resource: string;
  readonly keys: ResourceKeys;
  readonly #machine: Machine<State, Command, Outcome>;
  readonly #host: WriterHost;
  readonly #cached: CachedState<State>;
  readonly #delegation: Delegation<Command, Outcome>;
  #asked = 0;
  #pending: PendingCommand<Command, Outcome>[] = [];
  #busy = false;
  #onIdle: (() => void)[] = [];
  readonly #recovery: Recovery;
  /** A write without an answer may land for as long as the record is still the one of this revision. */
  #inDoubt: Revision | undefined;
  /** Left to another process, and not answered. */
  readonly #returned: { batch: PendingCommand<Command, Outcome>[]; readonly error: unknown }[] = [];

  constructor(machine: Machine<State, Command, Outcome>, name: string, host: WriterHost) {
    this.#machine = machine;
    this.#host = host;
    this.resource = `${machine.kind}/${name}`;
    this.keys = resourceKeys(machine.kind, name);
    this.#cached = new CachedState(machine, host);
    this.#delegation = new Delegation(this, host);
    this.#recovery = new Recovery(host);
  }

  submit(pending: PendingCommand<Command, Outcome>): void {
    this.#asked += 1;
    pending.asked = this.#asked;
    if (this.#busy) {
      this.#pending.push(pending);
    } else {
      this.#busy = true;
      if (this.#host.answersAtOnce) return this.#attempt([pending]);
      this.#pending.push(pending);
      this.#goOn();
    }
  }

  /** How many living requests were before this one when the queue was last seen; undefined if it was not seen among them. */
  placeOf(id: string): number | undefined {
    const { waiting } = this.#cached.snapshot.state;
    const place = waiting.findIndex((request) => request.id === id);
    if (place < 0) return undefined;
    return waiting.slice(0, place).filter(({ lease }) => !this.#host.sender.isGone(lease)).length;
  }

  /** Whether a hold in the record hangs on this lease. Throws if the record cannot be read. */
  hasHoldOf(lease: string, record: KeyValue): boolean {
    return recordOf(this.#machine, record).holds.some((hold) => hold.lease === lease);
  }

  /** Resolves once nothing is on its way any more: neither what was asked, nor what was given up. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#busy || this.#delegation.isUnderWay) this.#onIdle.push(resolve);
      else resolve();
    });
  }

  /** Left to another process, and not answered: it has to be decided here. */
  returned(batch: PendingCommand<Command, Outcome>[], error: unknown): void {
    this.#returned.push({ batch, error });
    if (this.#busy) return;
    this.#busy = true;
    this.#next();
  }

  /** Something that was under way has ended. */
  tellIfIdle(): void {
    if (this.#onIdle.length === 0 || this.#busy || this.#delegation.isUnderWay) return;
    for (const told of this.#onIdle.splice(0)) told();
  }

  /**
   * Where a write is a round trip, whatever is asked in one go shares one: who was just granted may be through
   * already, and who was just released wants it again.
   */
  #goOn(): void {
    if (this.#host.answersAtOnce) this.#next();
    else process.nextTick(() => this.#next());
  }

  /** Carries out what another process asks for. */
  carryOut(delegated: DelegationRequest): void {
    this.#delegation.carryOut(delegated, this.#cached.keeper);
  }

  /**
   * Serves the queue on behalf of whoever waits in this process. `looksFirst`: many processes do so at once, and a look keeps
   * none of them from writing. All but the first find that it was done.
   */
  settle(looksFirst = false): void {
    const settle = new BackgroundCommand<Command, Outcome>(this.#machine.settle);
    settle.looksFirst = looksFirst;
    this.submit(settle);
  }

  /** Somebody else wrote the record at `revision`, and says what it knows. */
  hear(report: Report, revision: Revision): void {
    this.#cached.hear(report, revision);
    if (!this.#busy) this.#takeOverHeard();
  }

  #takeOverHeard(): void {
    this.#cached.takeOverHeard();
    this.#resolveDoubt();
  }

  /** The whole state, as the store has it now. */
  look(done: (snapshot: Snapshot<State>) => void, failed: (error: unknown) => void): void {
    const read = (result: TransactionResult): void => {
      try {
        done(snapshotFrom(this.#machine, result.results, result.revision) as Snapshot<State>);
      } catch (error) {
        failed(error);
      }
    };
    this.#host.commit({ compare: [], success: snapshotReads(this.keys, true), failure: [] }, read, failed);
  }

  #next(): void {
    this.#takeOverHeard();
    const returned = this.#returned.shift();
    if (returned !== undefined) return this.#failed(returned.batch, returned.error);
    const pending = this.#pending;
    if (pending.length === 0) {
      this.#busy = false;
      this.tellIfIdle();
      return;
    }
    const count = fitting(pending);
    if (pending.length > count) return this.#attempt(pending.splice(0, count));
    this.#pending = [];
    this.#attempt(pending);
  }

  #attempt(batch: PendingCommand<Command, Outcome>[]): void {
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as PendingCommand<Command, Outcome>;
      if (pending.isOver) return this.#attempt(batch.filter(({ isOver }) => !isOver));
      pending.attempts += 1;
      // Only the whole state, read after it was asked, can tell.
      if (pending.looksFirst && pending.asked > this.#cached.since) return this.#refresh(batch, false);
      if (needsWhole(pending) && pending.asked > this.#cached.wholeSince) return this.#refresh(batch, true);
    }
    if (batch.length === 0) return this.#next();
    if (batch.some(({ mark, uncertain }) => uncertain && mark !== undefined)) {
      const rest = this.#withoutMarked(batch);
      if (rest.length < batch.length) return this.#attempt(rest);
    }
    if (batch.some((pending, place) => isRepeat(pending, place, batch))) {
      return this.#attempt(batch.filter((pending, place) => !isRepeat(pending, place, batch)));
    }
    const host = this.#host;
    const { snapshot } = this.#cached;
    // Who waits is not known any more, only that somebody does: whatever is decided without them would be in vain.
    if (snapshot.othersWait && snapshot.state.waiting.length === 0) return this.#refresh(batch, false);
    let decision: Decision<State>;
    let commit: Commit | undefined;
    try {
      decision = decide(this.#machine, snapshot.state, batch, this.#moment(SERVED), host.sender.id);
      if (decision.state === snapshot.state && decision.withdrawn.length === 0) return this.#refuse(batch);
      const changesRecord = decision.state.record !== snapshot.state.record;
      if (this.#delegation.takes(this.#cached.keeper, batch, changesRecord)) return this.#next();
      const mayQueue = host.answersAtOnce ? undefined : waitingOf(batch);
      const isClosed = this.#machine.isClosed(decision.state);
      commit = commitOf(this.keys, snapshot, decision, host.sender, isClosed, mayQueue, this.#delegation.isKept);
    } catch (error) {
      return this.#fail(batch, error);
    }
    if (commit === undefined) return this.#refresh(batch, true);
    const sent = commit;
    const asked = this.#asked;
    const { agedMs } = this.#cached;
    host.commit(
      sent.transaction,
      (result) => {
        this.#recovery.answered();
        if (result.succeeded) this.#landed(batch, decision, sent, result, asked);
        else this.#overtaken(batch, sent, result, asked, agedMs);
      },
      (error) => this.#failed(batch, error),
    );
  }

  /** Nothing would change. That is an answer only if it rests on what was read after it was asked. */
  #refuse(batch: PendingCommand<Command, Outcome>[]): void {
    if (batch.some(({ asked }) => asked > this.#cached.since)) return this.#refresh(batch, false);
    for (const pending of batch) this.settled(pending);
    this.#next();
  }

  /** Tells whoever asked. */
  settled(pending: PendingCommand<Command, Outcome>): void {
    if (pending.command.kind === 'release' && pending.outcome?.hold === undefined && pending.sent?.outcome) {
      // It was there when it was sent the first time, and is not any more.
      pending.outcome = pending.sent.outcome;
    }
    if (pending.events.length > 0) this.#host.emit(this.resource, pending.events);
    pending.settled(pending.outcome as Outcome);
  }

  #refresh(batch: PendingCommand<Command, Outcome>[], wholeQueue: boolean): void {
    const whole = wholeQueue || batch.some(needsWhole);
    const asked = this.#asked;
    // Our own as well: a fence that was thought lost may have landed since, and raised our epoch.
    const { id } = this.#host.sender;
    const leases = id === '' ? this.#cached.leases() : [...this.#cached.leases(), id];
    const reads = leases.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    this.#host.commit(
      { compare: [], success: [...snapshotReads(this.keys, whole), ...reads], failure: [] },
      (result) => {
        this.#recovery.read();
        this.#cached.sawLeases(leases, result.results.slice(3), result.revision);
        this.#adopt(batch, result.results, result.revision, asked, () => {
          if (whole) this.#cached.wholeSince = asked;
          this.#attempt(batch);
        });
      },
      (error) => this.#recovery.unread(error, this.#again(batch)),
    );
  }

  #adopt(
    batch: PendingCommand<Command, Outcome>[],
    results: readonly OperationResult[],
    revision: Revision,
    asked: number,
    go: () => void,
  ): void {
    let snapshot: Snapshot<State> | undefined;
    try {
      snapshot = snapshotFrom(this.#machine, results, revision);
    } catch (error) {
      return this.#fail(batch, error);
    }
    this.#adoptSnapshot(batch, snapshot, asked, go);
  }

  /** Without a snapshot, more of the queue has to be read. */
  #adoptSnapshot(
    batch: PendingCommand<Command, Outcome>[],
    snapshot: Snapshot<State> | undefined,
    asked: number,
    go: () => void,
  ): void {
    if (snapshot === undefined) return this.#refresh(batch, true);
    this.#cached.adopt(snapshot, asked);
    this.#resolveDoubt();
    this.#lookUp(batch, go);
  }

  /** What was in doubt has landed, or cannot any more: it may have concerned others in this process. */
  #resolveDoubt(): void {
    const { mod, state } = this.#cached.snapshot;
    if (this.#inDoubt === undefined || this.#inDoubt === mod) return;
    this.#inDoubt = undefined;
    this.#host.reconcile(this.resource, new Set(state.record.holds.map(({ id }) => id)));
  }

  /** Holds may name leases that were never heard of: whether these are alive has to be asked before anyone is refused. */
  #lookUp(batch: PendingCommand<Command, Outcome>[], go: () => void): void {
    const unknown = this.#cached.unknownLeases();
    if (unknown.length === 0) return go();
    const success = unknown.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    this.#host.commit(
      { compare: [], success, failure: [] },
      (result) => {
        this.#cached.sawLeases(unknown, result.results, result.revision);
        // There may be more of them than one transaction can read.
        this.#lookUp(batch, go);
      },
      (error) => this.#recovery.unread(error, this.#again(batch)),
    );
  }

  #landed(
    batch: readonly PendingCommand<Command, Outcome>[],
    decision: Decision<State>,
    commit: Commit,
    result: TransactionResult,
    asked: number,
  ): void {
    const { snapshot } = this.#cached;
    const known = commit.changesRecord || decision.restsOnRecord;
    this.#cached.advance(decision, commit, result);
    if (commit.changesRecord) {
      this.#inDoubt = undefined;
      this.#delegation.wrote();
    }
    if (known) this.#cached.since = asked;
    else this.#recordSeen(result, commit);

    let again: PendingCommand<Command, Outcome>[] | undefined;
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as PendingCommand<Command, Outcome>;
      if (goesOn(pending) || !(pending.effective || known)) again = [...(again ?? []), pending];
      else this.settled(pending);
    }
    for (let i = 0; i < decision.answers.length; i++) {
      this.#host.answer(this.resource, decision.answers[i] as Answer<unknown>);
    }
    for (let i = 0; i < decision.losses.length; i++) this.#host.lose(decision.losses[i] as Loss);
    const mayServeMore = known && !snapshot.complete && snapshot.state.waiting.length === 0;
    const servedAll = decision.touched < SERVED;
    // Those who wait behind a stale hold may have it now, and need not be known here.
    const isConfigured = commit.changesRecord && batch.some(({ command }) => command.kind === 'configure');
    const isOpen = !this.#machine.isClosed(snapshot.state) || (isConfigured && this.#cached.mayBeStale());
    if (!servedAll || (mayServeMore && isOpen)) this.settle();
    else if (commit.looksAtQueue && this.#couldServe(snapshot.state)) this.settle();
    if (again === undefined) this.#goOn();
    else this.#attempt(again);
  }

  /** Tickets came or went without a look at the record. If it would let somebody in, nobody else is going to. */
  #recordSeen({ results }: TransactionResult, commit: Commit): void {
    if (!this.#cached.sawRecord(results.at(-1) as ReadResult)) return;
    this.#resolveDoubt();
    const { snapshot } = this.#cached;
    const couldBeServed = (): boolean => this.#couldServe({ ...snapshot.state, waiting: commit.arriving });
    if (this.#machine.isClosed(snapshot.state) && !this.#cached.mayBeStale()) {
      // What it waits for may be there no more, or never have been: it was decided on an older record.
      if (couldBeServed()) this.settle();
      return;
    }
    if (this.#cached.unknownLeases().length > 0) return this.settle();
    // Somebody was passed over as dead: whoever waits behind it, known or not, may be next.
    if (commit.arriving.length === 0) return this.settle();
    if (couldBeServed()) this.settle();
  }

  #couldServe(state: State): boolean {
    if (state.waiting.length === 0) return false;
    return this.#machine.transition(state, this.#machine.settle, this.#moment()).state !== state;
  }

  #moment(most?: number): Moment {
    return this.#host.moment(this.#host.revision, most);
  }

  /** Somebody else was faster. */
  #overtaken(
    batch: PendingCommand<Command, Outcome>[],
    commit: Commit,
    result: TransactionResult,
    asked: number,
    agedMs: number,
  ): void {
    let { results } = result;
    const uncertain = batch.some((pending) => pending.uncertain);
    if (results.length === 0 || uncertain) return this.#refresh(batch, uncertain);
    let rest = batch;
    const [nested] = results;
    if (commit.fallback.length > 0) results = results.slice(1);
    const areQueued = commit.fallback.length > 0 && nested?.do === 'transaction' && nested.succeeded;
    let snapshot: Snapshot<State> | undefined;
    try {
      snapshot = snapshotFrom(this.#machine, results, result.revision);
    } catch (error) {
      if (areQueued) this.#takeBack(commit);
      return this.#fail(batch, error);
    }
    if (areQueued) rest = batch.filter((pending) => !queuedInstead(pending, commit));
    this.#cached.sawLeases(commit.leases, results.slice(3), result.revision);
    rest = rest.filter((pending) => !isOutdated(pending, commit.leases, results.slice(3)));
    const newer = (results[0] as ReadResult).pairs[0]?.modRevision ?? 0;
    if (commit.changesRecord && newer !== this.#cached.snapshot.mod) {
      const winner = (results[0] as ReadResult).pairs[0];
      this.#delegation.overtaken(agedMs, winner === undefined ? undefined : writerOf(winner));
    }
    if (rest.length < batch.length) rest = [...rest, new BackgroundCommand(this.#machine.settle)];
    this.#adoptSnapshot(rest, snapshot, asked, () => this.#attempt(rest));
  }

  /** Nobody could ever be served from a queue whose record cannot be read: those who asked are told so, and wait no more. */
  #takeBack({ fallback }: Commit): void {
    const success = fallback.map((ticket) => ({ do: 'delete' as const, key: ticketKey(this.keys, ticket) }));
    // Should this fail too, the tickets go with the session.
    this.#host.commit({ compare: [], success, failure: [] }, ignore, ignore);
  }

  #failed(batch: PendingCommand<Command, Outcome>[], error: unknown): void {
    this.#recovery.failed(error, this.#again(batch));
  }

  /** How a batch goes on that the store did not answer. */
  #again(batch: PendingCommand<Command, Outcome>[]): Attempt {
    let rest = batch;
    return {
      doubted: (error) => {
        const { mod } = this.#cached.snapshot;
        this.#inDoubt = mod;
        for (const pending of rest) pending.doubted(error, mod);
      },
      fence: (done, failed) => this.#host.fence(done, failed),
      isWanted: (error) => {
        rest = this.#inTime(rest, error);
        // Those who have asked meanwhile are told too: their time may be up before the store comes back.
        this.#pending = this.#inTime(this.#pending, error);
        for (const returned of this.#returned) returned.batch = this.#inTime(returned.batch, returned.error);
        if (rest.length > 0) return true;
        this.#next();
        return false;
      },
      look: (afterDoubt) => {
        if (afterDoubt) return this.#refresh(rest, true);
        // Whoever asked meanwhile comes along.
        const all = [...rest, ...this.#pending];
        const count = Math.max(rest.length, fitting(all));
        this.#pending = all.slice(count);
        this.#refresh(all.slice(0, count), false);
      },
      failed: (error) => this.#fail(rest, error),
      keepsAlive: rest.some(
        (pending) => !(pending instanceof BackgroundCommand || pending instanceof DelegatedCommand),
      ),
    };
  }

  /** Those whose time is not up yet. The others are told. */
  #inTime(batch: readonly PendingCommand<Command, Outcome>[], error: unknown): PendingCommand<Command, Outcome>[] {
    const now = this.#host.monotonic();
    const rest: PendingCommand<Command, Outcome>[] = [];
    for (const pending of batch) {
      if (pending.until > now) {
        rest.push(pending);
        continue;
      }
      // Whoever asked is told that nobody knows. Should it have been granted, the grant must not stay behind.
      const isWanted = !pending.isOver && pending.leavesRequest;
      if (pending.uncertain && (isWanted || pending.wasGivenUp)) rest.push(withdrawal(pending));
      pending.failed(pending.sent?.error ?? error);
    }
    return rest;
  }

  /**
   * What became of commands that can only be known by their mark. If the record does not have it, it has not landed, and
   * never will: it rests on a record that is not there any more, or will not be after the next attempt. But a `break` means
   * those who held it then.
   */
  #withoutMarked(batch: PendingCommand<Command, Outcome>[]): PendingCommand<Command, Outcome>[] {
    const { mod, marks } = this.#cached.snapshot;
    return batch.filter((pending) => {
      const { mark, sent } = pending;
      if (mark === undefined || sent?.outcome === undefined || sent.mod === mod) return true;
      const isKnown = marks.includes(mark);
      if (!isKnown && marks.length < MOST_MARKS && pending.command.kind !== 'break') return true;
      if (isKnown) pending.settled(sent.outcome);
      else pending.failed(sent.error);
      return false;
    });
  }

  #fail(batch: readonly PendingCommand<Command, Outcome>[], error: unknown): void {
    // What another process left here must not be the ruin of those who asked here.
    const asked = batch.filter((pending) => !(pending instanceof DelegatedCommand));
    if (asked.length > 0 && asked.length < batch.length) return this.#attempt(asked);
    for (const pending of batch) pending.failed(error);
    this.#next();
  }
}

function ignore(): void {}
