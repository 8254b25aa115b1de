/** A lock, as users hold it. */
import type {
  Hold as Grant,
  Json,
  Lock as LockState,
  LockHold as LockGrant,
  LockMode,
  LockOutcome,
  Request,
} from '../../core/index.ts';
import { UpgradeAcquisition } from './acquisition.ts';
import type { WaitOptions } from './wait-limits.ts';
import { Hold, KeptHold, traceOf } from './hold.ts';
import { inconsistent } from '../layout.ts';
import { lockMachine } from '../../core/machines.ts';
import { abortSignal, aFunction, millisecondsFromZero, refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import { ownCopy } from '../own-copy.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { HoldLost, type Refused } from '../refusal.ts';
import { attemptOf, holdMaker, NamedResource, refused, requestFields, Resource } from './resource.ts';
import type { Given } from './detached.ts';
import { downgrade, upgrade } from './detached-change.ts';
import { runUnder } from './hold-set.ts';
import {
  type DetachedHold,
  type DetachedOptions,
  type HoldClaim,
  type HolderView,
  type ModeOutcome,
  type RequestOptions,
  type ResourceView,
  settingsView,
} from './terms.ts';
import type { Runtime } from '../runtime.ts';
import { mayWait } from '../../core/strategy.ts';

/** How to ask for a lock. */
export interface LockOptions<Meta = Json> extends RequestOptions<Meta> {
  /** `exclusive` if not given: alone. `shared`: together with other readers. */
  readonly mode?: LockMode;
}

/**
 * A detached hold of a lock. `mode`: as it is held. A holder that has the lock exclusively keeps it so, even if it asks to
 * share it.
 */
type LockHeld = DetachedHold & { readonly mode: LockMode };

/** What `tryAcquire` answers: `ok` says whether there is a hold, `kind` how it came about or why there is none. */
export type LockAttempt =
  | { readonly ok: true; readonly kind: 'acquired'; readonly hold: LockHold }
  /** Taken from holders whose leases had ended. */
  | { readonly ok: true; readonly kind: 'reclaimed'; readonly hold: LockHold; readonly from: readonly LockGrant[] }
  /** The same holder had the lock already; `upgraded` if it had only read. */
  | { readonly ok: true; readonly kind: 'extended' | 'upgraded'; readonly hold: LockHold }
  | Refused<'busy' | 'too-large' | 'upgrade-conflict' | 'lost'>;

/** A lock, as `inspect` shows it. */
export interface LockView<Meta = Json> extends ResourceView<
  Meta,
  { readonly mode: LockMode },
  { readonly mode: LockMode; readonly metadata: Meta | undefined }
> {
  /** Whether nobody holds it. */
  readonly isFree: boolean;
}

/** A lock by its name. `Meta`: the type of the metadata that its holders give. */
export class Lock<Meta = Json> extends NamedResource<LockHeld, DetachedOptions<Meta> & LockOptions<Meta>> {
  readonly #resource: Resource<LockState, LockOutcome>;

  /** @internal */
  constructor(runtime: Runtime, name: string) {
    const resource = new Resource<LockState, LockOutcome>(runtime, lockMachine, name, askForLock);
    super(resource, shownHold);
    this.#resource = resource;
  }

  /** Waits for the lock. Throws `NotAcquired` if it cannot be had. */
  acquire(options?: LockOptions<Meta> & WaitOptions): Promise<LockHold> {
    return this.#resource.ask(options, mayWait(options?.strategy), holdOf);
  }

  /** Answers at once, and does not throw if the lock is held. */
  tryAcquire(options?: LockOptions<Meta>): Promise<LockAttempt> {
    return this.#resource.ask<LockAttempt, LockOptions<Meta> | undefined>(options, false, (outcome, asked, of) =>
      attemptOf<LockHold, LockAttempt>(outcome, holdOf(outcome, asked, of)),
    );
  }

  /** Waits for the lock, runs `work`, and always releases it; throws `HoldLost` if the hold was lost meanwhile. */
  async run<T>(work: (hold: LockHold) => T | Promise<T>, options?: LockOptions<Meta> & WaitOptions): Promise<T> {
    refuseUnlessFunction('the work', work);
    const hold = await this.acquire(options);
    return runUnder(hold, work, traceOf(hold));
  }

  /**
   * Makes a detached hold of a reader exclusive: at once if there is no other reader, otherwise ahead of waiting writers. Keeps
   * the hold alive while it waits. The token changes. Throws `NotAcquired` if it cannot be had.
   */
  async upgrade(claim: HoldClaim, options: WaitOptions = {}): Promise<ModeOutcome> {
    refuseWrongValues(options, WAIT);
    return upgrade(this.#resource, claim, options);
  }

  /** Makes a detached hold of a writer shared, without a release in between: waiting readers join. */
  async downgrade(claim: HoldClaim): Promise<ModeOutcome> {
    return downgrade(this.#resource, claim);
  }

  /** Who holds it, who waits for it, and which rules bind them. */
  async inspect(): Promise<LockView<Meta>> {
    const { view, holders } = await this.#resource.look();
    const { record, waiting } = view.state;
    return {
      name: this.name,
      isFree: record.holds.length === 0,
      ...settingsView(record),
      holders: holders.map((holder, place) => ({
        ...(holder as HolderView<Meta>),
        mode: record.holds[place]?.mode ?? 'exclusive',
      })),
      waiting: waiting.map(({ holder, mode, priority, reason, metadata }) => ({
        holder,
        mode,
        priority,
        reason,
        metadata: ownCopy(metadata) as Meta | undefined,
      })),
    };
  }

  /** Whether nobody holds it. */
  async isFree(): Promise<boolean> {
    return (await this.inspect()).isFree;
  }

  /** Whether this holder has it, stale or not. */
  async isHeldBy(holder: string): Promise<boolean> {
    return (await this.inspect()).holders.some((held) => held.holder === holder);
  }

  /** Whether one of its holds is stale. */
  async isStale(): Promise<boolean> {
    return (await this.inspect()).holders.some((held) => held.isStale);
  }
}

function shownHold({ grant, detached }: Given): LockHeld {
  return { ...detached, mode: (grant as LockGrant).mode };
}

const WAIT = { waitMs: millisecondsFromZero, signal: abortSignal, onWaiting: aFunction };

function askForLock(
  id: string,
  lease: string,
  options: LockOptions<unknown> | undefined,
  wait: boolean,
): Request & AnyCommand & { mode: LockMode } {
  if (options === undefined) return { kind: 'acquire', id, holder: id, lease, priority: 0, mode: 'exclusive', wait };
  return { kind: 'acquire', ...requestFields(id, lease, options), mode: options.mode ?? 'exclusive', wait };
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

/** @internal A hold of a lock, as the runtime keeps it. */
export class KeptLockHold extends KeptHold<LockGrant> {
  get mode(): LockMode {
    return this.grant.mode;
  }

  /**
   * Answers can only make a hold exclusive: the answer to a request that shares the hold may show less than it is, because
   * another request may still give the rest back.
   */
  protected override isOutdated(grant: LockGrant, isStored: boolean): boolean {
    return (!isStored && grant.mode === 'shared') || this.#isOlder(grant);
  }

  /** An upgrade has a larger token than any earlier grant, and a downgrade keeps that token, but not `upgradedBy`. */
  #isOlder({ token, mode }: LockGrant): boolean {
    const known = this.grant;
    const isDowngraded = known.mode === 'shared' && known.upgradedBy === undefined;
    return token < known.token || (token === known.token && mode === 'exclusive' && isDowngraded);
  }

  /** From reader to writer: at once if there is no other reader, otherwise ahead of waiting writers. */
  async upgrade(options?: WaitOptions): Promise<this> {
    if (options !== undefined) {
      refuseWrongValues(options, WAIT);
    }
    this.check();
    const session = await this.runtime.ready();
    const request = this.runtime.nextId(session);
    const { holder, id } = this.grant;
    const wait = options?.waitMs !== 0;
    const outcome = await new Promise<AnyOutcome>((resolve, reject) => {
      const command = { kind: 'upgrade', holder, id, request, lease: session.id, wait } as AnyCommand;
      const waiting = wait ? options : undefined;
      const deliver = (answer: AnyOutcome): AnyOutcome => answer;
      new UpgradeAcquisition(this.runtime, this.writer, command, session.id, waiting, deliver, resolve, reject).ask();
    });
    if (outcome.hold === undefined) {
      if (outcome.kind === 'lost' || outcome.kind === 'already-free' || outcome.kind === 'not-owner') {
        this.lose({ why: 'reclaimed' });
        throw this.lost ?? new HoldLost(this.resource, { why: 'reclaimed' });
      }
      throw refused(this.resource, outcome);
    }
    this.changed(outcome.hold as LockGrant);
    // The hold may have been lost while the answer was on its way.
    this.check();
    return this;
  }

  /**
   * From writer to reader, without a release in between: waiting readers join. They may join even if no answer arrives, so the
   * hold counts as a reader from here on.
   */
  async downgrade(): Promise<this> {
    this.check();
    const { upgradedBy: _upgradedBy, ...grant } = this.grant;
    const { holder, id } = grant;
    this.changed({ ...grant, mode: 'shared' }, true);
    const command = { kind: 'downgrade', holder, id } as AnyCommand;
    const outcome = await outcomeOf(this.writer, command, this.runtime.giveUpAt());
    if (outcome.hold === undefined) {
      this.lose({ why: 'reclaimed' });
      throw this.lost ?? new HoldLost(this.resource, { why: 'reclaimed' });
    }
    this.changed(outcome.hold as LockGrant);
    this.check();
    return this;
  }

  isLessThan(stored: Grant): boolean {
    return this.mode === 'shared' && this.#isOlder(stored as LockGrant);
  }
}

/** @internal A caller that asked to write is never handed a hold that only reads. */
export function refuseReader(hold: KeptLockHold, asked: LockMode = 'exclusive'): void {
  if (asked === 'shared' || hold.mode === 'exclusive') return;
  const fault = `hold ${hold.id} is shared, and was asked for exclusively`;
  throw inconsistent(hold.resource, 'as it was about to be handed out', fault);
}

const holdOf = holdMaker(KeptLockHold, LockHold, ['extended', 'upgraded'], (kept, options?: LockOptions<unknown>) =>
  refuseReader(kept, options?.mode),
);
