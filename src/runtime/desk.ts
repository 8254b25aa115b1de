/**
 * The desk of one resource in one process: takes commands, decides them on the freshest known state, commits, and
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
import { type Answer, type Event, type Hold, type Loss, type Moment, NONE, type Request } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { OperationResult, ReadResult, Revision, Transaction, TransactionResult } from '../store/index.ts';
import { type Commit, commitOf, type Sender } from './commit.ts';
import { Draft } from './draft.ts';
import { canBeLeft, Crowd, type ErrandCalls, ErrandPending, PATIENCE_MS } from './errands.ts';
import { anchorKey, type Errand, type Report, type ResourceKeys, resourceKeys } from './layout.ts';
import type { Coordinated, Machine } from './machines.ts';
import { type AnyCommand, type AnyOutcome, type Pending, type Ticket, ticketOf, Unheard } from './pending.ts';
import { heardView, learn, queueOf, recordOf, unknownView, type View, viewReads, writerOf } from './view.ts';

/** What a desk needs of the process it works in. */
export interface Office {
  readonly sender: Sender;
  /** The store lives in this process: a transaction costs no more than the call. */
  readonly answersAtOnce: boolean;
  /** The newest revision this process has seen. */
  readonly revision: Revision;
  moment(revision: Revision, most?: number): Moment;
  monotonic(): number;
  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void;
  /** `keepsAlive`: the process must not end before that, for want of anything else to do. */
  later(delayMs: number, call: () => void, keepsAlive: boolean): void;
  /** A read at `revision` found this lease alive, or not there. */
  sawLease(lease: string, version: number | undefined, revision: Revision): void;
  knowsLease(lease: string): boolean;
  /** No transaction sent before can take effect any more, once this calls back. */
  fence(done: () => void, failed: (error: unknown) => void): void;
  answer(resource: string, answer: Answer<unknown>): void;
  lose(loss: Loss): void;
  /** An answer got lost, and with it perhaps what it meant for others in this process: `holds` are all there are. */
  reconcile(resource: string, holds: ReadonlySet<string>): void;
  /** Asks another process to carry them out. */
  leaveTo(keeper: string, resource: string, commands: readonly AnyCommand[], calls: ErrandCalls): void;
  passOn(keeper: string, errand: Errand, notPassed: () => void): void;
  nudge(keeper: string, resource: string): void;
  /** Events that no write carries. */
  emit(resource: string, events: readonly Event[]): void;
}

/** So many commands at most go into one transaction; stores limit its operations. */
const BATCH = 24;
/** And so many of those who wait are served by one. */
const SERVED = 32;
const RETRY_MS = 20;
const LONGEST_RETRY_MS = 1000;

export class Desk<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome> {
  readonly resource: string;
  readonly keys: ResourceKeys;
  readonly #machine: Machine<State, Command, Outcome>;
  readonly #office: Office;
  #view: View<State>;
  /** News that came while a commit was on its way. */
  #heard: View<State> | undefined;
  #asked = 0;
  /** The view was read after this many commands had been asked. */
  #knownSince = -1;
  /** The same for its whole queue. */
  #wholeSince = -1;
  #pending: Pending<Command, Outcome>[] = [];
  #busy = false;
  #onIdle: (() => void)[] = [];
  #failures = 0;
  #mustReconcile = false;
  /** A write without an answer may land for as long as the record is still the one of this revision. */
  #inDoubt: Revision | undefined;
  /** When the view was read or heard. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  readonly #crowd = new Crowd();
  /** How often something was left to another process that has not answered yet. */
  #left = 0;
  /** Left to another process, and not answered. */
  readonly #returned: { batch: Pending<Command, Outcome>[]; readonly error: unknown }[] = [];

  constructor(machine: Machine<State, Command, Outcome>, name: string, office: Office) {
    this.#machine = machine;
    this.#office = office;
    this.resource = `${machine.kind}/${name}`;
    this.keys = resourceKeys(machine.kind, name);
    this.#view = unknownView(machine.unused, office.revision);
  }

