/** What locks and semaphores share as objects of the API: acquire, detached holds, inspect. */
import {
  type Hold as Grant,
  isStale,
  type Json,
  type OnStale,
  type Request,
  requestProblem,
  type Token,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { Acquisition, type AnyWriter, type Deliver, type WaitOptions } from './acquisition.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import type { Hold, ReleaseOutcome } from './hold.ts';
import { anchorKey, processOf } from '../layout.ts';
import type { Coordinated, Machine } from '../write/machines.ts';
import { optionsProblem } from '../options.ts';
import { frozenCopy, ownCopy } from '../own-copy.ts';
import { sessionWithin } from './session-in-time.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { HoldLost, NotAcquired, type Refusal } from '../refusal.ts';
import type { Runtime } from '../runtime.ts';
import { mayWait, type Strategy, strategyFields } from '../strategy.ts';
import { hasPassed, isOfOneMachine, MARGIN, type Sent, sentNow, type Session } from '../session/session.ts';
import { readRange } from '../../store/index.ts';
import type { Snapshot } from '../write/snapshot.ts';
import { persistently } from '../write/write-once.ts';

export interface RequestOptions {
  /** The name of the holder; the same holder re-enters. Without it, every acquire is a holder of its own. */
  readonly holder?: string;
  /** From -100 to 100; higher goes first. No waiter is passed more than a few times in a row. */
  readonly priority?: number;
  /** The reason, shown to those who wait. */
  readonly reason?: string;
  readonly metadata?: Json;
  /** The hold ends after this time, even if its session is renewed. */
  readonly maxHoldMs?: number;
  readonly strategy?: Strategy;
  /**
   * Other holders that continue only after this one has released, such as the holder that started this process. Deadlock
   * detection treats them as waiting for this one.
   */
  readonly within?: readonly string[];
}

export interface DetachedOptions extends RequestOptions, WaitOptions {
  readonly holder: string;
  /** Without a renewal for this long, the hold is stale. */
  readonly ttlMs?: number;
}

/** Identifies a detached hold, to renew or release it. */
export interface HoldClaim {
  readonly holder: string;
  readonly token: Token;
}

export interface DetachedHold extends HoldClaim {
  readonly resource: string;
  readonly id: string;
  readonly ttlMs: number;
}

export type RenewOutcome =
  | { readonly kind: 'refreshed'; readonly ttlMs: number }
  /** The hold rests on a session, which its own process renews: nothing was done. `ttlMs`: of that session. */
  | { readonly kind: 'attached'; readonly ttlMs: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'not-owner' };

export type ClaimReleaseOutcome =
  | { readonly kind: 'released' }
  | { readonly kind: 'not-owner' }
  | { readonly kind: 'already-free' };

export interface HolderView {
  readonly holder: string;
  readonly token: Token;
  readonly acquiredAt: number;
  /** When its lease was last renewed, by the store's account. */
  readonly lastHeartbeat: number | undefined;
  readonly isStale: boolean;
  readonly reason: string | undefined;
  readonly metadata: Json | undefined;
}

export const DETACHED_TTL_MS = 60_000;

export abstract class Resource<
  State extends Coordinated,
  Command extends AnyCommand,
  Outcome extends AnyOutcome,
  H extends Hold,
> {
  readonly name: string;
  protected readonly runtime: Runtime;
  /** For the runtime. */
  readonly writer: ResourceWriter<State, Command, Outcome>;

  constructor(runtime: Runtime, machine: Machine<State, Command, Outcome>, name: string) {
    this.runtime = runtime;
    this.name = name;
    this.writer = runtime.writer(machine, name);
  }

  get resource(): string {
    return this.writer.resource;
  }

  /** `wait`: whether the request may join the queue. */
  protected ask<T, Options extends (RequestOptions & WaitOptions) | undefined>(
    options: Options,
    wait: boolean,
    deliver: Deliver<T, Options>,
  ): Promise<T> {
    const problem = options === undefined ? undefined : optionsProblem(options);
    if (problem !== undefined) return Promise.reject(new Failure('invalid', `${this.resource}: ${problem}`));
    const { session } = this.runtime;
    // `waitMs: 0` means that the request does not join the queue; it does not limit the time of the store's answer.
    const queues = wait && options?.waitMs !== 0;
    if (session !== undefined) return this.#askUnder(session, options, queues, deliver);
    return sessionWithin(this.runtime, this.resource, options).then((ready) =>
      this.#askUnder(ready.session, ready.options, queues, deliver),
    );
  }

  #askUnder<T, Options extends (RequestOptions & WaitOptions) | undefined>(
    session: Session,
    options: Options,
    wait: boolean,
    deliver: Deliver<T, Options>,
    lease = session.id,
  ): Promise<T> {
    const { runtime } = this;
    const command = this.command(runtime.nextId(session), lease, options, wait);
    return new Promise((resolve, reject) => {
      new Acquisition(runtime, this.anyWriter, command, session.id, options, deliver, resolve, reject).ask();
    });
  }

  protected abstract command(
    id: string,
    lease: string,
    options: (RequestOptions & WaitOptions) | undefined,
    wait: boolean,
  ): Request & AnyCommand;

  protected get anyWriter(): AnyWriter {
    return this.writer as unknown as AnyWriter;
  }

  /** Prepares a hold before it is handed out: sets its limit, or follows the outer hold of another process. */
  protected given(hold: H, maxHoldMs: number | undefined): H | Promise<H> {
    if (hold.isReentry) return hold.isKnown ? hold : hold.handedOut();
    return maxHoldMs === undefined ? hold : this.limited(hold, maxHoldMs);
  }

  /** Limits a hold before it is handed out: the store measures the time, by a lease that nobody renews. */
  protected async limited(hold: H, maxHoldMs: number): Promise<H> {
    try {
      await this.limit(hold, maxHoldMs);
      // The hold may have ended since it was granted: then it must not be handed out.
      hold.check();
      return hold;
    } catch (error) {
      await hold.release().catch(() => undefined);
      // The time limit passed before the hold could be handed out.
      if (Failure.is(error, 'not-found')) throw new NotAcquired(this.resource, { kind: 'lost' });
      throw error;
    }
  }

  protected async limit(hold: Hold, maxHoldMs: number): Promise<void> {
    const sent = sentNow(this.runtime.clock);
    const session = await this.runtime.ready();
    const lease = await this.runtime.anchorLease(session, maxHoldMs);
    this.runtime.presence.forgetLease(lease.name);
    const outcome = await this.submit({ kind: 'extend', holder: hold.holder, id: hold.id, limit: lease.name });
    if (outcome.kind !== 'refreshed') {
      hold.lose({ why: 'reclaimed' });
      hold.check();
    }
    hold.endsWith(lease.leaseId, sent, lease.ttlMs * (1 - MARGIN));
  }

  protected submit(command: object, mark?: string): Promise<Outcome> {
    this.runtime.refuseIfClosed();
    return outcomeOf(this.writer, command as unknown as Command, this.runtime.giveUpAt(), mark);
  }

  /** For a command that must not run twice, nor undo a later command of another process: a mark identifies it if its answer is lost. */
  protected submitOnce(command: object): Promise<Outcome> {
    return this.submit(command, this.runtime.options.newId());
  }

  // Detached holds have a lease of their own; any process that knows holder and token can renew and release them.

  protected async askDetached(
    options: DetachedOptions,
  ): Promise<{ readonly grant: Grant; readonly detached: DetachedHold }> {
    const problem = optionsProblem(options) ?? requestProblem({ holder: options.holder }, ['holder']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    const { session, options: left } = await sessionWithin(this.runtime, this.resource, options);
    const sent = sentNow(this.runtime.clock);
    const lease = await this.runtime.anchorLease(session, options.ttlMs ?? DETACHED_TTL_MS);
    const renewing = this.#renewWhileWaiting(lease, sent);
    try {
      const wait = mayWait(options.strategy) && options.waitMs !== 0;
      const collect = (outcome: AnyOutcome): Grant | undefined => {
        if (outcome.hold !== undefined) this.runtime.holdings.collected(outcome.hold.id);
        return outcome.hold;
      };
      const grant = await this.#askUnder(session, left, wait, collect, lease.name);
      if (!renewing.isAlive()) throw new NotAcquired(this.resource, { kind: 'lost' });
      let { ttlMs } = lease;
      if (grant.lease !== lease.name) ttlMs = await this.#heldBefore(grant, lease.leaseId);
      else if (options.maxHoldMs !== undefined) await this.#limitDetached(session, grant, options.maxHoldMs);
      const detached = { resource: this.resource, holder: grant.holder, token: grant.token, id: grant.id, ttlMs };
      return { grant, detached };
    } catch (error) {
      await this.runtime.store.revokeLease(lease.leaseId).catch(() => undefined);
      throw error;
    } finally {
      renewing.cancel();
      this.runtime.presence.forgetLease(lease.name);
    }
  }

  /** The holder had the resource already: renews that hold on its own lease, for its full time. */
  async #heldBefore(grant: Grant, leaseId: string): Promise<number> {
    const renewed = await this.renew(grant);
    if (!('ttlMs' in renewed)) throw new NotAcquired(this.resource, { kind: 'lost' });
    await this.runtime.store.revokeLease(leaseId).catch(() => undefined);
    return renewed.ttlMs;
  }

  async #limitDetached(session: Session, { holder, id }: Grant, maxHoldMs: number): Promise<void> {
    const limit = await this.runtime.anchorLease(session, maxHoldMs);
    this.runtime.presence.forgetLease(limit.name);
    const outcome = await this.submit({ kind: 'extend', holder, id, limit: limit.name });
    if (outcome.kind !== 'refreshed') throw new NotAcquired(this.resource, { kind: 'lost' });
  }

  /** `sent`: when the lease was asked for. A grant that arrives after the lease may have ended does not count. */
  #renewWhileWaiting(
    { leaseId, ttlMs }: { readonly leaseId: string; readonly ttlMs: number },
    sent: Sent,
  ): { cancel(): void; isAlive(): boolean } {
    const { clock, store } = this.runtime;
    let last = sent;
    let timer = clock.timer(ttlMs / 3, renew);
    function renew(): void {
      const asked = sentNow(clock);
      timer = clock.timer(ttlMs / 3, renew);
      store.keepLeaseAlive(leaseId).then(
        (kept) => void (kept !== null && (last = asked)),
        () => undefined,
      );
    }
    return {
      cancel: () => timer.cancel(),
      isAlive: () => !hasPassed(clock, last, ttlMs * (1 - MARGIN), isOfOneMachine(store)),
    };
  }

  /** Renews a detached hold for its full time. A stale hold stays lost. */
  async renew(claim: HoldClaim): Promise<RenewOutcome> {
    const outcome = await this.submit({ kind: 'heartbeat', ...this.#checked(claim) });
    if (outcome.kind === 'lost') return { kind: 'lost' };
    if (outcome.hold === undefined) return { kind: 'not-owner' };
    return this.#kept(outcome.hold);
  }

  /** Only its own process renews a session: renewed by others, it would outlive a process that is stuck. */
  async #kept({ lease }: Grant): Promise<RenewOutcome> {
    const { store, stopped } = this.runtime;
    const id = await this.#leaseIdOf(lease);
    if (id === undefined) return { kind: 'lost' };
    const isAttached = isOfSession(lease);
    const kept = await this.#untilAnswered(() =>
      isAttached ? store.leaseState(id, stopped) : store.keepLeaseAlive(id, stopped),
    );
    return kept === null ? { kind: 'lost' } : { kind: isAttached ? 'attached' : 'refreshed', ttlMs: kept.ttlMs };
  }

  /**
   * Changes how long a detached hold lasts without a renewal. A hold on a session lasts as long as the session, and stays on
   * it.
   */
  async extend(claim: HoldClaim, ttlMs: number): Promise<RenewOutcome> {
    const problem = requestProblem({ ttlMs }, ['ttlMs']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    const before = await this.submit({ kind: 'heartbeat', ...this.#checked(claim) });
    if (before.kind === 'lost') return { kind: 'lost' };
    if (before.hold === undefined) return { kind: 'not-owner' };
    if (isOfSession(before.hold.lease)) return this.#kept(before.hold);
    const lease = await this.runtime.anchorLease(await this.runtime.ready(), ttlMs);
    this.runtime.presence.forgetLease(lease.name);
    const outcome = await this.submit({ kind: 'extend', ...this.#checked(claim), lease: lease.name });
    const [ended, result]: [string | undefined, RenewOutcome] =
      outcome.kind === 'refreshed'
        ? [await this.#endingOf(before.hold), { kind: 'refreshed', ttlMs: lease.ttlMs }]
        : [lease.leaseId, { kind: outcome.kind === 'lost' ? 'lost' : 'not-owner' }];
    if (ended !== undefined) await this.runtime.store.revokeLease(ended).catch(() => undefined);
    return result;
  }

  /** Releases a detached hold; a token of an earlier grant changes nothing. */
  async release(claim: HoldClaim): Promise<ClaimReleaseOutcome> {
    const outcome = await this.submit({ kind: 'release', elsewhere: true, ...this.#checked(claim) });
    if (outcome.kind === 'released') {
      const lease = outcome.hold === undefined ? undefined : await this.#endingOf(outcome.hold);
      if (lease !== undefined) await this.runtime.store.revokeLease(lease).catch(() => undefined);
      return { kind: 'released' };
    }
    return { kind: outcome.kind === 'already-free' ? 'already-free' : 'not-owner' };
  }

  /** Takes only these two fields, also of a hold object. Without a token, the claim would match any hold of its holder. */
  #checked({ holder, token }: HoldClaim): HoldClaim {
    const problem = requestProblem({ holder, token }, ['holder', 'token']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    return { holder, token };
  }

  /** Ends every hold, for administrators. The holders get the reason. */
  async break(by: { readonly holder: string; readonly reason: string }): Promise<{ readonly broken: number }> {
    const problem = requestProblem(by, ['holder', 'reason']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    const outcome = await this.submitOnce({ kind: 'break', holder: by.holder, reason: by.reason });
    return { broken: (outcome as unknown as { holds?: readonly unknown[] }).holds?.length ?? 0 };
  }

  async configure(settings: { readonly onStale: OnStale }): Promise<void> {
    const problem = requestProblem({ onStale: settings.onStale }, ['onStale']);
    if (problem !== undefined) throw new Failure('invalid', `${this.resource}: ${problem}`);
    await this.submitOnce({ kind: 'configure', onStale: settings.onStale });
  }

  // Inspect

  protected async look(): Promise<{ view: Snapshot<State>; holders: readonly HolderView[] }> {
    this.runtime.refuseIfClosed();
    const view = await this.#untilAnswered(
      () => new Promise<Snapshot<State>>((resolve, reject) => this.writer.look(resolve, reject)),
    );
    const holds = view.state.record.holds as readonly Grant[];
    const holders = await Promise.all(holds.map((hold) => this.#holderView(hold)));
    return { view, holders };
  }

  async #holderView(hold: Grant): Promise<HolderView> {
    const leases = [hold.lease, ...(hold.limit === undefined ? [] : [hold.limit])];
    const found = await Promise.all(leases.map((lease) => this.#leaseIdOf(lease)));
    const { store, stopped } = this.runtime;
    const [id] = found;
    const state = id === undefined ? null : await this.#untilAnswered(() => store.leaseState(id, stopped));
    const gone = new Set(leases.filter((_, place) => found[place] === undefined));
    return {
      holder: hold.holder,
      token: hold.token,
      acquiredAt: hold.acquiredAt,
      lastHeartbeat: state === null ? undefined : this.runtime.clock.now() - (state.ttlMs - state.remainingMs),
      isStale: isStale(hold, { now: 0, revision: 0, gone: (lease) => gone.has(lease) }),
      reason: hold.reason,
      metadata: ownCopy(hold.metadata),
    };
  }

  /**
   * The lease to end with the hold; undefined for a session, whose end would end all other holds of its process. A lease that
   * cannot be read ends by itself, so that is no error.
   */
  async #endingOf({ lease }: Grant): Promise<string | undefined> {
    return isOfSession(lease) ? undefined : this.#leaseIdOf(lease).catch(() => undefined);
  }

  /** Repeats a read while the store is away. */
  #untilAnswered<T>(work: () => Promise<T>): Promise<Awaited<T>> {
    return persistently(this.runtime, this.runtime.giveUpAt(), work);
  }

  async #leaseIdOf(lease: string): Promise<string | undefined> {
    const { store, stopped } = this.runtime;
    const { pairs } = await this.#untilAnswered(() => readRange(store, { key: anchorKey(lease) }, stopped));
    return pairs[0]?.lease ?? undefined;
  }
}

/** A lease has the name of its session, or of the request for which it was made. */
function isOfSession(lease: string): boolean {
  return processOf(lease) === lease;
}

/** One hold or several, as `run` uses them. */
interface Releasable {
  readonly resource: string;
  readonly isValid: boolean;
  readonly lost: HoldLost | undefined;
  release(): Promise<ReleaseOutcome | readonly ReleaseOutcome[]>;
}

/** Runs `work` under a hold, and always releases it; throws `HoldLost` if it was lost meanwhile. */
export async function runUnder<H extends Releasable, T>(held: H, work: (held: H) => T | Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work(held);
  } catch (error) {
    // The error of the work matters more than one of the release: the hold ends with its lease at the latest.
    await held.release().catch(() => undefined);
    throw error;
  }
  // Checks the clock: after a stall of the event loop, this is the first to notice that the lease has ended.
  void held.isValid;
  const released = [await held.release()].flat();
  if (held.lost !== undefined) throw held.lost;
  // Or the store knew of the loss first, and answered the release with it.
  const lost = released.find((outcome) => outcome.kind === 'already-lost');
  if (lost !== undefined) throw new HoldLost(held.resource, lost);
  return result;
}

/** The fields that every request has; those that were not given are left out. */
export function requestFields(
  id: string,
  lease: string,
  options: RequestOptions,
): Request & { steal?: true; force?: true } {
  const { holder = id, priority = 0, reason, metadata, maxHoldMs, strategy, within } = options;
  return {
    id,
    holder,
    lease,
    priority,
    ...(reason !== undefined && { reason }),
    ...(metadata !== undefined && { metadata: frozenCopy(metadata) }),
    ...(maxHoldMs !== undefined && { maxHoldMs }),
    ...(within !== undefined && { within: frozenCopy(within) }),
    ...strategyFields(strategy),
  };
}

export function refused(resource: string, outcome: unknown): NotAcquired {
  return new NotAcquired(resource, outcome as Refusal);
}
