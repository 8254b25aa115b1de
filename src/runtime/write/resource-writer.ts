/**
 * Writes one resource for one process: takes commands, decides them on the cached state, commits the decision, and decides
 * again on a newer state if another process wrote first.
 *
 *     submit ─▶ pending ─▶ decide ─▶ commit ──ok──▶ landed: settle the commands, answer waiters
 *                  ▲          ▲         │
 *                  │          └─ adopt ◀┴─ overtaken: the failure branch read the newer state
 *                  └───── pause ◀───────── unavailable: try again; outcome unknown: fence, then look
 *
 * One commit takes all commands that are pending. The writer uses callbacks instead of promises, so that on an engine that
 * answers at once an `acquire` reaches its hold without yielding.
 */
import type { Answer, Loss } from '../../core/index.ts';
import type { Revision, TransactionResult } from '../../store/index.ts';
import {
  Backlog,
  continues,
  isAwaited,
  needsWhole,
  queuedInstead,
  waitingOf,
  DelegatedCommand,
  type AnyOutcome,
  type PendingCommand,
  BackgroundCommand,
} from './pending-command.ts';
import { inTime, isOutdated, withoutRepeats, type Attempt, Doubts, Recovery } from './recovery.ts';
import { type Commit, commitOf, takingBack } from './commit.ts';
import { Delegation } from './delegation.ts';
import { type AnyMachine, decide, type Decision } from './decision.ts';
import { CachedState, FRESH_MS } from './cached-state.ts';
import { wasReleased } from './ended.ts';
import { type DelegationRequest, type Report, type ResourceKeys, resourceKeys } from '../layout.ts';
import type { Coordinated } from '../../core/machines.ts';
import type { Runtime } from '../runtime.ts';
import { type AnySnapshot, lookUpLeases, sawLeases, writerOf } from './snapshot.ts';

/** The most waiters that one transaction serves: stores limit its operations. */
const SERVED = 32;
const ignore = (): void => undefined;

export class ResourceWriter {
  readonly resource: string;
  readonly keys: ResourceKeys;
  readonly #machine: AnyMachine;
  readonly #host: Runtime;
  readonly cached: CachedState;
  /** Undefined until another process has won a race on a fresh state, or has delegated commands to this one. */
  #delegation: Delegation | undefined;
  readonly #backlog = new Backlog();
  #busy = false;
  #onIdle: (() => void)[] | undefined;
  /** Undefined while the store answers. */
  #recovery: Recovery | undefined;
  /** Undefined until a write got no answer. */
  #doubts: Doubts | undefined;

  constructor(machine: AnyMachine, name: string, host: Runtime) {
    this.#machine = machine;
    this.#host = host;
    this.resource = `${machine.kind}/${name}`;
    this.keys = resourceKeys(machine.kind, name);
    this.cached = new CachedState(machine, this.keys, host);
  }

