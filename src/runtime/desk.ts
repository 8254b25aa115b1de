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
import type { Answer, Loss, Moment } from '../core/index.ts';
import type { KeyValue, OperationResult, ReadResult, Revision, TransactionResult } from '../store/index.ts';
import { fitting, goesOn, isOutdated, isRepeat, needsWhole, queuedInstead, waitingOf, withdrawal } from './batch.ts';
import { type Commit, commitOf } from './commit.ts';
import { Crowd, type Leaving } from './crowd.ts';
import { decide } from './decide.ts';
import type { Draft } from './draft.ts';
import { ErrandPending } from './errands.ts';
import { Knowledge } from './knowledge.ts';
import { anchorKey, type Errand, type Report, type ResourceKeys, resourceKeys, ticketKey } from './layout.ts';
import type { Coordinated, Machine } from './machines.ts';
import { MOST_MARKS } from './marks.ts';
import type { Office } from './office.ts';
import { type Attempt, Persistence } from './persistence.ts';
import { type AnyCommand, type AnyOutcome, type Pending, Unheard } from './pending.ts';
import { learn, recordOf, type View, viewReads, writerOf } from './view.ts';

/** So many of those who wait are served by one transaction; stores limit its operations. */
const SERVED = 32;

export class Desk<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome> implements Leaving<
  Command,
  Outcome
