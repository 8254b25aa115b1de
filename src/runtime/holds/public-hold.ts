/** Holds, as users have them: each stands for a hold that the runtime keeps, and shows only what users may call. */
import type { LockMode, Token } from '../../core/index.ts';
import type { HoldLost } from '../refusal.ts';
import type { Trace } from '../tracer.ts';
import type { WaitOptions } from './acquisition.ts';
import type { KeptHold, ReleaseOutcome } from './hold.ts';
import type { KeptLockHold } from './lock.ts';
import type { KeptSemaphoreHold } from './semaphore.ts';

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

/** One grant of a lock. */
export class LockHold extends Hold {
  readonly #lock: KeptLockHold;

  /** @internal */
  constructor(kept: KeptLockHold) {
    super(kept);
    this.#lock = kept;
  }

  /** Whether it is held alone (`exclusive`) or together with other readers (`shared`). */
  get mode(): LockMode {
    return this.#lock.mode;
  }

  /** From reader to writer: at once if there is no other reader, otherwise ahead of waiting writers. */
  async upgrade(options?: WaitOptions): Promise<this> {
    await this.#lock.upgrade(options);
    return this;
  }

  /**
   * From writer to reader, without a release in between: waiting readers join. They may join even if no answer arrives, so the
   * hold counts as a reader from here on.
   */
  async downgrade(): Promise<this> {
    await this.#lock.downgrade();
    return this;
  }
}

/** One grant of slots. */
export class SemaphoreHold extends Hold {
  readonly #slots: KeptSemaphoreHold;

  /** @internal */
  constructor(kept: KeptSemaphoreHold) {
    super(kept);
    this.#slots = kept;
  }

  /** How many slots it has. */
  get weight(): number {
    return this.#slots.weight;
  }

  /** The slot numbers, from 0, that no other hold has meanwhile: for ports, databases, worktrees. */
  get slots(): readonly number[] {
    return this.#slots.slots;
  }
}
