/**
 * One request on its way to a hold: submitted, perhaps waiting, then granted or refused. A time limit or an abort may end it
 * at any moment; a grant that arrives later is given back.
 */
import type { Timer } from '../../clock.ts';
import type { Hold, Request, Wish } from '../../core/index.ts';
import type { Failure } from '../../failure.ts';
import { backoffMs } from '../write/backoff.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import { wrongGrant } from '../layout.ts';
import {
  type AnyCommand,
  type AnyOutcome,
  PendingCommand,
  type Ticket,
  ticketOf,
  BackgroundCommand,
  Again,
} from '../write/pending-command.ts';
import { onAbort, tellHolders, type WaitOptions, type WaitStatus } from './wait-limits.ts';
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Trace } from '../tracer.ts';
import type { Waiter } from './lookout.ts';

/** Makes the caller's value of an outcome; undefined if the outcome is a refusal. */
export type Deliver<T, Options> = (outcome: AnyOutcome, options: Options, of: Granted) => T | Promise<T> | undefined;

/** Where a grant came from. */
export interface Granted {
  readonly runtime: Runtime;
  readonly writer: ResourceWriter;
}

export class Acquisition<T, Options extends WaitOptions | undefined> extends PendingCommand implements Waiter {
  readonly writer: ResourceWriter;
  readonly process: string;
  readonly runtime: Runtime;
  readonly #options: Options;
  readonly #deliver: Deliver<T, Options>;
  readonly #resolve: (value: T | Promise<T>) => void;
  readonly #reject: (error: unknown) => void;
  #timer: Timer | undefined;
  #onAbort: (() => void) | undefined;
  #isExpected = false;
  #toldWaiting = false;
  /** Who held it when the request began to wait. */
  #holders: readonly Hold[] = [];
  /** When its caller asked, on the monotonic clock, if that was before this was made. */
  readonly #since: number | undefined;
  /** Whether another holder was in the way; unknown until the request is queued. */
  #met: boolean | undefined;
  readonly #trace: Trace | undefined;
  /** Set for a request whose caller does not wait here: once it is queued, it is left in the queue. */
  parks: ((id: string, status: WaitStatus) => T) | undefined;
  /** How often it was submitted again, because its grant was a re-entry into an abandoned hold. */
  #anew = 0;
  /** After `answered`, later answers are ignored. After `given-up`, it leaves the queue, and a later grant has to go back. */
  #end: 'answered' | 'given-up' | undefined;

  constructor(
    runtime: Runtime,
    writer: ResourceWriter,
    command: AnyCommand,
    process: string,
    options: Options,
    deliver: Deliver<T, Options>,
    resolve: (value: T | Promise<T>) => void,
    reject: (error: unknown) => void,
    until = runtime.giveUpAt(),
    since?: number,
  ) {
    super(command, until);
    this.#since = since;
    this.runtime = runtime;
    this.writer = writer;
    this.process = process;
    this.#options = options;
    this.#deliver = deliver;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#trace = runtime.measures.tracer?.begin('acquire', { resource: writer.resource, holder: this.holder });
  }

  /** The ticket of the request. */
  override get ticket(): Ticket {
    return ticketOf(this.command as Request & AnyCommand);
  }