  submit(pending: Pending<Command, Outcome>): void {
    this.#asked += 1;
    pending.asked = this.#asked;
    if (this.#busy) {
      this.#pending.push(pending);
    } else {
      this.#busy = true;
      if (this.#office.answersAtOnce) return this.#attempt([pending]);
      this.#pending.push(pending);
      this.#goOn();
    }
  }

  /** Resolves once nothing is on its way any more: neither what was asked, nor what was given up. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#busy || this.#left > 0) this.#onIdle.push(resolve);
      else resolve();
    });
  }

  #tellIfIdle(): void {
    if (this.#onIdle.length === 0 || this.#busy || this.#left > 0) return;
    for (const told of this.#onIdle.splice(0)) told();
  }

  /**
   * Where a write is a round trip, whatever is asked in one go shares one: who was just granted may be through
   * already, and who was just released wants it again.
   */
  #goOn(): void {
    if (this.#office.answersAtOnce) this.#next();
    else process.nextTick(() => this.#next());
  }

  /** Carries out what another process asks for. */
  carryOut(errand: Errand): void {
    const keeper = this.#crowd.isThere && errand.passedOn === undefined ? this.#keeper : undefined;
    if (keeper === undefined || keeper === errand.from) return this.#carryOut(errand);
    this.#office.passOn(keeper, errand, () => this.#carryOut(errand));
  }

  #carryOut(errand: Errand): void {
    if (!this.#crowd.isThere) this.#crowd.keeps();
    for (let place = 0; place < errand.commands.length; place++) {
      this.submit(new ErrandPending(errand, place) as unknown as Pending<Command, Outcome>);
    }
  }

  /** Serves the queue on behalf of whoever waits in this process. */
  settle(): void {
    this.submit(new Unheard(this.#machine.settle));
  }

  /** Somebody else wrote the record at `revision`, and says what it knows. */
  hear(report: Report, revision: Revision): void {
    if (revision <= (this.#heard?.revision ?? 0)) return;
    this.#heard = heardView(this.#machine, report, revision);
    if (!this.#busy) this.#takeOverHeard();
  }

  /** Not while a commit is on its way: that rests on the view it was made of, and carries it on. */
  #takeOverHeard(): void {
    const heard = this.#heard;
    this.#heard = undefined;
    if (heard === undefined || heard.revision <= this.#view.revision) return;
    this.#view = heard;
    this.#wholeSince = -1;
    this.#lookedAt = this.#office.monotonic();
  }

  /** The whole state, as the store has it now. */
  look(done: (view: View<State>) => void, failed: (error: unknown) => void): void {
    const read = (result: TransactionResult): void => {
      try {
        done(learn(this.#machine, result.results, result.revision) as View<State>);
      } catch (error) {
        failed(error);
      }
    };
    this.#office.commit({ compare: [], success: viewReads(this.keys, true), failure: [] }, read, failed);
  }

  #next(): void {
    if (this.#heard !== undefined) this.#takeOverHeard();
    const returned = this.#returned.shift();
    if (returned !== undefined) return this.#failed(returned.batch, returned.error);
    const pending = this.#pending;
    if (pending.length === 0) {
      this.#busy = false;
      this.#tellIfIdle();
    } else if (pending.length <= BATCH) {
      this.#pending = [];
      this.#attempt(pending);
    } else {
      this.#attempt(pending.splice(0, BATCH));
    }
  }

  #attempt(batch: Pending<Command, Outcome>[]): void {
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as Pending<Command, Outcome>;
      if (pending.isOver) return this.#attempt(batch.filter(({ isOver }) => !isOver));
      pending.attempts += 1;
      // Only the whole state, read after it was asked, can tell.
      if (needsWhole(pending) && pending.asked > this.#wholeSince) return this.#learn(batch, true);
    }
    if (batch.length === 0) return this.#next();
    if (batch.some((pending, place) => isRepeat(pending, place, batch))) {
      return this.#attempt(batch.filter((pending, place) => !isRepeat(pending, place, batch)));
    }
    const office = this.#office;
    let draft: Draft<State>;
    let commit: Commit | undefined;
    try {
      draft = this.#decide(batch);
      if (draft.state === this.#view.state && draft.withdrawn.length === 0) return this.#refuse(batch);
      const keeper = this.#keeperOf(batch, draft);
      if (keeper !== undefined) return this.#leaveTo(keeper, batch);
      if (this.#crowd.isThere && this.#keeper !== undefined && batch.every(isSureSettle)) {
        return this.#nudge(this.#keeper, batch);
      }
      const mayQueue = office.answersAtOnce ? undefined : waitingOf(batch);
      const isClosed = this.#machine.isClosed(draft.state);
      commit = commitOf(this.keys, this.#view, draft, office.sender, isClosed, mayQueue, this.#crowd.isKept);
    } catch (error) {
      return this.#fail(batch, error);
    }
    if (commit === undefined) return this.#learn(batch, true);
    const sent = commit;
    const asked = this.#asked;
    const agedMs = office.answersAtOnce ? 0 : office.monotonic() - this.#lookedAt;
    office.commit(
      sent.transaction,
      (result) => {
        this.#failures = 0;
        if (result.succeeded) this.#landed(batch, draft, sent, result, asked);
        else this.#overtaken(batch, sent, result, asked, agedMs);
      },
      (error) => this.#failed(batch, error),
    );
  }

  /** Whoever writes the record all the time, if this write had better be left to that one. */
  #keeperOf(batch: readonly Pending<Command, Outcome>[], draft: Draft<State>): string | undefined {
    // Who only queues does not race.
    if (!this.#crowd.isThere || draft.state.record === this.#view.state.record || batch.every(isSettle))
      return undefined;
    const { sender } = this.#office;
    const mayBeLeft = batch.every(
      (pending) => isSureSettle(pending) || canBeLeft(pending as unknown as Pending, sender),
    );
    return mayBeLeft ? this.#keeper : undefined;
  }

  /** Leaves it to the keeper to serve those who wait; and looks after a while whether it did. */
  #nudge(keeper: string, batch: readonly Pending<Command, Outcome>[]): void {
    this.#crowd.left();
    this.#office.nudge(keeper, this.resource);
    const look = (): void => {
      // The keeper may be stopped, and nobody would tell: this time it is done here.
      this.#crowd.isGone();
      this.settle();
    };
    this.#office.later(PATIENCE_MS, look, false);
    for (const pending of batch) this.#settled(pending);
    this.#next();
  }

  /** The other process that wrote the record last. */
  get #keeper(): string | undefined {
    const { by } = this.#view;
    const { sender } = this.#office;
    return by === undefined || by === sender.id || sender.isGone(by) ? undefined : by;
  }

  /** The desk goes on meanwhile: two who leave something to each other would otherwise both wait in vain. */
  #leaveTo(keeper: string, batch: Pending<Command, Outcome>[]): void {
    this.#crowd.left();
    // Who writes settles the queue anyway.
    const left = batch.filter((pending) => !isSettle(pending));
    const commands = left.map(({ command }) => command);
    const isLeft = (so: boolean): void => {
      this.#left += so ? 1 : -1;
      for (const pending of left) pending.isLeft = so;
    };
    isLeft(true);
    this.#office.leaveTo(keeper, this.resource, commands, {
      done: (outcomes) => {
        isLeft(false);
        for (const [place, pending] of left.entries()) {
          pending.outcome = outcomes[place] as Outcome;
          pending.events = NONE;
          this.#settled(pending);
        }
        this.#tellIfIdle();
      },
      nobody: () => {
        isLeft(false);
        this.#crowd.isGone();
        for (const pending of left) this.submit(pending);
        this.#tellIfIdle();
      },
      failed: (error) => {
        isLeft(false);
        this.#crowd.isGone();
        // Whoever gave up meanwhile may have been granted all the same, after it was looked for in vain.
        const batch = left.map((pending) => (pending.wasGivenUp ? withdrawal(pending) : pending));
        if (Failure.is(error, 'outcome-unknown')) for (const returned of batch) returned.doubt();
        this.#returned.push({ batch, error });
        if (this.#busy) return;
        this.#busy = true;
        this.#next();
      },
    });
    this.#next();
  }

  #decide(batch: readonly Pending<Command, Outcome>[]): Draft<State> {
    const { revision } = this.#office;
    const at = this.#office.moment(revision, SERVED);
    const draft = new Draft(this.#view.state, at.now);
    // Plain loops here and below: every acquire and every release passes them.
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as Pending<Command, Outcome>;
      const { command } = pending;
      const before = draft.state;
      const served = draft.answers.length;
      const step = this.#machine.transition(before, command, served === 0 ? at : { ...at, most: SERVED - served });
      const { outcome } = step;
      pending.outcome = outcome;
      pending.effective = step.state !== before;
      pending.events = pending.effective ? NONE : step.events;
      const { ticket } = command;
      if (ticket !== undefined) {
        // It may have been granted since: then the record has changed, and the grant has to be given back.
        draft.restsOnRecord = true;
        if (!draft.withdrawn.some(({ id }) => id === ticket.id)) draft.withdrawn = [...draft.withdrawn, ticket];
      }
      if (!pending.effective) continue;
      draft.take(step);
      if (pending instanceof ErrandPending) draft.onBehalfOf(pending.errand, pending.place, outcome);
      if (outcome.kind === 'queued') {
        // Somebody who may hold it already must not queue behind itself: that decision rests on the record.
        const request = command as unknown as Request;
        if (pending.uncertain || command.kind !== 'acquire' || request.holder !== request.id)
          draft.restsOnRecord = true;
      } else if (command.kind === 'acquire' || command.kind === 'upgrade') {
        const request = command as unknown as Request;
        draft.newcomers = draft.newcomers.length === 0 ? [request] : [...draft.newcomers, request];
        if (request.lease !== this.#office.sender.id) draft.usesOwnLease = true;
      } else if (outcome.hold !== undefined && command.kind !== 'release') {
        // As it was before: one that was stale already must not come back to life by being changed.
        const { id } = outcome.hold;
        const was = before.record.holds.find((hold) => hold.id === id) as Hold | undefined;
        if (was !== undefined) draft.kept = [...draft.kept, was];
      }
    }
    if (draft.answers.length > 0) draft.countNewcomers(batch);
    return draft;
  }

  /** Nothing would change. That is an answer only if it rests on what was read after it was asked. */
  #refuse(batch: Pending<Command, Outcome>[]): void {
    if (batch.some(({ asked }) => asked > this.#knownSince)) return this.#learn(batch, false);
    for (const pending of batch) this.#settled(pending);
    this.#next();
  }

  #settled(pending: Pending<Command, Outcome>): void {
    if (pending.uncertain && pending.command.kind === 'release' && pending.outcome?.hold === undefined) {
      // It was there when it was sent the first time, and is not any more.
      pending.outcome = { kind: 'released' } as Outcome;
    }
    if (pending.events.length > 0) this.#office.emit(this.resource, pending.events);
    pending.settled(pending.outcome as Outcome);
  }

  #learn(batch: Pending<Command, Outcome>[], wholeQueue: boolean): void {
    const whole = wholeQueue || batch.some(needsWhole);
    const asked = this.#asked;
    // Our own as well: a fence that was thought lost may have landed since, and raised our epoch.
    const { id } = this.#office.sender;
    const leases = id === '' ? this.#leasesKnown() : [...this.#leasesKnown(), id];
    const reads = leases.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    this.#office.commit(
      { compare: [], success: [...viewReads(this.keys, whole), ...reads], failure: [] },
      (result) => {
        this.#failures = 0;
        this.#sawLeases(leases, result.results.slice(3), result.revision);
        this.#adopt(batch, result.results, result.revision, asked, () => {
          if (whole) this.#wholeSince = asked;
          this.#attempt(batch);
        });
      },
      (error) => this.#failed(batch, error),
    );
  }

  #adopt(
    batch: Pending<Command, Outcome>[],
    results: readonly OperationResult[],
    revision: Revision,
    asked: number,
    go: () => void,
  ): void {
    let view: View<State> | undefined;
    try {
      view = learn(this.#machine, results, revision);
    } catch (error) {
      return this.#fail(batch, error);
    }
    if (view === undefined) return this.#learn(batch, true);
    this.#view = view;
    this.#lookedAt = this.#office.monotonic();
    this.#knownSince = asked;
    for (const { lease } of view.state.waiting) {
      // A ticket that was read proves that its lease was alive.
      if (!this.#office.knowsLease(lease)) this.#office.sawLease(lease, 1, revision);
    }
    const hasLanded = this.#inDoubt !== undefined && view.mod !== this.#inDoubt;
    if (hasLanded) this.#inDoubt = undefined;
    if (this.#mustReconcile || hasLanded) {
      this.#mustReconcile = false;
      this.#office.reconcile(this.resource, new Set(view.state.record.holds.map(({ id }) => id)));
    }
    this.#lookUp(batch, go);
  }

  /** Holds may name leases that were never heard of: whether these are alive has to be asked before anyone is refused. */
  #lookUp(batch: Pending<Command, Outcome>[], go: () => void): void {
    const unknown = this.#leasesKnown().filter((lease) => !this.#office.knowsLease(lease));
    if (unknown.length === 0) return go();
    const success = unknown.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    this.#office.commit(
      { compare: [], success, failure: [] },
      (result) => {
        this.#sawLeases(unknown, result.results, result.revision);
        go();
      },
      (error) => this.#failed(batch, error),
    );
  }

  #landed(
    batch: readonly Pending<Command, Outcome>[],
    draft: Draft<State>,
    commit: Commit,
    result: TransactionResult,
    asked: number,
  ): void {
    const view = this.#view;
    const known = commit.changesRecord || draft.restsOnRecord;
    this.#advance(draft, commit, result);
    if (known) this.#knownSince = asked;
    else this.#recordSeen(result, commit);

    let again: Pending<Command, Outcome>[] | undefined;
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as Pending<Command, Outcome>;
      if (pending.effective || known) this.#settled(pending);
      else again = [...(again ?? []), pending];
    }
    for (let i = 0; i < draft.answers.length; i++) {
      this.#office.answer(this.resource, draft.answers[i] as Answer<unknown>);
    }
    for (let i = 0; i < draft.losses.length; i++) this.#office.lose(draft.losses[i] as Loss);
    const mayServeMore = known && !view.complete && view.state.waiting.length === 0;
    const servedAll = draft.answers.length < SERVED;
    if ((mayServeMore || !servedAll) && !this.#machine.isClosed(view.state)) this.settle();
    else if (commit.looksAtQueue && this.#couldServe(view.state)) this.settle();
    if (again === undefined) this.#goOn();
    else this.#attempt(again);
  }

  /** What is known now, after our own write at `revision`. */
  #advance(draft: Draft<State>, commit: Commit, { revision, results }: TransactionResult): void {
    const view = this.#view;
    const { arriving } = commit;
    for (let i = 0; i < draft.answers.length; i++) view.arrivals.delete((draft.answers[i] as Answer<unknown>).id);
    for (let i = 0; i < draft.withdrawn.length; i++) view.arrivals.delete((draft.withdrawn[i] as Ticket).id);
    const wrote = commit.changesRecord || arriving.length > 0;
    const undisturbed = view.complete && revision === view.queueRevision + (wrote ? 1 : 0);
    if (undisturbed || commit.provesQueue) {
      view.complete = true;
      view.queueRevision = revision;
      for (let i = 0; i < arriving.length; i++) view.arrivals.set((arriving[i] as Ticket).id, revision);
      view.state = draft.state;
    } else {
      view.complete = false;
      // Others may have arrived before ours: what is known has to remain the front of the queue.
      view.state = arriving.length === 0 ? draft.state : withoutTickets(draft.state, arriving);
    }
    if (commit.looksAtQueue) this.#sawQueue(results, revision);
    if (commit.changesRecord) {
      view.mod = revision;
      view.by = this.#office.sender.id;
      this.#inDoubt = undefined;
      if (!this.#office.answersAtOnce) this.#lookedAt = this.#office.monotonic();
      this.#crowd.wrote();
    }
    view.revision = revision;
  }

  #sawQueue(results: readonly OperationResult[], revision: Revision): void {
    const view = this.#view;
    try {
      const queue = queueOf(results.slice(-2));
      if (queue === undefined) return;
      view.state = { ...view.state, waiting: queue.waiting };
      view.complete = queue.complete;
      view.arrivals = queue.arrivals;
      view.queueRevision = revision;
    } catch {
      // Whoever decides on it next will tell that it cannot be read.
    }
  }

