/** A semaphore, as users hold it. */
import type {
  OnStale,
  Request,
  Semaphore as SemaphoreState,
  SemaphoreCommand,
  SemaphoreHold as SemaphoreGrant,
  SemaphoreOutcome,
} from '../../core/index.ts';
import { canAcquire, requestProblem, slotNumbers } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { WaitOptions } from './acquisition.ts';
import { Hold } from './hold.ts';
import { semaphoreMachine } from '../write/machines.ts';
import { refuseUnlessFunction } from '../options.ts';
import type { AnyCommand, AnyOutcome } from '../write/pending-command.ts';
import type { Refusal } from '../refusal.ts';
import {
  type DetachedHold,
  type DetachedOptions,
  type HolderView,
  requestFields,
  type RequestOptions,
  Resource,
  runUnder,
} from './resource.ts';
import type { Runtime } from '../runtime.ts';
import { mayWait } from '../strategy.ts';

export interface SemaphoreOptions extends RequestOptions {
  /** How many slots in total, not in addition; 1 if not given. */
  readonly weight?: number;
}

export type SemaphoreAttempt =
  | { readonly kind: 'acquired' | 'increased' | 'already-held'; readonly hold: SemaphoreHold }
  | { readonly kind: 'reclaimed'; readonly hold: SemaphoreHold; readonly from: readonly SemaphoreGrant[] }
  | Extract<Refusal, { kind: 'full' | 'too-large' | 'impossible' | 'capacity-mismatch' }>;

export interface SemaphoreView {
  readonly name: string;
  /** 0 if nobody has used it yet. */
  readonly capacity: number;
  readonly usedSlots: number;
  readonly availableSlots: number;
  readonly onStale: OnStale;
  readonly holders: readonly (HolderView & { readonly weight: number; readonly slots: readonly number[] })[];
  readonly waiting: readonly {
    readonly holder: string;
    readonly weight: number;
    readonly priority: number;
    readonly reason: string | undefined;
  }[];
}

export class Semaphore extends Resource<SemaphoreState, SemaphoreCommand, SemaphoreOutcome, SemaphoreHold> {
  /** The capacity that this process names; the first acquire sets it in the store. */
  #capacity: number | undefined;

  constructor(runtime: Runtime, name: string, capacity: number | undefined) {
    super(runtime, semaphoreMachine, name);
    this.#capacity = capacity;
  }

  get capacity(): number | undefined {
    return this.#capacity;
  }

  /** Waits for the slots. Throws `NotAcquired` if they cannot be had. */
  acquire(options?: SemaphoreOptions & WaitOptions): Promise<SemaphoreHold> {
    return this.ask(options, mayWait(options?.strategy), this.#holdOf);
  }

  /** Answers at once, and does not throw if the semaphore is full. */
  tryAcquire(options?: SemaphoreOptions): Promise<SemaphoreAttempt> {
    return this.ask<SemaphoreAttempt, SemaphoreOptions | undefined>(options, false, (outcome) => {
      const hold = this.#holdOf(outcome, options);
      if (hold === undefined) return outcome as unknown as SemaphoreAttempt;
      if (hold instanceof Promise) return hold.then((limited) => ({ ...outcome, hold: limited }) as SemaphoreAttempt);
      return { ...outcome, hold } as SemaphoreAttempt;
    });
  }

  async run<T>(work: (hold: SemaphoreHold) => T | Promise<T>, options?: SemaphoreOptions & WaitOptions): Promise<T> {
    refuseUnlessFunction('the work', work);
    return runUnder(await this.acquire(options), work);
  }

  /** A hold with a lease of its own, kept by `renew`: for scripts and agents that do not stay connected. */
  async acquireDetached(
    options: DetachedOptions & SemaphoreOptions,
  ): Promise<DetachedHold & { readonly weight: number; readonly slots: readonly number[] }> {
    const { grant, detached } = await this.askDetached(options);
    const { weight, slots } = grant as SemaphoreGrant;
    return { ...detached, weight, slots: slotNumbers(slots) };
  }

  /** A capacity below what is in use takes effect as holders release their slots. */
  async resize(capacity: number): Promise<void> {
    const problem = requestProblem({ capacity }, ['capacity']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    await this.submitOnce({ kind: 'resize', capacity });
    if (this.#capacity !== undefined) this.#capacity = capacity;
  }

  async inspect(): Promise<SemaphoreView> {
    const { view, holders } = await this.look();
    const { record, waiting } = view.state;
    const usedSlots = record.holds.reduce((sum, { weight }) => sum + weight, 0);
    return {
      name: this.name,
      capacity: record.capacity,
      usedSlots,
      availableSlots: Math.max(0, record.capacity - usedSlots),
      onStale: record.onStale,
      holders: holders.map((holder, place) => {
        const { weight = 0, slots = [] } = record.holds[place] ?? {};
        return { ...holder, weight, slots: slotNumbers(slots) };
      }),
      waiting: waiting.map(({ holder, weight, priority, reason }) => ({ holder, weight, priority, reason })),
    };
  }

  async usedSlots(): Promise<number> {
    return (await this.inspect()).usedSlots;
  }

  async availableSlots(): Promise<number> {
    return (await this.inspect()).availableSlots;
  }

  /** Whether `weight` slots could be had at this moment, without passing a waiter. */
  async canAcquire(weight: number): Promise<boolean> {
    const { view } = await this.look();
    return canAcquire(view.state, weight);
  }

  async staleHolders(): Promise<readonly HolderView[]> {
    return (await this.inspect()).holders.filter((holder) => holder.isStale);
  }

  protected override command(
    id: string,
    lease: string,
    options: SemaphoreOptions | undefined,
    wait: boolean,
  ): Request & AnyCommand & { weight: number; capacity?: number } {
    const { capacity } = this;
    const fields = options === undefined ? { id, holder: id, lease, priority: 0 } : requestFields(id, lease, options);
    const weight = options?.weight ?? 1;
    return { kind: 'acquire', ...fields, weight, wait, ...(capacity !== undefined && { capacity }) };
  }

  readonly #holdOf = (
    outcome: AnyOutcome,
    options: SemaphoreOptions | undefined,
  ): SemaphoreHold | Promise<SemaphoreHold> | undefined => {
    const { runtime } = this;
    if (outcome.hold === undefined) return undefined;
    const grant = outcome.hold as SemaphoreGrant;
    const reentry = outcome.kind === 'already-held' || outcome.kind === 'increased';
    const hold = new SemaphoreHold(runtime, this.anyWriter, grant, runtime.sender.id, reentry);
    return this.given(hold, options?.maxHoldMs);
  };
}

export class SemaphoreHold extends Hold<SemaphoreGrant> {
  /** By answers, a weight only grows. The record may also show a larger weight that was given up, and shrink again. */
  protected override isOutdated({ weight }: SemaphoreGrant, isStored: boolean): boolean {
    return !isStored && weight < this.grant.weight;
  }

  get weight(): number {
    return this.grant.weight;
  }

  /** The slot numbers, from 0, that no other hold has meanwhile: for ports, databases, worktrees. */
  get slots(): readonly number[] {
    return slotNumbers(this.grant.slots);
  }
}