  submit(pending: PendingCommand): void {
    this.#backlog.asked += 1;
    pending.asked = this.#backlog.asked;
    if (this.#host.witness.isOn || pending.command.sensitive === true) this.#host.witness.stamp(pending);
    if (this.#busy) return this.#backlog.add(pending);
    this.#busy = true;
    if (this.#host.answersAtOnce) return this.#attempt([pending]);
    this.#backlog.add(pending);
    this.#goOn();
  }

  /** Resolves once no command is under way, neither a wanted nor an abandoned one. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      (this.#onIdle ??= []).push(resolve);
      this.checkIdle();
    });
  }

  /** Takes back delegated commands that the keeper did not answer. */
  returned(batch: PendingCommand[], error: unknown): void {
    this.#backlog.addReturned(batch, error);
    if (this.#busy) return;
    this.#busy = true;
    this.#next();
  }

  /** Resolves `idle` if nothing is under way. */
  checkIdle(): void {
    if (this.#onIdle === undefined || this.#busy || this.#delegation?.isUnderWay === true) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /**
   * Where a write is a round trip, waits for the end of this tick, so that commands of one tick share one write: user code
   * that was just granted the resource may release it in the same tick, or ask for it again.
   */
  #goOn(): void {
    if (this.#host.answersAtOnce) this.#next();
    else process.nextTick(() => this.#next());
  }

  /** Carries out commands that another process delegated to this one. */
  carryOut(delegated: DelegationRequest): void {
    this.#delegating.carryOut(delegated, this.cached.keeper);
  }

  get #delegating(): Delegation {
    return (this.#delegation ??= new Delegation(this, this.#host));
  }

  get #recovering(): Recovery {
    return (this.#recovery ??= new Recovery(this.#host));
  }

  /**
   * Serves the queue. `looksFirst`: reads the state before it writes. When many processes settle at once, all but the first
   * then find nothing to do, and no failed write gets in the way of the others. `seesAll`: reads the queue to its end.
   */
  settle(looksFirst = false, seesAll = false): void {
    const settle = new BackgroundCommand(this.#machine.settle);
    settle.looksFirst = looksFirst;
    settle.seesAll = seesAll;
    this.submit(settle);
  }

  /** Takes what another process reported with its write of the record at `revision`. */
  report(report: Report, revision: Revision): void {
    this.cached.report(report, revision);
    if (!this.#busy) this.#takeOverReport();
  }

  #takeOverReport(): void {
    this.cached.takeOverReport();
    this.#doubts?.sawRecord(this.cached.snapshot.mod);
  }

  #next(): void {
    this.#takeOverReport();
    const returned = this.#backlog.takeReturned();
    if (returned !== undefined) return this.#recovering.failed(returned.error, this.#again(returned.batch));
    const batch = this.#backlog.take();
    if (batch !== undefined) return this.#attempt(batch);
    this.#busy = false;
    this.checkIdle();
  }

  #attempt(batch: PendingCommand[]): void {
    const { witness } = this.#host;
    if (!witness.isKnown) return this.#askWitness(batch);
    let someUncertain = false;
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as PendingCommand;
      someUncertain ||= pending.uncertain;
      if (pending.isOver) return this.#attempt(batch.filter(({ isOver }) => !isOver));
      pending.attempts += 1;
      // These commands need a state that was read after they were submitted.
      if (pending.looksFirst && pending.asked > this.cached.since) return this.#refresh(batch, false);
      if (needsWhole(pending) && pending.asked > this.cached.wholeSince) return this.#refresh(batch, true);
    }
    if (batch.length === 0) return this.#decided();
    if (someUncertain) {
      const rest = withoutRepeats(batch, this.cached.snapshot);
      if (rest.length < batch.length) return this.#attempt(rest);
    }
    const host = this.#host;
    const { snapshot } = this.cached;
    // The queue has tickets, and none of them is known: the commit of a decision without them would fail.
    if (snapshot.othersWait && snapshot.state.waiting.length === 0) return this.#refresh(batch, false);
    let decision: Decision<Coordinated>;
    let commit: Commit | undefined;
    try {
      const at = host.moment(host.revision, SERVED);
      decision = decide(this.#machine, snapshot.state, batch, at, host.sender.id, witness.isOn);
      if (decision.state === snapshot.state && decision.withdrawn.length === 0) return this.#refuse(batch);
      const changesRecord = decision.state.record !== snapshot.state.record;
      if (this.#delegation?.takes(this.cached.keeper, batch, changesRecord) === true) return this.#next();
      const mayQueue = host.answersAtOnce ? undefined : waitingOf(batch);
      const isClosed = this.#machine.isClosed(decision.state);
      const draft = { keys: this.keys, snapshot, decision, sender: host.sender, witness, isClosed };
      commit = commitOf(draft, mayQueue, this.#delegation?.isKeeper);
    } catch (error) {
      return this.#fail(batch, error);
    }
    if (commit === undefined) return this.#refresh(batch, true);
    const committed = commit;
    const { asked } = this.#backlog;
    const { agedMs } = this.cached;
    const seen = host.revision;
    // The witness can only be switched on while there is no session, and a newcomer's write compares its own.
    const comparesSession = decision.newcomers.length > 0 && host.sender.id !== '';
    const mayBeWitnessed = !witness.isOn && !comparesSession && host.session === undefined;
    host.commit(
      mayBeWitnessed ? witness.unlessSwitchedOn(committed.transaction) : committed.transaction,
      (result) => {
        this.#recovery = undefined;
        if (mayBeWitnessed) witness.switchedOn(result);
        if (result.succeeded) this.#landed(batch, decision, committed, result, asked);
        else this.#overtaken(batch, committed, result, asked, agedMs);
      },
      (error) => {
        const answersUnseen = !committed.changesRecord && decision.answers.length > 0;
        this.#recovering.failed(error, this.#again(batch, seen, answersUnseen));
      },
    );
  }

  /** A process without a session does not know yet whether its writes are entered. */
  #askWitness(batch: PendingCommand[]): void {
    this.#host.witness.know(
      () => {
        this.#recovery?.read();
        this.#attempt(batch);
      },
      (error) => this.#recovering.unread(error, this.#again(batch)),
    );
  }

  /** The batch would change nothing. That is an answer only if the state was read after the commands were submitted. */
  #refuse(batch: PendingCommand[]): void {
    if (batch.some(({ asked }) => asked > this.cached.since)) return this.#refresh(batch, false);
    for (const pending of batch) this.settled(pending);
    this.#decided();
  }

  #decided(): void {
    this.#doubts?.decidedAgain();
    this.#next();
  }

  /** Hands a command its outcome. */
  settled(pending: PendingCommand): void {
    const { unanswered, outcome, until } = pending;
    const isRelease = pending.command.kind === 'release' && isAwaited(pending);
    if (unanswered?.outcome?.hold === undefined || !isRelease || outcome?.hold !== undefined)
      return this.#handOut(pending);
    // The first attempt got no answer, and the hold is gone: by that attempt, or because another process took it first.
    wasReleased(this.#host, this.keys.record, unanswered, unanswered.outcome.hold, pending.command, until).then(
      (isReleased) => this.#handOut(pending, isReleased ? unanswered.outcome : outcome),
      () => pending.failed(unanswered.error),
    );
  }

  #handOut(pending: PendingCommand, outcome = pending.outcome): void {
    if (pending.events.length > 0) this.#host.emit(this.resource, pending.events);
    pending.settled(outcome as AnyOutcome);
  }

  #refresh(batch: PendingCommand[], wholeQueue: boolean): void {
    const whole = wholeQueue || batch.some(needsWhole);
    const { asked } = this.#backlog;
    this.cached.refresh(whole, {
      done: (snapshot) => {
        this.#recovery?.read();
        this.#adopt(batch, snapshot, asked, () => {
          if (whole) this.cached.wholeSince = asked;
          this.#attempt(batch);
        });
      },
      malformed: (error) => {
        this.#recovery?.read();
        this.#fail(batch, error);
      },
      unread: (error) => this.#recovering.unread(error, this.#again(batch)),
    });
  }