  /** Tickets came or went without a look at the record. If it would let somebody in, nobody else is going to. */
  #recordSeen(result: TransactionResult, commit: Commit): void {
    const pair = (result.results.at(-1) as ReadResult).pairs[0];
    const view = this.#view;
    const mod = pair?.modRevision ?? 0;
    if (mod !== view.mod) {
      const { unused } = this.#machine;
      try {
        view.state = pair === undefined ? unused : { ...unused, record: recordOf(this.#machine, pair) };
      } catch {
        // Whoever decides on it next will tell that it cannot be read.
        return;
      }
      view.mod = mod;
      view.by = pair === undefined ? undefined : writerOf(pair);
      view.complete = false;
      view.arrivals.clear();
    }
    if (this.#machine.isClosed(view.state) && !view.state.record.holds.some((hold) => this.#mayBeStale(hold))) return;
    if (this.#leasesKnown().some((lease) => !this.#office.knowsLease(lease))) return this.settle();
    // Somebody was passed over as dead: whoever waits behind it, known or not, may be next.
    if (commit.arriving.length === 0) return this.settle();
    if (this.#couldServe({ ...view.state, waiting: commit.arriving })) this.settle();
  }

  #couldServe(state: State): boolean {
    if (state.waiting.length === 0) return false;
    const at = this.#office.moment(this.#office.revision);
    return this.#machine.transition(state, this.#machine.settle, at).state !== state;
  }

  #mayBeStale({ lease, limit }: { readonly lease: string; readonly limit?: string }): boolean {
    const isUnsure = (name: string): boolean => this.#isGone(name) || !this.#office.knowsLease(name);
    return isUnsure(lease) || (limit !== undefined && isUnsure(limit));
  }

  #isGone(lease: string): boolean {
    return this.#office.sender.isGone(lease);
  }

  /** Somebody else was faster. */
  #overtaken(
    batch: Pending<Command, Outcome>[],
    commit: Commit,
    result: TransactionResult,
    asked: number,
    agedMs: number,
  ): void {
    let { results } = result;
    const uncertain = batch.some((pending) => pending.uncertain);
    if (results.length === 0 || uncertain) return this.#learn(batch, uncertain);
    let rest = batch;
    if (commit.fallback.length > 0) {
      const [nested] = results;
      results = results.slice(1);
      if (nested?.do === 'transaction' && nested.succeeded) {
        rest = batch.filter((pending) => !queuedInstead(pending, commit));
      }
    }
    this.#sawLeases(commit.leases, results.slice(3), result.revision);
    rest = rest.filter((pending) => !isOutdated(pending, commit.leases, results.slice(3)));
    const newer = (results[0] as ReadResult).pairs[0]?.modRevision ?? 0;
    if (commit.changesRecord && newer !== this.#view.mod) {
      const winner = (results[0] as ReadResult).pairs[0];
      const by = winner === undefined ? undefined : writerOf(winner);
      this.#crowd.overtaken(agedMs, by !== undefined && by < this.#office.sender.id);
    }
    if (rest.length < batch.length) rest = [...rest, new Unheard(this.#machine.settle)];
    this.#adopt(rest, results, result.revision, asked, () => this.#attempt(rest));
  }

  #failed(batch: Pending<Command, Outcome>[], error: unknown): void {
    if (Failure.is(error, 'unavailable') || Failure.is(error, 'not-found')) {
      return this.#later(batch, error, (rest) => this.#learn(rest, false));
    }
    if (Failure.is(error, 'outcome-unknown')) return this.#recover(batch, error);
    this.#fail(batch, error);
  }

  /** Certainly not applied: the same again in a moment, until each command's time is up. */
  #later(
    batch: readonly Pending<Command, Outcome>[],
    error: unknown,
    again: (rest: Pending<Command, Outcome>[]) => void,
  ): void {
    const rest = this.#inTime(batch, error);
    if (rest.length === 0) return this.#next();
    const delayMs = Math.min(RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS);
    this.#failures += 1;
    const somebodyListens = rest.some((pending) => !(pending instanceof Unheard || pending instanceof ErrandPending));
    this.#office.later(
      delayMs,
      () => {
        // Whoever asked meanwhile comes along: their time may be up before the store comes back.
        this.#pending = this.#inTime(this.#pending, error);
        for (const returned of this.#returned) returned.batch = this.#inTime(returned.batch, returned.error);
        again([...rest, ...this.#pending.splice(0, Math.max(0, BATCH - rest.length))]);
      },
      somebodyListens,
    );
  }

  /** Those whose time is not up yet. The others are told. */
  #inTime(batch: readonly Pending<Command, Outcome>[], error: unknown): Pending<Command, Outcome>[] {
    const now = this.#office.monotonic();
    const rest: Pending<Command, Outcome>[] = [];
    for (const pending of batch) {
      if (pending.until > now) {
        rest.push(pending);
        continue;
      }
      // Whoever asked is told that nobody knows. Should it have been granted, the grant must not stay behind.
      const isWanted = !pending.isOver && pending.leavesRequest;
      if (pending.uncertain && (isWanted || pending.wasGivenUp)) rest.push(withdrawal(pending));
      pending.failed(error);
    }
    return rest;
  }

  /**
   * No answer came, so it may have been applied, and may still be. First nothing of it must be able to land later;
   * then the decision is made again on what the store shows: a request that already holds or waits is recognised by
   * its id. To send it again blindly could apply it twice.
   */
  #recover(batch: Pending<Command, Outcome>[], error: unknown): void {
    for (const pending of batch) pending.doubt();
    this.#mustReconcile = true;
    this.#inDoubt = this.#view.mod;
    this.#office.fence(
      () => {
        const rest = batch.filter((pending) => {
          // Sent again, it could end the hold of somebody who came since.
          if (pending.command.kind === 'break') pending.failed(error);
          return pending.command.kind !== 'break';
        });
        this.#learn(rest, true);
      },
      (again) => {
        if (!Failure.is(again, 'unavailable') && !Failure.is(again, 'outcome-unknown')) return this.#fail(batch, again);
        this.#later(batch, error, (rest) => this.#recover(rest, error));
      },
    );
  }

  #fail(batch: readonly Pending<Command, Outcome>[], error: unknown): void {
    // What another process left here must not be the ruin of those who asked here.
    const asked = batch.filter((pending) => !(pending instanceof ErrandPending));
    if (asked.length > 0 && asked.length < batch.length) return this.#attempt(asked);
    for (const pending of batch) pending.failed(error);
    this.#next();
  }

  /** Of the holds as they are known: whether they are alive is read along with the state. */
  #leasesKnown(): readonly string[] {
    const leases: string[] = [];
    for (const { lease, limit } of this.#view.state.record.holds) {
      leases.push(lease);
      if (limit !== undefined) leases.push(limit);
    }
    return leases.slice(0, 64);
  }

  #sawLeases(leases: readonly string[], results: readonly OperationResult[], revision: Revision): void {
    for (const [place, lease] of leases.entries()) {
      const read = results[place] as ReadResult | undefined;
      if (read !== undefined) this.#office.sawLease(lease, read.pairs[0]?.version, revision);
    }
  }
}