  get #ticketId(): string {
    const { id, request } = this.command as { readonly id: string; readonly request?: string };
    return request ?? id;
  }

  get holder(): string {
    return (this.command as Request & AnyCommand).holder;
  }

  override get isOver(): boolean {
    return this.#end !== undefined;
  }

  override get wasGivenUp(): boolean {
    return this.#end === 'given-up' && this.leavesRequest;
  }

  override get leavesRequest(): boolean {
    return this.command.kind === 'acquire' || this.command.kind === 'upgrade';
  }

  ask(): void {
    if (this.#options !== undefined && this.#isAbortedOr(this.#options)) return;
    // The grant may arrive before the outcome `queued`, except on a store that answers at once.
    if (this.command.wait === true && !this.runtime.answersAtOnce) this.#expect();
    this.writer.submit(this);
  }

  #isAbortedOr({ signal, waitMs }: WaitOptions): boolean {
    if (signal?.aborted === true) {
      this.#giveUp({ kind: 'aborted', reason: signal.reason as unknown }, false);
      return true;
    }
    if (signal !== undefined) {
      this.#onAbort = () => this.#giveUp({ kind: 'aborted', reason: signal.reason as unknown }, true);
      onAbort(signal, this.#onAbort);
    }
    if (waitMs !== undefined && waitMs > 0) {
      this.#timer = this.runtime.clock.timer(waitMs, () => this.#timedOut(waitMs));
    }
    return false;
  }

  askAgain(): void {
    if (!this.isOver && !this.isDelegated) this.writer.submit(new Again(this));
  }

  override settled(outcome: AnyOutcome): void {
    if (outcome.kind !== 'queued') return this.#answered(outcome);
    this.#met ??= (outcome as { readonly isHeld?: boolean }).isHeld ?? true;
    if (this.#end === 'given-up') return this.#withdraw();
    if (this.isOver) return;
    if (this.parks !== undefined) return this.#park(this.parks, outcome as WaitStatus);
    if (!this.#isExpected) this.#expect();
    try {
      this.#holders = (outcome as WaitStatus).holders ?? [];
      if (!this.#toldWaiting) this.#options?.onWaiting?.(outcome as WaitStatus);
      this.#toldWaiting = true;
    } catch (error) {
      // The callback threw: its caller gets the error. Thrown further, it would stop the writer for all other commands.
      this.#finish('given-up');
      this.#withdraw();
      return this.#refuse(error);
    }
    // A request without an explicit holder holds nothing else, so nobody can be waiting for it.
    if (this.holder !== this.command.id) this.runtime.waitChanged();
  }

  #park(parks: (id: string, status: WaitStatus) => T, status: WaitStatus): void {
    const id = this.#ticketId;
    this.runtime.remembered.park(id, this.writer.resource, this.holder, this.#askedAt);
    this.#finish('answered');
    this.#trace?.end('queued', false);
    if (this.#met === true) this.runtime.measures.of(this.writer.resource).conflict();
    if (this.holder !== this.command.id) this.runtime.waitChanged();
    this.#resolve(parks(id, status));
  }

  override failed(error: unknown): void {
    if (this.isOver) return;
    this.#finish('answered');
    this.#refuse(error);
  }

  /** The answer to a request that waited. It may come before the outcome `queued`. */
  answered(outcome: unknown): void {
    this.#met ??= true;
    this.#answered(outcome);
  }

  #answered(outcome: unknown): void {
    const granted = outcome as AnyOutcome;
    if (this.#end === 'given-up' && granted.hold !== undefined) this.#withdraw();
    // The request was sent again, and granted again after its first grant was lost: no hold object has this grant.
    const { id } = this.command;
    const isParked = this.#end === 'answered' && this.runtime.answeredParked(id ?? '', outcome);
    if (isParked) return;
    if (this.#end === 'answered' && granted.hold?.id === id && !this.runtime.hasHold(id ?? '')) this.#withdraw();
    if (this.isOver) return;
    const { hold } = granted;
    if (hold !== undefined && hold.id !== id && this.runtime.isForsaken(hold)) return this.#askAnew(hold);
    // The request may have been sent again before this answer came, and be in the queue a second time, where no caller waits for
    // it.
    const isDone = hold === undefined || granted.kind === 'extended' || granted.kind === 'already-held';
    this.#finish(isDone ? 'given-up' : 'answered');
    // Checked here and not earlier: this is the last moment before control returns to the caller.
    if (granted.hold !== undefined && this.runtime.session?.id !== this.process) {
      return this.#refuse(new NotAcquired(this.writer.resource, { kind: 'session-lost' }));
    }
    if (this.holder !== this.command.id) this.runtime.grantedTo(this.holder, this.writer.resource);
    if (granted.hold !== undefined && this.runtime.wasLostEarly(granted.hold.id, granted.hold.token)) {
      return this.#refuse(new NotAcquired(this.writer.resource, { kind: 'lost' }));
    }
    const fault = hold === undefined ? undefined : wrongGrant(this.writer.resource, this.#askedFor, hold);
    if (fault !== undefined) {
      this.#withdraw();
      return this.#refuse(fault);
    }
    const value = this.#deliver(granted, this.#options, this);
    if (value === undefined) return this.#refuse(new NotAcquired(this.writer.resource, this.#refusalOf(granted)));
    if (hold === undefined) this.#measureFailure(granted.kind);
    else if (value instanceof Promise)
      value.then(
        () => this.#measureGrant(granted),
        () => this.#measureFailure('lost'),
      );
    else this.#measureGrant(granted);
    this.#resolve(value);
  }

  #refuse(error: unknown): void {
    if (this.#trace !== undefined || this.command.kind === 'acquire') {
      this.#measureFailure(error instanceof NotAcquired ? error.refusal.kind : 'error');
    }
    this.#reject(error);
  }

  /** Counts an acquire that ended without a hold. An upgrade is no acquire: its holder has the lock. */
  #measureFailure(why: string): void {
    this.#trace?.end(why, true);
    if (this.command.kind !== 'acquire') return;
    const measures = this.runtime.measures.of(this.writer.resource);
    measures.failed();
    if (this.#met ?? (why === 'busy' || why === 'full' || why === 'timed-out')) measures.conflict();
  }

  #measureGrant(granted: AnyOutcome): void {
    const { measures } = this.runtime;
    if (this.#trace !== undefined) this.#traceGrant(granted, this.#trace);
    if (this.command.kind !== 'acquire') return;
    const counted = measures.of(this.writer.resource);
    // The session was checked a moment ago, and read the clock.
    counted.acquired(Math.max(0, this.runtime.lookedAt - this.#askedAt));
    if (this.#met === true) counted.conflict();
    if (granted.kind === 'reclaimed') counted.claimedStale((granted as { from?: readonly Hold[] }).from?.length ?? 1);
  }

  get #askedAt(): number {
    return this.#since ?? this.until - this.runtime.options.requestTimeoutMs;
  }

  #traceGrant({ kind, hold }: AnyOutcome, trace: Trace): void {
    const fields = { token: hold?.token ?? 0 };
    trace.end(kind, false, fields);
    // A re-entry and a detached hold have no hold of their own here.
    const isDetached = (this.command as { readonly detached?: true }).detached === true;
    if (this.command.kind !== 'acquire' || isDetached || hold === undefined || hold.id !== this.command.id) return;
    const next = trace.next('hold', { resource: this.writer.resource, holder: this.holder, ...fields });
    const kept = this.runtime.holds.get(hold.id);
    // It is gone already, or is not kept here.
    if (kept === undefined) next.end('detached', false);
    else kept.trace = next;
  }

  /** What the grant is checked against. An upgrade changes an existing hold, which keeps its lease. */
  get #askedFor(): Wish {
    const { command } = this;
    if (command.kind !== 'upgrade') return command as Request & AnyCommand;
    return { id: '', holder: this.holder, lease: '', mode: 'exclusive' };
  }

  /** The grant breaks a promise: it goes back, and the caller gets the error. */
  inconsistent(failure: Failure): void {
    if (this.isOver) return;
    this.#finish('given-up');
    this.#withdraw();
    this.#refuse(failure);
  }

  /** With `waitMs: 0`, a busy resource is a wait that timed out at once. */
  #refusalOf(outcome: AnyOutcome): Refusal {
    const isInVain = this.command.kind === 'acquire' && (outcome.kind === 'busy' || outcome.kind === 'full');
    if (isInVain && this.#options?.waitMs === 0) {
      const { holders = [] } = outcome as WaitStatus;
      return { kind: 'timed-out', waitedMs: 0, holders: this.#others(holders) };
    }
    return outcome as unknown as Refusal;
  }

  /**
   * The grant re-enters a hold of this process that has ended here and is still in the record; its release is on the way. A
   * request that may wait is submitted again until the hold is gone; one that may not is refused.
   */
  #askAnew(hold: Hold): void {
    if (this.runtime.session?.id !== this.process) return this.sessionEnded();
    const anew = this.#anew++;
    if (this.command.wait !== true && anew > 0) {
      const isLock = this.writer.resource.startsWith('lock/');
      const holders = [hold];
      return this.#answered(isLock ? { kind: 'busy', holders } : { kind: 'full', free: 0, holders });
    }
    // Sent as a repeat: the same answer may come twice, from a letter and the writer, and a write may have this request now.
    const ask = (): void => {
      if (!this.isOver) this.writer.submit(new Again(this, this.runtime.giveUpAt()));
    };
    // Without a pause the first time: the same writer already has the command that ends the hold.
    if (anew === 0) ask();
    else this.runtime.later(backoffMs(anew - 1), ask);
  }

  sessionEnded(): void {
    this.#giveUp({ kind: 'session-lost' }, false);
  }

  closed(): void {
    this.#giveUp({ kind: 'closed' }, true);
  }

  #giveUp(refusal: Refusal, withdraw: boolean): void {
    if (this.isOver) return;
    this.#finish('given-up');
    if (withdraw) this.#withdraw();
    this.#refuse(new NotAcquired(this.writer.resource, refusal));
  }

  /** Looks up the holder, so that the refusal can name it: since this request began to wait, the holder may have changed. */
  #timedOut(waitedMs: number): void {
    if (this.isOver) return;
    this.#finish('given-up');
    this.#withdraw();
    const { resource } = this.writer;
    tellHolders(this.runtime, resource, this.#holders, (holders) => {
      this.#refuse(new NotAcquired(resource, { kind: 'timed-out', waitedMs, holders: this.#others(holders) }));
    });
  }

  /** A holder that waits for more is not in its own way. */
  #others(holders: readonly Hold[]): readonly Hold[] {
    return holders.filter(({ holder }) => holder !== this.holder);
  }

  #expect(): void {
    this.#isExpected = true;
    this.runtime.awaits(this.#ticketId, this);
  }

  #finish(end: 'answered' | 'given-up'): void {
    this.#end = end;
    if (this.#isExpected) this.runtime.awaitsNoMore(this.#ticketId);
    this.#timer?.cancel();
    if (this.#onAbort !== undefined) this.#options?.signal?.removeEventListener('abort', this.#onAbort);
  }

  /** Takes the request out of the queue; if it was granted meanwhile, the grant goes back. */
  #withdraw(): void {
    const { ticket } = this;
    this.writer.submit(new BackgroundCommand({ kind: 'cancel', id: ticket.id, ticket }));
  }
}

/** A reader that wants to become the writer waits under a request of its own. */
export class UpgradeAcquisition<T> extends Acquisition<T, WaitOptions | undefined> {
  override get ticket(): Ticket {
    const { holder, id, request, lease } = this.command as unknown as Request & { readonly request: string };
    return { id: request, holder, lease, priority: 0, upgrades: id };
  }
}
