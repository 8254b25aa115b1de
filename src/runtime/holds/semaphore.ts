/** A semaphore, as users hold it. */
import {
  type Drain,
  type DrainOutcome,
  type Json,
  type Request,
  type Semaphore as SemaphoreState,
  type SemaphoreHold as SemaphoreGrant,
  type SemaphoreOutcome,
  availableSlots,
  canAcquire,
  requestProblem,
  slotNumbers,
  type Settings,
  settingsProblem,
} from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { WaitOptions } from './wait-limits.ts';
import { Hold, KeptHold, traceOf } from './hold.ts';
import { semaphoreMachine } from '../../core/machines.ts';
import { type Doer, refuseUnlessFunction, wholeNumberFromZero } from '../options.ts';
import { type AnyCommand, outcomeOf } from '../write/pending-command.ts';
import type { Given } from './detached.ts';
import { attemptOf, holdMaker, NamedResource, requestFields, Resource, refused } from './resource.ts';
import { runUnder } from './hold-set.ts';
import {
  type DetachedHold,
  type DetachedOptions,
  type HolderView,
  type RequestOptions,
  type ResourceView,
  settingsView,
} from './terms.ts';
import type { Runtime } from '../runtime.ts';
import { mayWait } from '../../core/strategy.ts';
import type { Refused } from '../refusal.ts';

/** How to ask for slots. */
export interface SemaphoreOptions<Meta = Json> extends RequestOptions<Meta> {
  /** How many slots in total, not in addition; 1 if not given. */
  readonly weight?: number;
}

/** What `tryAcquire` answers: `ok` says whether there is a hold, `kind` how it came about or why there is none. */
export type SemaphoreAttempt =
  /** `increased`: the same holder had fewer slots. `already-held`: it had as many. */
  | { readonly ok: true; readonly kind: 'acquired' | 'increased' | 'already-held'; readonly hold: SemaphoreHold }
  /** Taken from holders whose leases had ended. */
  | {
      readonly ok: true;
      readonly kind: 'reclaimed';
      readonly hold: SemaphoreHold;
      readonly from: readonly SemaphoreGrant[];
    }
  | Refused<'full' | 'too-large' | 'impossible' | 'capacity-mismatch'>;

/** A semaphore, as `inspect` shows it. */
export interface SemaphoreView<Meta = Json> extends ResourceView<
  Meta,
  { readonly weight: number; readonly slots: readonly number[] },
  { readonly weight: number }
> {
  /** How many slots there are; 0 if nobody has used it yet. */
  readonly capacity: number;
  /** How many of them are held. */
  readonly usedSlots: number;
  /** How many of them are free: none while it is drained. */
  readonly availableSlots: number;
  /** Who stopped every grant, when and why; undefined if nobody did. */
  readonly drained: Drain | undefined;
}

/** Who drains a semaphore, and why. */
export interface Draining {
  /** Who; shown to others. */
  readonly holder: string;
  /** Why; those who wait get to see it. */
  readonly reason: string;
}

/** Who undoes a drain. */
export interface Undraining {
  /** Who; recorded in the event. */
  readonly holder: string;
  /** The revision of the drain that you saw; any other drain stays. */
  readonly revision?: number;
}

/** Who changes a capacity, and from which one. */
export interface Resizing extends Doer {
  /** The capacity that you saw; any other capacity stays. */
  readonly from?: number;
}

/** What `resize` answers. `capacity-mismatch`: the capacity is not the one that you saw, and stays. */
export type ResizeResult = Extract<SemaphoreOutcome, { kind: 'resized' | 'capacity-mismatch' }>;

/** What `drain` answers. */
export type DrainResult = Extract<DrainOutcome, { kind: 'drained' | 'already-drained' }>;

/** What `undrain` answers. */
export type UndrainResult = Extract<DrainOutcome, { kind: 'undrained' | 'not-drained' | 'another-drain' }>;

