/** Holds over HTTP: each renews itself until its owner releases it. */
import type { LockMode, LossReason, Token } from '../core/index.ts';
import type { ReleaseOutcome } from '../runtime/holds/hold.ts';
import type { DetachedHold, HoldClaim, ModeOutcome } from '../runtime/holds/terms.ts';
import type { WaitOptions } from '../runtime/holds/wait-limits.ts';
import { HoldLost } from '../runtime/refusal.ts';
import type { Instant } from './clock.ts';
import { Kept } from './kept.ts';
import type { RemoteLock } from './lock.ts';
import type { Requests } from './requests.ts';
import type { RemoteResource } from './resource.ts';

/** A grant in the server's answer. */
export interface Grant extends DetachedHold {
  readonly mode?: LockMode;
  readonly weight?: number;
  readonly slots?: readonly number[];
}

interface Known extends Grant {
  /** It was exclusive under this token; an answer that still shows it so is older. */
  readonly isDowngraded?: true;
}

/** How a grant came to this program. */
export interface Given {
  readonly grant: Grant;
  readonly since: Instant;
  /** The moment before it was renewed, if it was renewed before it was handed out. */
  readonly renewed?: Instant;
  /** Whether its holder already had the resource: an inner hold ends with the outer one. */
  readonly isReentry: boolean;
}

/** One grant of a lock or a semaphore, with its token and a signal that aborts when it is lost. */
export abstract class RemoteHold implements AsyncDisposable {
  /** `lock/main-branch`. */
  readonly resource: string;
  /** Who holds it. */
  readonly holder: string;
  /** Whether its holder already had the resource: a re-entry ends with the outer hold. */
  readonly isReentry: boolean;
  /** @internal */
  protected readonly of: RemoteResource;
  /** @internal */
  protected readonly kept: Kept;
  #grant: Known;
  /** Of a re-entry: the outer hold, if this program has it. */
  #outer: RemoteHold | undefined;
  #released: Promise<ReleaseOutcome> | undefined;

