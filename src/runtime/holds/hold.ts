/**
 * A hold: one grant, with its token and a signal that aborts when it is lost. The runtime keeps a `KeptHold`; users get a `Hold`,
 * which stands for it and shows only what they may call.
 */
import type { Hold as Grant, LossReason, Token } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import { followOuter, HoldLimit } from './hold-ends.ts';
import {
  type AnyCommand,
  type AnyOutcome,
  BackgroundCommand,
  outcomeOf,
  PendingCommand,
} from '../write/pending-command.ts';
import { HoldLost, lossIn, NotAcquired } from '../refusal.ts';
import type { Held } from './lookout.ts';
import type { Runtime } from '../runtime.ts';
import type { Trace } from '../tracer.ts';
import { MARGIN, sentNow } from '../session/session.ts';

/** What `release` answers. */
export type ReleaseOutcome =
  | { readonly kind: 'released' }
  /** A re-entry was released: the outer hold continues. */
  | { readonly kind: 'still-held' }
  /** The hold had ended before; its present holder was not touched. */
  | { readonly kind: 'already-lost'; readonly why: LossReason };

/** The step that lasts as long as this hold, if a tracer listens. */
export let traceOf: (hold: Hold) => Trace | undefined;

/** One grant of a lock or a semaphore, with its token and a signal that aborts when it is lost. */
export abstract class Hold implements AsyncDisposable {
  readonly #kept: KeptHold;

  static {
    // No method: a hold shows its users only what they may call.
    traceOf = (hold) => hold.#kept.trace;
  }

  /** @internal */
  constructor(kept: KeptHold) {
    this.#kept = kept;
  }

  /** `lock/main-branch`. */
  get resource(): string {
    return this.#kept.resource;
  }

  /** The session of this process that acquired it. */
  get process(): string {
    return this.#kept.process;
  }

  /** The id of the hold, unique for all time. A re-entry has the id of the outer hold. */
  get id(): string {
    return this.#kept.id;
  }

  /** Who holds it. */
  get holder(): string {
    return this.#kept.holder;
  }

  /** Its holder had the resource already: a re-entry ends with the outer hold. */
  get isReentry(): boolean {
    return this.#kept.isReentry;
  }

  /** The lease on which it rests; of a re-entry, the lease of the outer hold. */
  get lease(): string {
    return this.#kept.lease;
  }

  /** Pass it to the protected resource, which can then refuse a smaller token: that of an earlier holder. */
  get token(): Token {
    return this.#kept.token;
  }

  /** Aborts with a `HoldLost` when the hold ends without a release, before anyone else can have the resource. */
  get signal(): AbortSignal {
    return this.#kept.signal;
  }

  /** Whether the hold is valid at this moment, by the clock. */
  get isValid(): boolean {
    return this.#kept.isValid;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.#kept.lost;
  }

  /** Throws `HoldLost` if the hold has ended: call it before a step that cannot be undone. */
  check(): void {
    this.#kept.check();
  }

  /** Never throws because the hold was lost: that would hide the error of the work that was done under it. */
  release(): Promise<ReleaseOutcome> {
    return this.#kept.release();
  }

  /** What is shown when a hold is printed. */
  toJSON(): { resource: string; holder: string; token: Token; isValid: boolean } {
    const { resource, holder, token, isValid } = this;
    return { resource, holder, token, isValid };
  }