type Slots = Resource<SemaphoreState, SemaphoreOutcome>;

/** A detached hold of slots, with their numbers. */
type SlotsHeld = DetachedHold & { readonly weight: number; readonly slots: readonly number[] };

/** A semaphore by its name: slots that several holders share. `Meta`: the type of the metadata that its holders give. */
export class Semaphore<Meta = Json> extends NamedResource<SlotsHeld, DetachedOptions<Meta> & SemaphoreOptions<Meta>> {
  readonly #resource: Slots;
  /** The capacity that this process names; the first acquire sets it in the store. */
  readonly #named: { capacity: number | undefined };

  /** @internal */
  constructor(runtime: Runtime, name: string, capacity: number | undefined) {
    const named = { capacity };
    const resource: Slots = new Resource(runtime, semaphoreMachine, name, (id, lease, options, wait) =>
      askForSlots(id, lease, options, wait, named.capacity),
    );
    super(resource, shownHold);
    this.#resource = resource;
    this.#named = named;
  }

  /** The capacity that this process names, if it names one. */
  get capacity(): number | undefined {
    return this.#named.capacity;
  }

  /** Waits for the slots. Throws `NotAcquired` if they cannot be had. */
  acquire(options?: SemaphoreOptions<Meta> & WaitOptions): Promise<SemaphoreHold> {
    return this.#resource.ask(options, mayWait(options?.strategy), holdOf);
  }