/** Requests that are to wait if they cannot be granted. */
function waitingOf(batch: readonly Pending<AnyCommand, AnyOutcome>[]): readonly Ticket[] {
  const tickets: Ticket[] = [];
  if (batch.some(({ uncertain }) => uncertain)) return tickets;
  for (const pending of batch) {
    const { command } = pending;
    if (command.kind !== 'acquire' || command.wait !== true || pending instanceof ErrandPending) continue;
    // One that is asked again while it is on its way is still one.
    if (!tickets.some(({ id }) => id === command.id)) tickets.push(ticketOf(command as Request & AnyCommand));
  }
  return tickets;
}

/** An errand of one who has raised its epoch since: it has given up on us, and does it itself. */
function isOutdated(pending: unknown, leases: readonly string[], reads: readonly OperationResult[]): boolean {
  if (!(pending instanceof ErrandPending)) return false;
  const { from, epoch } = pending.errand;
  const read = reads[leases.indexOf(from)] as ReadResult | undefined;
  return read !== undefined && read.pairs[0]?.version !== epoch;
}

/** Asked again while it is on its way: were it to end in between, it would be granted once more, to nobody. */
function isRepeat(
  { command, uncertain }: Pick<Pending, 'command' | 'uncertain'>,
  place: number,
  batch: readonly { readonly command: AnyCommand }[],
): boolean {
  if (!uncertain || command.kind !== 'acquire' || batch.length === 1) return false;
  const first = batch.findIndex((other) => other.command.kind === 'acquire' && other.command.id === command.id);
  return first < place;
}

