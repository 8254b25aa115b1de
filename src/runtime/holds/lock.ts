/** A lock, as users hold it. */
import type {
  Hold as Grant,
  Json,
  Lock as LockState,
  LockCommand,
  LockHold as LockGrant,
  LockMode,
  LockOutcome,
  OnStale,
  Request,
} from '../../core/index.ts';
import { UpgradeAcquisition, type WaitOptions } from './acquisition.ts';
import { Hold } from './hold.ts';
import { inconsistent } from '../layout.ts';
import { lockMachine } from '../write/machines.ts';
import { abortSignal, aFunction, millisecondsFromZero, refuseUnlessFunction, refuseWrongValues } from '../options.ts';
import { ownCopy } from '../own-copy.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { HoldLost, type Refusal } from '../refusal.ts';
import {
  type DetachedHold,
  type DetachedOptions,
  type HolderView,
  refused,
  requestFields,
  type RequestOptions,
  Resource,
  runUnder,
} from './resource.ts';
import type { Runtime } from '../runtime.ts';
import { mayWait } from '../strategy.ts';

export interface LockOptions extends RequestOptions {
  readonly mode?: LockMode;
}

export type LockAttempt =
  | { readonly kind: 'acquired'; readonly hold: LockHold }
  | { readonly kind: 'reclaimed'; readonly hold: LockHold; readonly from: readonly LockGrant[] }
  /** The same holder had the lock already; `upgraded` if it had only read. */
  | { readonly kind: 'extended' | 'upgraded'; readonly hold: LockHold }
  | Extract<Refusal, { kind: 'busy' | 'too-large' | 'upgrade-conflict' | 'lost' }>;

export interface LockView {
  readonly name: string;
  readonly isFree: boolean;
  readonly onStale: OnStale;
  readonly holders: readonly (HolderView & { readonly mode: LockMode })[];
  readonly waiting: readonly {
    readonly holder: string;
    readonly mode: LockMode;
    readonly priority: number;
    readonly reason: string | undefined;
    readonly metadata: Json | undefined;
  }[];
}

export class Lock extends Resource<LockState, LockCommand, LockOutcome, LockHold> {
  constructor(runtime: Runtime, name: string) {
    super(runtime, lockMachine, name);
  }

  /** Waits for the lock. Throws `NotAcquired` if it cannot be had. */
  acquire(options?: LockOptions & WaitOptions): Promise<LockHold> {
    return this.ask(options, mayWait(options?.strategy), this.#holdOf);
  }

  /** Answers at once, and does not throw if the lock is held. */
  tryAcquire(options?: LockOptions): Promise<LockAttempt> {
    return this.ask<LockAttempt, LockOptions | undefined>(options, false, (outcome) => {
      const hold = this.#holdOf(outcome, options);
      if (hold === undefined) return outcome as unknown as LockAttempt;
      if (hold instanceof Promise) return hold.then((limited) => ({ ...outcome, hold: limited }) as LockAttempt);
      return { ...outcome, hold } as LockAttempt;
    });
  }

  async run<T>(work: (hold: LockHold) => T | Promise<T>, options?: LockOptions & WaitOptions): Promise<T> {
    refuseUnlessFunction('the work', work);
    return runUnder(await this.acquire(options), work);
  }

  /**
   * A hold with a lease of its own, kept by `renew`: for scripts and agents that do not stay connected. `mode`: the mode in
   * which it is held. A holder that has the lock exclusively keeps it so, even if it asks to share it.
   */
  async acquireDetached(options: DetachedOptions & LockOptions): Promise<DetachedHold & { readonly mode: LockMode }> {
    const { grant, detached } = await this.askDetached(options);
    return { ...detached, mode: (grant as LockGrant).mode };
  }

  async inspect(): Promise<LockView> {
    const { view, holders } = await this.look();
    const { record, waiting } = view.state;
    return {
      name: this.name,
      isFree: record.holds.length === 0,
      onStale: record.onStale,
      holders: holders.map((holder, place) => ({ ...holder, mode: record.holds[place]?.mode ?? 'exclusive' })),
      waiting: waiting.map(({ holder, mode, priority, reason, metadata }) => ({
        holder,
        mode,
        priority,
        reason,
        metadata: ownCopy(metadata),
      })),
    };
  }

  async isFree(): Promise<boolean> {
    return (await this.inspect()).isFree;
  }

  async isHeldBy(holder: string): Promise<boolean> {
    return (await this.inspect()).holders.some((held) => held.holder === holder);
  }

  async isStale(): Promise<boolean> {
    return (await this.inspect()).holders.some((held) => held.isStale);
  }

  protected override command(
    id: string,
    lease: string,
    options: LockOptions | undefined,
    wait: boolean,
  ): Request & AnyCommand & { mode: LockMode } {
    if (options === undefined) return { kind: 'acquire', id, holder: id, lease, priority: 0, mode: 'exclusive', wait };
    return { kind: 'acquire', ...requestFields(id, lease, options), mode: options.mode ?? 'exclusive', wait };
  }

  readonly #holdOf = (
    outcome: AnyOutcome,
    options: LockOptions | undefined,
  ): LockHold | Promise<LockHold> | undefined => {
    const { runtime } = this;
    if (outcome.hold === undefined) return undefined;
    const grant = outcome.hold as LockGrant;
    const reentry = outcome.kind === 'extended' || outcome.kind === 'upgraded';
    const hold = new LockHold(runtime, this.anyWriter, grant, runtime.sender.id, reentry);
    refuseReader(hold, options?.mode);
    return this.given(hold, options?.maxHoldMs);
  };
}

export class LockHold extends Hold<LockGrant> {
  get mode(): LockMode {
    return this.grant.mode;
  }

  /** An upgrade has a larger token than any earlier grant, and a downgrade keeps it. */
  protected override isOutdated({ token, mode }: LockGrant): boolean {
    const known = this.grant;
    return token < known.token || (token === known.token && mode === 'exclusive' && known.mode === 'shared');
  }

  /** From reader to writer: at once if there is no other reader, otherwise ahead of waiting writers. */
  async upgrade(options?: WaitOptions): Promise<this> {
    if (options !== undefined) {
      refuseWrongValues(options, { waitMs: millisecondsFromZero, signal: abortSignal, onWaiting: aFunction });
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
    const { holder, id } = this.grant;
    this.changed({ ...this.grant, mode: 'shared' });
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
    return this.mode === 'shared' && this.isOutdated(stored as LockGrant);
  }
}

/** A caller that asked to write is never handed a hold that only reads. */
export function refuseReader(hold: LockHold, asked: LockMode = 'exclusive'): void {
  if (asked === 'shared' || hold.mode === 'exclusive') return;
  const fault = `hold ${hold.id} is shared, and was asked for exclusively`;
  throw inconsistent(hold.resource, 'as it was about to be handed out', fault);
}