  /** Without a snapshot, the whole queue has to be read. */
  #adopt(batch: PendingCommand[], snapshot: AnySnapshot | undefined, asked: number, decide: () => void): void {
    if (snapshot === undefined) return this.#refresh(batch, true);
    this.cached.adopt(snapshot, asked);
    this.#doubts?.sawRecord(this.cached.snapshot.mod);
    const unread = (error: unknown): void => this.#recovering.unread(error, this.#again(batch));
    lookUpLeases(this.#host, [snapshot.state], decide, unread);
  }

  /** A write without an answer may have changed what others in this process hold or wait for. */
  #reconcile(): void {
    const { holds } = this.cached.snapshot.state.record;
    this.#host.lookout.reconcile(this.resource, new Set(holds.map(({ id }) => id)));
  }

  #landed(
    batch: readonly PendingCommand[],
    decision: Decision<Coordinated>,
    commit: Commit,
    result: TransactionResult,
    asked: number,
  ): void {
    const known = commit.changesRecord || decision.restsOnRecord;
    this.cached.advance(decision, commit, result);
    if (commit.changesRecord) {
      this.#doubts?.overwritten();
      this.#delegation?.wrote();
    }
    if (known) this.cached.since = asked;
    else this.#sawRecord(result, commit);

    let again: PendingCommand[] | undefined;
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as PendingCommand;
      if (continues(pending) || !(pending.effective || known)) again = [...(again ?? []), pending];
      else this.settled(pending);
    }
    for (let i = 0; i < decision.answers.length; i++) {
      this.#host.answer(this.resource, decision.answers[i] as Answer<unknown>);
    }
    for (let i = 0; i < decision.losses.length; i++) this.#host.lose(decision.losses[i] as Loss);
    this.#doubts?.decidedAgain();
    if (decision.touched >= SERVED || this.cached.leavesUnserved(batch, decision, commit, known)) this.settle();
    if (again === undefined) this.#goOn();
    else this.#attempt(again);
  }

  /** Takes over the record that a write of tickets alone read. */
  #sawRecord({ results }: TransactionResult, commit: Commit): void {
    const { mod } = this.cached.snapshot;
    if (commit.record === undefined || !this.cached.sawRecord(commit.record.in(results))) return;
    this.#doubts?.sawRecord(this.cached.snapshot.mod);
    if (this.cached.ticketsLeaveUnserved(commit, this.cached.snapshot.mod !== mod)) this.settle();
  }

  /** Another process wrote first. */
  #overtaken(
    batch: PendingCommand[],
    commit: Commit,
    { results, revision }: TransactionResult,
    asked: number,
    agedMs: number,
  ): void {
    const uncertain = batch.some((pending) => pending.uncertain);
    const reads = commit.ifOvertaken;
    // Also of a batch that is read again: a request on a lease that has ended would be decided the same way for ever.
    if (reads !== undefined) sawLeases(this.#host, reads.leases, { results, revision });
    if (reads === undefined || uncertain) return this.#refresh(batch, uncertain);
    const areQueued = reads.queued?.in(results).succeeded === true;
    const done = (snapshot: AnySnapshot | undefined): void => {
      const isHeld = (snapshot ?? this.cached.snapshot).state.record.holds.length > 0;
      let rest = areQueued ? batch.filter((pending) => !queuedInstead(pending, commit, isHeld)) : batch;
      rest = rest.filter(
        (pending) => !(pending instanceof DelegatedCommand && isOutdated(pending, reads.leases, results)),
      );
      const winner = reads.snapshot.record.in(results).pairs[0];
      if (agedMs < FRESH_MS && commit.changesRecord && (winner?.modRevision ?? 0) !== this.cached.snapshot.mod) {
        this.#delegating.overtaken(winner === undefined ? undefined : writerOf(winner));
      }
      if (rest.length < batch.length) rest = [...rest, new BackgroundCommand(this.#machine.settle)];
      this.#adopt(rest, snapshot, asked, () => this.#attempt(rest));
    };
    const malformed = (error: unknown): void => {
      // If this fails too, the tickets go with the session.
      if (areQueued) this.#host.commit(takingBack(this.keys, commit), ignore, ignore);
      this.#fail(batch, error);
    };
    this.cached.decode(reads.snapshot, results, revision, { done, malformed });
  }

  /** How a batch continues after the store did not answer. `answersUnseen`: its write answered requests, and no record shows that. */
  #again(batch: PendingCommand[], seen = this.cached.snapshot.mod, answersUnseen = false): Attempt {
    let rest = batch;
    return {
      doubted: (error) => {
        const { mod } = this.cached.snapshot;
        this.#doubts ??= new Doubts(() => this.#reconcile());
        this.#doubts.unanswered(mod, answersUnseen);
        for (const pending of rest) pending.doubted(error, mod, seen);
      },
      fence: (done, failed) => this.#host.presence.fence(done, failed),
      isWanted: (error) => {
        const now = this.#host.clock.monotonic();
        rest = inTime(rest, now, error);
        this.#backlog.failLate(now, error);
        if (rest.length > 0) return true;
        // A later batch may not look at the queue.
        if (this.#doubts?.areAnswersUnseen === true) this.settle(true);
        this.#next();
        return false;
      },
      look: (afterDoubt) => {
        if (afterDoubt) return this.#refresh(rest, true);
        this.#refresh(this.#backlog.takeAlong(rest), false);
      },
      failed: (error) => this.#fail(rest, error),
      keepsAlive: rest.some(isAwaited),
    };
  }

  #fail(batch: readonly PendingCommand[], error: unknown): void {
    // A command that another process delegated must not fail the commands of this process.
    const asked = batch.filter((pending) => !(pending instanceof DelegatedCommand));
    if (asked.length > 0 && asked.length < batch.length) return this.#attempt(asked);
    for (const pending of batch) pending.failed(error);
    this.#next();
  }
}
