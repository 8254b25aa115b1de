/** What a user holds: one grant, with its token and the signal that tells its loss. */
import type { Hold as Grant, LossReason, Token } from '../../core/index.ts';
import type { Timer } from '../../clock.ts';
import type { AnyWriter } from './acquisition.ts';
import { followOuter } from './outer-hold.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf, PendingCommand } from '../write/pending-command.ts';
import { HoldLost, NotAcquired } from '../refusal.ts';
import type { LeaseId } from '../../store/index.ts';
import type { Held } from './holdings.ts';
import type { Runtime } from '../runtime.ts';
import { hasPassed, isOfOneMachine, type Sent } from '../session/session.ts';

export type ReleaseOutcome =
  | { readonly kind: 'released' }
  /** It was a re-entry: the outer hold goes on. */
  | { readonly kind: 'still-held' }
  /** It had ended before; whoever has it now was not touched. */
  | { readonly kind: 'already-lost'; readonly why: LossReason };

export abstract class Hold<G extends Grant = Grant> implements Held, AsyncDisposable {
  readonly resource: string;
  readonly process: string;
  protected readonly runtime: Runtime;
  protected readonly writer: AnyWriter;
  readonly #reentry: boolean;
  #grant: G;
  /** Of a re-entry: the hold that it is, where that one is in the hands of this process. */
  #outer: Hold<G> | undefined;
  #controller: AbortController | undefined;
  #lost: HoldLost | undefined;
  #released: Promise<ReleaseOutcome> | undefined;
  #releasing: Releasing | undefined;
  #limit: Timer | undefined;
  #limitLease: LeaseId | undefined;
  /** For how long it may be held at most, and since when. */
  #time: { readonly sent: Sent; readonly validMs: number } | undefined;
  #following: { readonly over: AbortController; readonly begun: Promise<void> } | undefined;

  constructor(runtime: Runtime, writer: AnyWriter, grant: G, process: string, reentry: boolean) {
    this.runtime = runtime;
    this.writer = writer;
    this.#grant = grant;
    this.process = process;
    this.resource = writer.resource;
    this.#reentry = reentry;
    if (!reentry) runtime.holdings.holds.set(grant.id, this);
    else this.#restOn(grant.id);
  }

  /** A re-entry has no grant of its own: whatever becomes of the outer one becomes of it. */
  protected get grant(): G {
    return this.#outer?.grant ?? this.#grant;
  }