  /** @internal */
  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }

  /** Releases it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

export abstract class KeptHold<G extends Grant = Grant> implements Held {
  readonly resource: string;
  readonly process: string;
  protected readonly runtime: Runtime;
  protected readonly writer: ResourceWriter;
  readonly #reentry: boolean;
  #grant: G;
  /** Of a re-entry: the outer hold, if this process has it. */
  #outer: KeptHold<G> | undefined;
  /** When it was handed out, on the monotonic clock. */
  readonly #since: number;
  trace: Trace | undefined;
  #controller: AbortController | undefined;
  #lost: HoldLost | undefined;
  #released: Promise<ReleaseOutcome> | undefined;
  #releasing: Releasing | undefined;
  #limit: HoldLimit | undefined;
  #following: { readonly over: AbortController; readonly begun: Promise<void> } | undefined;

  constructor(runtime: Runtime, writer: ResourceWriter, grant: G, process: string, reentry: boolean) {
    this.runtime = runtime;
    this.writer = writer;
    this.#grant = grant;
    this.process = process;
    this.resource = writer.resource;
    this.#reentry = reentry;
    this.#since = runtime.lookedAt;
    this.trace = undefined;
    if (!reentry) runtime.holds.set(grant.id, this);
    else this.#restOn(grant.id);
  }

  /** A re-entry has no grant of its own: it shows the grant of the outer hold. */
  protected get grant(): G {
    return this.#outer?.grant ?? this.#grant;
  }

  /**
   * The grant has changed, by an upgrade or a new weight. Answers may arrive out of order. `isStored`: the
   * grant was read from the record, whose changes arrive in order; or its user gives a part of it back.
   */
  changed(grant: G, isStored = false): void {
    if (this.#outer !== undefined) this.#outer.changed(grant, isStored);
    else if (!this.isOutdated(grant, isStored)) this.#grant = grant;
  }

  /** Whether the known grant is newer than this one. */
  protected abstract isOutdated(grant: G, isStored: boolean): boolean;

  /** The last steps before its user gets it: follows the outer hold if another process has that, or sets the time limit. */
  handOut(): this | Promise<this> {
    if (this.#following !== undefined) return this.#followed(this.#following.begun);
    const { maxHoldMs } = this.grant;
    return this.#reentry || maxHoldMs === undefined ? this : this.#limited(maxHoldMs);
  }

  async #followed(begun: Promise<void>): Promise<this> {
    await begun;
    if (!this.isValid) throw new NotAcquired(this.resource, { kind: 'lost' });
    return this;
  }

  async #limited(maxHoldMs: number): Promise<this> {
    try {
      await this.#limitTo(maxHoldMs);
      // The hold may have ended since it was granted: then it must not be handed out.
      this.check();
      return this;
    } catch (error) {
      await this.release().catch(() => undefined);
      // If its time was up before the record had the limit, `release` did nothing, and no limit ends the hold.
      if (this.#lost !== undefined) this.writer.submit(new BackgroundCommand({ kind: 'cancel', id: this.id }));
      // The time limit passed before the hold could be handed out.
      if (Failure.is(error, 'not-found')) throw new NotAcquired(this.resource, { kind: 'lost' });
      throw error;
    }
  }

  /** The store measures the time, by a lease that nobody renews. */
  async #limitTo(maxHoldMs: number): Promise<void> {
    const { runtime, holder, id } = this;
    const sent = sentNow(runtime.clock);
    const session = await runtime.ready();
    const lease = await runtime.leases.make(session, maxHoldMs);
    runtime.leases.forget(lease.name);
    // Before the store hears of it: from then on the next request may be granted, and re-entries already rest on the hold.
    this.#limit = new HoldLimit(runtime, lease.leaseId, sent, lease.ttlMs * (1 - MARGIN));
    this.#limit.watch(() => this.isValid);
    const command = { kind: 'extend', holder, id, limit: lease.name } as AnyCommand;
    const outcome = await outcomeOf(this.writer, command, runtime.giveUpAt());
    if (outcome.kind === 'refreshed') return;
    this.lose({ why: 'reclaimed' });
    this.check();
  }

  // What `Hold` shows of it

  get id(): string {
    return this.grant.id;
  }

  get holder(): string {
    return this.grant.holder;
  }

  get isReentry(): boolean {
    return this.#reentry;
  }

  get lease(): string {
    return this.grant.lease;
  }

  get token(): Token {
    return this.grant.token;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      // Made on first use: most holds are short, and a signal costs more than the rest of an acquire.
      this.#controller = new AbortController();
      if (this.#lost !== undefined) this.#controller.abort(this.#lost);
    }
    return this.#controller.signal;
  }

  get isValid(): boolean {
    if (this.#lost !== undefined || this.#released !== undefined) return false;
    if (this.#outer !== undefined) {
      if (!this.#outer.isValid)
        this.lose(this.#outer.lost === undefined ? { why: 'released-elsewhere' } : lossIn(this.#outer.lost));
      return this.#lost === undefined;
    }
    // After a stall of the event loop, this may be the first to notice that the time limit has passed.
    if (this.#limit?.isOver === true) this.lose({ why: 'expired' });
    return this.runtime.session?.id === this.process && this.#lost === undefined;
  }

  get isReleasing(): boolean {
    return this.#releasing !== undefined;
  }

  get lost(): HoldLost | undefined {
    return this.#lost;
  }

  check(): void {
    if (!this.isValid) throw this.#lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
  }

  release(): Promise<ReleaseOutcome> {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** The hold has ended. */
  lose(loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }): void {
    if (this.#lost !== undefined) return;
    this.#leave();
    if (this.#releasing !== undefined) return this.#releasing.lost(loss.why);
    if (this.#released !== undefined) return;
    this.#lost = new HoldLost(this.resource, loss);
    if (!this.#reentry && !this.runtime.isClosed) this.runtime.measures.lost(loss.why);
    this.#measureEnd(loss.why, true);
    if (!this.#reentry) this.runtime.loseReentries(this.grant.id, loss);
    this.#controller?.abort(this.#lost);
  }

  /** The process gives it up. */
  async surrender(): Promise<void> {
    if (this.#releasing !== undefined) return void (await this.release().catch(() => undefined));
    this.lose({ why: 'released-elsewhere' });
    if (this.#reentry) return;
    const command = { kind: 'release', holder: this.grant.holder, id: this.grant.id } as AnyCommand;
    await outcomeOf(this.writer, command, this.runtime.giveUpAt()).catch(() => undefined);
  }

  #release(): Promise<ReleaseOutcome> {
    if (this.#lost !== undefined) return Promise.resolve({ kind: 'already-lost', why: this.#lost.why });
    if (this.#reentry) {
      this.#leave();
      return Promise.resolve({ kind: 'still-held' });
    }
    this.runtime.loseReentries(this.grant.id, { why: 'released-elsewhere' });
    return new Promise((resolve, reject) => {
      this.#releasing = new Releasing(this, resolve, reject);
      this.writer.submit(this.#releasing);
    });
  }

  /** A hold whose release failed is still held, and can be released again. */
  released(really: boolean): void {
    this.#releasing = undefined;
    if (!really) return void (this.#released = undefined);
    this.#leave();
    this.#measureEnd('released', false);
    this.#limit?.endLease();
  }

  #measureEnd(how: string, isFailure: boolean): void {
    if (this.#reentry) return;
    const { measures, clock } = this.runtime;
    measures.of(this.resource).held(clock.monotonic() - this.#since);
    this.trace?.end(how, isFailure);
  }

  #leave(): void {
    if (this.#reentry) this.#restNoMore(this.grant.id);
    else this.runtime.holds.delete(this.grant.id);
    this.#limit?.unwatch();
  }

  #restOn(id: string): void {
    const { reentries, holds } = this.runtime;
    reentries.set(id, (reentries.get(id) ?? new Set()).add(this));
    const outer = holds.get(id);
    if (outer instanceof KeptHold) {
      this.#outer = outer as KeptHold<G>;
      // Another request may have upgraded the outer hold, and its answer may still be on its way, or have been given up.
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
    const inner = this.runtime.reentries.get(outer);
    inner?.delete(this);
    if (inner?.size === 0) this.runtime.reentries.delete(outer);
  }
}

const RELEASED: ReleaseOutcome = { kind: 'released' };

/**
 * A release has no time limit while the session lasts: if it gave up, the hold would stay in the record without an owner. The
 * end of the session ends the hold too.
 */
class Releasing extends PendingCommand {
  readonly #hold: KeptHold;
  readonly #resolve: (outcome: ReleaseOutcome) => void;
  readonly #reject: (error: unknown) => void;
  #isOver = false;

  constructor(hold: KeptHold, resolve: (outcome: ReleaseOutcome) => void, reject: (error: unknown) => void) {
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