  /** @internal */
  constructor(requests: Requests, of: RemoteResource, { grant, since, renewed = since, isReentry }: Given) {
    this.resource = of.resource;
    this.holder = grant.holder;
    this.isReentry = isReentry;
    this.of = of;
    this.#grant = grant;
    const { ttlMs, maxHoldMs } = grant;
    this.kept = new Kept(requests, {
      ...{ resource: of.resource, ttlMs, maxHoldMs, since, renewed },
      renew: async (retryMs) => {
        let outcome = await of.renewWithin(this.claim, retryMs);
        if (outcome.kind === 'not-owner' && (await this.#hasNewToken(retryMs)))
          outcome = await of.renewWithin(this.claim, retryMs);
        if (outcome.kind === 'lost') return { why: 'expired' };
        return outcome.kind === 'not-owner' ? { why: 'released-elsewhere' } : { ttlMs: outcome.ttlMs };
      },
    });
    this.signal.addEventListener('abort', () => {
      of.endReentries(this, this.lost?.why ?? 'released-elsewhere');
      of.forget(this);
    });
  }

  /** @internal The outer hold of a re-entry, if this program has it; otherwise this hold. */
  protected get outermost(): RemoteHold {
    return this.#outer ?? this;
  }

  /** @internal A re-entry has no grant of its own: it shows the grant of the outer hold. */
  protected get grant(): Known {
    return this.outermost.#grant;
  }

  /** @internal */
  protected set grant(grant: Known) {
    this.outermost.#grant = grant;
  }

  /** Whether an upgrade, by a request under way or by another program of the same holder, has replaced the token. */
  async #hasNewToken(retryMs?: number): Promise<boolean> {
    const token = await this.of.tokenOf(this.id, retryMs);
    if (token !== undefined) this.changed({ ...this.grant, token });
    return token !== undefined;
  }

  /** @internal */
  restOn(outer: RemoteHold): void {
    if (this.#outer !== undefined) return;
    this.#outer = outer;
    outer.changed(this.#grant);
  }

  /** @internal An answer shows the grant after an upgrade or with more slots. Answers may arrive out of order. */
  changed(grant: Grant): void {
    this.grant = this.newest(this.grant, grant);
  }

  /** @internal */
  protected abstract newest(known: Known, told: Grant): Known;

  /** @internal Whether its owner has released it, or begun to, or it was lost. */
  get isOver(): boolean {
    return this.#released !== undefined || this.lost !== undefined;
  }

  /** @internal */
  lose(why: LossReason): void {
    this.kept.lose(why);
  }

  /** Pass it to the protected resource, which can then refuse the smaller token of an earlier holder. */
  get token(): Token {
    return this.grant.token;
  }

  /** The id of the hold, unique for all time. A re-entry has the id of the outer hold. */
  get id(): string {
    return this.grant.id;
  }

  /** Identifies this hold in `renew` and `release`. */
  get claim(): HoldClaim {
    return { holder: this.holder, token: this.token };
  }

  /** Aborts with a `HoldLost` when the hold ends without a release. If it was taken by force, it aborts at the next renewal. */
  get signal(): AbortSignal {
    return this.kept.signal;
  }

  /** Whether the hold is valid at this moment, by the clock. */
  get isValid(): boolean {
    // An outer hold whose time is up takes its re-entries along.
    return this.outermost.kept.isValid && this.kept.isValid;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.kept.lost;
  }

  /** Throws `HoldLost` if the hold has ended: call it before a step that cannot be undone. */
  check(): void {
    if (!this.isValid) throw this.lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
  }

  /** Releases it. Does not throw if the hold was lost, because that would hide the error of the work done under it. */
  release(): Promise<ReleaseOutcome> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release(): Promise<ReleaseOutcome> {
    // The clock may say that it is lost before the timer does.
    const { isValid, lost } = this;
    this.kept.end();
    if (lost !== undefined) return { kind: 'already-lost', why: lost.why };
    if (this.isReentry) {
      this.of.forget(this);
      return { kind: 'still-held' };
    }
    this.of.endReentries(this, 'released-elsewhere');
    try {
      return await this.#freed(isValid);
    } finally {
      this.of.forget(this);
    }
  }

  async #freed(isValid: boolean): Promise<ReleaseOutcome> {
    let isUnsure = false;
    const release = () => this.of.releaseWith(this.claim, { onUnsure: () => (isUnsure = true) });
    let { kind } = await release();
    if (kind === 'not-owner' && (await this.#hasNewToken())) ({ kind } = await release());
    // The repeat finds nothing if the server released the hold and was killed before it kept its answer.
    const isReleased = kind === 'released' || (isUnsure && isValid);
    return isReleased ? { kind: 'released' } : { kind: 'already-lost', why: 'expired' };
  }

  /** The fields that a printed hold shows. */
  toJSON(): { resource: string; holder: string; token: Token; isValid: boolean } {
    const { resource, holder, token, isValid } = this;
    return { resource, holder, token, isValid };
  }

  /** Releases it at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** One grant of a lock. */
export class RemoteLockHold extends RemoteHold {
  readonly #lock: RemoteLock;

  /** @internal */
  constructor(requests: Requests, lock: RemoteLock, given: Given) {
    super(requests, lock, given);
    this.#lock = lock;
  }

  /** Whether it is held alone (`exclusive`) or together with other readers (`shared`). */
  get mode(): LockMode {
    return this.grant.mode ?? 'exclusive';
  }

  /** Turns a reader into the writer, ahead of waiting writers. The token changes. Throws `NotAcquired` if it does not get it. */
  async upgrade(options: WaitOptions = {}): Promise<this> {
    return this.#turned(await this.#lock.upgrade(this.claim, options), 'exclusive');
  }

  /** Turns the writer into a reader, without a release in between: waiting readers join. */
  async downgrade(): Promise<this> {
    // They may join even if no answer arrives.
    this.grant = { ...this.grant, mode: 'shared', isDowngraded: true };
    return this.#turned(await this.#lock.downgrade(this.claim), 'shared');
  }

  #turned(outcome: ModeOutcome, mode: LockMode): this {
    if (!('token' in outcome)) {
      this.outermost.lose(outcome.kind === 'lost' ? 'expired' : 'released-elsewhere');
      throw this.lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
    }
    this.changed({ ...this.grant, token: outcome.token, mode });
    return this;
  }

  /**
   * @internal An upgrade has a larger token than any earlier grant. Under the same token, the answer to a reader may show less than
   * the hold is, because another request may still give that back.
   */
  protected override newest(known: Known, { token, mode = 'exclusive' }: Grant): Known {
    const { isDowngraded, ...grant } = known;
    if (token > known.token) return { ...grant, token, mode };
    return token === known.token && mode === 'exclusive' && isDowngraded !== true ? { ...grant, mode } : known;
  }
}

/** One grant of slots. */
export class RemoteSemaphoreHold extends RemoteHold {
  /** How many slots it has. */
  get weight(): number {
    return this.grant.weight ?? 1;
  }

  /** The slot numbers, from 0, that no other hold has at the same time: for ports, databases, worktrees. */
  get slots(): readonly number[] {
    return this.grant.slots ?? [];
  }

  /** @internal By answers, a weight only grows. */
  protected override newest(known: Known, told: Grant): Known {
    const { weight = 1, slots = [] } = told;
    return weight > (known.weight ?? 1) ? { ...known, weight, slots } : known;
  }
}