  /**
   * For the runtime: the same hold is more now, or less. Answers may come in another order than they were given.
   * `isStored`: read from the record, which is read in order.
   */
  changed(grant: G, isStored = false): void {
    if (this.#outer !== undefined) this.#outer.changed(grant, isStored);
    else if (!this.isOutdated(grant, isStored)) this.#grant = grant;
  }

  /** Whether what is known already came after this. */
  protected abstract isOutdated(grant: G, isStored: boolean): boolean;

  /**
   * For the runtime: asked before a re-entry is handed out that rests on a hold of another process. Throws if that hold has
   * ended meanwhile; from then on its record is followed.
   */
  async handedOut(): Promise<this> {
    await this.#following?.begun;
    if (!this.isValid) throw new NotAcquired(this.resource, { kind: 'lost' });
    return this;
  }

  /** For the runtime: it may be handed out at once. */
  get isKnown(): boolean {
    return this.#following === undefined;
  }

  get id(): string {
    return this.grant.id;
  }

  get holder(): string {
    return this.grant.holder;
  }

  /** Its holder had it already: it ends with the hold that it rests on. */
  get isReentry(): boolean {
    return this.#reentry;
  }

  /** The lease it rests on; of a re-entry, the one that the outer hold rests on. */
  get lease(): string {
    return this.grant.lease;
  }

  /** Pass it on to what is protected: it can then refuse whoever comes with a smaller one. */
  get token(): Token {
    return this.grant.token;
  }

  /** Aborts with a `HoldLost` when the hold ends without being released; before anyone else can have it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      // Made when somebody asks for it: most holds are short, and a signal costs more than the rest of an acquire.
      this.#controller = new AbortController();
      if (this.#lost !== undefined) this.#controller.abort(this.#lost);
    }
    return this.#controller.signal;
  }

  /** Whether it is still ours, by the clock of this very moment. */
  get isValid(): boolean {
    if (this.#lost !== undefined || this.#released !== undefined) return false;
    if (this.#outer !== undefined) {
      if (!this.#outer.isValid) this.lose(this.#outer.lost?.loss ?? { why: 'released-elsewhere' });
      return this.#lost === undefined;
    }
    // After a stall of the event loop, this may be the first to notice that the time is up.
    if (this.#limitLease !== undefined && this.#isTimeUp) this.lose({ why: 'expired' });
    return this.runtime.session?.id === this.process && this.#lost === undefined;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.#lost;
  }

  /** Throws `HoldLost` if it is not ours any more: to be asked before a step that cannot be undone. */
  check(): void {
    if (!this.isValid) throw this.#lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
  }

  /** Never throws for a hold that was lost: that would hide the error of the one who held it. */
  release(): Promise<ReleaseOutcome> {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** What matters of it, where it is printed. */
  toJSON(): { resource: string; holder: string; token: Token; isValid: boolean } {
    const { resource, holder, token, isValid } = this;
    return { resource, holder, token, isValid };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** For the runtime: the hold has ended. */
  lose(loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }): void {
    if (this.#lost !== undefined) return;
    this.#leave();
    if (this.#releasing !== undefined) return this.#releasing.lost(loss.why);
    if (this.#released !== undefined) return;
    this.#lost = new HoldLost(this.resource, loss);
    if (!this.#reentry) this.runtime.holdings.loseReentries(this.grant.id, loss);
    this.#controller?.abort(this.#lost);
  }

  /** For the runtime: the process gives it up. */
  async surrender(): Promise<void> {
    if (this.#releasing !== undefined) return void (await this.release().catch(() => undefined));
    this.lose({ why: 'released-elsewhere' });
    if (this.#reentry) return;
    const command = { kind: 'release', holder: this.grant.holder, id: this.grant.id } as AnyCommand;
    await outcomeOf(this.writer, command, this.runtime.giveUpAt()).catch(() => undefined);
  }

  /** For the runtime: it ends with this lease, so long after `sent`, however well it is renewed. */
  endsWith(leaseId: LeaseId, sent: Sent, validMs: number): void {
    const before = this.#limitLease;
    this.#limitLease = leaseId;
    this.#time = { sent, validMs };
    this.#watchDeadline();
    if (before !== undefined) this.#endLease(before);
  }

  #watchDeadline(): void {
    const { clock } = this.runtime;
    this.#limit?.cancel();
    if (this.#time === undefined) return;
    const { sent, validMs } = this.#time;
    this.#limit = clock.timer(sent.monotonic + validMs - clock.monotonic(), () => {
      if (this.isValid) this.#watchDeadline();
    });
  }

  get #isTimeUp(): boolean {
    if (this.#time === undefined) return false;
    const { clock, store } = this.runtime;
    return hasPassed(clock, this.#time.sent, this.#time.validMs, isOfOneMachine(store));
  }

  #endLease(leaseId: LeaseId): void {
    void this.runtime.store.revokeLease(leaseId).catch(() => undefined);
  }

  #release(): Promise<ReleaseOutcome> {
    if (this.#lost !== undefined) return Promise.resolve({ kind: 'already-lost', why: this.#lost.why });
    if (this.#reentry) {
      this.#leave();
      return Promise.resolve({ kind: 'still-held' });
    }
    this.runtime.holdings.loseReentries(this.grant.id, { why: 'released-elsewhere' });
    return new Promise((resolve, reject) => {
      this.#releasing = new Releasing(this, resolve, reject);
      this.writer.submit(this.#releasing);
    });
  }

  /** For the runtime. One that could not be released is still held, and can be released again. */
  released(really: boolean): void {
    this.#releasing = undefined;
    if (!really) this.#released = undefined;
    else this.#leave();
    if (really && this.#limitLease !== undefined) this.#endLease(this.#limitLease);
  }

  #leave(): void {
    if (this.#reentry) this.#restNoMore(this.grant.id);
    else this.runtime.holdings.holds.delete(this.grant.id);
    this.#limit?.cancel();
  }

  #restOn(id: string): void {
    const { reentries, holds } = this.runtime.holdings;
    reentries.set(id, (reentries.get(id) ?? new Set()).add(this));
    const outer = holds.get(id);
    if (outer instanceof Hold) {
      this.#outer = outer as Hold<G>;
      // Another request may have made more of it, and its answer may still be on its way, or be of no interest any more.
      this.#outer.changed(this.#grant);
      return;
    }
    const over = new AbortController();
    const changed = (grant: Grant): void => this.changed(grant as G, true);
    const begun = followOuter(this.runtime, this.writer.keys.record, this.#grant, this, changed, over.signal);
    this.#following = { over, begun };
  }

  #restNoMore(outer: string): void {
    this.#following?.over.abort();
    const inner = this.runtime.holdings.reentries.get(outer);
    inner?.delete(this);
    if (inner?.size === 0) this.runtime.holdings.reentries.delete(outer);
  }
}

const RELEASED: ReleaseOutcome = { kind: 'released' };

/**
 * A release is never given up while the session lasts: the hold would stay, and nobody would know of it. With the
 * session the hold ends too.
 */
class Releasing extends PendingCommand {
  readonly #hold: Hold;
  readonly #resolve: (outcome: ReleaseOutcome) => void;
  readonly #reject: (error: unknown) => void;
  #isOver = false;

  constructor(hold: Hold, resolve: (outcome: ReleaseOutcome) => void, reject: (error: unknown) => void) {
    super({ kind: 'release', holder: hold.holder, id: hold.id } as AnyCommand, Number.POSITIVE_INFINITY);
    this.#hold = hold;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override get isOver(): boolean {
    return this.#isOver;
  }

  override settled(outcome: AnyOutcome): void {
    if (this.#isOver) return;
    this.#hold.released(true);
    this.#resolve(outcome.kind === 'released' ? RELEASED : { kind: 'already-lost', why: 'reclaimed' });
  }

  override failed(error: unknown): void {
    if (this.#isOver) return;
    this.#hold.released(false);
    this.#reject(error);
  }

  lost(why: LossReason): void {
    this.#isOver = true;
    this.#hold.released(true);
    this.#resolve({ kind: 'already-lost', why });
  }
}
