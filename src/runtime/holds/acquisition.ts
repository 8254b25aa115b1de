/**
 * One request on its way to a hold: asked, perhaps waiting, then granted or refused. A time limit or an abort ends
 * it at any moment; a grant that was on its way already is then given back.
 */
import type { Timer } from '../../clock.ts';
import type { Hold, Request, Wish } from '../../core/index.ts';
import type { Failure } from '../../failure.ts';
import { backoffMs } from '../write/backoff.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import { wrongGrant } from '../layout.ts';
import type { Coordinated } from '../write/machines.ts';
import {
  type AnyCommand,
  type AnyOutcome,
  PendingCommand,
  type Ticket,
  ticketOf,
  BackgroundCommand,
} from '../write/pending-command.ts';
import { NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import type { Waiter } from './waiters.ts';

/** What a writer has to be for this: any machine's. */
export type AnyWriter = ResourceWriter<Coordinated, AnyCommand, AnyOutcome>;

export interface WaitStatus {
  /** The place in the queue, if it is known. */
  readonly position?: number;
  readonly holders?: readonly Hold[];
}

export interface WaitOptions {
  /** How long to wait at most; without it, as long as it takes. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  /** Told once the request has to wait. */
  readonly onWaiting?: (waiting: WaitStatus) => void;
}

/** Makes the answer of an outcome; undefined if it is a refusal. */
export type Deliver<T, Options> = (outcome: AnyOutcome, options: Options) => T | Promise<T> | undefined;

export class Acquisition<T, Options extends WaitOptions | undefined> extends PendingCommand implements Waiter {
  readonly writer: AnyWriter;
  readonly process: string;
  readonly #runtime: Runtime;
  readonly #options: Options;
  readonly #deliver: Deliver<T, Options>;
  readonly #resolve: (value: T | Promise<T>) => void;
  readonly #reject: (error: unknown) => void;
  #timer: Timer | undefined;
  #onAbort: (() => void) | undefined;
  #isExpected = false;
  #toldWaiting = false;
  /** How often it was asked anew, because what it was given rested on nothing. */
  #anew = 0;
  /** Answered: whatever comes after that is old news. Given up: whatever comes after that has to go back. */
  #end: 'answered' | 'given-up' | undefined;

  constructor(
    runtime: Runtime,
    writer: AnyWriter,
    command: AnyCommand,
    process: string,
    options: Options,
    deliver: Deliver<T, Options>,
    resolve: (value: T | Promise<T>) => void,
    reject: (error: unknown) => void,
  ) {
    super(command, runtime.giveUpAt());
    this.#runtime = runtime;
    this.writer = writer;
    this.process = process;
    this.#options = options;
    this.#deliver = deliver;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** The request as it waits. */
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
    // An answer may arrive before the word that it had to wait; not so where the store answers at once.
    if (this.command.wait === true && !this.#runtime.answersAtOnce) this.#expect();
    this.writer.submit(this);
  }

  #isAbortedOr({ signal, waitMs }: WaitOptions): boolean {
    if (signal?.aborted === true) {
      this.#giveUp({ kind: 'aborted', reason: signal.reason as unknown }, false);
      return true;
    }
    if (signal !== undefined) {
      this.#onAbort = () => this.#giveUp({ kind: 'aborted', reason: signal.reason as unknown }, true);
      signal.addEventListener('abort', this.#onAbort, { once: true });
    }
    if (waitMs !== undefined && waitMs > 0) {
      this.#timer = this.#runtime.clock.timer(waitMs, () =>
        this.#giveUp({ kind: 'timed-out', waitedMs: waitMs }, true),
      );
    }
    return false;
  }

  askAgain(): void {
    if (!this.isOver && !this.isDelegated) this.writer.submit(new Again(this));
  }

  override settled(outcome: AnyOutcome): void {
    if (outcome.kind !== 'queued') return this.answered(outcome);
    if (this.#end === 'given-up') return this.#withdraw();
    if (this.isOver) return;
    if (!this.#isExpected) this.#expect();
    try {
      if (!this.#toldWaiting) this.#options?.onWaiting?.(outcome as WaitStatus);
      this.#toldWaiting = true;
    } catch (error) {
      // Its own bug: told to the one who asked. Thrown on, it would stop the writer for everybody.
      this.#finish('given-up');
      this.#withdraw();
      return this.#reject(error);
    }
    // Without an explicit holder a request holds nothing else, so nobody can be waiting for it.
    if (this.holder !== this.command.id) this.#runtime.waitChanged();
  }

  override failed(error: unknown): void {
    if (this.isOver) return;
    this.#finish('answered');
    this.#reject(error);
  }

  answered(outcome: unknown): void {
    const granted = outcome as AnyOutcome;
    if (this.#end === 'given-up' && granted.hold !== undefined) this.#withdraw();
    // Asked again, it was granted again after the first grant had been lost: nobody has this one in hand.
    const { id } = this.command;
    if (this.#end === 'answered' && granted.hold?.id === id && !this.#runtime.holdings.has(id ?? '')) this.#withdraw();
    if (this.isOver) return;
    const { hold } = granted;
    if (hold !== undefined && hold.id !== id && this.#runtime.isForsaken(hold)) return this.#askAnew(hold);
    this.#finish('answered');
    // Checked here and not earlier: this is the last moment before control goes back to the one who asked.
    if (granted.hold !== undefined && this.#runtime.session?.id !== this.process) {
      return this.#reject(new NotAcquired(this.writer.resource, { kind: 'session-lost' }));
    }
    if (this.holder !== this.command.id) this.#runtime.grantedTo(this.holder);
    if (granted.hold !== undefined && this.#runtime.holdings.wasLostEarly(granted.hold.id, granted.hold.token)) {
      return this.#reject(new NotAcquired(this.writer.resource, { kind: 'lost' }));
    }
    const fault = hold === undefined ? undefined : wrongGrant(this.writer.resource, this.#askedFor, hold);
    if (fault !== undefined) {
      this.#withdraw();
      return this.#reject(fault);
    }
    const value = this.#deliver(granted, this.#options);
    if (value === undefined) this.#reject(new NotAcquired(this.writer.resource, this.#refusalOf(granted)));
    else this.#resolve(value);
  }

  /** An upgrade makes more of a hold that is there, under the lease that it has. */
  get #askedFor(): Wish {
    const { command } = this;
    if (command.kind !== 'upgrade') return command as Request & AnyCommand;
    return { id: '', holder: this.holder, lease: '', mode: 'exclusive' };
  }

  /** What it was given breaks a promise: it goes back, and the one who asked gets the error. */
  inconsistent(failure: Failure): void {
    if (this.isOver) return;
    this.#finish('given-up');
    this.#withdraw();
    this.#reject(failure);
  }

  /** One that was not to wait at all has waited in vain, and for no time. */
  #refusalOf(outcome: AnyOutcome): Refusal {
    const isInVain = this.command.kind === 'acquire' && (outcome.kind === 'busy' || outcome.kind === 'full');
    if (isInVain && this.#options?.waitMs === 0) return { kind: 'timed-out', waitedMs: 0 };
    return outcome as unknown as Refusal;
  }

  /**
   * It would re-enter a hold of this process that has ended here and is still in the record: given back, released or lost,
   * and soon gone. Who waits asks again until then; who does not is told who has it.
   */
  #askAnew(hold: Hold): void {
    if (this.#runtime.session?.id !== this.process) return this.sessionEnded();
    const anew = this.#anew++;
    if (this.command.wait !== true && anew > 0) {
      const isLock = this.writer.resource.startsWith('lock/');
      const holders = [hold];
      return this.answered(isLock ? { kind: 'busy', holders } : { kind: 'full', free: 0, holders });
    }
    const ask = (): void => {
      this.until = this.#runtime.giveUpAt();
      if (!this.isOver) this.writer.submit(this);
    };
    // The first time at once: what ends it is on its way to the same writer already.
    if (anew === 0) ask();
    else this.#runtime.later(backoffMs(anew - 1), ask);
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
    this.#reject(new NotAcquired(this.writer.resource, refusal));
  }

  #expect(): void {
    this.#isExpected = true;
    this.#runtime.waiters.add(this.#ticketId, this);
  }

  #finish(end: 'answered' | 'given-up'): void {
    this.#end = end;
    if (this.#isExpected) this.#runtime.waiters.delete(this.#ticketId);
    this.#timer?.cancel();
    if (this.#onAbort !== undefined) this.#options?.signal?.removeEventListener('abort', this.#onAbort);
  }

  /** Out of the queue; and if it was granted meanwhile, the grant goes back. */
  #withdraw(): void {
    const { ticket } = this;
    this.writer.submit(new BackgroundCommand({ kind: 'cancel', id: ticket.id, ticket }));
  }
}

/**
 * The same request once more, in case its answer was missed; over as soon as the first one is. It has no time limit of its
 * own: given up because the store was away, it would leave the first one waiting for what it has already.
 */
class Again extends PendingCommand {
  readonly #first: PendingCommand;

  constructor(first: PendingCommand) {
    super(first.command, Number.POSITIVE_INFINITY);
    this.#first = first;
    this.doubt();
  }

  override get isOver(): boolean {
    return this.#first.isOver || this.#first.isDelegated;
  }

  override get isAgain(): boolean {
    return true;
  }

  override settled(outcome: AnyOutcome): void {
    this.#first.settled(outcome);
  }

  override failed(): void {}
}

/** A reader that wants to become the writer waits under a request of its own. */
export class UpgradeAcquisition<T> extends Acquisition<T, WaitOptions | undefined> {
  override get ticket(): Ticket {
    const { holder, id, request, lease } = this.command as unknown as Request & { readonly request: string };
    return { id: request, holder, lease, priority: 0, upgrades: id };
  }
}