> {
  readonly resource: string;
  readonly keys: ResourceKeys;
  readonly #machine: Machine<State, Command, Outcome>;
  readonly #office: Office;
  readonly #known: Knowledge<State>;
  readonly #crowd: Crowd<Command, Outcome>;
  #asked = 0;
  #pending: Pending<Command, Outcome>[] = [];
  #busy = false;
  #onIdle: (() => void)[] = [];
  readonly #persistence: Persistence;
  /** A write without an answer may land for as long as the record is still the one of this revision. */
  #inDoubt: Revision | undefined;
  /** Left to another process, and not answered. */
  readonly #returned: { batch: Pending<Command, Outcome>[]; readonly error: unknown }[] = [];

  constructor(machine: Machine<State, Command, Outcome>, name: string, office: Office) {
    this.#machine = machine;
    this.#office = office;
    this.resource = `${machine.kind}/${name}`;
    this.keys = resourceKeys(machine.kind, name);
    this.#known = new Knowledge(machine, office);
    this.#crowd = new Crowd(this, office);
    this.#persistence = new Persistence(office);
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

  /** How many living requests were before this one when the queue was last seen; undefined if it was not seen among them. */
  placeOf(id: string): number | undefined {
    const { waiting } = this.#known.view.state;
    const place = waiting.findIndex((request) => request.id === id);
    if (place < 0) return undefined;
    return waiting.slice(0, place).filter(({ lease }) => !this.#office.sender.isGone(lease)).length;
  }

  /** Whether a hold in the record hangs on this lease. Throws if the record cannot be read. */
  hasHoldOf(lease: string, record: KeyValue): boolean {
    return recordOf(this.#machine, record).holds.some((hold) => hold.lease === lease);
  }

  /** Resolves once nothing is on its way any more: neither what was asked, nor what was given up. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#busy || this.#crowd.isUnderWay) this.#onIdle.push(resolve);
      else resolve();
    });
  }

  /** Left to another process, and not answered: it has to be decided here. */
  returned(batch: Pending<Command, Outcome>[], error: unknown): void {
    this.#returned.push({ batch, error });
    if (this.#busy) return;
    this.#busy = true;
    this.#next();
  }

  /** Something that was under way has ended. */
  tellIfIdle(): void {
    if (this.#onIdle.length === 0 || this.#busy || this.#crowd.isUnderWay) return;
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
    this.#crowd.carryOut(errand, this.#known.keeper);
  }

  /**
   * Serves the queue on behalf of whoever waits in this process. `looksFirst`: many processes do so at once, and a look keeps
   * none of them from writing. All but the first find that it was done.
   */
  settle(looksFirst = false): void {
    const settle = new Unheard<Command, Outcome>(this.#machine.settle);
    settle.looksFirst = looksFirst;
    this.submit(settle);
  }

  /** Somebody else wrote the record at `revision`, and says what it knows. */
  hear(report: Report, revision: Revision): void {
    this.#known.hear(report, revision);
    if (!this.#busy) this.#takeOverHeard();
  }

  #takeOverHeard(): void {
    this.#known.takeOverHeard();
    this.#resolveDoubt();
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

  #attempt(batch: Pending<Command, Outcome>[]): void {
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as Pending<Command, Outcome>;
      if (pending.isOver) return this.#attempt(batch.filter(({ isOver }) => !isOver));
      pending.attempts += 1;
      // Only the whole state, read after it was asked, can tell.
      if (pending.looksFirst && pending.asked > this.#known.since) return this.#learn(batch, false);
      if (needsWhole(pending) && pending.asked > this.#known.wholeSince) return this.#learn(batch, true);
    }
    if (batch.length === 0) return this.#next();
    if (batch.some(({ mark, uncertain }) => uncertain && mark !== undefined)) {
      const rest = this.#withoutMarked(batch);
      if (rest.length < batch.length) return this.#attempt(rest);
    }
    if (batch.some((pending, place) => isRepeat(pending, place, batch))) {
      return this.#attempt(batch.filter((pending, place) => !isRepeat(pending, place, batch)));
    }
    const office = this.#office;
    const { view } = this.#known;
    // Who waits is not known any more, only that somebody does: whatever is decided without them would be in vain.
    if (view.othersWait && view.state.waiting.length === 0) return this.#learn(batch, false);
    let draft: Draft<State>;
    let commit: Commit | undefined;
    try {
      draft = decide(this.#machine, view.state, batch, this.#moment(SERVED), office.sender.id);
      if (draft.state === view.state && draft.withdrawn.length === 0) return this.#refuse(batch);
      const changesRecord = draft.state.record !== view.state.record;
      if (this.#crowd.takes(this.#known.keeper, batch, changesRecord)) return this.#next();
      const mayQueue = office.answersAtOnce ? undefined : waitingOf(batch);
      const isClosed = this.#machine.isClosed(draft.state);
      commit = commitOf(this.keys, view, draft, office.sender, isClosed, mayQueue, this.#crowd.isKept);
    } catch (error) {
      return this.#fail(batch, error);
    }
    if (commit === undefined) return this.#learn(batch, true);
    const sent = commit;
    const asked = this.#asked;
    const { agedMs } = this.#known;
    office.commit(
      sent.transaction,
      (result) => {
        this.#persistence.answered();
        if (result.succeeded) this.#landed(batch, draft, sent, result, asked);
        else this.#overtaken(batch, sent, result, asked, agedMs);
      },
      (error) => this.#failed(batch, error),
    );
  }

  /** Nothing would change. That is an answer only if it rests on what was read after it was asked. */
  #refuse(batch: Pending<Command, Outcome>[]): void {
    if (batch.some(({ asked }) => asked > this.#known.since)) return this.#learn(batch, false);
    for (const pending of batch) this.settled(pending);
    this.#next();
  }

  /** Tells whoever asked. */
  settled(pending: Pending<Command, Outcome>): void {
    if (pending.command.kind === 'release' && pending.outcome?.hold === undefined && pending.sent?.outcome) {
      // It was there when it was sent the first time, and is not any more.
      pending.outcome = pending.sent.outcome;
    }
    if (pending.events.length > 0) this.#office.emit(this.resource, pending.events);
    pending.settled(pending.outcome as Outcome);
  }

  #learn(batch: Pending<Command, Outcome>[], wholeQueue: boolean): void {
    const whole = wholeQueue || batch.some(needsWhole);
    const asked = this.#asked;
    // Our own as well: a fence that was thought lost may have landed since, and raised our epoch.
    const { id } = this.#office.sender;
    const leases = id === '' ? this.#known.leases() : [...this.#known.leases(), id];
    const reads = leases.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    this.#office.commit(
      { compare: [], success: [...viewReads(this.keys, whole), ...reads], failure: [] },
      (result) => {
        this.#persistence.read();
        this.#known.sawLeases(leases, result.results.slice(3), result.revision);
        this.#adopt(batch, result.results, result.revision, asked, () => {
          if (whole) this.#known.wholeSince = asked;
          this.#attempt(batch);
        });
      },
      (error) => this.#persistence.unread(error, this.#again(batch)),
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
    this.#adoptView(batch, view, asked, go);
  }

  /** Without a view, more of the queue has to be read. */
  #adoptView(batch: Pending<Command, Outcome>[], view: View<State> | undefined, asked: number, go: () => void): void {
    if (view === undefined) return this.#learn(batch, true);
    this.#known.adopt(view, asked);
    this.#resolveDoubt();
    this.#lookUp(batch, go);
  }

  /** What was in doubt has landed, or cannot any more: it may have concerned others in this process. */
  #resolveDoubt(): void {
    const { mod, state } = this.#known.view;
    if (this.#inDoubt === undefined || this.#inDoubt === mod) return;
    this.#inDoubt = undefined;
    this.#office.reconcile(this.resource, new Set(state.record.holds.map(({ id }) => id)));
  }

  /** Holds may name leases that were never heard of: whether these are alive has to be asked before anyone is refused. */
  #lookUp(batch: Pending<Command, Outcome>[], go: () => void): void {
    const unknown = this.#known.unknownLeases();
    if (unknown.length === 0) return go();
    const success = unknown.map((lease) => ({ do: 'read' as const, key: anchorKey(lease) }));
    this.#office.commit(
      { compare: [], success, failure: [] },
      (result) => {
        this.#known.sawLeases(unknown, result.results, result.revision);
        // There may be more of them than one transaction can read.
        this.#lookUp(batch, go);
      },
      (error) => this.#persistence.unread(error, this.#again(batch)),
    );
  }

  #landed(
    batch: readonly Pending<Command, Outcome>[],
    draft: Draft<State>,
    commit: Commit,
    result: TransactionResult,
    asked: number,
  ): void {
    const { view } = this.#known;
    const known = commit.changesRecord || draft.restsOnRecord;
    this.#known.advance(draft, commit, result);
    if (commit.changesRecord) {
      this.#inDoubt = undefined;
      this.#crowd.wrote();
    }
    if (known) this.#known.since = asked;
    else this.#recordSeen(result, commit);

    let again: Pending<Command, Outcome>[] | undefined;
    for (let i = 0; i < batch.length; i++) {
      const pending = batch[i] as Pending<Command, Outcome>;
      if (goesOn(pending) || !(pending.effective || known)) again = [...(again ?? []), pending];
      else this.settled(pending);
    }
    for (let i = 0; i < draft.answers.length; i++) {
      this.#office.answer(this.resource, draft.answers[i] as Answer<unknown>);
    }
    for (let i = 0; i < draft.losses.length; i++) this.#office.lose(draft.losses[i] as Loss);
    const mayServeMore = known && !view.complete && view.state.waiting.length === 0;
    const servedAll = draft.touched < SERVED;
    // Those who wait behind a stale hold may have it now, and need not be known here.
    const isConfigured = commit.changesRecord && batch.some(({ command }) => command.kind === 'configure');
    const isOpen = !this.#machine.isClosed(view.state) || (isConfigured && this.#known.mayBeStale());
    if (!servedAll || (mayServeMore && isOpen)) this.settle();
    else if (commit.looksAtQueue && this.#couldServe(view.state)) this.settle();
    if (again === undefined) this.#goOn();
    else this.#attempt(again);
  }

  /** Tickets came or went without a look at the record. If it would let somebody in, nobody else is going to. */
  #recordSeen({ results }: TransactionResult, commit: Commit): void {
    if (!this.#known.sawRecord(results.at(-1) as ReadResult)) return;
    this.#resolveDoubt();
    const { view } = this.#known;
    const couldBeServed = (): boolean => this.#couldServe({ ...view.state, waiting: commit.arriving });
    if (this.#machine.isClosed(view.state) && !this.#known.mayBeStale()) {
      // What it waits for may be there no more, or never have been: it was decided on an older record.
      if (couldBeServed()) this.settle();
      return;
    }
    if (this.#known.unknownLeases().length > 0) return this.settle();
    // Somebody was passed over as dead: whoever waits behind it, known or not, may be next.
    if (commit.arriving.length === 0) return this.settle();
    if (couldBeServed()) this.settle();
  }

  #couldServe(state: State): boolean {
    if (state.waiting.length === 0) return false;
    return this.#machine.transition(state, this.#machine.settle, this.#moment()).state !== state;
  }

  #moment(most?: number): Moment {
    return this.#office.moment(this.#office.revision, most);
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
    const [nested] = results;
    if (commit.fallback.length > 0) results = results.slice(1);
    const areQueued = commit.fallback.length > 0 && nested?.do === 'transaction' && nested.succeeded;
    let view: View<State> | undefined;
    try {
      view = learn(this.#machine, results, result.revision);
    } catch (error) {
      if (areQueued) this.#takeBack(commit);
      return this.#fail(batch, error);
    }
    if (areQueued) rest = batch.filter((pending) => !queuedInstead(pending, commit));
    this.#known.sawLeases(commit.leases, results.slice(3), result.revision);
    rest = rest.filter((pending) => !isOutdated(pending, commit.leases, results.slice(3)));
    const newer = (results[0] as ReadResult).pairs[0]?.modRevision ?? 0;
    if (commit.changesRecord && newer !== this.#known.view.mod) {
      const winner = (results[0] as ReadResult).pairs[0];
      this.#crowd.overtaken(agedMs, winner === undefined ? undefined : writerOf(winner));
    }
    if (rest.length < batch.length) rest = [...rest, new Unheard(this.#machine.settle)];
    this.#adoptView(rest, view, asked, () => this.#attempt(rest));
  }

  /** Nobody could ever be served from a queue whose record cannot be read: those who asked are told so, and wait no more. */
  #takeBack({ fallback }: Commit): void {
    const success = fallback.map((ticket) => ({ do: 'delete' as const, key: ticketKey(this.keys, ticket) }));
    // Should this fail too, the tickets go with the session.
    this.#office.commit({ compare: [], success, failure: [] }, ignore, ignore);
  }

  #failed(batch: Pending<Command, Outcome>[], error: unknown): void {
    this.#persistence.failed(error, this.#again(batch));
  }

  /** How a batch goes on that the store did not answer. */
  #again(batch: Pending<Command, Outcome>[]): Attempt {
    let rest = batch;
    return {
      doubted: (error) => {
        const { mod } = this.#known.view;
        this.#inDoubt = mod;
        for (const pending of rest) pending.doubted(error, mod);
      },
      fence: (done, failed) => this.#office.fence(done, failed),
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
        if (afterDoubt) return this.#learn(rest, true);
        // Whoever asked meanwhile comes along.
        const all = [...rest, ...this.#pending];
        const count = Math.max(rest.length, fitting(all));
        this.#pending = all.slice(count);
        this.#learn(all.slice(0, count), false);
      },
      failed: (error) => this.#fail(rest, error),
      keepsAlive: rest.some((pending) => !(pending instanceof Unheard || pending instanceof ErrandPending)),
    };
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
      pending.failed(pending.sent?.error ?? error);
    }
    return rest;
  }

  /**
   * What became of commands that can only be known by their mark. If the record does not have it, it has not landed, and
   * never will: it rests on a record that is not there any more, or will not be after the next attempt. But a `break` means
   * those who held it then.
   */
  #withoutMarked(batch: Pending<Command, Outcome>[]): Pending<Command, Outcome>[] {
    const { mod, marks } = this.#known.view;
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

  #fail(batch: readonly Pending<Command, Outcome>[], error: unknown): void {
    // What another process left here must not be the ruin of those who asked here.
    const asked = batch.filter((pending) => !(pending instanceof ErrandPending));
    if (asked.length > 0 && asked.length < batch.length) return this.#attempt(asked);
    for (const pending of batch) pending.failed(error);
    this.#next();
  }
}

function ignore(): void {}