  /** Answers at once, and does not throw if the semaphore is full. */
  tryAcquire(options?: SemaphoreOptions<Meta>): Promise<SemaphoreAttempt> {
    return this.#resource.ask<SemaphoreAttempt, SemaphoreOptions<Meta> | undefined>(
      options,
      false,
      (outcome, asked, of) => attemptOf<SemaphoreHold, SemaphoreAttempt>(outcome, holdOf(outcome, asked, of)),
    );
  }

  /** Waits for the slots, runs `work`, and always releases them; throws `HoldLost` if the hold was lost meanwhile. */
  async run<T>(
    work: (hold: SemaphoreHold) => T | Promise<T>,
    options?: SemaphoreOptions<Meta> & WaitOptions,
  ): Promise<T> {
    refuseUnlessFunction('the work', work);
    const hold = await this.acquire(options);
    return runUnder(hold, work, traceOf(hold));
  }

  /** Changes the capacity. If more slots are in use, the change takes effect as holders release them. */
  async resize(capacity: number, { by, from }: Resizing = {}): Promise<ResizeResult> {
    const problem =
      requestProblem({ capacity, holder: by }, ['capacity']) ??
      (from === undefined || wholeNumberFromZero.fits(from)
        ? undefined
        : `from is ${shown(from)}; expected ${wholeNumberFromZero.words}`);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    const command = {
      ...{ kind: 'resize', capacity },
      ...(by !== undefined && { holder: by }),
      ...(from !== undefined && { from }),
    };
    const outcome = (await this.#resource.submitOnce(command)) as ResizeResult;
    if (outcome.kind === 'resized' && this.#named.capacity !== undefined) this.#named.capacity = capacity;
    return outcome;
  }

  /**
   * Grants nothing new until `undrain`: requests wait, tries are refused, and holders keep what they have. Those who wait see
   * the reason. A semaphore that is drained already keeps its first drain.
   */
  async drain(by: Draining): Promise<DrainResult> {
    const { holder, reason } = by;
    const problem = requestProblem(by, ['holder', 'reason']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    return (await this.#resource.submitOnce({ kind: 'drain', holder, reason })) as DrainResult;
  }

  /** Grants again, to those who wait first. With a `revision`, only if that is still the drain that you saw. */
  async undrain(by: Undraining): Promise<UndrainResult> {
    const { holder, revision } = by;
    const isFit = revision === undefined || (Number.isSafeInteger(revision) && revision >= 0);
    const problem =
      requestProblem({ holder }, ['holder']) ??
      (isFit ? undefined : `revision is ${shown(revision)}; expected a whole number, the revision of the drain`);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    const command = { kind: 'undrain', holder, ...(revision !== undefined && { revision }) };
    return (await this.#resource.submitOnce(command)) as UndrainResult;
  }

  /** Who holds how many slots, who waits, and which rules bind them. */
  async inspect(): Promise<SemaphoreView<Meta>> {
    const { view, holders } = await this.#resource.look();
    const { record, waiting } = view.state;
    const usedSlots = record.holds.reduce((sum, { weight }) => sum + weight, 0);
    return {
      name: this.name,
      capacity: record.capacity,
      usedSlots,
      availableSlots: availableSlots(view.state),
      drained: record.drained,
      ...settingsView(record),
      holders: holders.map((holder, place) => {
        const { weight = 0, slots = [] } = record.holds[place] ?? {};
        return { ...(holder as HolderView<Meta>), weight, slots: slotNumbers(slots) };
      }),
      waiting: waiting.map(({ holder, weight, priority, reason }) => ({ holder, weight, priority, reason })),
    };
  }

  /** How many slots are held. */
  async usedSlots(): Promise<number> {
    return (await this.inspect()).usedSlots;
  }

  /** How many slots are free. */
  async availableSlots(): Promise<number> {
    return (await this.inspect()).availableSlots;
  }

  /** Whether `weight` slots could be had at this moment, without passing a waiter. */
  async canAcquire(weight: number): Promise<boolean> {
    const { view } = await this.#resource.look();
    return canAcquire(view.state, weight);
  }

  /** The holders that are stale. */
  async staleHolders(): Promise<readonly HolderView<Meta>[]> {
    return (await this.inspect()).holders.filter((holder) => holder.isStale);
  }
}

function shownHold({ grant, detached }: Given): SlotsHeld {
  const { weight, slots } = grant as SemaphoreGrant;
  return { ...detached, weight, slots: slotNumbers(slots) };
}

function askForSlots(
  id: string,
  lease: string,
  options: SemaphoreOptions<unknown> | undefined,
  wait: boolean,
  capacity: number | undefined,
): Request & AnyCommand & { weight: number; capacity?: number } {
  const fields = options === undefined ? { id, holder: id, lease, priority: 0 } : requestFields(id, lease, options);
  const weight = options?.weight ?? 1;
  return { kind: 'acquire', ...fields, weight, wait, ...(capacity !== undefined && { capacity }) };
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

/** @internal A hold of slots, as the runtime keeps it. */
export class KeptSemaphoreHold extends KeptHold<SemaphoreGrant> {
  /** Answers can only make a weight grow. The record may also show a larger weight that was given up, and shrink again. */
  protected override isOutdated({ weight }: SemaphoreGrant, isStored: boolean): boolean {
    return !isStored && weight < this.grant.weight;
  }

  get weight(): number {
    return this.grant.weight;
  }

  get slots(): readonly number[] {
    return slotNumbers(this.grant.slots);
  }
}

/** Throws if it has another capacity. */
export async function ensureSlots(
  runtime: Runtime,
  resource: string,
  capacity: number,
  settings: Settings | undefined,
): Promise<void> {
  runtime.refuseIfClosed();
  const problem =
    requestProblem({ capacity }, ['capacity']) ?? (settings === undefined ? undefined : settingsProblem(settings));
  if (problem !== undefined) throw new Failure('invalid', `${resource}: ${problem}`);
  const command = { ...settings, kind: 'configure', capacity } as AnyCommand;
  const mark = runtime.options.newId();
  const outcome = await outcomeOf(runtime.writerFor(resource), command, runtime.giveUpAt(), mark);
  if (outcome.kind !== 'configured') throw refused(resource, outcome);
}

const holdOf = holdMaker(KeptSemaphoreHold, SemaphoreHold, ['already-held', 'increased']);
