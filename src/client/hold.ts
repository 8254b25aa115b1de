/** Holds over HTTP: each renews itself until its owner releases it. */
import type { LockMode, Token } from '../core/index.ts';
import type { ReleaseOutcome } from '../runtime/holds/hold.ts';
import type { DetachedHold, HoldClaim } from '../runtime/holds/terms.ts';
import type { WaitOptions } from '../runtime/holds/acquisition.ts';
import { HoldLost } from '../runtime/refusal.ts';
import type { Instant } from './clock.ts';
import { Kept } from './kept.ts';
import type { RemoteLock } from './lock.ts';
import type { Requests } from './requests.ts';
import type { RemoteResource } from './resource.ts';

/** A grant in the server's answer. */
export interface Grant extends Omit<DetachedHold, 'id'> {
  readonly mode?: LockMode;
  readonly weight?: number;
  readonly slots?: readonly number[];
}

/** How a grant came to this program. */
export interface Given {
  readonly grant: Grant;
  readonly since: Instant;
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
  /** @internal An upgrade is under way, which changes the token. */
  protected isChanging = false;
  #token: Token;
  #released: Promise<ReleaseOutcome> | undefined;

  /** @internal */
  constructor(requests: Requests, of: RemoteResource, { grant, since, isReentry }: Given) {
    this.resource = of.resource;
    this.holder = grant.holder;
    this.isReentry = isReentry;
    this.of = of;
    this.#token = grant.token;
    const { ttlMs, maxHoldMs } = grant;
    this.kept = new Kept(requests, {
      ...{ resource: of.resource, ttlMs, maxHoldMs, since },
      renew: async (retryMs) => {
        const { claim } = this;
        const outcome = await of.renewWithin(claim, retryMs);
        if (outcome.kind === 'lost') return { why: 'expired' };
        if (outcome.kind !== 'not-owner') return { ttlMs: outcome.ttlMs };
        // An upgrade has changed the token meanwhile, or is about to.
        if (this.isChanging || claim.token !== this.#token) throw new Error('the token has changed');
        return { why: 'released-elsewhere' };
      },
    });
  }

  /** Pass it to the protected resource, which can then refuse the smaller token of an earlier holder. */
  get token(): Token {
    return this.#token;
  }

  /** Identifies this hold among all holds of the resource; an upgrade changes it. */
  get id(): string {
    return `token:${this.#token}`;
  }

  /** Identifies this hold in `renew` and `release`. */
  get claim(): HoldClaim {
    return { holder: this.holder, token: this.#token };
  }

  /** Aborts with a `HoldLost` when the hold ends without a release. If it was taken by force, it aborts at the next renewal. */
  get signal(): AbortSignal {
    return this.kept.signal;
  }

  /** Whether the hold is valid at this moment, by the clock. */
  get isValid(): boolean {
    return this.kept.isValid;
  }

  /** Why it was lost, if it was. */
  get lost(): HoldLost | undefined {
    return this.kept.lost;
  }

  /** Throws `HoldLost` if the hold has ended: call it before a step that cannot be undone. */
  check(): void {
    this.kept.check();
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
    this.of.forgotten(this);
    if (lost !== undefined) return { kind: 'already-lost', why: lost.why };
    if (this.isReentry) return { kind: 'still-held' };
    let isUnsure = false;
    const { kind } = await this.of.releaseWith(this.claim, { onUnsure: () => (isUnsure = true) });
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

  /** @internal */
  protected granted(token: Token): void {
    this.#token = token;
  }
}

/** One grant of a lock. */
export class RemoteLockHold extends RemoteHold {
  readonly #lock: RemoteLock;
  #mode: LockMode;

  /** @internal */
  constructor(requests: Requests, lock: RemoteLock, given: Given) {
    super(requests, lock, given);
    this.#lock = lock;
    this.#mode = given.grant.mode ?? 'exclusive';
  }

  /** Whether it is held alone (`exclusive`) or together with other readers (`shared`). */
  get mode(): LockMode {
    return this.#mode;
  }

  /** Turns a reader into the writer, ahead of waiting writers. The token changes. Throws `NotAcquired` if it does not get it. */
  async upgrade(options: WaitOptions = {}): Promise<this> {
    this.isChanging = true;
    try {
      return this.#changed(await this.#lock.upgrade(this.claim, options), 'exclusive');
    } finally {
      this.isChanging = false;
    }
  }

  /** Turns the writer into a reader, without a release in between: waiting readers join. */
  async downgrade(): Promise<this> {
    return this.#changed(await this.#lock.downgrade(this.claim), 'shared');
  }

  #changed(outcome: Awaited<ReturnType<RemoteLock['downgrade']>>, mode: LockMode): this {
    if (!('token' in outcome)) {
      this.kept.lose(outcome.kind === 'lost' ? 'expired' : 'released-elsewhere');
      throw this.lost ?? new HoldLost(this.resource, { why: 'released-elsewhere' });
    }
    this.granted(outcome.token);
    this.#mode = mode;
    return this;
  }
}

/** One grant of slots. */
export class RemoteSemaphoreHold extends RemoteHold {
  /** How many slots it has. */
  readonly weight: number;
  /** The slot numbers, from 0, that no other hold has at the same time: for ports, databases, worktrees. */
  readonly slots: readonly number[];

  /** @internal */
  constructor(requests: Requests, of: RemoteResource, given: Given) {
    super(requests, of, given);
    this.weight = given.grant.weight ?? 1;
    this.slots = given.grant.slots ?? [];
  }
}