function isSettle({ command }: { readonly command: AnyCommand }): boolean {
  return command.kind === 'settle';
}

/** It may wait or hold already, and the victim of a deadlock may be anywhere in the queue. */
function needsWhole({ command, uncertain }: Pick<Pending, 'command' | 'uncertain'>): boolean {
  return uncertain || command.kind === 'refuse';
}

/** One in doubt has to be decided here: only another write makes sure that the first one does not land any more. */
function isSureSettle(pending: Pick<Pending, 'command' | 'uncertain'>): boolean {
  return isSettle(pending) && !pending.uncertain;
}

/** Takes back what somebody asked for who does not want it any more. */
function withdrawal<Command extends AnyCommand, Outcome>({
  command,
}: Pending<Command, Outcome>): Unheard<Command, Outcome> {
  const ticket = ticketOf(command as unknown as Request & AnyCommand);
  const cancel: AnyCommand = { kind: 'cancel', id: ticket.id, ticket };
  return new Unheard(cancel as Command);
}

function queuedInstead(pending: Pending<AnyCommand, AnyOutcome>, commit: Commit): boolean {
  if (!commit.fallback.some(({ id }) => id === pending.command.id)) return false;
  pending.settled({ kind: 'queued' });
  return true;
}

function withoutTickets<State extends Coordinated>(state: State, tickets: readonly Ticket[]): State {
  return { ...state, waiting: state.waiting.filter((request) => !tickets.includes(request)) };
}
